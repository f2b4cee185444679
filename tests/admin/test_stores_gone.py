"""A database that cannot be reached: every operation of every store says so, and nothing else."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from assay.accounts.model import AccountChange, ApiKey, Operator, Plan, Role
from assay.accounts.store_operators import SqlAllowanceStore, SqlApiKeyStore, SqlOperatorStore
from assay.admin.store import SqlAdminStore
from assay.analytics.model import LogFilter
from assay.analytics.store_analytics import SqlAnalyticsStore
from assay.analytics.store_calls import SqlCallStore
from assay.audit.service import TERMINAL, new_entry
from assay.audit.store import SqlAuditStore
from assay.common.errors import Unavailable
from assay.db.engine import Database
from assay.db.state import SqlSharedState
from assay.evaluation.model import Evaluation, Grade, Snapshot
from assay.evaluation.store_evaluations import SqlEvaluationStore
from assay.identity.model import KeyAgent
from assay.key_agents.store import SqlKeyAgentStore
from assay.payments.model import LedgerEntry, PaymentState
from assay.payments.outcomes import SettlementAttempt
from assay.payments.store import SqlLedgerStore
from assay.webhooks.model import DeliveryState, WebhookRegistration
from assay.webhooks.store import SqlWebhookStore
from tests.support.fakes.calls import call
from tests.support.fakes.clock import FrozenClock
from tests.support.postgres import Postgres

NOW = datetime(2026, 3, 1, tzinfo=UTC)
OPERATOR = Operator("o", "a@b.cc", "Ann", Role.OPERATOR, Plan.FREE, Decimal(0), NOW, NOW)
NOTE = new_entry(FrozenClock(NOW), TERMINAL, "account.changed", "o")
WEBHOOK = WebhookRegistration("w", "o", "evaluation_complete", "https://x.yy", None, None, NOW)
KEY = ApiKey("k", "o", "svc_op_abc", None, revoked=False, last_used=None, created_at=NOW)
EVALUATION = Evaluation("e", "s", "c", "7", "0x", (), {}, 50.0, Grade("B", "RED", "sandbox"), NOW)
SNAPSHOT = Snapshot("n", "e", "s", "7", "0x1", "0x0", None, 0, NOW)
ENTRY = LedgerEntry(
    "i", "x402", "n", "a", "p", "0x1", "d", 1, "t", "o", "w", "r", PaymentState.CLAIMED,
    SettlementAttempt(""), "", {}, 2, None, NOW, NOW, NOW, NOW,
)  # fmt: skip

OPERATIONS: dict[str, Callable[[Database], Awaitable[object]]] = {
    "operators add": lambda d: SqlOperatorStore(d).add(OPERATOR, "hash"),
    "operators find": lambda d: SqlOperatorStore(d).find("o"),
    "operators by e-mail": lambda d: SqlOperatorStore(d).find_by_email("a@b.cc"),
    "operators list": lambda d: SqlOperatorStore(d).list_for_admin(),
    "operators rename": lambda d: SqlOperatorStore(d).rename("o", "Bea", NOW),
    "analytics stats": lambda d: SqlAnalyticsStore(d).stats("o", 1),
    "analytics days": lambda d: SqlAnalyticsStore(d).days("o", 1, 2),
    "analytics agents": lambda d: SqlAnalyticsStore(d).agents("o", "calls", 1, 0),
    "analytics logs": lambda d: SqlAnalyticsStore(d).logs("o", LogFilter(), None, None, 1, 0),
    "analytics count": lambda d: SqlAnalyticsStore(d).count("o", LogFilter(), None),
    "analytics position": lambda d: SqlAnalyticsStore(d).position(
        "o", "01a201e4-09d0-7692-b3f6-737951fd1d3b"
    ),
    "calls add": lambda d: SqlCallStore(d).add([call("o", "w", NOW)]),
    "admin stats": lambda d: SqlAdminStore(d).stats_for_admin(1),
    "admin operators": lambda d: SqlAdminStore(d).operators_for_admin(1, 0),
    "audit page": lambda d: SqlAuditStore(d).page_for_admin(None, None, 1),
    "audit note": lambda d: SqlOperatorStore(d).record(NOTE),
    "webhooks add": lambda d: SqlWebhookStore(d).add(WEBHOOK, ["*"], 1, NOTE),
    "webhooks list": lambda d: SqlWebhookStore(d).list("o"),
    "webhooks find": lambda d: SqlWebhookStore(d).find("o", "w"),
    "webhooks remove": lambda d: SqlWebhookStore(d).remove("o", "w", NOTE),
    "webhooks deliveries": lambda d: SqlWebhookStore(d).deliveries("o", None, None, 1),
    "webhooks claim": lambda d: SqlWebhookStore(d).claim_due(NOW, 1, ()),
    "webhooks complete": lambda d: SqlWebhookStore(d).complete(
        "d", DeliveryState.SENT, 200, None, NOW
    ),
    "webhooks abandon": lambda d: SqlWebhookStore(d).fail_abandoned(NOW, NOW),
    "webhooks purge": lambda d: SqlWebhookStore(d).purge(NOW),
    "operators change": lambda d: SqlOperatorStore(d).change_for_admin(
        "o", AccountChange(plan=Plan.PRO), NOW, NOTE
    ),
    "keys add": lambda d: SqlApiKeyStore(d).add(KEY, "a" * 64),
    "keys by hash": lambda d: SqlApiKeyStore(d).find_by_hash("a" * 64),
    "keys list": lambda d: SqlApiKeyStore(d).list("o"),
    "keys revoke": lambda d: SqlApiKeyStore(d).revoke("o", "k"),
    "keys touch": lambda d: SqlApiKeyStore(d).touch({"k": NOW}),
    "allowance used": lambda d: SqlAllowanceStore(d).used("o", "2026-03"),
    "allowance add": lambda d: SqlAllowanceStore(d).add({("o", "2026-03"): 1}),
    "key agents remember": lambda d: SqlKeyAgentStore(d).remember(KeyAgent("0x1", NOW)),
    "key agents find": lambda d: SqlKeyAgentStore(d).find("0x1"),
    "evaluations add": lambda d: SqlEvaluationStore(d).add(EVALUATION, SNAPSHOT),
    "evaluations newest": lambda d: SqlEvaluationStore(d).newest("s", NOW),
    "snapshots newest": lambda d: SqlEvaluationStore(d).newest_snapshot("s"),
    "state put if absent": lambda d: SqlSharedState(d, FrozenClock()).put_if_absent("k", "v", 1),
    "state put": lambda d: SqlSharedState(d, FrozenClock()).put("k", "v", 1),
    "state get": lambda d: SqlSharedState(d, FrozenClock()).get("k"),
    "state take": lambda d: SqlSharedState(d, FrozenClock()).take("k"),
    "ledger find": lambda d: SqlLedgerStore(d, FrozenClock()).find("n", "d"),
    "ledger claim": lambda d: SqlLedgerStore(d, FrozenClock()).claim(ENTRY, NOW),
    "ledger move": lambda d: SqlLedgerStore(d, FrozenClock()).move(ENTRY, PaymentState.SETTLED),
    "ping": lambda d: d.ping(),
    "migrate": lambda d: d.migrate(),
}


@pytest.fixture(params=["sqlite", "postgresql"])
async def gone(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Database]:
    sqlite = request.param == "sqlite"
    missing = f"sqlite:///{tmp_path / 'removed' / 'assay.db'}"
    database = await Database.open(missing if sqlite else "postgresql://u:hush@127.0.0.1:9/d")
    yield database
    await database.close()


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS.keys())
async def test_whatever_is_asked_is_unavailable(
    gone: Database, operation: Callable[[Database], Awaitable[object]]
) -> None:
    with pytest.raises(Unavailable) as refusal:
        await operation(gone)
    assert refusal.value.retry_after_s is not None
    assert "hush" not in f"{refusal.value.message}{refusal.value.detail}"


async def test_a_server_that_restarts_is_unavailable_and_then_used_again() -> None:
    server = Postgres()
    try:
        database = await Database.open(server.new_database())
        await database.migrate()
        await SqlOperatorStore(database).add(OPERATOR, "hash")
        await asyncio.to_thread(server.halt)
        for operation in OPERATIONS.values():
            with pytest.raises(Unavailable):
                await operation(database)
        await asyncio.to_thread(server.start)
        assert await SqlOperatorStore(database).find("o") == OPERATOR
        await database.close()
    finally:
        server.stop()
