"""What callers cost, kept in each kind of database, and shared by the processes on it."""

import asyncio

import pytest
from sqlalchemy import func, select, text

from assay.common import costs as kit_costs
from assay.common.costs import DAY_S, EVERYBODY, Bearer, Cost, CostKey, CostLedger
from assay.common.errors import Unavailable
from assay.db import store_costs as cost_store
from assay.db.engine import Database
from assay.db.schema.budgets import daily_costs
from assay.db.store_costs import SqlCostStore
from tests.support.fakes.clock import FrozenClock

ONE, OTHER = Bearer("operator 1"), Bearer("address 192.0.2.1")
TODAY = int(FrozenClock().now().timestamp() // DAY_S)
QUOTAS = {Cost.EVALUATIONS: 100}


def ledger(database: Database, clock: FrozenClock) -> CostLedger:
    """As one of the processes on the database has it."""
    return CostLedger(clock, QUOTAS, store=SqlCostStore(database, clock))


def key(name: str, day: int = TODAY) -> CostKey:
    return CostKey(name, Cost.EVALUATIONS.value, day)


async def test_counts_add_up_and_come_back_with_the_day_before(database: Database) -> None:
    store = SqlCostStore(database, FrozenClock())
    await store.add({key("a", TODAY - 1): 5, key("a"): 2, key("b"): 1})
    assert await store.add({key("a"): 3}) == {key("a"): 5, key("a", TODAY - 1): 5}
    assert await store.largest((TODAY,), 1) == {key("a"): 5}
    assert set(await store.largest((TODAY, TODAY - 1), 10)) == {
        key("a"), key("a", TODAY - 1), key("b"),
    }  # fmt: skip


async def test_processes_that_write_at_once_lose_nothing(database: Database) -> None:
    clock = FrozenClock()
    stores = [SqlCostStore(database, clock) for _ in range(4)]
    counts = {key(f"a{number}"): 1 for number in range(50)}
    async with asyncio.TaskGroup() as group:
        for store in stores:
            for _ in range(5):
                group.create_task(store.add(counts))
    assert set((await stores[0].largest((TODAY,), 100)).values()) == {20}


async def test_what_was_spent_is_known_after_a_restart(database: Database) -> None:
    clock = FrozenClock()
    before = ledger(database, clock)
    before.charge(Cost.EVALUATIONS, 100, ONE)
    before.charge(Cost.ROWS, 7, OTHER)
    await before.close()
    after = ledger(database, clock)
    await after.load()
    assert not after.has_left(Cost.EVALUATIONS, ONE)
    assert after.used(Cost.ROWS, OTHER) == 7
    assert after.totals()[Cost.EVALUATIONS] == 100
    assert after.largest(Cost.EVALUATIONS) == [(ONE.name, 100)]
    clock.move(1.5 * DAY_S)
    later = ledger(database, clock)
    await later.load()
    assert later.used(Cost.EVALUATIONS, ONE) == after.used(Cost.EVALUATIONS, ONE)


async def test_a_day_that_ends_before_it_is_written_is_written_to_its_own_day(
    database: Database,
) -> None:
    clock = FrozenClock()
    costs = ledger(database, clock)
    costs.charge(Cost.EVALUATIONS, 10, ONE)
    clock.move(DAY_S / 2)
    costs.charge(Cost.EVALUATIONS, 3, ONE)
    await costs.flush()
    found = await SqlCostStore(database, clock).largest((TODAY, TODAY + 1), 10)
    assert (found[key(ONE.name)], found[key(ONE.name, TODAY + 1)]) == (10, 3)
    assert costs.used(Cost.EVALUATIONS, ONE) == 13


@pytest.mark.parametrize("processes", [2, 5])
async def test_processes_together_overrun_a_quota_by_one_interval_each(
    database: Database, processes: int
) -> None:
    clock = FrozenClock()
    ledgers = [ledger(database, clock) for _ in range(processes)]
    spent, each = 0, 7
    for _ in range(40):  # an interval of writing each, in which a bearer spends what it can
        for one in ledgers:
            for _ in range(each):
                if one.has_left(Cost.EVALUATIONS, ONE):
                    one.charge(Cost.EVALUATIONS, 1, ONE)
                    spent += 1
        for one in ledgers:
            await one.flush()
    assert 100 <= spent <= 100 + processes * each


async def test_a_failed_write_loses_nothing_and_keeps_quotas_in_force(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FrozenClock()
    store = SqlCostStore(database, clock)
    costs = CostLedger(clock, QUOTAS, store=store)
    costs.charge(Cost.EVALUATIONS, 100, ONE)

    async def fails(_counts: object) -> None:
        costs.charge(Cost.EVALUATIONS, 1, ONE)
        raise Unavailable("gone")

    with monkeypatch.context() as patched:
        patched.setattr(store, "add", fails)
        with pytest.raises(Unavailable):
            await costs.flush()
    assert not costs.has_left(Cost.EVALUATIONS, ONE)
    await costs.flush()
    assert (await store.largest((TODAY,), 10))[key(ONE.name)] == 101


async def test_whoever_has_spent_much_is_not_forgotten_for_many_who_spent_little(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cost_store, "ROWS_MAX", 50)
    monkeypatch.setattr(kit_costs, "BATCH_MAX", 100)
    clock = FrozenClock()
    costs = ledger(database, clock)
    costs.charge(Cost.EVALUATIONS, 40, ONE)
    for number in range(1000):
        costs.charge(Cost.EVALUATIONS, 1, Bearer(f"address {number}"))
    await costs.flush()  # those that spent most are written first
    store = SqlCostStore(database, clock)
    assert (await store.largest((TODAY,), 1000))[key(ONE.name)] == 40
    for _ in range(3):
        clock.move(60)
        costs.charge(Cost.EVALUATIONS, 1, Bearer("address x"))
        await costs.flush()
    async with database.read() as connection:
        rows = (
            await connection.execute(select(func.count()).select_from(daily_costs))
        ).scalar_one()
    assert rows == 50
    assert {key(ONE.name): 40, key(EVERYBODY): 1043}.items() <= (
        await store.largest((TODAY,), 100)
    ).items()


async def test_a_name_no_database_holds_keeps_nobody_else_out_of_it(database: Database) -> None:
    clock = FrozenClock()
    costs = ledger(database, clock)
    costs.charge(Cost.EVALUATIONS, 1, Bearer("address \udc80"))
    costs.charge(Cost.EVALUATIONS, 1, Bearer("address \x00"))
    costs.charge(Cost.EVALUATIONS, 1, ONE)
    await costs.flush()
    found = await SqlCostStore(database, clock).largest((TODAY,), 10)
    assert found == {key(ONE.name): 1, key(EVERYBODY): 3}


async def test_counts_of_past_days_are_removed_some_at_a_time(database: Database) -> None:
    store = SqlCostStore(database, FrozenClock())
    await store.add({key(f"a{n}", TODAY - 2): 1 for n in range(5)} | {key("a", TODAY - 1): 1})
    assert [await store.remove(TODAY - 1, 3) for _ in range(3)] == [3, 2, 0]
    async with database.read() as connection:
        rows = (await connection.execute(text("SELECT day FROM daily_costs"))).scalars().all()
    assert rows == [TODAY - 1]
