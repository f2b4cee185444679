"""A cache whose source may be away: what it may give, and what it may never give."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.common.cache import STEP_S, Cache
from assay.common.errors import NotFound, SourceAway
from tests.support.eventually import never
from tests.support.fakes.clock import FrozenClock

TTL_S, GRACE_S = 5.0, 60.0

Step = tuple[str, float]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["answers", "away", "refuses", "remove", "doubt"]),
        st.sampled_from([0.0, 0.5, STEP_S, TTL_S, 20.0, GRACE_S]),
    ),
    max_size=30,
)


class Source:
    """Answers with a new number each time, or does not."""

    def __init__(self) -> None:
        self.number = 0
        self.state = "answers"

    async def load(self) -> int:
        if self.state == "away":
            raise SourceAway("away")
        if self.state == "refuses":
            raise NotFound("gone")
        self.number += 1
        return self.number


@given(steps=STEPS, grace_s=st.sampled_from([0.0, GRACE_S]))
def test_no_value_is_older_than_its_grace_and_none_that_is_gone_comes_back(
    steps: Sequence[Step], grace_s: float
) -> None:
    asyncio.run(_played(steps, grace_s))


async def _played(steps: Sequence[Step], grace_s: float) -> None:
    clock, source = FrozenClock(), Source()
    cache: Cache[int] = Cache(clock, TTL_S, grace_s=grace_s)
    known: tuple[int, float] | None = None  # the last value, and when it was read
    for state, pause_s in steps:
        clock.move(pause_s)
        source.state = state if state in {"away", "refuses"} else "answers"
        if state == "remove":
            cache.remove("k")
            known, source.state = None, "away"
        if state == "doubt":
            cache.doubt()
        before, now_s = source.number, clock.monotonic_s()
        try:
            value = await cache.get("k", source.load)
        except SourceAway:
            assert known is None or now_s - known[1] >= max(TTL_S, grace_s)
        except NotFound:
            known = None
        else:
            known = (value, now_s) if value > before else known
            require(cache, known, value, now_s, grace_s)
            assert state != "doubt" or value > before


def require(
    cache: Cache[int], known: tuple[int, float] | None, value: int, now_s: float, grace_s: float
) -> None:
    """What was given is what was read last, and no older than may be."""
    assert known is not None
    assert value == known[0]
    age_s = now_s - known[1]
    assert age_s <= max(TTL_S, grace_s + STEP_S)
    assert cache.stale_s("k") in {None, age_s}


async def test_a_source_that_hangs_delays_one_call_and_then_none() -> None:
    clock = FrozenClock()
    cache: Cache[int] = Cache(clock, TTL_S, grace_s=GRACE_S)
    assert await cache.get("k", Source().load) == 1
    clock.move(TTL_S)
    assert await cache.get("k", never) == 1
    assert cache.fresh("k") == 1
    assert cache.stale_s("k") == TTL_S
    cache.remove("k")
    assert cache.fresh("k") is None


async def test_what_a_slow_load_returns_in_the_end_is_used() -> None:
    clock, arrived, source = FrozenClock(), asyncio.Event(), Source()
    cache: Cache[int] = Cache(clock, TTL_S, grace_s=GRACE_S)
    await cache.get("k", source.load)
    clock.move(TTL_S)

    async def slow() -> int:
        await arrived.wait()
        return await source.load()

    assert await cache.get("k", slow) == 1
    arrived.set()
    clock.move(STEP_S)
    assert await cache.get("k", slow) == 2
    assert cache.stale_s("k") is None


async def test_what_was_removed_while_it_was_loaded_is_given_once_and_not_kept() -> None:
    clock, arrived, source = FrozenClock(), asyncio.Event(), Source()
    cache: Cache[int] = Cache(clock, TTL_S, grace_s=GRACE_S)

    async def slow() -> int:
        await arrived.wait()
        return await source.load()

    async with asyncio.TaskGroup() as group:
        asked = group.create_task(cache.get("k", slow))
        await asyncio.sleep(0)
        cache.remove("k")
        arrived.set()
    assert asked.result() == 1
    source.state = "away"
    with pytest.raises(SourceAway):
        await cache.get("k", source.load)
