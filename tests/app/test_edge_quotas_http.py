"""What a stranger may cost in a day, refused by name, and shown to administrators."""

from pathlib import Path
from typing import Any

import pytest

from assay.accounts.model import Role
from assay.common.costs import DAY_S, Bearer, Cost, address_bearer
from tests.support.fakes.calls import call
from tests.support.live_service import (
    OWNER_KEY,
    PASSWORD,
    STRANGER_KEY,
    TestService,
    address,
    refused,
    start_test_service,
)

SETTINGS = {"sandbox_per_minute": 100_000, "sandbox_per_agent_minute": 100_000}


def stranger(number: int) -> str:
    return f"0x{number:040x}"


async def admin(service: TestService) -> dict[str, str]:
    await service.operator("admin@example.com")
    await service.app.operators.set_role_for_admin("admin@example.com", Role.ADMIN)
    return await service.token("admin@example.com")


async def test_429_evaluations_of_a_day_name_their_quota(tmp_path: Path) -> None:
    async with start_test_service(tmp_path, quota_evaluations=3, **SETTINGS) as service:
        path = "/operator/trigger-sandbox/7"
        for _ in range(3):
            assert (await service.http.post(path)).status_code == 200
        answer = await service.http.post(path)
        body = refused(answer, 429, "quota_exceeded")
        assert (body["quota"], body["limit"]) == ("evaluations", 3)
        assert 0 < int(answer.headers["retry-after"]) <= 2 * 86_400
        op, session = await service.operator(), await service.session()
        assert (await service.gate(op | session)).status_code == 200  # another bearer, and cached
        service.clock.move(int(answer.headers["retry-after"]))
        assert (await service.http.post(path)).status_code == 200


async def test_200_strangers_at_its_address_use_up_no_quota_of_a_dashboard_token(
    tmp_path: Path,
) -> None:
    async with start_test_service(tmp_path, quota_evaluations=3, **SETTINGS) as service:
        await service.operator()
        token, path = await service.token(), "/operator/trigger-sandbox/7"
        for headers in ({}, token):
            for _ in range(3):
                assert (await service.http.post(path, headers=headers)).status_code == 200
            answer = await service.http.post(path, headers=headers)
            assert refused(answer, 429, "quota_exceeded")["quota"] == "evaluations"


async def test_429_addresses_that_nobody_proved_have_a_quota_of_their_own(tmp_path: Path) -> None:
    async with start_test_service(tmp_path, quota_unproven_evaluations=3, **SETTINGS) as service:
        for number in range(3):
            path = f"/operator/trigger-sandbox-key/{stranger(number)}"
            assert (await service.http.post(path)).status_code == 200
        path = f"/operator/trigger-sandbox-key/{stranger(9)}"
        body = refused(await service.http.post(path), 429, "quota_exceeded")
        assert body["quota"] == "unproven_evaluations"
        await service.session()  # whoever proved its address is no stranger
        path = f"/operator/trigger-sandbox-key/{address(OWNER_KEY)}"
        assert (await service.http.post(path)).status_code == 200


async def test_429_changes_of_an_account(tmp_path: Path) -> None:
    async with start_test_service(tmp_path, quota_account_changes=3) as service:
        await service.operator()
        token = await service.token()
        for number in range(3):
            body = {"name": f"Name {number}"}
            answer = await service.http.patch("/operator/me", json=body, headers=token)
            assert answer.status_code == 200
        answer = await service.http.patch("/operator/me", json={"name": "N"}, headers=token)
        assert refused(answer, 429, "quota_exceeded")["quota"] == "account_changes"
        assert (await service.http.get("/operator/me", headers=token)).status_code == 200
        await service.pro()
        assert (
            await service.http.patch("/operator/me", json={"name": "N"}, headers=token)
        ).is_success


async def test_429_reads_of_chains(tmp_path: Path) -> None:
    async with start_test_service(tmp_path, quota_rpc_calls=5) as service:
        op = await service.operator()
        (operator,) = await service.app.operators.list_for_admin()
        costs = service.app.costs
        costs.charge(Cost.RPC_CALLS, 5, Bearer(f"operator {operator.id}"))
        answer = await service.http.get("/operator/agent/7", headers=op)
        assert refused(answer, 429, "quota_exceeded")["quota"] == "rpc_calls"
        assert (await service.http.get(f"/operator/resolve-wallet/{address(OWNER_KEY)}")).is_success


async def test_pro_operators_and_admins_have_no_quota(tmp_path: Path) -> None:
    async with start_test_service(tmp_path, quota_evaluations=1, **SETTINGS) as service:
        op, session = await service.operator(), await service.session()
        await service.pro()
        for agent in ("7", "8"):
            assert (await service.gate(op | session, agent)).status_code == 200


async def test_a_free_operator_that_gates_is_refused_beyond_its_quota(tmp_path: Path) -> None:
    async with start_test_service(tmp_path, quota_evaluations=1) as service:
        op, session = await service.operator(), await service.session()
        assert (await service.gate(op | session)).status_code == 200
        assert (await service.gate(op | session)).status_code == 200  # from the cache
        body = refused(await service.gate(op | session, "8"), 429, "quota_exceeded")
        assert body["quota"] == "evaluations"


