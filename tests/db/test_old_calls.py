"""Old rows of the call log are removed; what was counted of them stays, and stays proven."""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.admin.store_retention import SqlRetention
from assay.analytics.log import CallLog
from assay.analytics.model import CallLogEntry, LogFilter
from assay.analytics.queries import Analytics, ReportPage
from assay.analytics.store_analytics import SqlAnalyticsStore
from assay.analytics.store_calls import SqlCallStore, SqlMissingCalls
from assay.analytics.store_retention import SqlOldCalls
from assay.analytics.store_rollups import SqlRollupProof
from assay.app.retention import Retention
from assay.common.clock import DAY_US
from assay.db.engine import Database, to_us
from assay.db.schema.everything import calls, payments
from assay.db.store_costs import SqlCostStore
from assay.payments.model import PaymentState
from assay.settings import load
from tests.support.fakes.calls import call, claimed, counted_ledger, payment
from tests.support.fakes.clock import FrozenClock

CLOCK = FrozenClock()
NOW = CLOCK.now()
TODAY = to_us(NOW) // DAY_US


def made(days_ago: int, operator_id: str = "op", **fields: object) -> CallLogEntry:
    return call(operator_id, "w", NOW - timedelta(days=days_ago), **fields)


async def logged(database: Database, *batch: CallLogEntry) -> None:
    await SqlCallStore(database).add(list(batch))


async def rows(database: Database) -> int:
    async with database.read() as connection:
        return (await connection.execute(select(func.count()).select_from(calls))).scalar_one()


async def remove_all(database: Database, days: int, limit: int = 2) -> Sequence[int]:
    """How many went in each batch."""
    removed: list[int] = []
    while not removed or removed[-1]:
        removed.append(await SqlOldCalls(database).remove(TODAY - days + 1, limit))
    return removed


def analytics(database: Database, days: int) -> Analytics:
    log = CallLog(SqlCallStore(database))
    return Analytics(SqlAnalyticsStore(database), log, CLOCK, kept_days=days)


async def test_old_rows_go_in_batches_and_young_ones_stay(database: Database) -> None:
    await logged(database, *(made(days, who) for days in (500, 400, 399, 0) for who in "ab"))
    assert await remove_all(database, 400) == [2, 2, 0]
    assert await rows(database) == 4


async def test_what_was_counted_of_removed_calls_stays(database: Database) -> None:
    old = [made(450, agent_id="7", tier="A", chain="base"), made(450, status=402), made(430)]
    await logged(database, *old, made(0, agent_id="8", status=500))
    store = SqlAnalyticsStore(database)

    async def answers() -> list[object]:
        return [
            await store.stats("op", TODAY),
            await store.days("op", TODAY - 460, TODAY),
            await store.agents("op", "lastSeen", 10, 0),
            await store.agent_endpoints("op", "7"),
            await store.top_endpoints("op", 10),
        ]

    before = await answers()
    await remove_all(database, 400)
    assert await rows(database) == 1
    assert await answers() == before


async def test_a_rebuild_after_a_removal_differs_in_nothing_and_still_corrects(
    database: Database,
) -> None:
    old = [made(450 + n, agent_id=str(n % 2), tier="A", chain="base") for n in range(4)]
    await logged(database, *old, made(450), made(0, agent_id="1", tier="B"), made(0, agent_id="9"))
    proof = SqlRollupProof(database)
    await remove_all(database, 400)
    await logged(database, made(450, agent_id="0", latency_us=7), made(460, agent_id="3"))
    await remove_all(database, 400)  # adds to what was noted of the first removal
    assert not any((await proof.differences()).values())
    before = await SqlAnalyticsStore(database).agents("op", "calls", 10, 0)
    async with database.write() as connection:
        await connection.execute(text("UPDATE call_totals SET calls = calls + 1"))
        await connection.execute(text("DELETE FROM agent_totals WHERE agent_id = '9'"))
        await connection.execute(text("DELETE FROM agent_days WHERE agent_id = '3'"))
    found = await proof.rebuild()
    wrong = {table for table, rows in found.items() if rows}
    assert wrong == {"call_totals", "agent_totals", "agent_days"}
    assert await SqlAnalyticsStore(database).agents("op", "calls", 10, 0) == before


