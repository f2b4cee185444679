"""The documents by which agents, crawlers and security researchers find the service."""

import base64
import json
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.robotparser import RobotFileParser

import httpx2
import pytest
from jsonschema import Draft202012Validator
from x402.extensions.bazaar import extract_discovery_info

from assay.app.web import openapi_document
from assay.control.statements_in_documents import agent_name, read_document, read_json
from assay.identity.model import CHALLENGE_TTL, SESSION_TTL
from assay.registries.registration import parse_registration
from assay.settings import SettingsError, load
from tests.support.assay import served
from tests.support.live_service import OWNER_KEY, TestService, refused, start_test_service
from tests.support.shop import NO_CHAIN
from tests.support.wire_upstream import wire_upstream

SECURITY = "/.well-known/security.txt"
CATALOG = "/.well-known/api-catalog"
AGENT = "/.well-known/agent-registration.json"
PLAIN = "text/plain; charset=utf-8"
TYPES = {
    SECURITY: PLAIN,
    CATALOG: 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"',
    AGENT: "application/json",
    "/robots.txt": PLAIN,
    "/llms.txt": PLAIN,
    "/favicon.svg": "image/svg+xml",
    "/docs": "text/html; charset=utf-8",
    "/openapi.json": "application/json",
}
PUBLIC = "https://assay.example.com"
REGISTRY = "eip155:8453:0x8004a169fb4a3325136eb29fa0ceb6d2e539a432"
CONFIGURED = {
    "public_url": PUBLIC,
    "security_contact": "mailto:sec@example.com, https://example.com/report",
    "service_agent_ids": f"{REGISTRY}/22",
}


def fields(text: str) -> list[tuple[str, str]]:
    """Name and value of every line, as RFC 9116 has them."""
    assert text.endswith("\n")
    return [
        (name, value) for name, _, value in (line.partition(": ") for line in text.splitlines())
    ]


@pytest.fixture(scope="module")
def over_http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx2.Client]:
    """A serving process with everything configured."""
    settings: dict[str, Any] = {
        f"ASSAY_{name.upper()}": value for name, value in CONFIGURED.items() if name != "public_url"
    }
    with (
        served(tmp_path_factory.mktemp("assay"), NO_CHAIN, **settings) as process,
        httpx2.Client(base_url=process.address, headers={"accept-encoding": "identity"}) as http,
    ):
        yield http


@pytest.mark.e2e
@pytest.mark.parametrize("path", TYPES)
def test_head_has_the_headers_of_get_and_no_body(over_http: httpx2.Client, path: str) -> None:
    changing = {"date", "x-request-id", "ratelimit-remaining", "ratelimit-reset"}
    got, head = over_http.get(path), over_http.head(path)
    assert (got.status_code, got.headers["content-type"]) == (200, TYPES[path])
    assert got.headers["cache-control"].startswith("public, max-age=")
    assert int(got.headers["content-length"]) == len(got.content) > 0
    assert (head.status_code, head.content) == (200, b"")
    left, right = (
        {name: value for name, value in one.headers.items() if name not in changing}
        for one in (got, head)
    )
    assert left == right


@pytest.mark.e2e
@pytest.mark.parametrize("path", TYPES)
def test_a_current_copy_is_answered_with_304(over_http: httpx2.Client, path: str) -> None:
    tag = over_http.get(path).headers["etag"]
    for method in ("GET", "HEAD"):
        for known in (tag, f'"other", W/{tag}', "*"):
            answer = over_http.request(method, path, headers={"if-none-match": known})
            assert (answer.status_code, answer.content) == (304, b""), known
            assert answer.headers["etag"] == tag
            assert answer.headers["cache-control"].startswith("public, max-age=")
    for unknown in ('"other"', "", tag.strip('"'), tag[:-2] + '"', ",,,", '"' * 5000):
        answer = over_http.get(path, headers={"if-none-match": unknown})
        assert answer.status_code == 200, unknown


@pytest.mark.e2e
@pytest.mark.parametrize("path", TYPES)
def test_no_document_contains_what_a_hostile_request_sends(
    over_http: httpx2.Client, path: str
) -> None:
    hostile = {
        "host": "evil.example",
        "x-forwarded-host": "evil.example",
        "x-forwarded-proto": "gopher",
        "x-forwarded-prefix": "/evil.example",
        "forwarded": "host=evil.example;proto=gopher",
        "x-original-url": "/evil.example",
    }
    plain = over_http.get(path)
    answer = over_http.get(f"{path}?x=evil.example", headers=hostile)
    assert answer.status_code == 200
    assert answer.content == plain.content
    assert "evil.example" not in str(answer.headers)


