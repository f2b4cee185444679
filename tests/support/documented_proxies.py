"""The configurations of `docs/operate.md`, run as they stand there: only addresses are replaced.

TLS is left out: the tests speak to the proxies in plain text, on loopback.
"""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

from tests.support import reverse_proxies
from tests.support.forked import ROOT
from tests.support.reverse_proxies import Command, Configure, Route

SITE = "assay.example.com"
INTERNAL = "/internal/"
INTERNAL_FILE = "a file of the proxy's own"


def _page() -> str:
    return (ROOT / "docs/operate.md").read_text("utf-8")


def block(language: str) -> str:
    """The one block of that language in the section about proxies."""
    section = _page().partition("\n## The proxy in front\n")[2].partition("\n## ")[0]
    [found] = re.findall(rf"^```{language}\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    return found


def trusted_proxies() -> str:
    """As `ASSAY_TRUSTED_PROXIES` takes what the recommended configuration names."""
    [found] = re.findall(r"^```toml\n(.*?)^```", _page(), re.DOTALL | re.MULTILINE)
    return ",".join(tomllib.loads(found)["trusted_proxies"])


def _replaced(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert text.count(old) == 1, f"the page has no longer one {old!r}"
        text = text.replace(old, new)
    return text


def _nginx(folder: Path, routes: Sequence[Route]) -> Command:
    [route] = routes
    (folder / "internal").mkdir()
    (folder / "internal/file").write_text(INTERNAL_FILE)
    own = f"    location {INTERNAL} {{ internal; alias {folder}/internal/; }}\n"
    text = _replaced(
        block("nginx"),
        ("listen 443 ssl;", f"listen 127.0.0.1:{route.listen};"),
        ("    ssl_certificate /etc/ssl/assay.pem;\n", ""),
        ("    ssl_certificate_key /etc/ssl/assay.key;\n", ""),
        ("127.0.0.1:8787", f"127.0.0.1:{route.backend}"),
        ("    location / {", own + "    location / {"),
    )
    return reverse_proxies.nginx(folder, text)


def _caddy(folder: Path, routes: Sequence[Route]) -> Command:
    [route] = routes
    text = _replaced(
        block("caddyfile"),
        ("{\n    servers", "{\n" + reverse_proxies.CADDY_OPTIONS + "    servers"),
        (f"{SITE} {{", f"http://{SITE}:{route.listen} {{\n    bind 127.0.0.1"),
        ("127.0.0.1:8787", f"127.0.0.1:{route.backend}"),
    )
    return reverse_proxies.caddy(folder, text)


def _haproxy(folder: Path, routes: Sequence[Route]) -> Command:
    [route] = routes
    text = _replaced(
        block("haproxy"),
        ("bind :443 ssl crt /etc/haproxy/assay.pem", f"bind 127.0.0.1:{route.listen}"),
        ("127.0.0.1:8787", f"127.0.0.1:{route.backend}"),
    )
    return reverse_proxies.haproxy(folder, text)


def _envoy(folder: Path, routes: Sequence[Route]) -> Command:
    [route] = routes
    text = _replaced(
        block("yaml"),
        ("address: 0.0.0.0, port_value: 443", f"address: 127.0.0.1, port_value: {route.listen}"),
        ("port_value: 8787", f"port_value: {route.backend}"),
    )
    return reverse_proxies.envoy(folder, text)


DOCUMENTED_PROXIES: dict[str, Configure] = {
    "nginx": _nginx,
    "caddy": _caddy,
    "haproxy": _haproxy,
    "envoy": _envoy,
}
