"""What a crash loses of the call log, on every database: the figures are those of the ledger."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import exists, select
from sqlalchemy.dialects.sqlite import dialect

from assay.analytics.model import LogFilter, Stats
from assay.analytics.store_analytics import SqlAnalyticsStore
from assay.analytics.store_calls import (
    BOUGHT_BY,
    GRACE,
    MISSING_AT_ONCE,
    SqlCallStore,
    SqlMissingCalls,
)
from assay.analytics.store_rollups import RollupWriter, SqlRollupProof
from assay.common.errors import Unavailable
from assay.db.engine import Database, to_us
from assay.db.schema.everything import payments
from assay.db.sql_transaction import SqlTransaction
from assay.payments.model import LedgerEntry, PaymentState, StoredResponse
from assay.payments.store import SqlLedgerStore
from tests.support.fakes.calls import PAYER, call, claimed, counted_ledger, payment
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.ledger_moves import moved_on
from tests.support.forked import ROOT

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER_S = GRACE.total_seconds() + 1


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(START)


async def sold(database: Database, clock: FrozenClock, **fields: object) -> LedgerEntry:
    """A call that was served and paid for; its row is lost."""
    ledger = counted_ledger(database, clock)
    made = payment("op", "w", clock.now(), 7)
    made = replace(made, lease_until=clock.now() + timedelta(seconds=5), **fields)  # type: ignore[arg-type]
    entry = await claimed(ledger, made)
    stored = StoredResponse(201, ((b"x-a", b"1"),), b"body")
    moved = await ledger.move(entry, PaymentState.SETTLED, stored=stored)
    assert moved is not None
    return moved


async def stats(database: Database, clock: FrozenClock) -> Stats:
    today = to_us(clock.now()) // 86_400_000_000
    return await SqlAnalyticsStore(database).stats("op", today)


async def test_the_money_of_the_funnel_is_the_ledgers_whatever_the_log_lost(
    database: Database, clock: FrozenClock
) -> None:
    for _ in range(3):
        await sold(database, clock)
    failing = await claimed(counted_ledger(database, clock), payment("op", "w", clock.now(), 100))
    ledger = counted_ledger(database, clock)
    assert await moved_on(ledger, failing, PaymentState.FAILED) is not None
    found = (await stats(database, clock)).funnel
    assert (found.paid, found.settled, found.failed) == (4, 3, 1)
    assert not any((await SqlRollupProof(database).differences()).values())


async def settle_and_be_killed(url: str, digest: str, at: str) -> None:
    """Settles a payment in a process that is killed before, in or after the counting of it."""
    database = await Database.open(url)
    rollups = RollupWriter(database.kind)

    def kill() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    async def on_move(
        transaction: SqlTransaction, entry: LedgerEntry, moved: LedgerEntry
    ) -> Callable[[], None] | None:
        kill() if at == "before" else None
        await rollups.add_move(transaction, entry, moved)
        kill() if at == "counted" else None
        return kill

    ledger = SqlLedgerStore(database, FrozenClock(START), on_move)
    entry = await ledger.find("eip155:8453", digest)
    assert entry is not None
    await ledger.move(entry, PaymentState.SETTLED)


@pytest.mark.slow
@pytest.mark.parametrize("at", ["before", "counted", "committed"])
async def test_a_move_and_the_count_of_it_survive_a_kill_together_or_not_at_all(
    database: Database, database_url: str, clock: FrozenClock, at: str
) -> None:
    ledger = counted_ledger(database, clock)
    entry = await claimed(ledger, payment("op", "w", clock.now(), 7))
    code = (
        "import asyncio, sys;"
        "from tests.analytics.test_missing_calls import settle_and_be_killed;"
        "asyncio.run(settle_and_be_killed(*sys.argv[1:]))"
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code, database_url, entry.digest, at), cwd=ROOT
    )
    assert await process.wait() == -signal.SIGKILL
    is_kept = at == "committed"
    found = await ledger.find(entry.network, entry.digest)
    assert found is not None
    assert found.state is (PaymentState.SETTLED if is_kept else PaymentState.CLAIMED)
    assert (await stats(database, clock)).funnel.settled == is_kept
    again = await ledger.move(entry, PaymentState.SETTLED)
    assert (again is None) == is_kept
    assert (await stats(database, clock)).funnel.settled == 1
    assert not any((await SqlRollupProof(database).differences()).values())


async def test_a_move_whose_count_fails_is_undone(database: Database, clock: FrozenClock) -> None:
    rollups, called = RollupWriter(database.kind), list[str]()

    async def on_move(
        transaction: SqlTransaction, entry: LedgerEntry, moved: LedgerEntry
    ) -> Callable[[], None]:
        await rollups.add_move(transaction, entry, moved)
        if not called:
            called.append("failed")
            raise ValueError("no")
        return lambda: called.append("committed")

    ledger = SqlLedgerStore(database, clock, on_move)
    entry = await claimed(ledger, payment("op", "w", clock.now(), 7))
    with pytest.raises((ValueError, Unavailable)):  # whose work shared the commit, is undone too
        await ledger.move(entry, PaymentState.SETTLED)
    assert await ledger.find(entry.network, entry.digest) == entry
    assert (await stats(database, clock)).funnel.settled == 0
    assert await ledger.move(entry, PaymentState.SETTLED) is not None
    assert called == ["failed", "committed"]
    assert await ledger.move(entry, PaymentState.SETTLED) is None  # an old reading is not counted
    assert called == ["failed", "committed"]
    assert not any((await SqlRollupProof(database).differences()).values())


async def test_a_call_that_the_log_lost_is_written_down_from_the_ledger_once(
    database: Database, clock: FrozenClock
) -> None:
    entry = await sold(database, clock, agent_id="7")
    clock.move(LATER_S)
    assert [await SqlMissingCalls(database, clock).restore() for _ in range(2)] == [1, 0]
    (row,) = await SqlAnalyticsStore(database).logs("op", LogFilter(), None, None, 10, 0)
    assert (row.call.outcome, row.call.status, row.call.response_bytes) == ("recovered", 201, 4)
    assert (row.call.payment_id, row.charged, row.call.kind.agent) == (entry.id, 7, "7")
    assert (row.call.at, row.call.kind.payer) == (entry.settled_at, PAYER)
    found = await stats(database, clock)
    assert (found.total.calls, found.total.revenue, found.funnel.settled) == (1, 7, 1)
    assert not any((await SqlRollupProof(database).differences()).values())


async def test_a_call_that_is_in_the_log_is_left_alone(
    database: Database, clock: FrozenClock
) -> None:
    entry = await sold(database, clock)
    made = call("op", "w", clock.now(), payment_id=entry.id, payer=PAYER)
    await SqlCallStore(database).add([made])
    clock.move(LATER_S)
    assert await SqlMissingCalls(database, clock).restore() == 0


async def test_a_replay_is_not_the_call_that_was_paid_for(
    database: Database, clock: FrozenClock
) -> None:
    entry = await sold(database, clock)
    replay = call("op", "w", clock.now(), payment_id=entry.id, payer=PAYER, outcome="replayed")
    await SqlCallStore(database).add([replay])
    clock.move(LATER_S)
    assert await SqlMissingCalls(database, clock).restore() == 1
    rows = await SqlAnalyticsStore(database).logs("op", LogFilter(), None, None, 10, 0)
    assert sorted(row.charged for row in rows) == [0, 7]


async def test_a_call_of_another_seller_is_not_the_one_that_was_paid_for(
    database: Database, clock: FrozenClock
) -> None:
    """Where the platform is paid, a payment that one wrapper did not serve may buy at another's."""
    entry = await sold(database, clock)
    failed = call("other", "v", clock.now(), payment_id=entry.id, payer=PAYER, status=502)
    await SqlCallStore(database).add([failed])
    clock.move(LATER_S)
    assert await SqlMissingCalls(database, clock).restore() == 1
    rows = await SqlAnalyticsStore(database).logs("op", LogFilter(), None, None, 10, 0)
    assert [row.charged for row in rows] == [7]


