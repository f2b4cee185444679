"""What must hold of a limit that several processes keep together, whatever goes wrong between."""

import asyncio
from collections import Counter
from itertools import chain, repeat
from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from assay.common.errors import Unavailable
from assay.common.quota_lease import COUNTED_S, SWEEP_S, QuotaLease
from assay.wrappers.model import RateLimitExceeded
from assay.wrappers.stages.limit import SharedLimitStage
from tests.support.fakes.window import MemoryWindow

WINDOW_S = 60


class Hand:
    """A clock that is set; a node's own begins anywhere."""

    def __init__(self, of: "Hand | None" = None, ahead_s: float = 0.0) -> None:
        self._of, self._ahead_s, self.now_s = of, ahead_s, 0.0

    def monotonic_s(self) -> float:
        return (self._of.monotonic_s() if self._of is not None else self.now_s) + self._ahead_s


class Node:
    """A process: both lanes of it, and what it says of the store."""

    def __init__(self, window: MemoryWindow, clock: Any, limit: int) -> None:
        self.said: list[Unavailable | None] = []
        self.quota_lease = QuotaLease(window, clock, self.said.append)
        self.step = SharedLimitStage(clock, self.quota_lease)
        self.config: Any = SimpleNamespace(rate_limit=limit, id="w")
        incoming = SimpleNamespace(client_address="192.0.2.1")
        matched = SimpleNamespace(config=self.config, incoming=incoming)
        trust = SimpleNamespace(limit_key="agent")
        self.trusted: Any = SimpleNamespace(matched=matched, trust=trust)

    def fast(self) -> bool:
        """The lane that does not wait."""
        return self.step.count(self.config, "agent")[0] >= 0

    async def call(self) -> dict[bytes, int] | int:
        """Both lanes; the headers of a call that passes, or how long the other is told to wait."""
        if self.fast():
            return {}
        asking = asyncio.ensure_future(self.step.admit(self.trusted, None))
        while not asking.done():
            await asyncio.sleep(0)
            await self.quota_lease.round()
        try:
            return {name: int(value) for name, value in asking.result().limits}
        except RateLimitExceeded as error:
            return error.retry_after_s or 0


class World:
    def __init__(self, nodes: int, limit: int, ahead_s: float = 17.3125) -> None:
        self.clock = Hand()
        self.window = MemoryWindow(Hand(self.clock, 1000.5))
        self.limit = limit
        self.nodes = [
            Node(self.window, Hand(self.clock, number * ahead_s), limit) for number in range(nodes)
        ]
        self.admitted: list[tuple[float, int]] = []

    async def call(self, number: int) -> dict[bytes, int] | int:
        answer = await self.nodes[number].call()
        if not isinstance(answer, int):
            self.admitted.append((self.clock.now_s, number))
        return answer

    def pass_time(self, seconds: float) -> None:
        self.clock.now_s += seconds

    async def rounds(self) -> None:
        """Everybody's background work gets a turn."""
        for node in self.nodes:
            await node.quota_lease.round()

    async def suffer(self, fault: str, number: int) -> None:
        self.window.gone = fault == "gone"
        self.window.loses_answers = fault == "lost"
        if fault == "flushed":
            self.window.lent.clear()
        if fault == "end":
            await self.nodes[number].quota_lease.close()

    def busiest(self, of: int | None = None) -> int:
        """The most admitted in any window of 60 seconds."""
        times = [at for at, node in self.admitted if of is None or node == of]
        return max((sum(at <= other < at + WINDOW_S for other in times) for at in times), default=0)


NODES = st.integers(1, 4)
FAULTS = st.sampled_from(["", "", "", "gone", "lost", "flushed", "end"])
# Sixty-fourths of a second, which are exact: clocks that begin anywhere then agree to the last bit.
STEPS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.0, 0.0, 1 / 64, 0.3125, 0.625, 1.125, 7.0, 31.0, 59.875, 61.0]),
        st.integers(0, 3),  # who is called
        st.integers(1, 12),  # how often at once
        st.booleans(),  # whether everybody's background work gets a turn
    ),
    max_size=60,
)


@settings(deadline=None)
@given(NODES, st.integers(1, 40), STEPS)
def test_all_processes_together_never_admit_more_than_the_limit_in_any_minute(
    nodes: int, limit: int, steps: list[tuple[float, int, int, bool]]
) -> None:
    async def run() -> None:
        world = World(nodes, limit)
        for wait, number, times, turn in steps:
            world.clock.now_s += wait
            for _ in range(times):
                await world.call(number % nodes)
            if turn:
                await world.rounds()
        assert world.busiest() <= limit

    asyncio.run(run())


