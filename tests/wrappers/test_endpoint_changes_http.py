"""Changing a wrapper: every field, by the rules of making one, and what it has been."""

from pathlib import Path
from typing import Any

import pytest

from assay.audit.store import SqlAuditStore
from tests.support.live_service import TestService, refused, start_test_service

PAYOUT, OTHER_PAYOUT = "0x" + "ab" * 20, "0x" + "cd" * 20
TARGET = "http://127.0.0.1:8999/v1"
PAID = {
    "path": "/quote",
    "pricePerCall": 0.01,
    "targetUrl": TARGET,
    "paymentNetwork": "eip155:84532",
    "payoutAddress": PAYOUT,
}
SECRET = {"upstreamAuthHeader": "x-key", "upstreamAuthSecret": "hunter2hunter2"}


@pytest.fixture
async def token(service: TestService) -> dict[str, str]:
    await service.operator()
    return await service.token()


async def made(service: TestService, token: dict[str, str], **fields: Any) -> dict[str, Any]:
    answer = await service.http.post("/operator/endpoints", json={**PAID, **fields}, headers=token)
    assert answer.status_code == 200, answer.text
    assert answer.headers["etag"] == '"1"'
    return answer.json()


async def change(
    service: TestService, token: dict[str, str], wrapper_id: str, **fields: Any
) -> Any:
    url = f"/operator/endpoints/{wrapper_id}"
    match = fields.pop("if_match", None)
    headers = token if match is None else {**token, "if-match": match}
    return await service.http.patch(url, json=fields, headers=headers)


async def history(
    service: TestService, token: dict[str, str], wrapper_id: str, query: str = ""
) -> Any:
    url = f"/operator/endpoints/{wrapper_id}/history{query}"
    return await service.http.get(url, headers=token)


CHANGES: list[dict[str, Any]] = [
    {"path": "/other/{id}"},
    {"method": "POST"},
    {"pricePerCall": 0.02},
    {"pricePerCall": 0},
    {"description": "What it is"},
    {"rateLimit": 5},
    {"targetUrl": "http://127.0.0.1:8998"},
    {"paymentNetwork": "eip155:8453"},
    {"paymentProtocol": "mpp", "paymentNetwork": "tempo:42431"},
    {"payoutAddress": OTHER_PAYOUT},
    {"trustEnabled": True},
    {"minScore": 80.0},
    {"coldStart": "deny"},
    {"identityProof": "asserted"},
    {"settle": "before"},
    {"maxBodyBytes": 10},
    {"timeoutMs": 1000},
    {"passResponseHeaders": ["x-frame-options"]},
    {"corsOrigins": ["https://page.example"]},
    {"active": False},
]


@pytest.mark.parametrize("fields", CHANGES, ids=lambda fields: next(iter(fields)))
async def test_what_is_named_changes_and_all_else_stays(
    service: TestService, token: dict[str, str], fields: dict[str, Any]
) -> None:
    before = await made(service, token)
    answer = await change(service, token, before["id"], **fields)
    assert answer.status_code == 200, answer.text
    shown = dict(fields)
    if "pricePerCall" in fields:
        shown["pricePerCall"] = f"{fields['pricePerCall']:.6f}"
    after = answer.json()
    assert after == {**before, **shown, "revision": 2, "warnings": after["warnings"]}
    assert answer.headers["etag"] == '"2"'
    listed = (await service.http.get("/operator/endpoints", headers=token)).json()
    assert listed == [after]
    newest, first = (await history(service, token, before["id"])).json()["items"]
    assert newest["changes"] == [
        {"field": name, "from": before[name], "to": value} for name, value in shown.items()
    ]
    assert first["changes"] == []