@pytest.mark.parametrize("path", [SECURITY, AGENT])
async def test_what_is_not_configured_is_404_in_the_form_of_errors(
    service: TestService, path: str
) -> None:
    body = refused(await service.http.get(path), 404, "not_found")
    assert "This installation" in body["message"]


@pytest.mark.parametrize("path", [SECURITY, CATALOG, AGENT, "/robots.txt", "/llms.txt"])
async def test_a_document_is_read_and_nothing_else(service: TestService, path: str) -> None:
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        answer = await service.http.request(method, path, content=b"x")
        refused(answer, 405, "method_not_allowed")
        assert answer.headers["allow"] == "GET, HEAD"
    assert (await service.http.get(path + "/")).status_code == 404


@pytest.mark.parametrize("path", [CATALOG, "/robots.txt", "/llms.txt", "/favicon.svg"])
async def test_documents_count_towards_the_limit_of_strangers(tmp_path: Path, path: str) -> None:
    async with start_test_service(tmp_path, anonymous_per_minute=2) as service:
        statuses = [(await service.http.get(path)).status_code for _ in range(3)]
    assert statuses == [200, 200, 429]


@pytest.mark.parametrize("days", range(0, 366, 30))
async def test_the_security_contact_is_good_for_less_than_a_year(tmp_path: Path, days: int) -> None:
    async with start_test_service(tmp_path, security_contact="mailto:a@example.com") as service:
        service.clock.move(days * 86_400)
        answer = await service.http.get(SECURITY)
        service.clock.move(3_600)
        later = await service.http.get(SECURITY)
        said = dict(fields(answer.text))
        left = datetime.fromisoformat(said["Expires"]) - service.clock.now()
    assert timedelta(days=90) < left < timedelta(days=300)
    assert later.headers["etag"] == answer.headers["etag"]


async def test_contacts_are_those_of_the_setting_in_their_order(tmp_path: Path) -> None:
    async with start_test_service(tmp_path, **CONFIGURED) as service:
        said = fields((await service.http.get(SECURITY)).text)
    found = [value for name, value in said if name == "Contact"]
    assert found == ["mailto:sec@example.com", "https://example.com/report"]
    assert ("Canonical", PUBLIC + SECURITY) in said


async def test_an_address_without_tls_is_not_canonical(tmp_path: Path) -> None:
    settings = {**CONFIGURED, "public_url": "http://assay.example.com"}
    async with start_test_service(tmp_path, **settings) as service:
        assert "Canonical" not in (await service.http.get(SECURITY)).text


@pytest.mark.parametrize("wrong", ["sec@example.com", "mailto:a\nExpires: 1", "http://x.example"])
def test_what_is_no_contact_stops_the_boot(wrong: str) -> None:
    with pytest.raises(SettingsError, match="SECURITY_CONTACT"):
        load(security_contact=wrong)


@pytest.mark.parametrize(
    "wrong", ["22", "base:22", f"{REGISTRY}/", f"{REGISTRY}/x", f"{REGISTRY}/22/", f'{REGISTRY}/2"']
)
def test_what_is_no_agent_stops_the_boot(wrong: str) -> None:
    with pytest.raises(SettingsError, match="SERVICE_AGENT_IDS"):
        load(service_agent_ids=wrong)


async def test_the_agent_file_proves_control_and_has_no_problem(tmp_path: Path) -> None:
    """Read as Assay reads the files of other hosts."""
    async with start_test_service(tmp_path, **CONFIGURED) as service:
        body = (await service.http.get(AGENT)).content
    assert agent_name(REGISTRY, "22") in read_document(read_json(body)).agents
    file = parse_registration(body, PUBLIC + AGENT)
    assert file.problems == ()
    assert file.active is True
    assert [one.endpoint for one in file.services] == [f"{PUBLIC}/docs", f"{PUBLIC}/openapi.json"]


LINK = {
    "type": "object",
    "required": ["href"],
    "properties": {"href": {"type": "string", "format": "uri"}, "type": {"type": "string"}},
}
LINKSET = {
    "type": "object",
    "required": ["linkset"],
    "additionalProperties": False,
    "properties": {
        "linkset": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"anchor": {"type": "string"}},
                "additionalProperties": {"type": "array", "minItems": 1, "items": LINK},
            },
        }
    },
}
"""Source: RFC 9264, section 4.2."""


