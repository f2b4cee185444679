"""Scopes, ends and numbers of API keys (conventions.md#account-security)."""

import re
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.support.live_service import OWNER_KEY, TestService, address, refused, start_test_service
from tests.support.promises import SCOPES

ENDPOINT = {"path": "/x", "pricePerCall": 0, "targetUrl": "http://127.0.0.1:8999"}
USES: dict[str, tuple[str, str, dict[str, Any] | None]] = {
    "evaluate": ("GET", "/operator/agent/7", None),
    "gate": ("POST", "/operator/gate/7", {}),
    "webhooks": ("GET", "/operator/webhooks", None),
    "proxy": ("POST", "/operator/proxy/7", {"targetUrl": "http://127.0.0.1:9/"}),
    "wrappers": ("POST", "/operator/endpoints", ENDPOINT),
}
"""An operation of each scope."""


async def issued(service: TestService, token: dict[str, str], **body: Any) -> dict[str, str]:
    answer = await service.http.post("/operator/keys/rotate", headers=token, json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json().keys() == {"key", "id", "label"}
    return {"authorization": f"Bearer {answer.json()['key']}"}


async def use(service: TestService, scope: str, headers: dict[str, str]) -> httpx2.Response:
    method, path, body = USES[scope]
    return await service.http.request(method, path, headers=headers, json=body)


@pytest.mark.parametrize("scope", USES)
async def test_403_a_key_does_what_it_was_issued_for_and_nothing_else(
    service: TestService, scope: str
) -> None:
    await service.operator()
    key = await issued(service, await service.token(), scopes=[scope])
    for other in USES:
        for _ in range(2):  # asked of the store, and from memory
            answer = await use(service, other, key | await service.session())
            if other == scope:
                assert "insufficient_scope" not in answer.text
                assert answer.status_code != 401
            else:
                assert refused(answer, 403, "insufficient_scope")["scope"] == other
                assert answer.headers["www-authenticate"] == (
                    f'Bearer realm="assay", error="insufficient_scope", scope="{other}"'
                )


@pytest.mark.parametrize("settings", [{}, {"open_endpoints": ()}], ids=["open", "closed"])
async def test_403_every_operation_with_a_scope_holds_a_key_to_it(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    """Also where nobody needs a key: else one of another scope would use up its owner's quotas."""
    async with start_test_service(tmp_path / "data", **settings) as service:
        await service.operator()
        token = await service.token()
        keys = {scope: await issued(service, token, scopes=[scope]) for scope in USES}
        owner = address(OWNER_KEY)
        for operation, needed in SCOPES.items():
            method, path = operation.split()
            path = path.replace("{wallet}", owner).replace("{agentAddress}", owner)
            path = re.sub(r"\{\w+\}", "7", path)
            for scope, key in keys.items():
                answer = await service.http.request(method, path, headers=key)
                if scope == needed:
                    assert "insufficient_scope" not in answer.text, operation
                else:
                    body = refused(answer, 403, "insufficient_scope")
                    assert body["scope"] == needed, operation


async def test_200_a_key_that_names_no_scope_has_all_but_wrappers(service: TestService) -> None:
    first = await service.operator()
    token = await service.token()
    for key in (first, await issued(service, token)):
        refused(await use(service, "wrappers", key), 403, "insufficient_scope")
        for scope in ("evaluate", "webhooks"):
            assert (await use(service, scope, key)).status_code == 200
        refused(await use(service, "proxy", key), 403, "plan_required")
    listed = (await service.http.get("/operator/keys", headers=token)).json()
    assert [key["scopes"] for key in listed] == [["evaluate", "gate", "proxy", "webhooks"]] * 2
    assert [key["expiresAt"] for key in listed] == [None, None]


async def test_200_a_key_with_the_scope_manages_wrappers_and_no_keys(service: TestService) -> None:
    await service.operator()
    key = await issued(service, await service.token(), scopes=["wrappers"])
    made = await use(service, "wrappers", key)
    assert made.status_code == 200, made.text
    assert len((await service.http.get("/operator/endpoints", headers=key)).json()) == 1
    path = f"/operator/endpoints/{made.json()['id']}"
    assert (await service.http.delete(path, headers=key)).status_code == 200
    refused(await service.http.post("/operator/keys/rotate", headers=key), 401, "unauthorized")


@pytest.mark.parametrize(
    "end", [{"expiresInDays": 1}, {"expiresAt": "2026-03-02T12:00:00Z"}], ids=str
)
async def test_401_a_key_is_refused_from_its_end_on(
    service: TestService, end: dict[str, Any]
) -> None:
    await service.operator()
    key = await issued(service, await service.token(), **end)
    service.clock.move(86_400 - 1)
    assert (await use(service, "evaluate", key)).status_code == 200
    service.clock.move(1)  # though it is remembered
    refused(await use(service, "evaluate", key), 401, "unauthorized")
    (newest, _) = (await service.http.get("/operator/keys", headers=await service.token())).json()
    assert newest["expiresAt"] == "2026-03-02T12:00:00.000Z"


@pytest.mark.parametrize(
    "body",
    [
        {"scopes": []}, {"scopes": ["admin"]}, {"scopes": "gate"}, {"scopes": ["gate"] * 21},
        {"expiresAt": "2026-03-01T12:00:00Z"}, {"expiresAt": "2027-03-01T12:00:00"},
        {"expiresAt": 5}, {"expiresInDays": 0}, {"expiresInDays": 3651},
        {"expiresInDays": 1, "expiresAt": "2027-03-01T12:00:00Z"},
    ],
    ids=str,
)  # fmt: skip
async def test_400_a_key_that_could_not_be_used_is_not_issued(
    service: TestService, body: dict[str, Any]
) -> None:
    await service.operator()
    token = await service.token()
    answer = await service.http.post("/operator/keys/rotate", headers=token, json=body)
    refused(answer, 400, "invalid_request")


async def test_409_an_account_has_a_bounded_number_of_keys(
    service: TestService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.accounts.api_keys.KEYS_MAX", 3)
    await service.operator()
    token = await service.token()
    for _ in range(2):
        await issued(service, token)
    answer = await service.http.post("/operator/keys/rotate", headers=token)
    refused(answer, 409, "key_limit_reached")
    for _ in range(6):  # issued and revoked without end
        keys = (await service.http.get("/operator/keys", headers=token)).json()
        alive = [key["id"] for key in keys if not key["revoked"]]
        await service.http.delete(f"/operator/keys/{alive[0]}", headers=token)
        await issued(service, token)
    assert len((await service.http.get("/operator/keys", headers=token)).json()) <= 3 + 3 + 1


async def test_keys_of_before_there_were_scopes_keep_what_they_could_do(tmp_path: Path) -> None:
    """Rows as an upgrade leaves them: the migration's default, and nothing else."""
    folder = tmp_path / "data"
    async with start_test_service(folder) as service:
        key = await service.operator()
        await service.app.flush()  # nothing is left to be written into what is dropped
        async with service.app.database.write() as connection:
            await connection.exec_driver_sql("DROP TRIGGER audit_keeps_update")
            await connection.exec_driver_sql("ALTER TABLE api_keys DROP COLUMN scopes")
            await connection.exec_driver_sql("ALTER TABLE api_keys DROP COLUMN expires_us")
            await connection.exec_driver_sql("ALTER TABLE api_keys DROP COLUMN gate_policies")
            for table in (
                *("dashboard_sessions", "account_codes", "recovery_codes", "login_origins"),
                *("call_id_key", "egress_usage", "daily_costs", "earlier_keys"),
                *("gas_accounts", "daily_budgets"),
                *("wrapper_revisions", "transfer_transactions", "transfers"),
                *("control_keys", "open_findings", "agent_identities", "content_bands"),
                *("visits", "visit_schedule", "visit_requests", "host_visits", "visit_seeds"),
                *("index_streams", "chain_feedback", "chain_notes", "chain_owners"),
                *("chain_transfers", "chain_fundings", "removed_calls", "removed_payments"),
                *("webhook_events", "service_credentials", "paid_calls", "chain_proofs"),
                *("attested_people", "removed_snapshots"),
                *("tier_quotes", "free_calls", "observed_totals"),
                *("listed_agents", "listed_agent_hosts"),
            ):
                await connection.exec_driver_sql(f"DROP TABLE {table}")
            for index in (
                *("ix_operators_origin", "ix_webhook_deliveries_domain"),
                *("ix_key_agents_verified", "ix_audit_actor", "ix_audit_failed_logins"),
                *("ix_webhook_deliveries_turn", "ix_course_runs_finished"),
                *("ix_wrapper_conduct_day", "ix_payments_settled", "ix_payments_revision"),
                *("ix_payments_watch_settled", "ix_payments_watch_unpaid", "ix_payments_ended"),
                *("ix_evaluations_used", "ix_snapshots_evaluation"),
            ):
                await connection.exec_driver_sql(f"DROP INDEX {index}")
            for table, column in (
                *(("webhook_deliveries", "domain"), ("webhook_deliveries", "wait_until_us")),
                *(("wrappers", "pass_response_headers"), ("wrappers", "cors_origins")),
                *(("payments", "gas_payer"), ("payments", "gas_currency")),
                *(("payments", "gas_reserved"), ("payments", "gas_spent")),
                *(("wrappers", "revision"), ("payments", "wrapper_revision")),
                *(("payments", "idempotency_key"), ("payments", "earlier_tx")),
                *(("payments", "look_us"), ("payments", "questions"), ("payments", "misses")),
                *(("payments", "watch_us"), ("payments", "fee_rate"), ("payments", "is_used")),
                *(("payments", "direct_fee"), ("payments", "direct_fee_payee")),
                *(("evaluations", "rung"), ("evaluations", "policy"), ("wrappers", "cold_start")),
                *(("snapshots", "evidence_hash"), ("snapshots", "record")),
                *(("wrappers", "pricing"), ("wrappers", "free_calls"), ("wrappers", "free_per")),
                *(("wrappers", "enforce"), ("calls", "would_deny")),
                *(("paid_responses", "receipt"),),
            ):
                await connection.exec_driver_sql(f"ALTER TABLE {table} DROP COLUMN {column}")
            for column in (
                "email_verified_us", "totp_secret", "totp_confirmed_us", "totp_step",
                "sign_up_origin", "deleted_us", "self_registered",
            ):  # fmt: skip
                await connection.exec_driver_sql(f"ALTER TABLE operators DROP COLUMN {column}")
            await connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0007'")
    async with start_test_service(folder) as service:
        for scope in ("evaluate", "webhooks"):
            assert (await use(service, scope, key)).status_code == 200
        assert (await use(service, "gate", key | await service.session())).status_code == 200
        refused(await use(service, "wrappers", key), 403, "insufficient_scope")
