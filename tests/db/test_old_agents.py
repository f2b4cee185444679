"""Payers and key agents that never brought money leave with the last of their calls."""

from datetime import timedelta

import pytest
from sqlalchemy import text

from assay.admin.store_retention import SqlRetention
from assay.analytics.store_calls import SqlCallStore
from assay.analytics.store_retention import SqlOldAgents
from assay.analytics.store_rollups import SqlRollupProof
from assay.app.retention import Retention
from assay.db.engine import Database, to_us
from assay.db.store_costs import SqlCostStore
from assay.payments.model import PaymentState
from assay.settings import load
from tests.db.test_old_calls import CLOCK, NOW, TODAY, analytics, logged, made, remove_all
from tests.support.fakes.calls import call, claimed, counted_ledger, payment
from tests.support.fakes.clock import FrozenClock

DAYS = 400
BEFORE_DAY = TODAY - DAYS + 1


def name(number: int) -> str:
    return f"0x{number:040x}"


async def fold(database: Database, limit: int = 100) -> int:
    return await SqlOldAgents(database).fold(BEFORE_DAY, limit)


async def counted(database: Database, table: str) -> int:
    async with database.read() as connection:
        question = text(f"SELECT COUNT(*) FROM {table}")  # noqa: S608 - a name of ours
        return (await connection.execute(question)).scalar_one()


async def paid(database: Database, payer: str, *, is_reversed: bool = False) -> None:
    """A payment of 500 days ago."""
    ledger = counted_ledger(database, FrozenClock(NOW - timedelta(days=500)))
    entry = payment("op", "w", NOW - timedelta(days=500), 5, payer=payer)
    settled = await ledger.move(await claimed(ledger, entry), PaymentState.SETTLED)
    assert settled is not None
    if is_reversed:
        assert await ledger.move(settled, PaymentState.REVERSED) is not None


async def test_a_thousand_invented_payers_leave_no_row_and_every_total_stays(
    database: Database,
) -> None:
    invented = [made(500, payer=name(n), status=402) for n in range(1000)]
    await logged(database, *invented, *(made(500, agent_id=name(n)) for n in range(1000, 1100)))
    await logged(database, made(500), made(3, payer=name(7)), made(500, "other", payer=name(1)))
    before = await analytics(database, DAYS).stats("op")
    tops = await analytics(database, DAYS).top_endpoints("op", 10)
    assert before.agents == 1100
    assert await fold(database) == 0  # their calls are still there
    await remove_all(database, DAYS, limit=5000)
    assert [await fold(database, 700) for _ in range(3)] == [700, 400, 0]
    after = await analytics(database, DAYS).stats("op")
    assert (after.agents, after.total, after.funnel) == (1, before.total, before.funnel)
    assert await analytics(database, DAYS).top_endpoints("op", 10) == tops
    found, total = await analytics(database, DAYS).agents("op", "calls", 10, 0)
    assert ([one.agent_id for one in found], total) == ([name(7)], 1)
    assert await counted(database, "agent_totals") == 1
    assert await counted(database, "agent_days") == 2  # that agent's, of which one day is old
    assert await counted(database, "removed_calls") == 3  # nobody's of two accounts, and that one's
    assert not any((await SqlRollupProof(database).differences()).values())
    assert not any((await SqlRollupProof(database).rebuild()).values())


async def test_who_paid_or_is_registered_stays(database: Database) -> None:
    await paid(database, name(1))
    await paid(database, name(2), is_reversed=True)
    await logged(database, made(500, payer=name(1)), made(500, payer=name(2)))
    await logged(database, made(500, agent_id="42", chain="base"))
    await remove_all(database, DAYS)
    assert await fold(database) == 0
    assert await counted(database, "agent_totals") == 3
    assert not any((await SqlRollupProof(database).differences()).values())


async def test_one_that_comes_back_is_counted_again(database: Database) -> None:
    """By a process that remembers having introduced it, too."""
    store = SqlCallStore(database)
    await store.add([made(500, payer=name(1))])
    await remove_all(database, DAYS)
    assert await fold(database) == 1
    await store.add([made(0, payer=name(1))])
    assert (await analytics(database, DAYS).stats("op")).agents == 1
    assert not any((await SqlRollupProof(database).differences()).values())


async def test_one_seen_a_moment_ago_needs_no_introduction(database: Database) -> None:
    store = SqlCallStore(database)
    for seconds in (3, 2, 1):
        at = NOW - timedelta(seconds=seconds)
        await store.add([call("op", "w", at, payer=name(1))])
    assert (await analytics(database, DAYS).stats("op")).agents == 1
    async with database.read() as connection:
        newest = await connection.execute(text("SELECT last_us FROM agent_totals"))
        assert newest.scalar_one() == to_us(NOW - timedelta(seconds=1))


@pytest.mark.parametrize(("days", "left"), [(400, 0), (0, 1)])
async def test_agents_leave_when_the_setting_removes_their_calls(
    database: Database, days: int, left: int
) -> None:
    await logged(database, made(500, payer=name(1)))
    settings, costs = load(call_days=days, snapshot_blocks_mib=0), SqlCostStore(database, CLOCK)
    await Retention(SqlRetention(database), costs, None, settings, CLOCK).run()  # type: ignore[arg-type]
    assert await counted(database, "agent_totals") == left
