"""Admins see and change every account; nobody else does; and all of it leaves a trail."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from assay.accounts.api_keys import REMEMBERED_S
from assay.accounts.model import Role
from assay.db.engine import Database
from assay.wrappers.route_table import REMEMBERED_S as ROUTES_REMEMBERED_S
from tests.support.fakes.calls import call
from tests.support.live_service import PASSWORD, TestService, refused, start_test_service
from tests.support.wire_upstream import WireUpstream, wire_upstream

ROOT = "/operator/admin"
GETS = ("stats", "operators", "operators/x", "operators/x/logs", "audit")


class Office:
    """An admin, and one ordinary operator."""

    def __init__(self, service: TestService) -> None:
        self.service, self.http = service, service.http
        self.token: dict[str, str] = {}
        self.admin_id = self.operator_id = ""
        self.key: dict[str, str] = {}
        self.their_token: dict[str, str] = {}

    async def open(self) -> "Office":
        await self.service.operator("admin@example.com")
        await self.service.app.operators.set_role_for_admin("admin@example.com", Role.ADMIN)
        self.token = await self.service.token("admin@example.com")
        self.key = await self.service.operator("op@example.com")
        self.their_token = await self.service.token("op@example.com")
        self.admin_id = await self.id_of(self.token)
        self.operator_id = await self.id_of(self.their_token)
        return self

    async def id_of(self, token: dict[str, str]) -> str:
        me = await self.http.get("/operator/me", headers=token)
        return me.json()["operator"]["id"]

    async def get(self, path: str, **query: Any) -> Any:
        answer = await self.http.get(f"{ROOT}/{path}", params=query, headers=self.token)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def change(self, operator_id: str, **body: Any) -> Any:
        return await self.http.patch(
            f"{ROOT}/operators/{operator_id}", json=body, headers=self.token
        )


@pytest.fixture
async def office(service: TestService) -> Office:
    return await Office(service).open()


@pytest.fixture
def up() -> Iterator[WireUpstream]:
    with wire_upstream() as running:
        yield running


async def test_only_an_admins_dashboard_token_opens_the_office(office: Office) -> None:
    for path in GETS:
        url = f"{ROOT}/{path}"
        refused(await office.http.get(url), 401, "unauthorized")
        refused(await office.http.get(url, headers=office.key), 401, "unauthorized")
        refused(await office.http.get(url, headers=office.their_token), 403, "forbidden")
    url = f"{ROOT}/operators/{office.operator_id}"
    body = {"role": "admin"}
    refused(await office.http.patch(url, json=body), 401, "unauthorized")
    asked = await office.http.patch(url, json=body, headers=office.their_token)
    refused(asked, 403, "forbidden")


async def test_an_admin_that_is_none_any_more_is_shut_out_at_once(office: Office) -> None:
    await office.service.app.operators.set_role_for_admin("admin@example.com", Role.OPERATOR)
    answer = await office.http.get(f"{ROOT}/stats", headers=office.token)
    refused(answer, 403, "forbidden")


async def test_the_platform_in_numbers(office: Office) -> None:
    log, now = office.service.app.call_log, office.service.clock.now()
    log.add(call(office.operator_id, "w", now, agent_id="7"))
    log.add(call(office.admin_id, "w", now, agent_id="7", status=500))
    stats = await office.get("stats")
    assert stats == {
        "operators": 2,
        "proOperators": 0,
        "admins": 1,
        "suspendedOperators": 0,
        "activeKeys": 2,
        "activeEndpoints": 0,
        "agents": 2,
        "totalCalls": 2,
        "totalRevenue": "0.000000",
        "avgResponseMs": 1.0,
        "errorRate": "0.5000",
        "callsToday": 2,
        "revenueToday": "0.000000",
        "funnel": stats["funnel"],
        "costs": stats["costs"],
        "freeSettlements": 0,
        "settlingKeys": [],
        "paymentNodes": [],
        "unloggedCalls": 0,
        "undelivered": 0,
    }


async def test_operators_are_listed_with_their_sums_page_by_page(office: Office) -> None:
    log, now = office.service.app.call_log, office.service.clock.now()
    for _ in range(3):
        log.add(call(office.operator_id, "w", now, agent_id="7"))
    both = await office.get("operators")
    assert (both["total"], both["limit"], both["offset"]) == (2, 50, 0)
    by_id = {row["operator"]["id"]: row for row in both["operators"]}
    row = by_id[office.operator_id]
    assert row["operator"]["email"] == "op@example.com"
    assert row["operator"]["suspended"] is False
    assert row["stats"] == {
        "totalCalls": 3,
        "totalRevenue": "0.000000",
        "uniqueAgents": 1,
        "avgResponseMs": 1.0,
        "errorRate": "0.0000",
        "activeKeys": 1,
        "activeEndpoints": 0,
    }
    pages = [(await office.get("operators", limit=1, offset=n))["operators"] for n in range(3)]
    assert [len(page) for page in pages] == [1, 1, 0]
    assert pages[0] + pages[1] == both["operators"]
    assert "password" not in str(both)


async def test_an_operator_in_detail_without_any_secret(office: Office) -> None:
    body = {
        "path": "/q",
        "pricePerCall": 0,
        "targetUrl": "http://127.0.0.1:8999",
        "upstreamAuthType": "header",
        "upstreamAuthHeader": "x-key",
        "upstreamAuthSecret": "hush",
    }
    made = await office.http.post("/operator/endpoints", json=body, headers=office.their_token)
    wrapper_id = made.json()["id"]
    now = office.service.clock.now()
    office.service.app.call_log.add(call(office.operator_id, wrapper_id, now, agent_id="7"))
    found = await office.get(f"operators/{office.operator_id}")
    assert found["operator"]["id"] == office.operator_id
    assert [key["label"] for key in found["keys"]] == ["first key"]
    assert [endpoint["id"] for endpoint in found["endpoints"]] == [wrapper_id]
    assert [agent["agentId"] for agent in found["agents"]] == ["7"]
    assert found["stats"]["totalCalls"] == 1
    assert len(found["revenue"]) == 30
    assert "hush" not in str(found)
    logs = await office.get(f"operators/{office.operator_id}/logs", agentId="7")
    assert [log["endpointId"] for log in logs["logs"]] == [wrapper_id]
    assert (await office.get(f"operators/{office.admin_id}/logs"))["total"] == 0


async def test_an_operator_that_is_not_there_is_not_found(office: Office) -> None:
    for path in ("operators/nobody", "operators/nobody/logs"):
        answer = await office.http.get(f"{ROOT}/{path}", headers=office.token)
        refused(answer, 404, "operator_not_found")
    refused(await office.change("nobody", plan="pro"), 404, "operator_not_found")


async def test_a_plan_a_role_and_a_fee_rate_are_changed_at_once(office: Office) -> None:
    answer = await office.change(
        office.operator_id, plan="pro", role="admin", fee_rate="0.025", suspended=False
    )
    assert answer.status_code == 200, answer.text
    operator = answer.json()["operator"]
    assert (operator["plan"], operator["role"], operator["fee_rate"]) == ("pro", "admin", "0.025")
    mine = (await office.http.get("/operator/me", headers=office.their_token)).json()["operator"]
    assert (mine["plan"], mine["role"], mine["fee_rate"]) == ("pro", "admin", "0.025")
    seen = await office.http.get(f"{ROOT}/stats", headers=office.their_token)
    assert seen.status_code == 200


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"plan": "gold"},
        {"role": "root"},
        {"fee_rate": "1.01"},
        {"fee_rate": "-0.1"},
        {"fee_rate": "NaN"},
        {"fee_rate": "0.0000001"},
        {"suspended": "yes"},
        {"email": "new@example.com"},
        {"password": PASSWORD},
    ],
)
async def test_what_cannot_be_changed_so_is_refused(office: Office, body: dict[str, Any]) -> None:
    refused(await office.change(office.operator_id, **body), 400, "invalid_request")


async def test_an_admin_does_not_lock_itself_out(office: Office) -> None:
    refused(await office.change(office.admin_id, suspended=True), 409, "conflict")
    refused(await office.change(office.admin_id, role="operator"), 409, "conflict")
    assert (await office.change(office.admin_id, plan="pro")).status_code == 200


async def test_nothing_of_a_suspended_account_works_until_it_is_taken_up_again(
    office: Office, up: WireUpstream
) -> None:
    body = {"path": "/q", "pricePerCall": 0, "targetUrl": up.url}
    await office.http.post("/operator/endpoints", json=body, headers=office.their_token)
    wrapped = f"/wrap/{office.operator_id}/q"
    login = {"email": "op@example.com", "password": PASSWORD}
    wrong = {**login, "password": "wrong " + PASSWORD}
    agent = "/operator/agent/7"

    async def statuses() -> list[int]:
        asked = [
            await office.http.get(wrapped),
            await office.http.get("/operator/me", headers=office.their_token),
            await office.http.get(agent, headers=office.key),
            await office.http.post("/operator/login", json=login),
        ]
        return [answer.status_code for answer in asked]

    assert await statuses() == [200, 200, 200, 200]
    answer = await office.change(office.operator_id, suspended=True)
    assert answer.json()["operator"]["suspended"] is True
    assert await statuses() == [404, 403, 403, 403]
    refused(await office.http.get(agent, headers=office.key), 403, "account_suspended")
    session = await office.service.session()
    gate = await office.service.gate({**office.key, **session})
    refused(gate, 403, "account_suspended")
    refused(await office.http.post("/operator/login", json=wrong), 401, "unauthorized")
    await office.change(office.operator_id, suspended=False)
    office.service.clock.move(60)
    assert await statuses() == [200, 200, 200, 200]


async def test_everything_done_to_accounts_and_credentials_is_in_the_trail(office: Office) -> None:
    keys = (await office.http.get("/operator/keys", headers=office.their_token)).json()
    made = await office.http.post("/operator/keys/rotate", headers=office.their_token)
    await office.http.delete(f"/operator/keys/{keys[0]['id']}", headers=office.their_token)
    await office.change(office.operator_id, plan="pro", suspended=True)
    trail = (await office.get("audit", operatorId=office.operator_id))["notes"]
    assert [(note["action"], note["actor"]) for note in trail] == [
        ("account.changed", "admin"),
        ("key.revoked", "operator"),
        ("key.issued", "operator"),
        ("login.succeeded", "operator"),
        ("key.issued", "anonymous"),
        ("account.registered", "anonymous"),
    ]
    changed, revoked, issued = trail[:3]
    assert changed["details"] == {
        "plan": {"from": "free", "to": "pro"},
        "suspended": {"from": False, "to": True},
    }
    assert (changed["actorId"], changed["operatorId"]) == (office.admin_id, office.operator_id)
    assert revoked["target"] == keys[0]["id"]
    assert issued["target"] == made.json()["id"]
    assert all(note["requestId"] and note["client"] for note in trail[:3])
    assert made.json()["key"] not in str(trail)


async def test_what_failed_is_not_in_the_trail(office: Office) -> None:
    before = (await office.get("audit"))["notes"]
    await office.http.delete("/operator/keys/nothing", headers=office.their_token)
    await office.change(office.admin_id, suspended=True)
    await office.service.http.post(
        "/operator/register",
        json={"email": "op@example.com", "password": PASSWORD, "name": "again"},
    )
    assert (await office.get("audit"))["notes"] == before


async def test_the_trail_is_read_page_by_page(office: Office) -> None:
    whole = (await office.get("audit", limit=100))["notes"]
    first = await office.get("audit", limit=3)
    second = await office.get("audit", limit=100, before=first["nextBefore"])
    assert first["notes"] + second["notes"] == whole
    assert second["nextBefore"] is None


async def test_not_even_the_database_lets_a_note_be_changed_or_removed(office: Office) -> None:
    database: Database = office.service.app.database
    for change in ("UPDATE audit SET action = 'nothing'", "DELETE FROM audit"):
        with pytest.raises(IntegrityError, match="only added to"):
            async with database.write() as connection:
                await connection.execute(text(change))
    assert len((await office.get("audit"))["notes"]) > 3


async def test_logins_that_fail_are_in_the_trail_without_what_was_typed(office: Office) -> None:
    asked = [
        ("op@example.com", "wrong " + PASSWORD),
        ("nobody@example.com", PASSWORD),
        ("op@example.com", PASSWORD),
    ]
    await office.change(office.operator_id, suspended=True)
    for email, password in asked:
        body = {"email": email, "password": password}
        await office.http.post("/operator/login", json=body)
    trail = (await office.get("audit", limit=3))["notes"]
    kinds = [(n["action"], n["actor"], n["operatorId"], n["details"]) for n in trail]
    mine = office.operator_id
    assert kinds == [
        ("login.failed", "operator", mine, {"reason": "suspended"}),
        ("login.failed", "anonymous", None, {"reason": "unknown account"}),
        ("login.failed", "anonymous", mine, {"reason": "wrong password"}),
    ]
    assert all(note["client"] and note["requestId"] for note in trail)
    assert PASSWORD not in str(trail)
    assert "nobody@" not in str(trail)


async def test_a_delayed_login_is_not_tried_and_leaves_no_note(office: Office) -> None:
    """What bounds the trail: whoever guesses fast is refused before there is anything to tell."""
    body = {"email": "op@example.com", "password": "wrong " + PASSWORD}
    answers = [await office.http.post("/operator/login", json=body) for _ in range(12)]
    assert [answer.status_code for answer in answers] == [401] * 5 + [429] * 7
    trail = (await office.get("audit", limit=100))["notes"]
    assert sum(note["action"] == "login.failed" for note in trail) == 5


async def test_a_new_name_is_in_the_trail_with_the_old_one(office: Office) -> None:
    url = "/operator/me"
    await office.http.patch(url, json={"name": "Ada"}, headers=office.their_token)
    refused(
        await office.http.patch(url, json={"name": " "}, headers=office.their_token),
        400,
        "invalid_request",
    )
    told, before = (await office.get("audit", limit=2))["notes"]
    assert (told["action"], told["actor"], told["actorId"]) == (
        *("account.renamed", "operator"),
        office.operator_id,
    )
    assert told["details"] == {"name": {"from": "Op", "to": "Ada"}}
    assert before["action"] != "account.renamed"


async def test_another_process_refuses_a_suspended_account_within_the_time_said(
    tmp_path: Path, up: WireUpstream
) -> None:
    """Two processes on one database: what one suspends, the other's memory outlives by 5 s."""
    folder = tmp_path / "data"
    async with start_test_service(folder) as one, start_test_service(folder) as other:
        key, token = await one.operator(), await one.token()
        body = {"path": "/q", "pricePerCall": 0, "targetUrl": up.url}
        await one.http.post("/operator/endpoints", json=body, headers=token)
        me = (await one.http.get("/operator/me", headers=token)).json()["operator"]

        async def seen(service: TestService) -> tuple[int, int]:
            keyed = await service.http.get("/operator/agent/7", headers=key)
            wrapped = await service.http.get(f"/wrap/{me['id']}/q")
            return keyed.status_code, wrapped.status_code

        assert (await seen(one), await seen(other)) == ((200, 200), (200, 200))
        await one.app.operators.suspend_for_admin("op@example.com", suspended=True)
        one.app.endpoints.forget(me["id"])
        assert await seen(one) == (403, 404)
        dashboard = await other.http.get("/operator/me", headers=token)
        refused(dashboard, 403, "account_suspended")  # a token is asked of the store every time
        assert REMEMBERED_S == ROUTES_REMEMBERED_S == 5
        other.clock.move(REMEMBERED_S)
        assert await seen(other) == (403, 404)
        await one.app.operators.suspend_for_admin("op@example.com", suspended=False)
        other.clock.move(REMEMBERED_S)
        assert await seen(other) == (200, 200)