async def test_what_changes_nothing_leaves_no_trace(
    service: TestService, token: dict[str, str]
) -> None:
    before = await made(service, token)
    for fields in ({}, {"pricePerCall": 0.01}, {"payoutAddress": PAYOUT.upper().replace("X", "x")}):
        answer = await change(service, token, before["id"], **fields)
        assert answer.json() == before
    assert (await history(service, token, before["id"])).json()["total"] == 1


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"pricePerCall": -1}, "pricePerCall"),
        ({"pricePerCall": 0.0000001}, "pricePerCall"),
        ({"pricePerCall": None}, "pricePerCall"),
        ({"path": "no-slash"}, "path"),
        ({"path": None}, "path"),
        ({"method": "get it"}, "method"),
        ({"targetUrl": "ftp://x"}, "targetUrl"),
        ({"targetUrl": None}, "targetUrl"),
        ({"paymentNetwork": "tempo:4217"}, "paymentNetwork"),
        ({"payoutAddress": "0x0"}, "payoutAddress"),
        ({"payoutAddress": None}, "payoutAddress"),
        ({"rateLimit": 0}, "rateLimit"),
        ({"timeoutMs": 0}, "timeoutMs"),
        ({"upstreamAuthType": "header"}, "upstreamAuthHeader"),
        (
            {"upstreamAuthHeader": "idempotency-key", "upstreamAuthSecret": "x"},
            "upstreamAuthHeader",
        ),
        ({"active": "no"}, "active"),
        ({"id": "x"}, "id"),
    ],
)
async def test_400_what_could_not_be_made_cannot_be_made_of_it(
    service: TestService, token: dict[str, str], fields: dict[str, Any], where: str
) -> None:
    before = await made(service, token)
    body = refused(await change(service, token, before["id"], **fields), 400, "invalid_request")
    assert where in {row["loc"][1] for row in body["details"]}
    assert (await history(service, token, before["id"])).json()["total"] == 1


async def test_another_protocol_is_paid_on_its_own_main_network(
    service: TestService, token: dict[str, str]
) -> None:
    before = await made(service, token)
    answer = await change(service, token, before["id"], paymentProtocol="mpp")
    assert answer.json()["paymentNetwork"] == "tempo:4217"


async def test_409_a_path_that_another_wrapper_has(
    service: TestService, token: dict[str, str]
) -> None:
    before = await made(service, token)
    await made(service, token, path="/items/{id}")
    answer = await change(service, token, before["id"], path="/items/{name}")
    refused(answer, 409, "endpoint_overlaps")
    stopped = await change(service, token, before["id"], path="/items/{name}", active=False)
    assert stopped.status_code == 200
    refused(await change(service, token, before["id"], active=True), 409, "endpoint_overlaps")


async def test_412_only_the_revision_that_is_named_is_changed(
    service: TestService, token: dict[str, str]
) -> None:
    before = await made(service, token)
    wrapper_id = before["id"]
    for match, price in (('"1"', 1), ("*", 2), ('"3"', 3)):
        answer = await change(service, token, wrapper_id, pricePerCall=price, if_match=match)
        assert answer.status_code == 200, answer.text
    answer = await change(service, token, wrapper_id, pricePerCall=4, if_match='"3"')
    assert "revision 4" in refused(answer, 412, "precondition_failed")["message"]
    answer = await change(service, token, wrapper_id, pricePerCall=4, if_match="W/x")
    refused(answer, 400, "invalid_request")
    assert (await history(service, token, wrapper_id)).json()["items"][0]["revision"] == 4


async def test_404_what_is_anothers_is_neither_changed_nor_shown(
    service: TestService, token: dict[str, str]
) -> None:
    before = await made(service, token)
    await service.operator("two@example.com")
    other = await service.token("two@example.com")
    for wrapper_id in (before["id"], "none"):
        refused(await change(service, other, wrapper_id, pricePerCall=1), 404, "endpoint_not_found")
        refused(await history(service, other, wrapper_id), 404, "endpoint_not_found")
    assert (await history(service, token, before["id"])).json()["total"] == 1


async def test_a_secret_stays_but_goes_to_no_other_host(
    service: TestService, token: dict[str, str]
) -> None:
    """Else whoever holds a key could have it sent to a server of their own, and read it."""
    before = await made(service, token, upstreamAuthType="header", **SECRET)
    wrapper_id = before["id"]
    same_host = await change(service, token, wrapper_id, targetUrl="http://127.0.0.1:8999/v2")
    assert same_host.status_code == 200
    assert same_host.json()["upstreamAuthHeader"] == "x-key"
    assert await secret_of(service, token) == b"hunter2hunter2"
    for target in ("http://127.0.0.1:9999/v1", "http://127.0.0.2:8999/v1"):
        answer = await change(service, token, wrapper_id, targetUrl=target)
        body = refused(answer, 400, "invalid_request")
        assert [row["loc"] for row in body["details"]] == [["body", "upstreamAuthSecret"]]
    elsewhere = {"targetUrl": "http://127.0.0.2:8999/v1"}
    given = await change(service, token, wrapper_id, **elsewhere, upstreamAuthSecret="another-one")
    assert given.status_code == 200, given.text
    assert await secret_of(service, token) == b"another-one"
    renamed = await change(service, token, wrapper_id, upstreamAuthHeader="X-Other")
    assert renamed.json()["upstreamAuthHeader"] == "x-other"
    dropped = await change(service, token, wrapper_id, upstreamAuthType="none", targetUrl=TARGET)
    assert dropped.json()["upstreamAuthType"] == "none"
    seen = (await history(service, token, wrapper_id)).text
    assert "hunter2" not in seen
    assert "another-one" not in seen
    assert '"upstreamAuthSecret"' in seen


