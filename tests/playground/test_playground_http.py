"""The playground: one's own wrappers and any address, without paying, and dry."""

import json
from typing import Any

import pytest

from tests.support.live_service import TestService, refused
from tests.support.raw_server import RawServer, keeps_open, plain, serving


class Ground:
    """An operator with a token, and an upstream that answers well."""

    def __init__(self, service: TestService, token: dict[str, str]) -> None:
        self.service, self.token = service, token

    async def wrap(self, up: RawServer, path: str, **fields: Any) -> str:
        body = {"path": path, "pricePerCall": 0, "targetUrl": up.url("/base"), **fields}
        made = await self.service.http.post("/operator/endpoints", json=body, headers=self.token)
        assert made.status_code == 200, made.text
        return made.json()["id"]

    async def play(self, path: str, **fields: Any) -> Any:
        body = {"path": path, "agentId": "7", **fields}
        return await self.service.http.post("/operator/playground", json=body, headers=self.token)


@pytest.fixture
async def ground(service: TestService) -> Ground:
    await service.operator()
    return Ground(service, await service.token())


OK = keeps_open(plain(b'{"ok":1}', "200 OK", "Content-Type: application/json"))


async def test_200_an_absolute_url(ground: Ground) -> None:
    async with serving(OK) as up:
        answer = await ground.play(up.url("/x"), method="POST", body="hello")
        assert answer.status_code == 200, answer.text
        body = answer.json()
        assert body.pop("responseMs") >= 0
        assert body.pop("tierResolved")
        assert body.pop("route")
        assert body == {
            "ok": True,
            "statusCode": 200,
            "statusText": "OK",
            "responseHeaders": {"content-type": "application/json"},
            "responseBody": '{"ok":1}',
            "responseBodyEncoding": "utf-8",
            "truncated": False,
            "costCharged": "0.000000",
        }
        [seen] = up.requests
        assert (seen.method, seen.target, seen.body) == ("POST", "/x", b"hello")


async def test_200_a_paid_wrapper_of_ones_own_is_tried_without_paying(ground: Ground) -> None:
    async with serving(OK) as up:
        await ground.wrap(
            *(up, "/items/{id}"),
            pricePerCall=0.5,
            payoutAddress="0x" + "cc" * 20,
            upstreamAuthType="header",
            upstreamAuthHeader="x-key",
            upstreamAuthSecret="hush",
        )
        answer = await ground.play("/items/5?q=1", headers={"X-Assay-Tier": "AAA", "x-a": "b"})
        assert answer.json()["statusCode"] == 200, answer.text
        assert answer.json()["costCharged"] == "0.000000"
        assert "hush" not in answer.text
        [seen] = up.requests
        assert (seen.target, seen.headers["x-key"]) == ("/base/items/5?q=1", "hush")
        assert seen.headers["x-assay-agent"] == "7"
        assert seen.headers["x-assay-tier"] == answer.json()["tierResolved"]
        assert seen.headers["x-a"] == "b"


async def test_200_a_trust_rule_is_kept(ground: Ground) -> None:
    async with serving(OK) as up:
        await ground.wrap(up, "/strict", trustEnabled=True, minScore=99)
        body = (await ground.play("/strict")).json()
        assert (body["ok"], body["statusCode"], body["statusText"]) == (False, 403, "Forbidden")
        assert json.loads(body["responseBody"])["code"] == "trust_denied"
        assert up.requests == []
        await ground.wrap(up, "/open", trustEnabled=True, minScore=0)
        assert (await ground.play("/open")).json()["statusCode"] == 200


