"""Webhooks over HTTP: by status, and from a real evaluation to a real receiver."""

import asyncio
import json
from typing import Any

import pytest

from tests.support.eventually import never
from tests.support.live_service import OWNER_KEY, STRANGER_KEY, TestService, address, refused
from tests.support.raw_server import RawServer, keeps_open, plain, serving

REGISTER = "/operator/webhooks/register"
URL = "https://hooks.example.com/assay"
SECRET = "whsec_" + "a" * 32


async def register(service: TestService, who: dict[str, str], **body: Any) -> Any:
    asked = {"event": "evaluation_complete", "url": URL, **body}
    return await service.http.post(REGISTER, json=asked, headers=who)


async def deliveries(
    service: TestService, who: dict[str, str], **query: Any
) -> list[dict[str, Any]]:
    answer = await service.http.get("/operator/webhooks/deliveries", params=query, headers=who)
    assert answer.status_code == 200, answer.text
    return answer.json()["deliveries"]


async def until_ended(
    service: TestService, who: dict[str, str], count: int
) -> list[dict[str, Any]]:
    async with asyncio.timeout(15):
        while True:
            found = await deliveries(service, who)
            if len([one for one in found if one["state"] != "pending"]) >= count:
                return found
            await asyncio.sleep(0.05)


async def test_201_with_a_key_and_with_a_dashboard_token(service: TestService) -> None:
    key = await service.operator()
    for who in (key, await service.token()):
        answer = await register(service, who, agentIds=[7, 22])
        assert answer.status_code == 201, answer.text
        made = answer.json()
        assert made.pop("id")
        assert made.pop("verificationToken").startswith("assay-webhook-")
        shown = "https://hooks.example.com:443/.well-known/assay-webhook-verification"
        assert made.pop("verificationUrl") == shown
        assert made == {
            "event": "evaluation_complete",
            "url": URL,
            "agentIds": [7, 22],
            "signed": False,
            "createdAt": "2026-03-01T12:00:00.000Z",
        }
    listed = await service.http.get("/operator/webhooks", headers=key)
    assert len(listed.json()["items"]) == listed.json()["total"] == 2


async def test_401_without_a_credential_nothing_is_registered_or_told(service: TestService) -> None:
    for who in ({}, {"authorization": "Bearer svc_op_wrong"}, {"authorization": "Bearer a.b.c"}):
        refused(await register(service, who), 401, "unauthorized")
        for path in ("/operator/webhooks", "/operator/webhooks/deliveries"):
            refused(await service.http.get(path, headers=who), 401, "unauthorized")
        refused(await service.http.delete("/operator/webhooks/x", headers=who), 401, "unauthorized")


@pytest.mark.parametrize(
    "body",
    [
        {"event": "payment_settled"},
        {"event": None},
        {"url": "http://hooks.example.com/x"},
        {"url": "ftp://hooks.example.com/x"},
        {"url": "https://user:pass@hooks.example.com/x"},
        {"url": "https://169.254.169.254/latest"},
        {"url": "https://[::ffff:10.0.0.1]/x"},
        {"url": "https://hooks.example.com:22/x"},
        {"url": "https://0x-6.6.9/x"},
        {"url": "hooks.example.com"},
        {"url": ""},
        {"url": "https://hooks.example.com/" + "x" * 2048},
        {"url": "https://hooks.example.com/\x00"},
        {"url": 5},
        {"agentIds": []},
        {"agentIds": [-1]},
        {"agentIds": [1.5]},
        {"agentIds": [True]},
        {"agentIds": [2**256]},
        {"agentIds": ["nobody at all"]},
        {"agentIds": ["0xabc"]},
        {"agentIds": "7"},
        {"agentIds": list(range(1001))},
        {"secret": "hush"},
        {"secret": "whsec_!!!!"},
        {"secret": "whsec_" + "a" * 8},
        {"retries": 3},
    ],
    ids=lambda body: str(body)[:40],
)
async def test_400_says_what_is_wrong(service: TestService, body: dict[str, Any]) -> None:
    key = await service.operator()
    answer = refused(await register(service, key, **body), 400, "invalid_request")
    assert answer["details"]
    assert (await service.http.get("/operator/webhooks", headers=key)).json()["items"] == []


