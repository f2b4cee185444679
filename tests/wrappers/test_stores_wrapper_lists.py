"""Many wrapper configs, on every database: counted without being read, and read by turns."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from assay.wrappers import store as wrappers
from assay.wrappers.store import AT_ONCE, SqlWrapperStore
from tests.wrappers.test_stores_wrappers import add, config, store

__all__ = ["store"]


async def test_active_and_inactive_configs_are_counted(store: SqlWrapperStore) -> None:
    for name in ("a", "b", "c"):
        assert await add(store, config(name, path=f"/{name}"))
    assert await store.deactivate("one", "b")
    assert await store.count("one") == 3
    assert await store.count("one", is_active=True) == 2
    assert await store.count("one", is_active=False) == 1
    assert await store.count("two", is_active=True) == 0


@pytest.mark.slow
async def test_reading_many_active_configs_holds_up_nobody(
    store: SqlWrapperStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand of them took 35 ms, in which nobody else was answered."""
    turn, of_turns = 0, Counter[int]()
    read = wrappers.config_of

    def counted(row: Any) -> Any:
        of_turns[turn] += 1
        return read(row)

    async def others() -> None:
        nonlocal turn
        while True:
            turn += 1
            await asyncio.sleep(0)

    for number in range(2 * AT_ONCE + 1):
        assert await add(store, config(f"c{number}", path=f"/{number}"))
    monkeypatch.setattr(wrappers, "config_of", counted)
    async with asyncio.TaskGroup() as group:
        counting = group.create_task(others())
        found = await store.active("one")
        counting.cancel()
    assert len(found) == of_turns.total() == 2 * AT_ONCE + 1
    assert max(of_turns.values()) <= AT_ONCE
