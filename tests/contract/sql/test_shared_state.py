"""Short-lived state: one suite for memory, SQLite and PostgreSQL."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from assay.infra.sql.engine import Database
from assay.infra.sql.state import SqlSharedState
from assay.infra.state.memory import MemorySharedState
from assay.kit.errors import Unavailable
from assay.kit.state import SharedState
from tests.fakes.clock import FrozenClock
from tests.services.postgres import postgres


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
    sqlite = request.param == "sqlite"
    url = f"sqlite:///{tmp_path / 'a.db'}" if sqlite else postgres().new_database()
    database = await Database.open(url)
    await database.migrate()
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


async def test_purging_removes_only_what_has_ended(database: Database) -> None:
    clock = FrozenClock()
    state = SqlSharedState(database, clock)
    await state.put("short", "v", 1)
    await state.put("long", "v", 100)
    clock.move(2)
    await state.purge()
    clock.move(-2)
    assert (await state.get("short"), await state.get("long")) == (None, "v")


async def test_a_full_memory_refuses_rather_than_forgets() -> None:
    clock = FrozenClock()
    state = MemorySharedState(clock, entries_max=3)
    for n in range(3):
        await state.put(f"k{n}", "v", 10)
    with pytest.raises(Unavailable):
        await state.put_if_absent("one more", "v", 10)
    clock.move(11)
    assert await state.put_if_absent("one more", "v", 10) is True