@settings(deadline=None)
@given(NODES, st.integers(1, 40), STEPS, st.data())
def test_lost_answers_ends_and_outages_never_let_one_process_admit_more_than_the_limit(
    nodes: int, limit: int, steps: list[tuple[float, int, int, bool]], data: st.DataObject
) -> None:
    """And the store's own losses: flushed, it lends everything anew."""

    async def run() -> None:
        world = World(nodes, limit)
        for wait, number, times, turn in steps:
            world.clock.now_s += wait
            await world.suffer(data.draw(FAULTS), number % nodes)
            for _ in range(times):
                await world.call(number % nodes)
            if turn:
                await world.rounds()
        assert all(world.busiest(node) <= limit for node in range(nodes))

    asyncio.run(run())


LAGS = st.lists(
    st.sampled_from([0.0, 0.0, 0.1875, 0.625, 63 / 64, 1.0, 1.6875]), min_size=1, max_size=60
)


@settings(deadline=None)
@given(NODES, st.integers(1, 40), STEPS, LAGS)
def test_however_long_questions_and_answers_take_the_limit_holds(
    nodes: int, limit: int, steps: list[tuple[float, int, int, bool]], lags: list[float]
) -> None:
    """An answer that comes when its second is over is of no use, and is given back."""

    async def run() -> None:
        world = World(nodes, limit)
        each_lag = chain(lags, repeat(0.0))  # drawn before: a draw that ends leaves tasks running

        world.window.on_the_way = lambda: world.pass_time(next(each_lag))
        for wait, number, times, turn in steps[:12]:
            world.clock.now_s += wait
            async with asyncio.TaskGroup() as group:
                for each in range(min(times, 4)):  # at once, here and there
                    group.create_task(world.call((number + each) % nodes))
            if turn:
                await world.rounds()
        assert world.busiest() <= limit

    asyncio.run(run())


@settings(deadline=None)
@given(NODES, st.integers(1, 40), STEPS)
def test_answers_lost_on_the_way_only_ever_admit_less(
    nodes: int, limit: int, steps: list[tuple[float, int, int, bool]]
) -> None:
    """A process that ends keeps its units from everybody, for a minute; nobody gets them twice."""

    async def run() -> None:
        world = World(nodes, limit)
        for wait, number, times, turn in steps:
            world.clock.now_s += wait
            for _ in range(times):
                await world.call(number % nodes)
            if turn:  # it dies, and another takes its place
                dead = world.nodes[number % nodes]
                world.nodes[number % nodes] = Node(world.window, dead.quota_lease._clock, limit)
        assert world.busiest() <= limit

    asyncio.run(run())


