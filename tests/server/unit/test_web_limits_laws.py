"""Laws of the traffic limit, for any rhythm of requests."""

from ipaddress import IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.common.errors import TooMany
from assay.server.rate_limits import CALLERS_MAX, RateLimit, caller_of
from tests.support.fakes.clock import FrozenClock

WAITS = st.lists(st.floats(0, 90, allow_nan=False), max_size=60)
RATES = st.integers(1, 50)


@given(RATES, WAITS)
def test_no_stretch_of_time_holds_more_than_its_share_and_one_burst(
    rate: int, waits: list[float]
) -> None:
    clock = FrozenClock()
    limit = RateLimit(rate, clock)
    let_in: list[float] = []
    for wait in waits:
        clock.move(wait)
        let_in.extend(clock.monotonic_s() for _ in range(3) if limit.take("a").allowed)
    for first, start in enumerate(let_in):
        for last in range(first, len(let_in)):
            assert last - first + 1 <= rate + (let_in[last] - start) * rate / 60 + 1e-6


@given(RATES, WAITS)
def test_whoever_waits_as_long_as_told_is_let_in(rate: int, waits: list[float]) -> None:
    clock = FrozenClock()
    limit = RateLimit(rate, clock)
    for wait in waits:
        clock.move(wait)
        verdict = limit.take("a")
        if not verdict.allowed:
            clock.move(max(1, verdict.reset_s))
            assert limit.take("a").allowed


@given(RATES, st.integers(1, 120))
def test_the_remaining_count_is_how_many_are_really_let_in(rate: int, asked: int) -> None:
    limit = RateLimit(rate, FrozenClock())
    verdicts = [limit.take("a") for _ in range(asked)]
    assert [v.allowed for v in verdicts] == [n < rate for n in range(asked)]
    assert [v.remaining for v in verdicts] == [max(0, rate - 1 - n) for n in range(asked)]


@given(st.integers(1, 20), st.lists(st.sampled_from("abc"), max_size=80))
def test_nobody_uses_up_anybody_elses_limit(rate: int, callers: list[str]) -> None:
    limit = RateLimit(rate, FrozenClock())
    let_in = [caller for caller in callers if limit.take(caller).allowed]
    for caller in "abc":
        assert let_in.count(caller) == min(rate, callers.count(caller))


@given(st.text(max_size=60))
def test_any_text_is_some_caller(text: str) -> None:
    assert isinstance(caller_of(text), str)


@given(st.integers(1, 2**64 - 1), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_an_ipv6_network_of_64_bits_is_one_caller_and_its_neighbour_another(
    network: int, one: int, other: int
) -> None:
    """From network 1 on: network 0 also holds the IPv4 addresses in IPv6 clothes."""
    here, there = (IPv6Address(network << 64 | host) for host in (one, other))
    beside = IPv6Address((network ^ 1 or 2) << 64 | one)
    assert caller_of(str(here)) == caller_of(str(there)) != caller_of(str(beside))


@given(st.ip_addresses(v=4), st.ip_addresses(v=4))
def test_ipv4_callers_are_told_apart_in_either_notation(one: object, other: object) -> None:
    assert (caller_of(f"::ffff:{one}") == caller_of(str(other))) == (one == other)


def test_memory_is_bounded_and_only_ever_forgives() -> None:
    limit = RateLimit(1, FrozenClock())
    assert limit.take("first").allowed
    for number in range(CALLERS_MAX):
        limit.take(str(number))
    assert limit.take("first").allowed
    assert not limit.take(str(CALLERS_MAX - 1)).allowed
    assert len(limit._full_at_s) == CALLERS_MAX


async def test_a_refusal_says_when_to_come_again() -> None:
    limit = RateLimit(2, FrozenClock())
    await limit.require("a")
    await limit.require("a")
    with pytest.raises(TooMany) as refused:
        await limit.require("a")
    assert refused.value.retry_after_s == 30