async def test_400_without_a_url_or_an_event(service: TestService) -> None:
    key = await service.operator()
    for body in ({}, {"url": URL}, {"event": "evaluation_complete"}, []):
        answer = await service.http.post(REGISTER, json=body, headers=key)
        refused(answer, 400, "invalid_request")


async def test_409_the_thousand_and_first_is_refused(service: TestService) -> None:
    key = await service.operator()
    me = (await service.http.get("/operator/me", headers=await service.token())).json()
    operator_id = me["operator"]["id"]
    database = service.app.database
    first = (await register(service, key)).json()["id"]
    async with database.write() as connection:
        from sqlalchemy import text  # noqa: PLC0415

        await connection.execute(
            text(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 999)"
                " INSERT INTO webhooks (id, operator_id, event, url, created_us)"
                " SELECT 'w' || i, :who, 'evaluation_complete', 'https://x.example', 1 FROM n"
            ),
            {"who": operator_id},
        )
    refused(await register(service, key), 409, "webhook_limit_reached")
    await service.http.delete(f"/operator/webhooks/{first}", headers=key)
    assert (await register(service, key)).status_code == 201
    other = await service.operator("other@example.com")
    assert (await register(service, other)).status_code == 201


async def test_a_secret_is_never_shown_again(service: TestService) -> None:
    key = await service.operator()
    answer = await register(service, key, secret=SECRET)
    assert answer.json()["signed"] is True
    listed = await service.http.get("/operator/webhooks", headers=key)
    assert SECRET not in answer.text + listed.text
    async with service.app.database.read() as connection:
        from sqlalchemy import text  # noqa: PLC0415

        sealed = (await connection.execute(text("SELECT secret FROM webhooks"))).scalar_one()
    assert SECRET.encode() not in bytes(sealed)
    assert b"i" * 24 not in bytes(sealed)


async def test_404_somebody_elses_webhook_is_not_there(service: TestService) -> None:
    key, other = await service.operator(), await service.operator("other@example.com")
    made = (await register(service, key)).json()["id"]
    path = f"/operator/webhooks/{made}"
    refused(await service.http.delete(path, headers=other), 404, "webhook_not_found")
    assert (await service.http.get("/operator/webhooks", headers=other)).json()["items"] == []
    gone = await service.http.delete(path, headers=key)
    assert gone.json() == {"ok": True, "id": made}
    refused(await service.http.delete(path, headers=key), 404, "webhook_not_found")


async def hear(service: TestService, receiver: RawServer, agent_id: str = "7") -> None:
    answer = await service.http.post(f"/operator/trigger-sandbox/{agent_id}")
    assert answer.status_code == 200, answer.text
    del receiver


async def test_an_evaluation_is_told_to_whoever_wants_to_hear_of_the_agent(
    service: TestService,
) -> None:
    key, other = await service.operator(), await service.operator("other@example.com")
    async with serving(keeps_open(plain(b"ok"))) as receiver:
        await register(service, key, url=receiver.url("/all"))
        await register(service, key, url=receiver.url("/seven"), agentIds=[7], secret=SECRET)
        await register(service, key, url=receiver.url("/eight"), agentIds=[8])
        await register(service, other, url=receiver.url("/others"), agentIds=["7"])
        answer = (await service.http.post("/operator/trigger-sandbox/7")).json()
        found = await until_ended(service, key, 2)
        await until_ended(service, other, 1)
        assert sorted(request.target for request in receiver.requests) == [
            *("/all", "/others", "/seven"),
        ]
        assert [(one["state"], one["status"]) for one in found] == [("sent", 200)] * 2
        told = found[0]["payload"]
        assert (told["event"], told["agentId"]) == ("evaluation_complete", "7")
        assert told["tier"] == answer["tier"]
        assert told["riskLevel"] == answer["riskLevel"]
        assert told["meetsThreshold"] == answer["meetsThreshold"]
        snapshot = (await service.http.get("/operator/agent/7/snapshot")).json()
        for name in ("snapshotHash", "previousHash", "encryptedDataUri", "interactionCount"):
            assert told[name] == snapshot[name]
        assert told.keys() == {
            *("event", "agentId", "tier", "riskLevel", "route", "meetsThreshold", "snapshotHash"),
            *("previousHash", "encryptedDataUri", "timestamp", "interactionCount"),
        }
        signed = {r.target: "webhook-signature" in r.headers for r in receiver.requests}
        assert signed == {"/all": False, "/seven": True, "/others": False}