@settings(deadline=None)
@given(NODES, st.integers(1, 60), st.lists(st.integers(0, 3), min_size=1, max_size=250))
def test_of_a_burst_over_all_processes_the_limit_is_admitted_but_for_what_others_hold(
    nodes: int, limit: int, order: list[int]
) -> None:
    """An eighth of the limit for each of the others; and that for a second, no longer."""

    async def run() -> None:
        world = World(nodes, limit)
        for number in order:
            await world.call(number % nodes)
        due = min(limit, len(order))
        assert due - (nodes - 1) * (limit // 8) <= len(world.admitted) <= limit
        for number in range(nodes):
            world.clock.now_s += 1.6
            await world.rounds()
            for _ in range(limit):
                await world.call(number)
        assert len(world.admitted) == limit

    asyncio.run(run())


@settings(deadline=None)
@given(NODES, st.integers(1, 20), STEPS)
def test_who_waits_as_long_as_told_is_admitted_if_nobody_else_comes(
    nodes: int, limit: int, steps: list[tuple[float, int, int, bool]]
) -> None:
    async def run() -> None:
        world = World(nodes, limit)
        for wait, number, times, _ in steps:
            world.clock.now_s += wait
            await world.rounds()
            for _ in range(times):
                told = await world.call(number % nodes)
                if isinstance(told, int):
                    assert 1 <= told <= COUNTED_S + 1
                    world.clock.now_s += told
                    await world.rounds()
                    assert not isinstance(await world.call(number % nodes), int)

    asyncio.run(run())


@given(st.integers(1, 40))
def test_the_headers_of_one_process_count_down_to_none(limit: int) -> None:
    async def run() -> None:
        world = World(1, limit)
        for number in range(limit):
            answer = await world.call(0)
            assert not isinstance(answer, int)
            if answer:
                assert answer[b"ratelimit-limit"] == limit
                assert answer[b"ratelimit-remaining"] == limit - 1 - number
                assert 0 < answer[b"ratelimit-reset"] <= COUNTED_S + 1
        assert isinstance(await world.call(0), int)

    asyncio.run(run())


def test_a_steady_agent_asks_the_store_a_few_times_a_second_and_no_more() -> None:
    async def run() -> None:
        world = World(1, 60_000)
        for number in range(20_000):
            world.clock.now_s += 0.001
            assert not isinstance(await world.call(0), int)
            if number % 500 == 0:
                await world.nodes[0].quota_lease.round()
        assert world.window.asked < 20 * 5

    asyncio.run(run())


def test_those_who_come_at_once_are_answered_by_one_question() -> None:
    async def run() -> None:
        world = World(1, 30)
        quota_lease = world.nodes[0].quota_lease
        waiting = [asyncio.ensure_future(quota_lease.take("k", 30)) for _ in range(50)]
        await asyncio.sleep(0)
        await quota_lease.round()
        rooms = [await one for one in waiting]
        assert world.window.asked == 1
        assert Counter(room is not None and room[0] >= 0 for room in rooms) == {True: 30, False: 20}

    asyncio.run(run())


def test_who_goes_away_while_waiting_leaves_the_unit_to_the_others() -> None:
    async def run() -> None:
        world = World(1, 3)
        quota_lease = world.nodes[0].quota_lease
        waiting = [asyncio.ensure_future(quota_lease.take("k", 3)) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        asked = asyncio.ensure_future(quota_lease.round())
        await asyncio.sleep(0)
        waiting[1].cancel()
        await asked
        assert await waiting[2] == (2, COUNTED_S + 1)
        assert await quota_lease.take("k", 3) == (1, COUNTED_S + 1)

    asyncio.run(run())


async def test_what_is_in_hand_is_spent_for_a_second_and_no_longer() -> None:
    for waited_s, can in ((0.99, True), (1.0, False), (30.0, False)):
        world = World(1, 80)
        node = world.nodes[0]
        while not node.quota_lease.has("wrapper w agent"):
            await world.call(0)
        world.clock.now_s += waited_s
        assert node.quota_lease.has("wrapper w agent") is can
        assert node.fast() is can


async def test_an_answer_that_comes_when_its_second_is_over_is_asked_for_again() -> None:
    world = World(1, 3)
    late = iter([0.0, 1.1])
    world.window.on_the_way = lambda: world.pass_time(next(late, 0.0))
    assert not isinstance(await world.call(0), int)
    assert world.window.asked == 2
    assert sum(sum(lent.values()) for lent in world.window.lent.values()) == 1  # the other is back


def test_a_lost_store_is_told_once_and_its_return_once() -> None:
    async def run() -> None:
        world = World(1, 5)
        node = world.nodes[0]
        world.window.gone = True
        for _ in range(5):
            assert not isinstance(await world.call(0), int)  # counted by itself
            await node.quota_lease.round()
        assert isinstance(await world.call(0), int)
        world.window.gone = False
        await node.quota_lease.round()
        world.clock.now_s += SWEEP_S
        await node.quota_lease.round()
        assert [type(word) for word in node.said] == [Unavailable, type(None)]
        assert isinstance(await world.call(0), int)  # what it admitted alone still counts here

    asyncio.run(run())


def test_a_store_that_comes_and_goes_is_tried_again_ever_more_seldom() -> None:
    async def run() -> list[float]:
        world = World(1, 1000)
        quota_lease, lost_at, pauses = world.nodes[0].quota_lease, 0.0, list[float]()
        for tenths in range(3000):
            world.clock.now_s = tenths / 10
            world.window.gone = not quota_lease.is_local
            if not quota_lease.is_local:
                if tenths:
                    pauses.append(round(world.clock.now_s - lost_at, 1))
                await world.call(0)
                lost_at = world.clock.now_s
            await quota_lease.round()
        return pauses

    pauses = asyncio.run(run())
    assert pauses[:6] == [0.6, 1.1, 2.1, 4.1, 8.1, 16.1]
    assert set(pauses[6:]) == {30.1}


def test_a_loop_that_does_not_run_keeps_nobody_waiting_for_ever() -> None:
    async def run() -> None:
        world = World(1, 5)
        asyncio.get_running_loop().set_debug(False)
        assert await world.nodes[0].quota_lease.take("k", 5) is None

    asyncio.run(run())