async def test_administrators_see_what_callers_cost(tmp_path: Path) -> None:
    async with start_test_service(tmp_path, **SETTINGS) as service:
        token = await admin(service)
        for _ in range(2):
            await service.http.post("/operator/trigger-sandbox/7")
        stats = (await service.http.get("/operator/admin/stats", headers=token)).json()
        costs = {row["cost"]: row for row in stats["costs"]}
        assert set(costs) == {cost.value for cost in Cost}
        row = costs["evaluations"]
        assert (row["used"], row["quota"]) == (2, service.app.settings.quota_evaluations)
        assert row["largest"] == [{"bearer": "address 127.0.0.1", "used": 2}]
        assert costs["rows"]["used"] >= 4
        assert costs["disk_bytes"]["used"] > 100
        assert stats["unloggedCalls"] == 0


async def test_a_signature_of_a_stranger_over_quota_calls_no_contract(tmp_path: Path) -> None:
    async with start_test_service(tmp_path, quota_rpc_calls=1) as service:
        service.app.costs.charge(Cost.RPC_CALLS, 1, address_bearer("127.0.0.1"))
        body = await service.challenge(OWNER_KEY)
        body["signature"] = (await service.challenge(STRANGER_KEY))["signature"]
        answer = await service.http.post("/operator/key/verify", json=body)
        refused(answer, 429, "quota_exceeded")
        assert service.chain.contract_calls == 0
        good = await service.challenge(OWNER_KEY)  # a key's own signature costs no call
        assert (await service.http.post("/operator/key/verify", json=good)).status_code == 200


@pytest.mark.parametrize(
    ("fields", "is_kept"),
    [
        ({}, False),
        ({"payment_id": "p"}, False),  # uncharged, or its outcome not known
        ({"payment_id": "p", "cost": 7, "outcome": "replayed"}, False),
        ({"payment_id": "p", "cost": 7, "is_sale": True}, True),
    ],
)
async def test_calls_of_a_caller_over_its_rows_are_not_logged_unless_money_came_in_for_them(
    tmp_path: Path, fields: dict[str, Any], *, is_kept: bool
) -> None:
    async with start_test_service(tmp_path, quota_rows=10) as service:
        log, now = service.app.call_log, service.clock.now()
        for _ in range(25):
            log.add(call("op", "w", now, agent_id="7", **fields))
        assert log.waiting == (25 if is_kept else 10)
        assert log.over_quota == (0 if is_kept else 15)


async def triggered(service: TestService) -> int:
    return (await service.http.post("/operator/trigger-sandbox/7")).status_code


async def test_429_what_was_spent_before_a_restart_stays_spent(tmp_path: Path) -> None:
    async with start_test_service(tmp_path, quota_evaluations=2, **SETTINGS) as service:
        assert [await triggered(service) for _ in range(3)] == [200, 200, 429]
    async with start_test_service(tmp_path, quota_evaluations=2, **SETTINGS) as service:
        assert await triggered(service) == 429
        token = await admin(service)
        stats = (await service.http.get("/operator/admin/stats", headers=token)).json()
        assert {row["cost"]: row["used"] for row in stats["costs"]}["evaluations"] == 2
        service.clock.move(2 * DAY_S)
        assert await triggered(service) == 200


async def test_429_two_processes_share_a_quota_but_for_one_interval_of_writing(
    tmp_path: Path,
) -> None:
    quota = {"quota_evaluations": 6, **SETTINGS}
    async with (
        start_test_service(tmp_path, **quota) as one,
        start_test_service(tmp_path, **quota) as other,
    ):
        served = 0
        for _ in range(6):
            for service in (one, other):
                served += await triggered(service) == 200
            for service in (one, other):
                await service.app.flush()
        assert 6 <= served <= 6 + 2
        assert [await triggered(service) for service in (one, other)] == [429, 429]


async def test_429_exports_leave_a_bounded_number_of_notes(tmp_path: Path) -> None:
    async with start_test_service(tmp_path, quota_account_changes=3) as service:
        await service.operator()
        token = await service.token()
        answers = [await service.http.get("/operator/me/export", headers=token) for _ in range(5)]
        assert [answer.status_code for answer in answers] == [200] * 3 + [429] * 2


async def test_200_a_stolen_token_cannot_use_up_what_its_owner_needs_to_end_it(
    tmp_path: Path,
) -> None:
    async with start_test_service(tmp_path, quota_account_changes=3) as service:
        await service.operator()
        stolen, token = await service.token(), await service.token()
        change = {"password": "wrong wrong wrong", "newPassword": "another good one"}
        for _ in range(5):
            await service.http.patch("/operator/me", json={"name": "N"}, headers=stolen)
            await service.http.post("/operator/password", json=change, headers=stolen)
        answer = await service.http.patch("/operator/me", json={"name": "N"}, headers=token)
        refused(answer, 429, "quota_exceeded")
        service.clock.move(3600)  # wrong passwords from the same address hold its owner up as well
        change["password"] = PASSWORD
        answer = await service.http.post("/operator/password", json=change, headers=token)
        assert answer.status_code == 200, answer.text
        assert (await service.http.get("/operator/me", headers=stolen)).status_code == 401
        statuses: list[int] = []
        for number in range(3):
            change = {"password": change["newPassword"], "newPassword": f"yet another {number}"}
            answer = await service.http.post("/operator/password", json=change, headers=token)
            statuses.append(answer.status_code)
        assert statuses == [200, 200, 429]
