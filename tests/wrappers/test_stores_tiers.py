"""Quotes of tiers and free calls, on every database and over several processes."""

import asyncio
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta

import pytest

from assay.db.engine import Database
from assay.wrappers.store_tiers import SqlTierStore
from assay.wrappers.tier_terms import FreeQuota

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)
DAY = timedelta(days=1)
LIFE_S = 60.0


@pytest.fixture
async def stores(
    database: Database, database_url: str
) -> AsyncGenerator[tuple[SqlTierStore, SqlTierStore]]:
    """The stores of two processes."""
    other = await Database.open(database_url)
    yield SqlTierStore(database), SqlTierStore(other)
    await other.close()


async def test_processes_and_calls_at_once_never_exceed_a_quota(
    stores: tuple[SqlTierStore, SqlTierStore],
) -> None:
    quota = FreeQuota(7, "day")
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(store.spend("w", agent, quota, AT))
            for _ in range(10)
            for store in stores
            for agent in ("one", "")
        ]
    assert sum(task.result() for task in tasks) == 2 * quota.calls


async def test_a_quota_is_new_in_each_period_and_never_in_an_earlier_one(
    stores: tuple[SqlTierStore, SqlTierStore],
) -> None:
    one, behind = stores
    daily, monthly = FreeQuota(1, "day"), FreeQuota(1, "month")
    assert await one.spend("w", "a", daily, AT)
    assert not await behind.spend("w", "a", daily, AT)
    assert await one.spend("w", "a", daily, AT + DAY)
    assert not await behind.spend("w", "a", daily, AT)  # its clock is behind
    assert await one.spend("w", "a", monthly, AT)
    assert not await one.spend("w", "a", monthly, AT)
    assert await one.spend("w", "a", monthly, AT + DAY)  # the first of December
    assert await one.spend("other", "a", daily, AT)
    assert await one.spend("w", "b", daily, AT + DAY)


async def test_a_free_call_is_given_back_in_its_own_period_only(
    stores: tuple[SqlTierStore, SqlTierStore],
) -> None:
    store, _ = stores
    quota = FreeQuota(1, "day")
    assert await store.spend("w", "a", quota, AT)
    assert not await store.spend("w", "a", quota, AT)
    await store.give_back("w", "a", quota, AT)
    assert await store.spend("w", "a", quota, AT)
    assert await store.spend("w", "a", quota, AT + DAY)
    await store.give_back("w", "a", quota, AT)  # of yesterday
    assert not await store.spend("w", "a", quota, AT + DAY)


async def test_a_quote_is_its_agents_at_its_wrapper_for_its_life_in_every_process(
    stores: tuple[SqlTierStore, SqlTierStore],
) -> None:
    one, two = stores
    await one.quote("w", "a", 3, 500, AT, LIFE_S)
    end = AT + timedelta(seconds=LIFE_S)
    assert list(await two.quoted("w", "a", 500, end)) == [3]
    for other in (("w", "b", 500), ("x", "a", 500), ("w", "a", 499)):
        assert not await two.quoted(*other, AT)
    assert not await two.quoted("w", "a", 500, AT + timedelta(seconds=2 * LIFE_S))
    await one.quote("w", "a", 3, 500, end, LIFE_S)  # asked for again
    assert await two.quoted("w", "a", 500, end + timedelta(seconds=LIFE_S))


async def test_what_has_ended_is_removed_and_nothing_else(
    stores: tuple[SqlTierStore, SqlTierStore],
) -> None:
    store, other = stores
    daily, monthly = FreeQuota(1, "day"), FreeQuota(1, "month")
    await store.quote("w", "a", 1, 500, AT, LIFE_S)
    for quota in (daily, monthly):
        assert await store.spend("w", "a", quota, AT)
    assert await store.remove(AT, 10) == 0
    assert await store.remove(AT + 10 * DAY, 10) == 2
    assert not await other.spend("w", "a", monthly, AT)
    assert await store.remove(AT + 100 * DAY, 10) == 1
