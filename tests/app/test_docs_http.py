"""/docs: Swagger UI from our own package, that needs nobody else's server."""

import gzip
import hashlib
import json
import re
from importlib.resources import files

from tests.support.live_service import TestService

VENDORED = files("assay.server.ui").joinpath("swagger-ui")
IMMUTABLE = "public, max-age=31536000, immutable"
TYPES = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8"}


async def parts_of(service: TestService) -> list[str]:
    page = (await service.http.get("/docs")).text
    return [f"/{name}" for name in re.findall(r"(?:src|href)=\"(docs/[^\"]+)\"", page)]


async def test_200_the_page_and_each_part_are_served_as_what_they_are(service: TestService) -> None:
    page = await service.http.get("/docs")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["cache-control"] == "public, max-age=0"  # it names the parts
    parts = await parts_of(service)
    assert len(parts) == 4
    for path in parts:
        answer = await service.http.get(path)
        assert (answer.status_code, answer.headers["cache-control"]) == (200, IMMUTABLE)
        assert answer.headers["content-type"] == TYPES[path.rpartition(".")[2]]
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert hashlib.sha256(answer.content).hexdigest().startswith(path.split(".")[1])


async def test_a_part_is_sent_compressed_or_plain_and_304_to_those_who_have_it(
    service: TestService,
) -> None:
    path = next(one for one in await parts_of(service) if "bundle" in one)
    plain = await service.http.get(path, headers={"accept-encoding": "identity"})
    packed = await service.http.get(path, headers={"accept-encoding": "gzip"})
    assert "content-encoding" not in plain.headers
    assert (packed.headers["content-encoding"], packed.headers["vary"]) == (
        "gzip",
        "accept-encoding",
    )
    assert packed.content == plain.content
    assert int(packed.headers["content-length"]) < 500_000
    again = {"accept-encoding": "gzip", "if-none-match": packed.headers["etag"]}
    assert (await service.http.get(path, headers=again)).status_code == 304


async def test_404_any_other_name(service: TestService) -> None:
    for name in ("x.js", "docs.js", "..%2fdocs.html", "swagger-ui-bundle.0000000000000000.js"):
        answer = await service.http.get(f"/docs/{name}")
        assert (answer.status_code, answer.json()["code"]) == (404, "not_found"), name


async def test_the_policy_lets_nothing_in_from_elsewhere(service: TestService) -> None:
    policy = (await service.http.get("/docs")).headers["content-security-policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules.pop("img-src") == "'self' data:"
    assert rules.pop("style-src") == "'self' 'unsafe-inline'"
    assert set(rules.values()) == {"'self'", "'none'"}
    assert rules["script-src"] == "'self'"
    assert rules["default-src"] == rules["frame-ancestors"] == "'none'"


async def test_the_page_names_only_files_of_ours_and_runs_nothing_inline(
    service: TestService,
) -> None:
    page = (await service.http.get("/docs")).text
    links = re.findall(r"(?:src|href)=\"([^\"]+)\"", page)
    assert {"openapi.json", "openapi.yaml"} <= set(links)
    for link in links:
        assert (await service.http.get(f"/{link.lstrip('/')}")).status_code == 200
    assert re.findall(r"<script(?![^>]*src=)", page) == []
    assert re.findall(r"\son\w+=|style=|://", page) == []
    assert re.search(r"<noscript>[^\n]*href=\"openapi.json\"", page)


async def test_what_is_vendored_is_what_was_recorded(service: TestService) -> None:
    record = json.loads(VENDORED.joinpath("vendored.json").read_text())
    served = {re.sub(r"\.[0-9a-f]{16}", "", one): one for one in await parts_of(service)}
    assert set(record["sha256"]) == {
        one.name.removesuffix(".gz") for one in VENDORED.iterdir() if one.name.endswith(".gz")
    }
    for name, known in record["sha256"].items():
        content = gzip.decompress(VENDORED.joinpath(f"{name}.gz").read_bytes())
        assert hashlib.sha256(content).hexdigest() == known
        assert b"sourceMappingURL" not in content[-200:]
        assert (await service.http.get(served[f"/docs/{name}"])).content == content
    assert "Apache License" in VENDORED.joinpath("LICENSE").read_text()
    assert re.fullmatch(r"\d+\.\d+\.\d+", record["version"])
    assert record["integrity"].startswith("sha512-")
