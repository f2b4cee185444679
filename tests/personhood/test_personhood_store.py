"""One human backs one agent, one agent has one human: in both databases, whoever is first."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from assay.db.engine import Database
from assay.personhood.model import HumanTaken, Personhood
from assay.personhood.store import SqlPersonhoodStore
from tests.support.fakes.clock import FrozenClock

NOW = FrozenClock().now()
GIVEN = Personhood("eip155:1/22", "22", "orb", "app/action", "0x" + "ab" * 32, NOW)


@pytest.fixture
def store(database: Database) -> SqlPersonhoodStore:
    return SqlPersonhoodStore(database)


async def test_what_was_added_is_found(store: SqlPersonhoodStore) -> None:
    assert await store.find(GIVEN.subject_key) is None
    assert await store.add(GIVEN) == GIVEN
    assert await store.find(GIVEN.subject_key) == GIVEN


async def test_the_same_human_again_is_the_first_answer(store: SqlPersonhoodStore) -> None:
    await store.add(GIVEN)
    later = replace(GIVEN, verified_at=NOW + timedelta(days=1), level="device")
    assert await store.add(later) == GIVEN


async def test_one_human_backs_one_agent(store: SqlPersonhoodStore) -> None:
    await store.add(GIVEN)
    with pytest.raises(HumanTaken):
        await store.add(replace(GIVEN, subject_key="eip155:1/23", agent_id="23"))
    elsewhere = replace(GIVEN, subject_key="eip155:1/23", scope="app/other")
    assert await store.add(elsewhere) == elsewhere


async def test_one_agent_has_one_human(store: SqlPersonhoodStore) -> None:
    await store.add(GIVEN)
    with pytest.raises(HumanTaken):
        await store.add(replace(GIVEN, nullifier="0x" + "cd" * 32))


async def test_of_many_at_once_one_agent_gets_the_human(store: SqlPersonhoodStore) -> None:
    asked = [replace(GIVEN, subject_key=f"eip155:1/{n}") for n in range(10)]

    async def took(one: Personhood) -> bool:
        try:
            await store.add(one)
        except HumanTaken:
            return False
        return True

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(took(one)) for one in asked]
    assert [task.result() for task in tasks].count(True) == 1