async def secret_of(service: TestService, token: dict[str, str]) -> bytes | None:
    me = (await service.http.get("/operator/me", headers=token)).json()
    [config] = await service.app.endpoints.list(me["operator"]["id"])
    return service.app.endpoints.upstream_secret(config)


async def test_a_payee_outlasts_a_time_without_a_price(
    service: TestService, token: dict[str, str]
) -> None:
    """Else the service's own wallet would be paid when there is a price again."""
    before = await made(service, token)
    for price in (0, 0.5):
        answer = await change(service, token, before["id"], pricePerCall=price)
        assert answer.json()["payoutAddress"] == PAYOUT
    free = await made(service, token, path="/free", pricePerCall=0)
    priced = await change(service, token, free["id"], pricePerCall=1)
    assert priced.json()["payoutAddress"] == PAYOUT


async def test_the_earlier_form_gets_a_target_later(
    service: TestService, token: dict[str, str]
) -> None:
    answer = await service.http.post(
        "/operator/endpoints", json={"path": "/later", "pricePerCall": 0}, headers=token
    )
    wrapper_id = answer.json()["id"]
    assert (await change(service, token, wrapper_id, description="soon")).status_code == 200
    refused(await change(service, token, wrapper_id, trustEnabled=True), 400, "invalid_request")
    answer = await change(service, token, wrapper_id, targetUrl=TARGET, trustEnabled=True)
    assert answer.json()["targetUrl"] == TARGET


async def test_a_history_says_who_asked_for_what_and_when(
    service: TestService, token: dict[str, str]
) -> None:
    before = await made(service, token)
    service.clock.move(60)
    await change(service, token, before["id"], pricePerCall=0.02)
    service.clock.move(60)
    deleted = await service.http.delete(f"/operator/endpoints/{before['id']}", headers=token)
    assert deleted.status_code == 200
    page = (await history(service, token, before["id"], "?limit=2")).json()
    assert (page["total"], page["limit"], page["offset"]) == (3, 2, 0)
    stopped, raised = page["items"]
    me = (await service.http.get("/operator/me", headers=token)).json()["operator"]["id"]
    assert (stopped["revision"], stopped["action"], stopped["until"]) == (3, "deactivated", None)
    assert stopped["quoted"] is None
    assert stopped["changes"] == [{"field": "active", "from": True, "to": False}]
    assert raised["actor"] == {"kind": "operator", "operatorId": me}
    assert raised["until"] == stopped["at"] > raised["at"]
    assert raised["quoted"] == {
        "pricePerCall": "0.020000",
        "paymentProtocol": "x402",
        "paymentNetwork": "eip155:84532",
        "payoutAddress": PAYOUT,
    }
    rest = (await history(service, token, before["id"], f"?cursor={page['nextCursor']}")).json()
    [first] = rest["items"]
    assert (first["revision"], first["action"], rest["nextCursor"]) == (1, "created", None)
    assert first["at"] == before["createdAt"]
    assert first["quoted"]["pricePerCall"] == "0.010000"
    trail = await SqlAuditStore(service.app.database).page_for_admin(me, None, 3)
    actions = [(one.action, one.target, one.details) for one in trail]
    assert ("endpoint.changed", before["id"], {"fields": "pricePerCall"}) in actions


async def test_a_change_counts_at_once_and_soon_in_every_process(
    tmp_path: Path,
) -> None:
    async with (
        start_test_service(tmp_path / "data") as one,
        start_test_service(tmp_path / "data") as two,
    ):
        await one.operator()
        token = await one.token()
        before = await made(one, token)
        me = (await one.http.get("/operator/me", headers=token)).json()["operator"]["id"]
        url = f"/wrap/{me}/quote"
        for service in (one, two):
            assert (await service.http.get(url)).json()["accepts"][0][
                "maxAmountRequired"
            ] == "10000"
        await change(one, token, before["id"], pricePerCall=0.03)
        two.clock.move(5.1)
        for service in (one, two):
            assert (await service.http.get(url)).json()["accepts"][0][
                "maxAmountRequired"
            ] == "30000"
