"""Room in memory: never more than there is, nobody more than his part, everything given back."""

import asyncio
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.common.errors import Unavailable
from assay.common.memory_budget import PARTS, SMALL_BYTES, MemoryBudget, Reservation

KIB = 1024
SIZE, SINGLE_MAX = 640 * KIB, 240
Call = tuple[str, int, int, int, str]
CALLS = st.lists(
    st.tuples(
        st.sampled_from("abcdef"),
        st.integers(0, SINGLE_MAX),  # KiB it takes
        st.integers(0, 4),  # turns of the loop before it comes
        st.integers(0, 6),  # turns for which it holds it
        st.sampled_from(["stays", "shrinks", "leaves"]),
    ),
    max_size=60,
)


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


class Crowd:
    """Calls that come, hold and go; what they hold is looked at each time it changes."""

    def __init__(self) -> None:
        self.room = MemoryBudget(SIZE, wait_s=60)
        self.held: Counter[str] = Counter()

    async def call(self, holder: str, size: int, after: int, stay: int, what: str) -> None:
        await turns(after)
        share = Reservation(self.room, holder)
        try:
            await share.take(size * KIB)
            self.change(holder, share.size)
            await turns(stay)
            if what == "shrinks":
                before, left = share.size, size * KIB // 2
                self.change(holder, min(before, left if left > SMALL_BYTES else 0) - before)
                share.keep(left)
        finally:
            self.change(holder, -share.size)
            share.close()
            share.close()

    def change(self, holder: str, by: int) -> None:
        self.held[holder] += by
        assert (
            self.held.total() <= self.room.reserved <= SIZE
        )  # who was let in wakes a moment later
        assert self.held[holder] <= max(SIZE // PARTS, SINGLE_MAX * KIB)


@settings(max_examples=300, deadline=None)
@given(CALLS)
def test_there_is_never_more_than_fits_and_nothing_is_left(calls: list[Call]) -> None:
    crowd = Crowd()

    async def run() -> None:
        loop = asyncio.get_running_loop()
        tasks = [loop.create_task(crowd.call(*one)) for one in calls]
        for task, one in zip(tasks, calls, strict=True):
            if one[4] == "leaves":
                loop.call_later(0, task.cancel)
        if tasks:
            await asyncio.wait(tasks, timeout=20)
        for task, one in zip(tasks, calls, strict=True):
            assert task.done()
            assert one[4] == "leaves" if task.cancelled() else task.exception() is None

    asyncio.run(run())
    assert crowd.room.reserved == 0


PART = SIZE // PARTS


async def test_who_came_first_goes_first_and_a_full_part_keeps_nobody_else() -> None:
    room = MemoryBudget(SIZE, wait_s=60)
    order: list[str] = []

    async def take(name: str, holder: str, size: int) -> None:
        await room.take(holder, size)
        order.append(name)

    await take("whole", "a", SIZE)
    loop = asyncio.get_running_loop()
    names = (("b1", PART), ("b2", PART), ("b3", 1), ("c1", PART), ("d1", PART))
    waiting = [loop.create_task(take(name, name[0], size)) for name, size in names]
    await turns(3)
    room.give("a", SIZE)
    await turns(3)
    assert order == ["whole", "b1", "c1", "d1"]  # and no smaller one of b's before b's second
    room.give("b", PART)
    await turns(3)
    assert order[-1] == "b2"
    room.give("b", PART)
    await turns(3)
    assert all(task.done() for task in waiting)


async def test_one_that_is_larger_than_the_room_has_it_to_itself() -> None:
    room = MemoryBudget(SIZE)
    await room.take("a", 3 * SIZE)
    with pytest.raises(Unavailable):
        await room.take("b", 1)
    room.give("a", 3 * SIZE)
    await room.take("b", 1)


@pytest.mark.parametrize("wait_s", [0.0, 0.01])
async def test_who_finds_no_room_is_told_when_to_come_again_and_holds_nothing(
    wait_s: float,
) -> None:
    room = MemoryBudget(SIZE, wait_s)
    await room.take("a", SIZE)
    with pytest.raises(Unavailable) as refused:
        await room.take("b", 1)
    assert refused.value.retry_after_s == 1
    room.give("a", SIZE)
    assert room.reserved == 0
    await room.take("b", SIZE)


async def test_who_leaves_while_he_waits_holds_nothing() -> None:
    room = MemoryBudget(SIZE, wait_s=60)
    await room.take("a", SIZE)
    loop = asyncio.get_running_loop()
    gone, stays = (loop.create_task(room.take(who, SIZE)) for who in "bc")
    await turns(2)
    gone.cancel()
    await turns(2)
    room.give("a", SIZE)
    await stays
    assert (gone.cancelled(), room.reserved) == (True, SIZE)


async def test_what_grows_takes_room_as_it_goes_and_alone_may_have_it_all() -> None:
    room = MemoryBudget(SIZE)
    share = Reservation(room, "a")
    for size in range(0, 3 * SIZE, 10 * KIB):
        await share.take(size)
        assert room.reserved == share.size == (size if size > SMALL_BYTES else 0)
    with pytest.raises(Unavailable):
        await Reservation(room, "b").take(SMALL_BYTES + 1)
    share.close()
    assert room.reserved == 0


async def test_what_is_small_takes_no_room() -> None:
    room = MemoryBudget(SIZE)
    await room.take("a", SIZE)
    await Reservation(room, "b").take(SMALL_BYTES)


async def test_what_is_squeezed_in_makes_twice_the_room_at_most() -> None:
    room = MemoryBudget(SIZE)
    first, second = Reservation(room, "a"), Reservation(room, "a")
    await first.take(SIZE)
    second.overcommit(SIZE)
    assert room.reserved == 2 * SIZE
    with pytest.raises(Unavailable):
        second.overcommit(SIZE + 1)
    with pytest.raises(Unavailable):
        await Reservation(room, "b").take(SMALL_BYTES + 1)
    first.close()
    second.close()
    assert room.reserved == 0
    second.overcommit(3 * SIZE)  # alone
