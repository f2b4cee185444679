"""Webhooks over HTTP: by status, and from a real evaluation to a real receiver."""

import asyncio
import json
from typing import Any

import pytest

from tests.support.eventually import never
from tests.support.house import OWNER_KEY, STRANGER_KEY, House, address, refused
from tests.support.raw_server import RawServer, keeps_open, plain, serving

REGISTER = "/operator/webhooks/register"
URL = "https://hooks.example.com/assay"
SECRET = "whsec_" + "a" * 32


async def register(house: House, who: dict[str, str], **body: Any) -> Any:
    asked = {"event": "evaluation_complete", "url": URL, **body}
    return await house.http.post(REGISTER, json=asked, headers=who)


async def deliveries(house: House, who: dict[str, str], **query: Any) -> list[dict[str, Any]]:
    answer = await house.http.get("/operator/webhooks/deliveries", params=query, headers=who)
    assert answer.status_code == 200, answer.text
    return answer.json()["deliveries"]


async def until_ended(house: House, who: dict[str, str], count: int) -> list[dict[str, Any]]:
    async with asyncio.timeout(15):
        while True:
            found = await deliveries(house, who)
            if len([one for one in found if one["state"] != "pending"]) >= count:
                return found
            await asyncio.sleep(0.05)


async def test_201_with_a_key_and_with_a_dashboard_token(house: House) -> None:
    key = await house.operator()
    for who in (key, await house.token()):
        answer = await register(house, who, agentIds=[7, 22])
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
    listed = await house.http.get("/operator/webhooks", headers=key)
    assert len(listed.json()["items"]) == listed.json()["total"] == 2


async def test_401_without_a_credential_nothing_is_registered_or_told(house: House) -> None:
    for who in ({}, {"authorization": "Bearer svc_op_wrong"}, {"authorization": "Bearer a.b.c"}):
        refused(await register(house, who), 401, "unauthorized")
        for path in ("/operator/webhooks", "/operator/webhooks/deliveries"):
            refused(await house.http.get(path, headers=who), 401, "unauthorized")
        refused(await house.http.delete("/operator/webhooks/x", headers=who), 401, "unauthorized")


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
async def test_400_says_what_is_wrong(house: House, body: dict[str, Any]) -> None:
    key = await house.operator()
    answer = refused(await register(house, key, **body), 400, "invalid_request")
    assert answer["details"]
    assert (await house.http.get("/operator/webhooks", headers=key)).json()["items"] == []


async def test_400_without_a_url_or_an_event(house: House) -> None:
    key = await house.operator()
    for body in ({}, {"url": URL}, {"event": "evaluation_complete"}, []):
        answer = await house.http.post(REGISTER, json=body, headers=key)
        refused(answer, 400, "invalid_request")


async def test_409_the_thousand_and_first_is_refused(house: House) -> None:
    key = await house.operator()
    me = (await house.http.get("/operator/me", headers=await house.token())).json()
    operator_id = me["operator"]["id"]
    database = house.app.database
    first = (await register(house, key)).json()["id"]
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
    refused(await register(house, key), 409, "webhook_limit_reached")
    await house.http.delete(f"/operator/webhooks/{first}", headers=key)
    assert (await register(house, key)).status_code == 201
    other = await house.operator("other@example.com")
    assert (await register(house, other)).status_code == 201


async def test_a_secret_is_never_shown_again(house: House) -> None:
    key = await house.operator()
    answer = await register(house, key, secret=SECRET)
    assert answer.json()["signed"] is True
    listed = await house.http.get("/operator/webhooks", headers=key)
    assert SECRET not in answer.text + listed.text
    async with house.app.database.read() as connection:
        from sqlalchemy import text  # noqa: PLC0415

        sealed = (await connection.execute(text("SELECT secret FROM webhooks"))).scalar_one()
    assert SECRET.encode() not in bytes(sealed)
    assert b"i" * 24 not in bytes(sealed)


async def test_404_somebody_elses_webhook_is_not_there(house: House) -> None:
    key, other = await house.operator(), await house.operator("other@example.com")
    made = (await register(house, key)).json()["id"]
    path = f"/operator/webhooks/{made}"
    refused(await house.http.delete(path, headers=other), 404, "webhook_not_found")
    assert (await house.http.get("/operator/webhooks", headers=other)).json()["items"] == []
    gone = await house.http.delete(path, headers=key)
    assert gone.json() == {"ok": True, "id": made}
    refused(await house.http.delete(path, headers=key), 404, "webhook_not_found")


async def hear(house: House, receiver: RawServer, agent_id: str = "7") -> None:
    answer = await house.http.post(f"/operator/trigger-sandbox/{agent_id}")
    assert answer.status_code == 200, answer.text
    del receiver