async def test_the_catalog_links_to_documents_of_the_type_that_it_names(
    service: TestService,
) -> None:
    answer = await service.http.get(CATALOG)
    Draft202012Validator(LINKSET).validate(answer.json())
    address = service.app.settings.address
    assert answer.headers["link"] == f'<{address}{CATALOG}>; rel="api-catalog"'
    index, api = answer.json()["linkset"]
    assert index == {"anchor": address + CATALOG, "item": [{"href": api.pop("anchor")}]}
    assert api.keys() == {"service-desc", "service-doc", "status"}
    for link in (one for links in api.values() for one in links):
        found = await service.http.get(link["href"].removeprefix(address))
        assert found.status_code == 200
        assert found.headers["content-type"].partition(";")[0] == link["type"]


@pytest.mark.parametrize("below", ["", "/trust"])
async def test_crawlers_may_read_documents_and_may_not_cause_costs(
    tmp_path: Path, below: str
) -> None:
    async with start_test_service(tmp_path, public_url=PUBLIC + below) as service:
        text = (await service.http.get("/robots.txt")).text
        paths = [
            path
            for path, item in openapi_document(service.app)["paths"].items()
            if path.startswith(("/operator/", "/wrap/")) and "get" in item
        ]
    rules = RobotFileParser()
    rules.parse(text.splitlines())
    for path in ("/docs", "/llms.txt", "/openapi.json", "/operator/health", CATALOG, SECURITY):
        assert rules.can_fetch("*", PUBLIC + below + path), path
    free = ("/operator/health", "/operator/sandbox/")
    assert len(paths) > 20
    for path in (*paths, "/operator/gate/22", "/operator/trigger-sandbox/22", "/wrap/x/y"):
        assert rules.can_fetch("*", PUBLIC + below + path) == path.startswith(free), path


async def test_the_mark_is_an_image_that_runs_and_loads_nothing(service: TestService) -> None:
    answer = await service.http.get("/favicon.svg")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    assert policy.endswith("; sandbox")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert set(re.findall(r"<(\w+)", answer.text)) == {"svg", "rect", "path"}
    assert not re.search(r"href|style|url\(|\son\w+=", answer.text)
    page = (await service.http.get("/docs")).text
    assert '<link rel="icon" type="image/svg+xml" href="/favicon.svg">' in page


FORM = re.compile(
    r"# [^\n]+\n\n> [^\n]+\n\n(?:(?!#)[^\n]*\n)+"
    r"(?:## [^\n]+\n\n(?:- \[[^\]\n]+\]\(https?://[^)\s]+\): [^\n]+\n)+\n?)+"
)
"""A title, a summary, text without headings, and lists of links. Source: https://llmstxt.org."""


def headers_of(document: dict[str, Any]) -> set[str]:
    """Every header that the interface's own description names."""
    schemes = document["components"]["securitySchemes"].values()
    parameters = [
        parameter
        for item in document["paths"].values()
        for operation in item.values()
        for parameter in operation.get("parameters", ())
    ]
    shared = document["components"].get("parameters", {}).values()
    given = (*schemes, *shared, *parameters)
    named = {one["name"] for one in given if one.get("in") == "header"}
    return named | set(document["components"]["headers"]) | {"authorization"}


async def exposed_by_wrappers(service: TestService) -> set[str]:
    """The headers of a wrapper's answers that a page of another origin can read."""
    await service.operator()
    token = await service.token()
    me = (await service.http.get("/operator/me", headers=token)).json()["operator"]["id"]
    body = {
        "path": "/sold",
        "pricePerCall": 0.01,
        "targetUrl": "https://api.example.com",
        "payoutAddress": "0x" + "5e" * 20,
        "corsOrigins": ["*"],
    }
    made = await service.http.post("/operator/endpoints", json=body, headers=token)
    assert made.status_code == 200, made.text
    answer = await service.http.get(f"/wrap/{me}/sold", headers={"origin": "https://x.example"})
    shown = answer.headers["access-control-expose-headers"]
    return {name.strip().lower() for name in shown.split(",")}


async def test_the_guide_names_only_paths_and_headers_that_exist(tmp_path: Path) -> None:
    async with start_test_service(
        tmp_path, anonymous_per_minute=77, body_bytes_max=70_000
    ) as service:
        text = (await service.http.get("/llms.txt")).text
        document = openapi_document(service.app)
        address = service.app.settings.address
        for url in re.findall(r"\]\((\S+?)\)", text):
            assert (await service.http.get(url.removeprefix(address))).status_code == 200
        of_wrappers = await exposed_by_wrappers(service)
    assert FORM.fullmatch(text)
    ticked = re.findall(r"`([^`\n]+)`", text)
    calls = {tuple(one.split()) for one in ticked if re.match(r"(GET|POST) /", one)}
    assert len(calls) == 4
    for method, path in calls:
        assert method.lower() in document["paths"][path]
    wrapped = next(one for one in ticked if "/wrap/" in one)
    assert wrapped.removeprefix(address) in document["paths"]
    assert "77 requests a minute" in text
    assert "70000 bytes" in text
    assert f"for {CHALLENGE_TTL.seconds // 60} minutes" in text
    assert f"for {SESSION_TTL.seconds // 60} minutes" in text
    shaped = {one.lower() for one in ticked if re.fullmatch(r"[A-Za-z]+(-[A-Za-z0-9]+)+", one)}
    assert len(shaped) >= 12
    assert shaped <= headers_of(document) | of_wrappers