async def test_200_a_dry_run_calls_nothing_and_evaluates_nothing(ground: Ground) -> None:
    async with serving(OK) as up:
        await ground.wrap(up, "/q", pricePerCall=0.25, payoutAddress="0x" + "cc" * 20)
        body = (await ground.play("/q", dryRun=True)).json()
        for name in ("statusCode", "statusText", "responseMs"):
            assert body[name] is None
        told = json.loads(body["responseBody"])
        assert told.pop("message")
        assert told == {
            "dryRun": True,
            "agentId": "7",
            "chain": "local",
            "tier": body["tierResolved"],
            "route": body["route"],
            "pricePerCall": "0.250000",
            "endpointRegistered": True,
            "trustProfile": {
                "onchainScore": told["trustProfile"]["onchainScore"],
                "feedbackCount": told["trustProfile"]["feedbackCount"],
                "routingDecision": body["route"],
            },
        }
        assert isinstance(told["trustProfile"]["feedbackCount"], str)
        elsewhere = json.loads((await ground.play("/none", dryRun=True)).json()["responseBody"])
        assert (elsewhere["endpointRegistered"], elsewhere["pricePerCall"]) == (False, None)
        assert up.requests == []
        gone = await ground.service.http.get("/operator/agent/7/snapshot")
        refused(gone, 404, "snapshot_not_found")


async def test_200_a_price_without_a_target_is_registered_and_cannot_be_tried(
    ground: Ground,
) -> None:
    body = {"path": "/listed", "pricePerCall": 0.5}
    made = await ground.service.http.post("/operator/endpoints", json=body, headers=ground.token)
    assert made.status_code == 200, made.text
    dry = json.loads((await ground.play("/listed", dryRun=True)).json()["responseBody"])
    assert (dry["endpointRegistered"], dry["pricePerCall"]) == (True, "0.500000")
    refused(await ground.play("/listed"), 404, "wrapper_not_found")


async def test_200_a_dry_run_for_a_key_agent_without_behaviour(ground: Ground) -> None:
    body = (await ground.play("/q", agentId="0x" + "a" * 40, dryRun=True)).json()
    assert (body["tierResolved"], body["route"]) == (None, None)
    assert json.loads(body["responseBody"])["trustProfile"]["routingDecision"] is None


async def test_401_an_api_key_is_no_dashboard_token(service: TestService) -> None:
    key = await service.operator()
    body = {"path": "/q", "agentId": "7"}
    for who in ({}, key):
        answer = await service.http.post("/operator/playground", json=body, headers=who)
        refused(answer, 401, "unauthorized")


async def test_404_somebody_elses_wrapper_is_not_there(ground: Ground) -> None:
    async with serving(OK) as up:
        await ground.wrap(up, "/mine")
        await ground.service.operator("other@example.com")
        other = Ground(ground.service, await ground.service.token("other@example.com"))
        refused(await other.play("/mine"), 404, "wrapper_not_found")
        refused(await ground.play("/mine", method="POST"), 404, "wrapper_not_found")
        dry = json.loads((await other.play("/mine", dryRun=True)).json()["responseBody"])
        assert dry["endpointRegistered"] is False
        assert up.requests == []
    refused(await ground.play("/mine", agentId="404"), 404, "agent_not_found")


@pytest.mark.parametrize(
    "body",
    [
        {"path": None},
        {"path": ""},
        {"path": "relative"},
        {"path": "javascript:alert(1)"},
        {"path": "ftp://example.com/"},
        {"path": "http://169.254.169.254/"},
        {"path": "/a b"},
        {"path": "/\u4e2d"},
        {"agentId": ""},
        {"agentId": "nobody"},
        {"chain": "nowhere"},
        {"method": "TRACE", "path": "http://127.0.0.1:8999/"},
        {"headers": {"x": "\n"}, "path": "http://127.0.0.1:8999/"},
        {"dryRun": "yes"},
        {"extra": 1},
    ],
    ids=str,
)
async def test_400_what_cannot_be_tried(ground: Ground, body: dict[str, Any]) -> None:
    asked = {"path": "/q", "agentId": "7", **body}
    answer = await ground.service.http.post(
        "/operator/playground", json=asked, headers=ground.token
    )
    refused(answer, 400, "invalid_request")


async def test_400_an_unknown_chain_is_said_to_be_of_the_body(ground: Ground) -> None:
    asked = {"path": "/q", "agentId": "7", "chain": "nowhere"}
    answer = await ground.service.http.post(
        "/operator/playground", json=asked, headers=ground.token
    )
    body = refused(answer, 400, "invalid_request")
    assert [problem["loc"] for problem in body["details"]] == [["body", "chain"]]


async def test_502_an_address_that_does_not_answer(ground: Ground) -> None:
    refused(await ground.play("http://127.0.0.1:8999/"), 502, "proxy_request_failed")