async def test_the_log_and_its_total_hold_the_days_that_are_kept(database: Database) -> None:
    await logged(database, *(made(days, agent_id="7") for days in (500, 400, 399, 30, 0)))
    for removed in (False, True):
        if removed:
            await remove_all(database, 400)
        kept = analytics(database, 400)
        for which in (LogFilter(), LogFilter(agent_id="7"), LogFilter(days=1000)):
            found, total = await kept.logs("op", which, ReportPage())
            assert (len(found), total) == (3, 3)
        exported = [
            one
            async for piece in await kept.export("op", LogFilter(), ReportPage())
            for one in piece
        ]
        assert len(exported) == 3
        assert (await kept.logs("op", LogFilter(days=31), ReportPage()))[1] == 2
        assert (await kept.stats("op")).total.calls == 5


async def test_payments_stay_and_their_removed_calls_do_not_come_back(database: Database) -> None:
    clock = FrozenClock(NOW - timedelta(days=500))
    ledger = counted_ledger(database, clock)
    entry = payment("op", "w", clock.now(), 5)
    await claimed(ledger, entry)
    settled = await ledger.move(entry, PaymentState.SETTLED)
    assert settled is not None
    assert await ledger.move(settled, PaymentState.DELIVERED) is not None
    await logged(database, made(500, payment_id=entry.id, payer=entry.payer))
    missing = SqlMissingCalls(database, CLOCK)
    assert await missing.restore() == 0
    await remove_all(database, 400)
    assert await SqlMissingCalls(database, CLOCK).restore() == 0
    async with database.read() as connection:
        kept = (await connection.execute(select(func.count()).select_from(payments))).scalar_one()
    assert (kept, await rows(database)) == (1, 0)
    assert not any((await SqlRollupProof(database).differences()).values())


@pytest.mark.parametrize(("days", "left"), [(400, 1), (1, 1), (0, 2)])
async def test_the_setting_says_how_long_and_zero_keeps_them(
    database: Database, days: int, left: int
) -> None:
    await logged(database, made(450), made(0))
    costs, blobs = SqlCostStore(database, CLOCK), None
    settings = load(call_days=days, snapshot_blocks_mib=0)
    retention = Retention(SqlRetention(database), costs, blobs, settings, CLOCK)  # type: ignore[arg-type]
    await retention.run()
    assert await rows(database) == left


async def test_a_number_that_a_young_row_has_taken_over_is_left_alone(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite gives the highest numbers to new rows once their old rows are gone."""
    await logged(database, made(450), made(450))
    lock = database.lock

    async def taken_over(connection: AsyncConnection, name: str) -> None:
        await lock(connection, name)
        young = {"at_us": to_us(NOW)}
        await connection.execute(text("UPDATE calls SET at_us = :at_us WHERE seq = 2"), young)

    monkeypatch.setattr(database, "lock", taken_over)
    assert await SqlOldCalls(database).remove(TODAY - 399, 10) == 1
    assert await rows(database) == 1
    async with database.read() as connection:
        removed = await connection.execute(text("SELECT SUM(calls) FROM removed_calls"))
        assert removed.scalar_one() == 1


async def test_rows_that_may_be_looked_for_again_stay_whatever_the_setting(
    database: Database,
) -> None:
    """Just after midnight a payment of the last day may still be asked for its call."""
    clock = FrozenClock(NOW.replace(hour=23, minute=59, second=30))
    ledger = counted_ledger(database, clock)
    entry = payment("op", "w", clock.now(), 5)
    settled = await ledger.move(await claimed(ledger, entry), PaymentState.SETTLED)
    assert settled is not None
    assert await ledger.move(settled, PaymentState.DELIVERED) is not None
    await logged(database, call("op", "w", clock.now(), payment_id=entry.id, payer=entry.payer))
    clock.move(45)
    settings = load(call_days=1, snapshot_blocks_mib=0)
    costs = SqlCostStore(database, clock)
    retention = Retention(SqlRetention(database), costs, None, settings, clock)  # type: ignore[arg-type]
    await retention.run()
    assert await SqlMissingCalls(database, clock).restore() == 0
    assert await rows(database) == 1
    assert not any((await SqlRollupProof(database).differences()).values())


async def test_rows_stay_until_missing_ones_have_been_looked_for(database: Database) -> None:
    """However long every process was down."""
    clock = FrozenClock(NOW - timedelta(days=500))
    await SqlMissingCalls(database, clock).restore()
    await logged(database, made(499), made(501))
    assert await remove_all(database, 400) == [1, 0]
    await SqlMissingCalls(database, CLOCK).restore()
    assert await remove_all(database, 400) == [1, 0]