async def test_the_guide_leads_an_agent_to_a_session_and_a_decision(service: TestService) -> None:
    """Each member and header that the guide names is where it says."""
    text = (await service.http.get("/llms.txt")).text
    signed = await service.challenge(OWNER_KEY)
    assert all(f"`{member}`" in text for member in signed)
    verified = await service.http.post("/operator/key/verify", json=signed)
    proof = {
        "x-agent-address": signed["agentAddress"],
        "x-agent-session": verified.headers["x-agent-session"],
    }
    decision = (await service.gate(await service.operator() | proof)).json()
    for member in (*proof, "allow", "decisionToken"):
        assert f"`{member}`" in text
    assert decision.keys() >= {"allow", "decisionToken"}


async def test_no_wrapper_answers_for_a_document(tmp_path: Path) -> None:
    """Neither a wrapper's path nor the origin of wrappers leads to these addresses."""
    settings = {**CONFIGURED, "wrap_url": "https://wrap.example.com"}
    elsewhere = {"host": "wrap.example.com"}
    with wire_upstream() as up:
        async with start_test_service(tmp_path, **settings) as service:
            await service.operator()
            token = await service.token()
            body = {"path": "/*", "pricePerCall": 0, "targetUrl": up.url}
            made = await service.http.post("/operator/endpoints", json=body, headers=token)
            assert made.status_code == 200, made.text
            me = (await service.http.get("/operator/me", headers=token)).json()["operator"]["id"]
            for path, media_type in TYPES.items():
                wrapped = await service.http.get(f"/wrap/{me}{path}", headers=elsewhere)
                assert (wrapped.status_code, "etag" in wrapped.headers) == (200, False), path
                seen = len(up.asked)
                answer = await service.http.get(path)
                assert answer.headers["content-type"] == media_type
                refused(await service.http.get(path, headers=elsewhere), 404, "not_found")
                assert len(up.asked) == seen


async def test_the_documents_are_described_with_their_media_types(service: TestService) -> None:
    paths = openapi_document(service.app)["paths"]
    for path in (SECURITY, CATALOG, AGENT, "/robots.txt", "/llms.txt"):
        responses = paths[path]["get"]["responses"]
        assert list(responses["200"]["content"]) == [TYPES[path].partition(";")[0]]
        assert "content" not in responses["304"]
        assert responses["304"]["headers"].keys() >= {"etag", "x-request-id"}
        assert json.dumps(paths[path]["get"]["security"]) == "[]"


@pytest.mark.parametrize("is_on", [True, False])
async def test_what_is_sold_is_described_for_catalogues_if_seller_and_operator_agree(
    tmp_path: Path, *, is_on: bool
) -> None:
    async with start_test_service(tmp_path, public_url=PUBLIC, x402_bazaar=is_on) as service:
        await service.operator()
        token = await service.token()
        me = (await service.http.get("/operator/me", headers=token)).json()["operator"]["id"]
        for text in ("A quote", ""):
            path = f"/quote{len(text)}/{{name}}"
            body = {
                "path": path,
                "pricePerCall": 0.01,
                "description": text,
                "targetUrl": "https://api.example.com",
                "payoutAddress": "0x" + "5e" * 20,
            }
            made = await service.http.post("/operator/endpoints", json=body, headers=token)
            assert made.status_code == 200, made.text
            url = f"/wrap/{me}{path}"
            for name in ("gold", "gold", "silver"):  # a repeated request is parsed only once
                for method in ("GET", "HEAD"):
                    asked = await service.http.request(
                        method, url.format(name=name), headers={"host": "evil.example"}
                    )
                    assert asked.status_code == 402
                    header = asked.headers["payment-required"]
                    required = json.loads(base64.b64decode(header, validate=True))
                    found = extract_discovery_info(required, required["accepts"][0])
                    assert (found is not None) == bool(is_on and text)
                    if found is not None:
                        assert found.resource_url == PUBLIC + url.format(name=":name")
                        assert found.discovery_info.input.path_params == {"name": name}
                        assert found.method == "GET"
