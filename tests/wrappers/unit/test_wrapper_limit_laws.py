"""What must hold of a wrapper's rate limit, whoever calls and whenever."""

from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from assay.wrappers.model import RateLimitedRequest, RateLimitExceeded
from assay.wrappers.stages.limit import WINDOW_S, LimitStage


class Hand:
    """A clock that is set."""

    now_s = 0.0

    def monotonic_s(self) -> float:
        return self.now_s


def call(limit: int, wrapper: str = "w", key: str | None = "agent") -> Any:
    config = SimpleNamespace(rate_limit=limit, id=wrapper)
    incoming = SimpleNamespace(client_address="1.2.3.4")
    matched = SimpleNamespace(config=config, incoming=incoming)
    return SimpleNamespace(matched=matched, trust=SimpleNamespace(limit_key=key))


def at_once(work: Coroutine[Any, Any, RateLimitedRequest]) -> RateLimitedRequest:
    """What it comes to; one process's own limit never waits for anything."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waited")


waits = st.lists(st.floats(0, 45, allow_nan=False), max_size=80)


def admitted(step: LimitStage, limit: int) -> dict[bytes, int] | int:
    """The headers of a call that passes, or how long one that does not is told to wait."""
    try:
        found = at_once(step.admit(call(limit), None))
    except RateLimitExceeded as error:
        return error.retry_after_s or 0
    return {name: int(value) for name, value in found.limits}


@given(st.integers(1, 6), waits)
def test_no_window_of_a_minute_ever_holds_more_than_the_limit(
    limit: int, between: list[float]
) -> None:
    clock = Hand()
    step, times = LimitStage(clock), list[float]()  # type: ignore[arg-type]
    for wait in between:
        clock.now_s += wait
        if not isinstance(admitted(step, limit), int):
            times.append(clock.now_s)
    for at in times:
        assert sum(at <= other < at + WINDOW_S for other in times) <= limit


@given(st.integers(1, 6), waits)
def test_who_waits_as_long_as_told_is_admitted(limit: int, between: list[float]) -> None:
    clock = Hand()
    step = LimitStage(clock)  # type: ignore[arg-type]
    for wait in between:
        clock.now_s += wait
        told = admitted(step, limit)
        if isinstance(told, int):
            assert 1 <= told <= WINDOW_S + 1
            clock.now_s += told
            assert not isinstance(admitted(step, limit), int)


@given(st.integers(1, 6), waits)
def test_the_headers_count_down_to_none(limit: int, between: list[float]) -> None:
    clock = Hand()
    step = LimitStage(clock)  # type: ignore[arg-type]
    for wait in between:
        clock.now_s += wait
        told = admitted(step, limit)
        if not isinstance(told, int):
            assert told[b"ratelimit-limit"] == limit
            assert 0 <= told[b"ratelimit-remaining"] < limit
            assert 0 < told[b"ratelimit-reset"] <= WINDOW_S + 1


@given(st.integers(1, 5))
def test_callers_and_wrappers_have_their_own_limit(limit: int) -> None:
    step = LimitStage(Hand())  # type: ignore[arg-type]
    for wrapper in ("a", "b"):
        for key in ("x", "y", None):
            for _ in range(limit):
                at_once(step.admit(call(limit, wrapper, key), None))
    for _ in range(limit):
        at_once(step.admit(call(limit, "a", None), "0xpayer"))
