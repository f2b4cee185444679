"""Laws of a traffic limit that several processes keep together."""

import asyncio
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from assay.common.quota_lease import QuotaLease
from assay.server.rate_limits import RateLimit, RateLimitVerdict, SharedRateLimit, rate_limit
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.window import MemoryWindow

WINDOW_S = 60
STEPS = st.lists(
    st.tuples(
        st.sampled_from([0.0, 0.0, 0.02, 0.4, 1.1, 20.0, 59.9, 61.0]),
        st.integers(0, 2),
        st.integers(1, 9),
        st.booleans(),  # whether the lane that does not wait is tried first
    ),
    max_size=50,
)


class Nodes:
    def __init__(self, number: int, per_minute: int) -> None:
        self.clock: Any = FrozenClock()
        self.window = MemoryWindow(self.clock)
        self.quota_lease = [
            QuotaLease(self.window, self.clock, lambda _: None) for _ in range(number)
        ]
        self.limits = [
            SharedRateLimit("t", per_minute, self.clock, one) for one in self.quota_lease
        ]
        self.admitted: list[tuple[float, int]] = []

    async def call(self, number: int, *, fast: bool = False) -> RateLimitVerdict | None:
        """As the lanes do; None when the fast one took it."""
        limit = self.limits[number]
        if fast and (room := limit.room("a")) is not None:
            limit.count("a", room)
            self._note(number)
            return None
        verdict = limit.take("a") or await self._asked(number)
        if verdict.allowed:
            self._note(number)
        return verdict

    async def _asked(self, number: int) -> RateLimitVerdict:
        asking = asyncio.ensure_future(self.limits[number].admit("a"))
        while not asking.done():
            await asyncio.sleep(0)
            await self.quota_lease[number].round()
        return asking.result()

    def _note(self, number: int) -> None:
        self.admitted.append((self.clock.monotonic_s(), number))

    def busiest(self, of: int | None = None) -> int:
        times = [at for at, node in self.admitted if of is None or node == of]
        return max((sum(at <= t < at + WINDOW_S for t in times) for at in times), default=0)


@settings(deadline=None)
@given(st.integers(1, 3), st.integers(1, 40), STEPS)
def test_no_minute_of_all_processes_together_holds_more_than_the_limit(
    number: int, per_minute: int, steps: list[tuple[float, int, int, bool]]
) -> None:
    async def run() -> None:
        nodes = Nodes(number, per_minute)
        for wait, node, times, fast in steps:
            nodes.clock.move(wait)
            for quota_lease in nodes.quota_lease:
                await quota_lease.round()
            for _ in range(times):
                verdict = await nodes.call(node % number, fast=fast)
                if verdict is not None and not verdict.allowed:
                    assert 1 <= max(1, verdict.reset_s) <= WINDOW_S + 2
        assert nodes.busiest() <= per_minute

    asyncio.run(run())


@settings(deadline=None)
@given(st.integers(1, 3), st.integers(1, 40), STEPS, st.data())
def test_without_the_shared_count_each_process_allows_what_it_would_alone(
    number: int, per_minute: int, steps: list[tuple[float, int, int, bool]], data: st.DataObject
) -> None:
    async def run() -> None:
        nodes = Nodes(number, per_minute)
        alone = [RateLimit(per_minute, nodes.clock) for _ in range(number)]
        for wait, node, times, fast in steps:
            nodes.clock.move(wait)
            fault = data.draw(st.sampled_from(["", "gone", "lost", "flushed"]))
            nodes.window.gone, nodes.window.loses_answers = fault == "gone", fault == "lost"
            if fault == "flushed":
                nodes.window.lent.clear()
            for quota_lease in nodes.quota_lease:
                await quota_lease.round()
            for _ in range(times):
                before = len(nodes.admitted)
                await nodes.call(node % number, fast=fast)
                if len(nodes.admitted) > before:
                    assert alone[node % number].take("a").allowed  # type: ignore[union-attr]

    asyncio.run(run())


@settings(deadline=None)
@given(st.integers(1, 60), st.integers(1, 90))
def test_the_remaining_count_is_how_many_one_process_really_lets_in(
    per_minute: int, asked: int
) -> None:
    async def run() -> None:
        nodes = Nodes(1, per_minute)
        verdicts = [await nodes.call(0) for _ in range(asked)]
        assert [v is not None and v.allowed for v in verdicts] == [
            n < per_minute for n in range(asked)
        ]
        assert [v.remaining if v else 0 for v in verdicts] == [
            max(0, per_minute - 1 - n) for n in range(asked)
        ]

    asyncio.run(run())


async def test_limits_of_different_names_and_callers_are_counted_apart() -> None:
    clock: Any = FrozenClock()
    quota_lease = QuotaLease(MemoryWindow(clock), clock, lambda _: None)
    for name in ("one", "other"):
        limit = rate_limit(name, 2, clock, quota_lease)
        for caller in ("a", "b", "name a"):
            for allowed in (True, True, False):
                asking = asyncio.ensure_future(limit.admit(caller))
                await asyncio.sleep(0)
                await quota_lease.round()
                assert (await asking).allowed is allowed
