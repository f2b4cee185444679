"""Importing OpenAPI documents over HTTP: drafts are served to nobody (docs/wrappers.md)."""

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.live_service import TestService, refused

PAYOUT = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"
PETSTORE = (Path(__file__).parent / "openapi" / "petstore-2.0.json").read_text("utf-8")
QUOTES = json.dumps(
    {
        "openapi": "3.1.0",
        "servers": [{"url": "http://127.0.0.1:8999"}],
        "paths": {"/quote": {"get": {"summary": "A quote"}, "post": {"summary": "An order"}}},
    }
)
PUBLIC = (
    *("/.well-known/api-catalog", "/.well-known/agent-card.json", "/llms.txt", "/robots.txt"),
    *("/openapi.json", "/", "/docs"),
)


@pytest.fixture
async def token(service: TestService) -> dict[str, str]:
    await service.operator()
    return await service.token()


async def imported(
    service: TestService, token: dict[str, str], document: str = QUOTES, **fields: Any
) -> httpx2.Response:
    body = {
        "document": document,
        "pricePerCall": 0.01,
        "paymentNetwork": "eip155:84532",
        "payoutAddress": PAYOUT,
        **fields,
    }
    body = {name: value for name, value in body.items() if value is not ...}
    return await service.http.post("/operator/endpoints/import", json=body, headers=token)


async def created(service: TestService, token: dict[str, str], **fields: Any) -> list[Any]:
    answer = await imported(service, token, **fields)
    assert answer.status_code == 200, answer.text
    return answer.json()["created"]


async def change(service: TestService, token: dict[str, str], who: str, **fields: Any) -> Any:
    return await service.http.patch(f"/operator/endpoints/{who}", json=fields, headers=token)


async def listed(service: TestService, token: dict[str, str]) -> Any:
    return (await service.http.get("/operator/endpoints", headers=token)).json()


async def wrap(service: TestService, token: dict[str, str]) -> str:
    me = await service.http.get("/operator/me", headers=token)
    return f"/wrap/{me.json()['operator']['id']}"


async def test_an_import_makes_drafts_that_their_owner_sees(
    service: TestService, token: dict[str, str]
) -> None:
    answer = await imported(service, token, rateLimit=60, trustEnabled=True)
    assert answer.status_code == 200, answer.text
    [made] = answer.json()["created"]
    [draft] = await listed(service, token)
    assert answer.json() == {
        "dryRun": False,
        "created": [
            {
                "operation": "GET /quote",
                "id": draft["id"],
                "path": "/quote",
                "targetUrl": "http://127.0.0.1:8999",
                "active": False,
            }
        ],
        "existing": [],
        "refused": [{"operation": "POST /quote", "reason": "is not a GET: name it to import it"}],
    }
    assert made["active"] is draft["active"] is False
    assert (draft["description"], draft["rateLimit"], draft["trustEnabled"]) == (
        *("A quote", 60),
        True,
    )
    assert draft["warnings"] == []


async def test_a_draft_is_served_to_nobody(service: TestService, token: dict[str, str]) -> None:
    await created(service, token, corsOrigins=["https://page.example.com"])
    url = await wrap(service, token) + "/quote"
    preflight = {"origin": "https://page.example.com", "access-control-request-method": "GET"}
    for method, headers in (
        ("GET", {}),
        ("HEAD", {}),
        ("GET", {"x-payment": "e30="}),
        ("GET", {"x-agent-id": "7"}),
        ("GET", token),
        ("OPTIONS", preflight),
    ):
        answer = await service.http.request(method, url, headers=headers)
        assert answer.status_code == 404, (method, headers)
        assert "payment-required" not in answer.headers
        if method != "HEAD":
            assert answer.json()["code"] == "wrapper_not_found"
    for page in PUBLIC:
        shown = await service.http.get(page)
        assert "A quote" not in shown.text
        assert url not in shown.text


async def test_a_draft_holds_no_place_of_a_wrapper_that_answers(
    service: TestService, token: dict[str, str]
) -> None:
    wide = {"path": "/*", "pricePerCall": 0, "targetUrl": "http://127.0.0.1:8999"}
    assert (await service.http.post("/operator/endpoints", json=wide, headers=token)).is_success
    await created(service, token)
    url = await wrap(service, token) + "/quote"
    refused(await service.http.get(url), 502, "wrapper_request_failed")  # nobody listens
    narrow = wide | {"path": "/quote"}
    made = await service.http.post("/operator/endpoints", json=narrow, headers=token)
    assert made.status_code == 200


async def test_a_draft_answers_once_it_is_activated_and_can_be_stopped_again(
    service: TestService, token: dict[str, str]
) -> None:
    [made] = await created(service, token)
    url = await wrap(service, token) + "/quote"
    for is_active, status in ((True, 402), (False, 404), (True, 402)):
        changed = await change(service, token, made["id"], active=is_active)
        assert changed.json()["active"] is is_active
        assert (await service.http.get(url)).status_code == status
    path = f"/operator/endpoints/{made['id']}/history"
    history = (await service.http.get(path, headers=token)).json()["items"]
    assert [one["action"] for one in history] == ["changed", "changed", "changed", "created"]
    assert [one["quoted"] is not None for one in history] == [True, False, True, False]


