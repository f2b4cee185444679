"""Payments that moved nothing leave in time; every other one stays."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from sqlalchemy import insert, text

from assay.admin.store_retention import SqlRetention
from assay.analytics.store_analytics import SqlAnalyticsStore
from assay.analytics.store_rollups import SqlRollupProof
from assay.app.retention import Retention
from assay.db.engine import Database
from assay.db.schema.everything import payments
from assay.db.store_costs import SqlCostStore
from assay.payments.model import LedgerEntry, PaymentState
from assay.payments.outcomes import NO_GAS, Gas, SettlementAttempt
from assay.payments.service import FAILURES_WINDOW
from assay.payments.store import values_of
from assay.payments.store_watches import REMOVE
from assay.settings import load
from tests.payments.ledger.test_ledger_store import CLOCK, entry
from tests.support.fakes.calls import claimed, counted_ledger, payment
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.ledger_moves import moved_on

NOW = CLOCK.now()
BEFORE = NOW - timedelta(days=30)
OLD = BEFORE - timedelta(seconds=1)


def row(number: int, **fields: Any) -> LedgerEntry:
    ended = {"state": PaymentState.RELEASED, "expires_at": OLD, "updated_at": OLD}
    given: dict[str, Any] = {**ended, **fields}
    return entry(f"0x{number}", payer=f"0x{number:040x}", **given)


async def added(database: Database, *entries: LedgerEntry, **columns: object) -> None:
    rows = [{**values_of(one), **columns} for one in entries]
    async with database.write() as connection:
        await connection.execute(insert(payments), rows)


async def left(database: Database) -> set[str]:
    async with database.read() as connection:
        return set((await connection.execute(text("SELECT id FROM payments"))).scalars())


async def test_only_what_moved_nothing_and_has_ended_leaves_in_batches(database: Database) -> None:
    spent = Gas("prepaid", "usd", 9, 7)
    sent = SettlementAttempt("0x" + "ee" * 32, "0x02", earlier=("0x" + "dd" * 32,))
    failed = row(4, state=PaymentState.FAILED, attempt=sent, gas=spent)
    await added(database, *(row(n) for n in range(4)), failed)
    kept = [
        row(10, expires_at=BEFORE + timedelta(seconds=1)),
        row(11, state=PaymentState.SETTLED, settled_at=OLD),
        row(12, state=PaymentState.DELIVERED, settled_at=OLD),
        row(13, state=PaymentState.REVERSED, settled_at=OLD),
        row(14, state=PaymentState.PENDING),
        row(15, state=PaymentState.SETTLING),
        row(16, state=PaymentState.CLAIMED),
        row(17, state=PaymentState.FAILED, expires_at=BEFORE + timedelta(seconds=1)),
        row(18, attempt=SettlementAttempt("0x" + "ee" * 32)),
        row(19, gas=spent),
        row(30, state=PaymentState.FAILED, updated_at=BEFORE + timedelta(seconds=1)),
        row(31, state=PaymentState.FAILED, settled_at=OLD),
        row(32, state=PaymentState.FAILED, expires_at=NOW + timedelta(days=900)),
    ]
    await added(database, *kept)
    watched, refunded, answered = row(20), row(21, state=PaymentState.FAILED), row(22)
    looked_at = row(23, state=PaymentState.FAILED)
    await added(database, watched, looked_at, watch_us=1)
    await added(database, refunded, answered)
    async with database.write() as connection:
        await connection.execute(
            text(
                "INSERT INTO transfers (id, kind, operator_id, payment_id, network, asset, sender,"
                " recipient, amount, of_balance, state, tx, reason, created_us, updated_us,"
                " check_us, moves) VALUES ('t', 'refund', 'op', :id, 'n', 'a', 's', 'r', 1, :no,"
                " 'done', '', '', 1, 1, 1, 0)"
            ),
            {"id": refunded.id, "no": False},
        )
        await connection.execute(
            text(
                "INSERT INTO paid_responses (payment_id, status, headers, body, stored_us)"
                " VALUES (:id, 200, '[]', :body, 1)"
            ),
            {"id": answered.id, "body": b""},
        )
    retention = SqlRetention(database)
    assert [await retention.remove_unpaid_payments(BEFORE, 3) for _ in range(3)] == [3, 2, 0]
    kept += [watched, looked_at, refunded, answered]
    assert await left(database) == {one.id for one in kept}


async def test_what_was_counted_of_removed_failures_stays_and_is_proven(database: Database) -> None:
    clock = FrozenClock(OLD - timedelta(days=2))
    ledger = counted_ledger(database, clock)
    for cost in (5, 7, None):
        gas = NO_GAS if cost is None else Gas("prepaid", "usd", 9)
        made = payment("op", "w", clock.now(), 5, gas=gas)
        entry = await claimed(ledger, made)
        attempt = replace(entry.attempt, raw="0x02", spent=cost)
        reason = "transaction-failed"
        moved = await moved_on(ledger, entry, PaymentState.FAILED, attempt=attempt, reason=reason)
        assert moved is not None
    retention, proof = SqlRetention(database), SqlRollupProof(database)
    analytics = SqlAnalyticsStore(database)
    counted = (await analytics.stats("op", 0)).funnel
    assert counted.failed == 3
    assert [await retention.remove_unpaid_payments(BEFORE, 2) for _ in range(3)] == [2, 1, 0]
    assert not any((await proof.differences()).values())
    assert not any((await proof.rebuild()).values())
    assert (await analytics.stats("op", 0)).funnel == counted
    async with database.read() as connection:
        sums = await connection.execute(
            text("SELECT gas_currency, failed, gas_spent FROM removed_payments ORDER BY 1")
        )
        assert [tuple(one) for one in sums] == [("", 1, 0), ("usd", 2, 12)]


async def test_a_failure_counts_against_its_payer_for_its_hour_however_old_its_end(
    database: Database,
) -> None:
    ledger = counted_ledger(database, FrozenClock(NOW))
    await added(database, entry("0x1", state=PaymentState.FAILED, expires_at=OLD, updated_at=NOW))
    assert await SqlRetention(database).remove_unpaid_payments(NOW - timedelta(days=1), 9) == 0
    assert (await ledger.claim(entry("0x2"), NOW - FAILURES_WINDOW)).failures == 1


async def test_the_setting_says_when_and_0_keeps_all(database: Database) -> None:
    await added(database, row(1))
    stores = SqlRetention(database), SqlCostStore(database, CLOCK)
    for days, found in ((0, 1), (31, 1), (30, 0)):
        settings = load(unpaid_payment_days=days, snapshot_blocks_mib=0)
        await Retention(*stores, None, settings, FrozenClock(NOW)).run()  # type: ignore[arg-type]
        assert len(await left(database)) == found


async def test_what_points_to_a_payment_is_found_without_reading_all_that_could(
    database: Database,
) -> None:
    if database.kind == "postgresql":
        return
    async with database.read() as connection:
        values = {"before_us": 1, "limit": 1}
        plan = await connection.execute(text(f"EXPLAIN QUERY PLAN {REMOVE.text}"), values)
        steps = [row[3] for row in plan]
    assert not [step for step in steps if step.startswith("SCAN")], steps