async def test_an_evaluation_is_told_to_whoever_wants_to_hear_of_the_agent(house: House) -> None:
    key, other = await house.operator(), await house.operator("other@example.com")
    async with serving(keeps_open(plain(b"ok"))) as receiver:
        await register(house, key, url=receiver.url("/all"))
        await register(house, key, url=receiver.url("/seven"), agentIds=[7], secret=SECRET)
        await register(house, key, url=receiver.url("/eight"), agentIds=[8])
        await register(house, other, url=receiver.url("/others"), agentIds=["7"])
        answer = (await house.http.post("/operator/trigger-sandbox/7")).json()
        found = await until_ended(house, key, 2)
        await until_ended(house, other, 1)
        assert sorted(request.target for request in receiver.requests) == [
            *("/all", "/others", "/seven"),
        ]
        assert [(one["state"], one["status"]) for one in found] == [("sent", 200)] * 2
        told = found[0]["payload"]
        assert (told["event"], told["agentId"]) == ("evaluation_complete", "7")
        assert told["tier"] == answer["tier"]
        assert told["riskLevel"] == answer["riskLevel"]
        assert told["meetsThreshold"] == answer["meetsThreshold"]
        snapshot = (await house.http.get("/operator/agent/7/snapshot")).json()
        for name in ("snapshotHash", "previousHash", "encryptedDataUri", "interactionCount"):
            assert told[name] == snapshot[name]
        assert told.keys() == {
            *("event", "agentId", "tier", "riskLevel", "route", "meetsThreshold", "snapshotHash"),
            *("previousHash", "encryptedDataUri", "timestamp", "interactionCount"),
        }
        signed = {r.target: "webhook-signature" in r.headers for r in receiver.requests}
        assert signed == {"/all": False, "/seven": True, "/others": False}


async def test_a_key_agent_is_filtered_by_its_address_in_any_case(house: House) -> None:
    """An evaluation without any evidence of behaviour is one, and is told as one."""
    key, who = await house.operator(), address(STRANGER_KEY)
    async with serving(keeps_open(plain(b"ok"))) as receiver:
        mixed = "0x" + who[2:].upper()
        assert (await register(house, key, url=receiver.url("/it"), agentIds=[mixed])).is_success
        others = {"url": receiver.url("/others"), "agentIds": [address(OWNER_KEY), "7"]}
        assert (await register(house, key, **others)).is_success
        assert (await register(house, key, url=receiver.url("/all"))).is_success
        answer = await house.http.post(f"/operator/trigger-sandbox-key/{who}")
        assert answer.status_code == 200, answer.text
        result = answer.json()
        told = await until_ended(house, key, 2)
        assert [(d["agentId"], d["state"], d["status"]) for d in told] == [(who, "sent", 200)] * 2
        assert sorted(request.target for request in receiver.requests) == ["/all", "/it"]
        for request in receiver.requests:
            payload = json.loads(request.body)
            assert payload["event"] == "evaluation_complete"
            assert (payload["agentId"], payload["tier"]) == (who, result["tier"])
            assert payload["meetsThreshold"] is result["meetsThreshold"]


async def test_the_log_is_filtered_and_paged_and_only_ones_own(house: House) -> None:
    key, other = await house.operator(), await house.operator("other@example.com")
    async with serving(keeps_open(plain(b"no", "500 Oh"))) as receiver:
        first = (await register(house, key, url=receiver.url("/1"))).json()["id"]
        await register(house, key, url=receiver.url("/2"))
        await hear(house, receiver)
        whole = await until_ended(house, key, 2)
        assert {one["reason"] for one in whole} == {"the receiver refused"}
        assert {one["status"] for one in whole} == {500}
        mine = await deliveries(house, key, webhookId=first)
        assert [one["webhookId"] for one in mine] == [first]
        page = await deliveries(house, key, limit=1)
        assert page == whole[:1]
        assert await deliveries(house, key, before=page[0]["id"]) == whole[1:]
        of_another = {"before": page[0]["id"]}
        answer = await house.http.get(
            "/operator/webhooks/deliveries", params=of_another, headers=other
        )
        refused(answer, 404, "delivery_not_found")
        assert await deliveries(house, other) == []
    answer = await house.http.get("/operator/webhooks/deliveries?limit=0", headers=key)
    refused(answer, 400, "invalid_request")


async def test_a_gate_from_memory_tells_nobody(house: House) -> None:
    key = await house.operator()
    who = {**key, **await house.session()}
    async with serving(keeps_open(plain(b"ok"))) as receiver:
        await register(house, key, url=receiver.url("/hook"))
        await house.gate(who)
        await until_ended(house, key, 1)
        assert (await house.gate(who)).json()["cached"] is True
        await asyncio.sleep(0.1)
        assert len(receiver.requests) == 1


async def test_an_answer_does_not_wait_for_a_receiver_that_hangs(house: House) -> None:
    key = await house.operator()

    async def hang(*_: object) -> None:
        await never()

    async with serving(hang) as receiver:
        await register(house, key, url=receiver.url("/hook"))
        async with asyncio.timeout(5):
            await hear(house, receiver)
        assert [one["state"] for one in await deliveries(house, key)] == ["pending"]


async def test_events_beyond_the_specification_go_to_those_who_asked_for_them(house: House) -> None:
    key = await house.operator()
    for event in ("evaluation_complete", "grade_changed", "agent_drift"):
        answer = await house.http.post(
            "/operator/webhooks/register", headers=key, json={"event": event, "url": URL}
        )
        assert answer.status_code == 201, answer.text
    subject = await house.app.subjects.find(house.app.networks.default, "7")
    await house.app.evaluator.evaluate(subject, 5.0)
    told = (await house.http.get("/operator/webhooks/deliveries", headers=key)).json()["items"]
    assert [one["payload"]["event"] for one in told] == ["evaluation_complete"]