async def test_a_call_that_is_being_answered_is_waited_for(
    database: Database, clock: FrozenClock
) -> None:
    """However long it takes: what is looked at later is not forgotten."""
    slow = {"lease_until": START + timedelta(hours=1)}
    ledger, missing = counted_ledger(database, clock), SqlMissingCalls(database, clock)
    made = replace(payment("op", "w", clock.now(), 7), **slow)
    entry = await ledger.move(await claimed(ledger, made), PaymentState.SETTLED)
    assert entry is not None
    for _ in range(3):
        clock.move(600)
        assert await missing.restore() == 0
    assert await ledger.move(entry, PaymentState.DELIVERED) is not None
    assert await missing.restore() == 1


async def test_processes_that_look_at_once_write_each_call_once(
    database: Database, clock: FrozenClock
) -> None:
    for _ in range(20):
        await sold(database, clock)
    clock.move(LATER_S)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(SqlMissingCalls(database, clock).restore()) for _ in range(4)]
    assert sum(task.result() for task in tasks) == 20
    assert (await stats(database, clock)).total.calls == 20


async def test_what_was_looked_at_is_not_looked_at_again_after_a_start(
    database: Database, clock: FrozenClock
) -> None:
    await sold(database, clock)
    clock.move(86_400)
    assert await SqlMissingCalls(database, clock).restore() == 1
    await sold(database, clock)
    clock.move(LATER_S)
    assert await SqlMissingCalls(database, clock).restore() == 1


async def test_more_payments_than_one_question_takes_are_all_looked_at(
    database: Database, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MISSING_AT_ONCE > 1
    monkeypatch.setattr("assay.analytics.store_calls.MISSING_AT_ONCE", 3)
    for _ in range(10):
        await sold(database, clock)
        clock.move(1)
    clock.move(LATER_S)
    assert await SqlMissingCalls(database, clock).restore() == 10


async def test_the_call_of_a_payment_is_found_without_reading_its_sellers_others(
    database: Database,
) -> None:
    """SQLite alone can be asked; PostgreSQL's choice is by the rows that there are."""
    if database.kind == "postgresql":
        return
    asked = select(payments.c.id).where(exists().where(BOUGHT_BY))
    text = asked.compile(dialect=dialect(), compile_kwargs={"literal_binds": True})
    async with database.read() as connection:
        plan = await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}")
        steps = [row[3] for row in plan]
    assert "SEARCH calls USING INDEX ix_calls_payment (payment_id=?)" in steps, steps