async def test_a_key_agent_is_filtered_by_its_address_in_any_case(service: TestService) -> None:
    """An evaluation without any evidence of behaviour is one, and is told as one."""
    key, who = await service.operator(), address(STRANGER_KEY)
    async with serving(keeps_open(plain(b"ok"))) as receiver:
        mixed = "0x" + who[2:].upper()
        assert (await register(service, key, url=receiver.url("/it"), agentIds=[mixed])).is_success
        others = {"url": receiver.url("/others"), "agentIds": [address(OWNER_KEY), "7"]}
        assert (await register(service, key, **others)).is_success
        assert (await register(service, key, url=receiver.url("/all"))).is_success
        answer = await service.http.post(f"/operator/trigger-sandbox-key/{who}")
        assert answer.status_code == 200, answer.text
        result = answer.json()
        told = await until_ended(service, key, 2)
        assert [(d["agentId"], d["state"], d["status"]) for d in told] == [(who, "sent", 200)] * 2
        assert sorted(request.target for request in receiver.requests) == ["/all", "/it"]
        for request in receiver.requests:
            payload = json.loads(request.body)
            assert payload["event"] == "evaluation_complete"
            assert (payload["agentId"], payload["tier"]) == (who, result["tier"])
            assert payload["meetsThreshold"] is result["meetsThreshold"]


async def test_the_log_is_filtered_and_paged_and_only_ones_own(service: TestService) -> None:
    key, other = await service.operator(), await service.operator("other@example.com")
    async with serving(keeps_open(plain(b"no", "500 Oh"))) as receiver:
        first = (await register(service, key, url=receiver.url("/1"))).json()["id"]
        await register(service, key, url=receiver.url("/2"))
        await hear(service, receiver)
        whole = await until_ended(service, key, 2)
        assert {one["reason"] for one in whole} == {"the receiver refused"}
        assert {one["status"] for one in whole} == {500}
        mine = await deliveries(service, key, webhookId=first)
        assert [one["webhookId"] for one in mine] == [first]
        page = await deliveries(service, key, limit=1)
        assert page == whole[:1]
        assert await deliveries(service, key, before=page[0]["id"]) == whole[1:]
        of_another = {"before": page[0]["id"]}
        answer = await service.http.get(
            "/operator/webhooks/deliveries", params=of_another, headers=other
        )
        refused(answer, 404, "delivery_not_found")
        assert await deliveries(service, other) == []
    answer = await service.http.get("/operator/webhooks/deliveries?limit=0", headers=key)
    refused(answer, 400, "invalid_request")


async def test_a_gate_from_memory_tells_nobody(service: TestService) -> None:
    key = await service.operator()
    who = {**key, **await service.session()}
    async with serving(keeps_open(plain(b"ok"))) as receiver:
        await register(service, key, url=receiver.url("/hook"))
        await service.gate(who)
        await until_ended(service, key, 1)
        assert (await service.gate(who)).json()["cached"] is True
        await asyncio.sleep(0.1)
        assert len(receiver.requests) == 1


async def test_an_answer_does_not_wait_for_a_receiver_that_hangs(service: TestService) -> None:
    key = await service.operator()

    async def hang(*_: object) -> None:
        await never()

    async with serving(hang) as receiver:
        await register(service, key, url=receiver.url("/hook"))
        async with asyncio.timeout(5):
            await hear(service, receiver)
        assert [one["state"] for one in await deliveries(service, key)] == ["pending"]


async def test_events_beyond_the_specification_go_to_those_who_asked_for_them(
    service: TestService,
) -> None:
    key = await service.operator()
    for event in ("evaluation_complete", "grade_changed", "agent_drift"):
        answer = await service.http.post(
            "/operator/webhooks/register", headers=key, json={"event": event, "url": URL}
        )
        assert answer.status_code == 201, answer.text
    subject = await service.app.subjects.find(service.app.networks.default, "7")
    await service.app.evaluator.evaluate(subject, 5.0)
    told = (await service.http.get("/operator/webhooks/deliveries", headers=key)).json()["items"]
    assert [one["payload"]["event"] for one in told] == ["evaluation_complete"]
