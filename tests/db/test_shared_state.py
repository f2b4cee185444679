"""Short-lived state: one suite for memory, SQLite and PostgreSQL."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from sqlalchemy import text

from assay.common.errors import Unavailable
from assay.common.shared_state import MemorySharedState, SharedState
from assay.db.engine import Database
from assay.db.state import SqlSharedState
from tests.support.databases import migrated
from tests.support.fakes.clock import FrozenClock


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
async def state(
    request: pytest.FixtureRequest, clock: FrozenClock, tmp_path: Path
) -> AsyncGenerator[SharedState]:
    if request.param == "memory":
        yield MemorySharedState(clock)
        return
    with migrated(request.param, tmp_path) as url:
        database = await Database.open(url)
        yield SqlSharedState(database, clock)
        await database.close()


async def test_of_many_at_once_exactly_one_puts(state: SharedState) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(state.put_if_absent("k", str(n), 10)) for n in range(50)]
    winners = [n for n, task in enumerate(tasks) if task.result()]
    assert len(winners) == 1
    assert await state.get("k") == str(winners[0])


async def test_of_many_at_once_exactly_one_takes(state: SharedState) -> None:
    await state.put("k", "v", 10)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(state.take("k")) for _ in range(50)]
    assert sorted((t.result() for t in tasks), key=str) == [None] * 49 + ["v"]
    assert await state.get("k") is None


async def test_an_entry_ends_by_itself_and_its_place_is_free(
    state: SharedState, clock: FrozenClock
) -> None:
    await state.put("k", "old", 10)
    clock.move(9.9)
    assert await state.get("k") == "old"
    assert await state.put_if_absent("k", "new", 10) is False
    clock.move(0.2)
    assert await state.get("k") is None
    assert await state.take("k") is None
    assert await state.put_if_absent("k", "new", 10) is True
    assert await state.get("k") == "new"


async def test_put_replaces(state: SharedState) -> None:
    await state.put("k", "one", 10)
    await state.put("k", "two", 10)
    assert await state.get("k") == "two"


async def test_a_lifetime_is_kept_to_the_millisecond(
    state: SharedState, clock: FrozenClock
) -> None:
    await state.put("k", "v", 0.25)
    clock.move(0.249)
    assert await state.get("k") == "v"
    clock.move(0.002)
    assert await state.get("k") is None


async def test_entries_as_large_as_the_port_allows_are_kept_and_larger_ones_refused(
    state: SharedState,
) -> None:
    key, value = "\u4e2d" * 200, "\u4e2d" * 4096
    await state.put(key, value, 10)
    assert await state.take(key) == value
    for wrong in ((key + "x", "v"), ("k", value + "x")):
        with pytest.raises(ValueError, match="at most"):
            await state.put(*wrong, 10)
        with pytest.raises(ValueError, match="at most"):
            await state.put_if_absent(*wrong, 10)
    assert await state.get(key + "x") is None


async def stored(database: Database) -> set[str]:
    async with database.read() as connection:
        return set((await connection.execute(text("SELECT key FROM state"))).scalars())


async def test_what_has_ended_is_removed_by_later_puts_and_nothing_else_is(
    database: Database,
) -> None:
    clock = FrozenClock()
    state = SqlSharedState(database, clock)
    await state.put("short", "v", 1)
    await state.put("long", "v", 100)
    clock.move(5)
    await state.put_if_absent("too soon", "v", 100)
    assert await stored(database) == {"short", "long", "too soon"}
    clock.move(10)
    await state.put_if_absent("new", "v", 100)
    assert await stored(database) == {"long", "too soon", "new"}


async def test_a_backlog_is_removed_in_steps(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.db.state.PURGE_MAX", 3)
    clock = FrozenClock()
    state = SqlSharedState(database, clock)
    for n in range(7):
        await state.put(f"old {n}", "v", 1)
    clock.move(11)
    left = []
    for n in range(4):
        await state.put(f"new {n}", "v", 100)
        left.append(sum(key.startswith("old") for key in await stored(database)))
    assert left == [4, 1, 0, 0]


async def test_two_processes_that_put_and_purge_at_once_do_not_fail(database_url: str) -> None:
    clock = FrozenClock()
    opened = [await Database.open(database_url) for _ in range(2)]
    await opened[0].migrate()
    states = [SqlSharedState(one, clock) for one in opened]
    for round_ in range(5):
        async with asyncio.TaskGroup() as group:
            for n in range(20):
                for state in states:
                    group.create_task(state.put(f"{round_} {n}", "v", 1))
        clock.move(11)
    for one in opened:
        await one.close()


async def test_a_full_memory_refuses_rather_than_forgets() -> None:
    clock = FrozenClock()
    state = MemorySharedState(clock, entries_max=3)
    for n in range(3):
        await state.put(f"k{n}", "v", 10)
    with pytest.raises(Unavailable):
        await state.put_if_absent("one more", "v", 10)
    await state.put("k0", "other", 10)
    assert [await state.get(f"k{n}") for n in range(3)] == ["other", "v", "v"]
    clock.move(11)
    assert await state.put_if_absent("one more", "v", 10) is True


async def test_memory_forgets_only_what_has_ended_whatever_was_put_anew() -> None:
    clock = FrozenClock()
    state = MemorySharedState(clock, entries_max=5)
    for n in range(97):  # each replaces the one before; none of it piles up
        await state.put("again", str(n), 1 + n % 7)
    await state.put("again", "last", 50)
    await state.put("short", "v", 1)
    clock.move(8)
    await state.put("new", "v", 1)
    assert await state.get("again") == "last"
    assert await state.get("short") is None
    assert len(state._entries) == 2
    assert len(state._ends) <= 11
