"""Turns at a scarce resource."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.common.errors import TooMany, Unavailable
from assay.common.fair_queue import FairQueue


async def served(queue: FairQueue, callers: Sequence[tuple[str, bool]]) -> list[str]:
    """The order in which callers that all come at once have their slot."""
    order: list[str] = []

    async def use(caller: str, is_known: bool) -> None:  # noqa: FBT001
        async with queue.slot(caller, is_known=is_known):
            order.append(caller)
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for caller, is_known in callers:
            group.create_task(use(caller, is_known))
    return order


async def test_callers_take_turns_whatever_each_has_waiting() -> None:
    flood = [("flood", False)] * 20
    order = await served(FairQueue(1, 100, 50), [*flood, ("a", False), ("b", False)])
    assert set(order[:4]) == {"flood", "a", "b"}


async def test_known_callers_have_three_turns_of_four_and_strangers_are_not_starved() -> None:
    known = [(f"k{n}", True) for n in range(30)]
    strangers = [(f"s{n}", False) for n in range(10)]
    order = await served(FairQueue(1, 100, 50), [*strangers, *known])
    assert [name[0] for name in order[1:21]].count("s") == 5


async def test_a_full_queue_makes_room_for_who_has_nothing_waiting() -> None:
    queue = FairQueue(1, 4, 4)
    refused: list[str] = []

    async def use(caller: str) -> None:
        try:
            async with queue.slot(caller, is_known=False):
                await asyncio.sleep(0)
        except (TooMany, Unavailable) as error:
            refused.append(f"{caller} {type(error).__name__}")

    async with asyncio.TaskGroup() as group:
        for caller in ["flood"] * 5 + ["a", "b", "c", "d"]:
            group.create_task(use(caller))
    assert refused == ["d Unavailable", "flood TooMany", "flood TooMany", "flood TooMany"]


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.booleans()), min_size=6, max_size=40),
    st.integers(1, 4),
)
async def test_a_full_queue_makes_room_for_a_network_that_has_nothing_waiting(
    flood: list[tuple[int, bool]], networks: int
) -> None:
    """Whatever callers of fewer networks than there is room for do, before and after."""
    queue, done = FairQueue(1, 5, 3), list[str]()

    async def use(caller: str, network: str, is_known: bool) -> None:  # noqa: FBT001
        try:
            async with queue.slot(caller, is_known=is_known, network=network):
                await asyncio.sleep(0)
                done.append(caller)
        except (TooMany, Unavailable):
            return

    half = len(flood) // 2
    async with asyncio.TaskGroup() as group:
        for number, (caller, is_known) in enumerate(flood):
            if number == half:
                group.create_task(use("owner", "elsewhere", is_known=True))
            group.create_task(use(f"c{caller}", f"n{caller % networks}", is_known))
    assert "owner" in done
    assert queue.waiting == 0


async def test_a_full_queue_of_many_callers_of_one_network_refuses_its_newest() -> None:
    queue, refused = FairQueue(1, 4, 4), list[str]()

    async def use(caller: str, network: str) -> None:
        try:
            async with queue.slot(caller, is_known=True, network=network):
                await asyncio.sleep(0)
        except (TooMany, Unavailable) as error:
            refused.append(f"{caller} {type(error).__name__}")

    async with asyncio.TaskGroup() as group:
        for n in range(5):
            group.create_task(use(f"crowd{n}", "crowd"))
        for n in range(4):
            group.create_task(use(f"owner{n}", f"network{n}"))
    assert refused == [
        "owner3 Unavailable",  # as many networks as there is room for have one waiting each
        "crowd4 TooMany",
        "crowd3 TooMany",
        "crowd2 TooMany",
    ]


async def test_room_is_made_by_who_was_cancelled_in_the_same_moment() -> None:
    queue = FairQueue(1, 2, 2)

    async def use(caller: str) -> str:
        async with queue.slot(caller, is_known=False):
            return caller

    async with asyncio.TaskGroup() as group, queue.slot("a", is_known=False):
        waiting = [group.create_task(use("a")) for _ in range(2)]
        await asyncio.sleep(0)
        other = group.create_task(use("b"))  # runs before the cancelled one is told
        waiting[1].cancel()
        await asyncio.sleep(0)
    assert other.result() == "b"


async def test_who_has_too_many_waiting_is_refused_alone() -> None:
    queue = FairQueue(1, 100, 2)
    with pytest.raises(ExceptionGroup):
        await served(queue, [("a", False)] * 4)
    assert await served(queue, [("b", False)] * 3) == ["b"] * 3


@settings(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.booleans()), max_size=30))
async def test_no_slot_is_lost_and_none_is_given_twice(
    callers: list[tuple[str, bool, bool]],
) -> None:
    """True as the third: cancelled somewhere on the way."""
    queue, inside = FairQueue(2, 8, 4), 0

    async def use(caller: str, is_known: bool) -> None:  # noqa: FBT001
        nonlocal inside
        try:
            async with queue.slot(caller, is_known=is_known):
                inside += 1
                assert inside <= 2
                try:
                    await asyncio.sleep(0)
                finally:
                    inside -= 1
        except (TooMany, Unavailable):
            return

    tasks = [asyncio.ensure_future(use(caller, known)) for caller, known, _ in callers]
    for task, (*_, is_cancelled) in zip(tasks, callers, strict=True):
        await asyncio.sleep(0)
        if is_cancelled:
            task.cancel()
    if tasks:
        await asyncio.wait(tasks)
    assert queue.waiting == 0
    assert await served(queue, [("x", False), ("y", True), ("z", False)]) != []
    assert queue._free == 2