async def test_operations_that_are_named_are_imported_and_can_answer_at_once(
    service: TestService, token: dict[str, str]
) -> None:
    made = await created(service, token, operations=["post /quote"], active=True)
    assert [(one["operation"], one["active"]) for one in made] == [
        ("GET /quote", True),
        ("POST /quote", True),
    ]
    url = await wrap(service, token) + "/quote"
    assert (await service.http.post(url, json={})).status_code == 402


async def test_a_second_import_changes_nothing(service: TestService, token: dict[str, str]) -> None:
    [made] = await created(service, token)
    await change(service, token, made["id"], pricePerCall=0.5, active=True)
    before = await listed(service, token)
    again = (await imported(service, token, active=True, pricePerCall=0.7)).json()
    assert again["created"] == []
    assert again["existing"] == [made | {"active": True}]
    assert await listed(service, token) == before


async def test_a_dry_run_stores_nothing(service: TestService, token: dict[str, str]) -> None:
    [made] = await created(service, token, dryRun=True)
    assert made["id"] is None
    assert await listed(service, token) == []


async def test_another_operator_neither_hinders_nor_sees_an_import(
    service: TestService, token: dict[str, str]
) -> None:
    [mine] = await created(service, token)
    await service.operator("other@example.com")
    other = await service.token("other@example.com")
    assert await listed(service, other) == []
    [theirs] = await created(service, other)
    assert theirs["id"] != mine["id"]
    assert len(await listed(service, token)) == 1
    answer = await change(service, other, mine["id"], active=True)
    refused(answer, 404, "endpoint_not_found")


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"document": "a: [b"}, "document"),
        ({"document": "{}"}, "document"),
        ({"document": "[]"}, "document"),
        ({"document": ""}, "document"),
        ({"document": ...}, "document"),
        ({"pricePerCall": "1e-9"}, "pricePerCall"),
        ({"payoutAddress": "0x0"}, "payoutAddress"),
        ({"targetUrl": "ftp://127.0.0.1"}, "targetUrl"),
        ({"targetUrl": "https://169.254.169.254"}, "targetUrl"),
        ({"path": "/x"}, "path"),
        ({"rateLimit": 0}, "rateLimit"),
    ],
)
async def test_400_what_no_wrapper_can_be_made_of(
    service: TestService, token: dict[str, str], fields: dict[str, Any], where: str
) -> None:
    document = fields.pop("document", QUOTES)
    answer = await imported(service, token, document, **fields)
    body = refused(answer, 400, "invalid_request")
    assert [row["loc"] for row in body["details"]] == [["body", where]]
    assert await listed(service, token) == []


async def test_400_a_secret_needs_a_target_that_the_operator_names(
    service: TestService, token: dict[str, str]
) -> None:
    """Otherwise the author of the document would be sent the secret."""
    secret = {
        "upstreamAuthType": "header",
        "upstreamAuthHeader": "x-api-key",
        "upstreamAuthSecret": "hunter2hunter2",
    }
    body = refused(await imported(service, token, **secret), 400, "invalid_request")
    assert [row["loc"] for row in body["details"]] == [["body", "upstreamAuthSecret"]]
    answer = await imported(service, token, **secret, targetUrl="http://127.0.0.1:8998")
    [made] = answer.json()["created"]
    assert made["targetUrl"] == "http://127.0.0.1:8998"
    assert "hunter2" not in answer.text
    [config] = await service.app.endpoints.list((await wrap(service, token))[6:])
    assert service.app.endpoints.upstream_secret(config) == b"hunter2hunter2"


async def test_409_is_no_answer_to_what_an_account_has_already(
    service: TestService, token: dict[str, str]
) -> None:
    wrapper = {"path": "/quote", "pricePerCall": 0, "targetUrl": "http://127.0.0.1:8999"}
    made = await service.http.post("/operator/endpoints", json=wrapper, headers=token)
    answer = (await imported(service, token, active=True)).json()
    assert [one["id"] for one in answer["existing"]] == [made.json()["id"]]


async def test_a_wrapper_can_be_made_as_a_draft(
    service: TestService, token: dict[str, str]
) -> None:
    body = {
        "path": "/quote",
        "pricePerCall": 0,
        "targetUrl": "http://127.0.0.1:8999",
        "active": False,
    }
    for _ in range(2):  # two drafts may have one path: nobody is answered by either
        made = await service.http.post("/operator/endpoints", json=body, headers=token)
        assert made.json()["active"] is False, made.text
    url = await wrap(service, token) + "/quote"
    refused(await service.http.get(url), 404, "wrapper_not_found")
    first, second = (one["id"] for one in await listed(service, token))
    assert (await change(service, token, first, active=True)).is_success
    refused(await change(service, token, second, active=True), 409, "endpoint_overlaps")


async def test_text_of_a_document_is_answered_as_text_that_people_can_read(
    service: TestService, token: dict[str, str]
) -> None:
    paths = {"/\ud800": {"get": {}}, "/a\u202e": {"get": {"summary": "\ud800\u202e<b>x</b>"}}}
    document = json.dumps({"openapi": "3.1.0", "paths": {**paths, "/ok": paths["/a\u202e"]}})
    answer = await imported(service, token, document, targetUrl="http://127.0.0.1:8999")
    assert answer.status_code == 200, answer.text
    assert {one["operation"] for one in answer.json()["refused"]} == {"GET /\ufffd", "GET /a\ufffd"}
    [draft] = await listed(service, token)
    assert draft["description"] == "<b>x</b>"
