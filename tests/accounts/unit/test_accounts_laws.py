"""Laws of counting and of slowing down, over random histories."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.accounts.allowance import Allowance, month_after, month_of
from assay.accounts.api_keys import base62
from assay.accounts.model import MonthlyLimitExceeded, Operator, Plan, Role
from assay.accounts.password_proof import (
    DELAY_MAX_S,
    FREE_FAILURES,
    FREE_WIDELY,
    PER_WINDOW,
    REMEMBERED_MAX,
    WIDE_DELAY_MAX_S,
    LoginThrottle,
    RequestQuota,
)
from assay.common.errors import TooMany, Unavailable
from tests.support.fakes.clock import FrozenClock

NOW = datetime(2026, 3, 1, tzinfo=UTC)
moments = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001


class MemoryCounts:
    """The allowance store; `down` makes it fail."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.down = False

    async def used(self, operator_id: str, month: str) -> int:
        return self.counts[operator_id, month]

    async def add(self, counts: Mapping[tuple[str, str], int]) -> Mapping[tuple[str, str], int]:
        if self.down:
            raise Unavailable("down")
        self.counts.update(counts)
        return {key: self.counts[key] for key in counts}


def operator(plan: Plan = Plan.FREE) -> Operator:
    return Operator("op", "a@b.cc", "A", Role.OPERATOR, plan, Decimal(0), NOW, NOW)


steps = st.lists(st.sampled_from(["reserve", "release", "flush", "fail", "other"]), max_size=60)


@given(steps, st.integers(0, 12))
def test_the_limit_is_never_passed_and_nothing_is_lost(  # noqa: C901, PLR0915 - one history, told in order
    history: list[str], limit: int
) -> None:
    """Two processes on one store; whatever fails in between."""

    async def live() -> None:
        store, clock = MemoryCounts(), FrozenClock(NOW)
        mine = Allowance(store, clock, "http://upgrade", limit)
        held: list[tuple[str, str]] = []
        answered = elsewhere = 0
        for step in history:
            store.down = step == "fail"
            if step == "reserve":
                try:
                    held.append(await mine.reserve(operator()))
                except MonthlyLimitExceeded:
                    continue
                answered += 1
                assert (await mine.usage(operator())).used <= max(limit, elsewhere + answered)
            elif step == "release" and held:
                mine.release(held.pop())
                answered -= 1
            elif step == "other":
                await store.add({("op", "2026-03"): 1})
                elsewhere += 1
            else:
                try:
                    await mine.flush()
                except Unavailable:
                    continue
        store.down = False
        await mine.flush()
        assert store.counts["op", "2026-03"] == answered + elsewhere
        if not elsewhere:
            assert answered <= limit

    asyncio.run(live())


async def test_calls_at_once_never_pass_the_limit_together() -> None:
    mine = Allowance(MemoryCounts(), FrozenClock(NOW), "http://upgrade", 7)

    async def call() -> bool:
        try:
            await mine.reserve(operator())
        except MonthlyLimitExceeded:
            return False
        return True

    async with asyncio.TaskGroup() as group:
        tried = [group.create_task(call()) for _ in range(50)]
    assert sum(task.result() for task in tried) == 7
    for _ in range(20):
        await mine.reserve(operator(Plan.PRO))


@given(moments)
def test_every_moment_lies_in_one_month_and_the_next_begins_a_new_one(moment: datetime) -> None:
    following = month_after(moment)
    assert following > moment
    assert month_of(following) != month_of(moment)
    assert month_of(following - timedelta(microseconds=1)) == month_of(moment)


@given(st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32))
def test_base62_is_one_text_of_43_characters_for_each_secret(one: bytes, other: bytes) -> None:
    assert len(base62(one)) == 43
    assert base62(one).isalnum()
    assert (base62(one) == base62(other)) == (one == other)


def waits(throttle: LoginThrottle, email: str, address: str, *, is_known: bool = False) -> int:
    """Seconds until an attempt is let through; the attempt itself is given back."""
    try:
        throttle.give_back(throttle.begin(email, address, is_known=is_known))
    except TooMany as refusal:
        return refusal.retry_after_s or 0
    return 0


def fail(throttle: LoginThrottle, email: str, address: str) -> bool:
    """One wrong attempt; whether it was let through."""
    try:
        throttle.begin(email, address)
    except TooMany:
        return False
    return True


@given(st.integers(1, 40))
def test_delays_grow_with_failures_up_to_a_bound_and_are_forgotten(failures: int) -> None:
    clock = FrozenClock()
    throttle = LoginThrottle(clock)
    seen: list[int] = []
    for _ in range(failures):
        clock.move(seen[-1] if seen else 0)
        assert fail(throttle, "a@b.cc", "192.0.2.1")
        seen.append(waits(throttle, "A@B.cc", "192.0.2.1"))
    assert seen == sorted(seen)
    assert seen[:4] == [0] * min(4, failures)
    assert max(seen) <= DELAY_MAX_S
    clock.move(3600)
    assert waits(throttle, "a@b.cc", "192.0.2.1") == 0


@given(st.integers(1, 200), st.integers(1, 30))
def test_attempts_at_once_cannot_pass_the_bound_together(at_once: int, accounts: int) -> None:
    """None of them is decided while the next begins."""
    throttle = LoginThrottle(FrozenClock())
    let_through = Counter(
        number % accounts
        for number in range(at_once)
        if fail(throttle, f"user{number % accounts}@b.cc", "192.0.2.1")
    )
    assert all(count <= FREE_FAILURES for count in let_through.values())
    assert let_through.total() <= FREE_WIDELY


@given(st.lists(st.booleans(), max_size=60))
def test_an_attempt_that_is_given_back_counts_for_nothing(history: list[bool]) -> None:
    """True: given back. Those let through and not given back are what is counted."""
    clock = FrozenClock()
    throttle, plain = LoginThrottle(clock), LoginThrottle(clock)
    for is_right in history:
        waited = waits(throttle, "a@b.cc", "192.0.2.1")
        clock.move(waited)
        attempt = throttle.begin("a@b.cc", "192.0.2.1")
        if is_right:
            throttle.give_back(attempt)
        else:
            plain.begin("a@b.cc", "192.0.2.1")
    assert waits(throttle, "a@b.cc", "192.0.2.1") == waits(plain, "a@b.cc", "192.0.2.1")


def test_an_attackers_failures_never_lock_the_owner_out() -> None:
    throttle = LoginThrottle(FrozenClock())
    for number in range(1000):
        fail(throttle, "owner@b.cc", f"198.51.100.{number % 250}")
    assert waits(throttle, "owner@b.cc", "192.0.2.1", is_known=True) == 0
    assert 0 < waits(throttle, "owner@b.cc", "192.0.2.1") <= WIDE_DELAY_MAX_S
    throttle.forgive("OWNER@b.cc")
    assert waits(throttle, "owner@b.cc", "192.0.2.1") == 0


def test_an_account_guessed_from_many_networks_is_slowed_down_whatever_their_number() -> None:
    throttle = LoginThrottle(FrozenClock())
    tried = [fail(throttle, "owner@b.cc", f"2001:db8:{n:x}::") for n in range(1000)]
    assert sum(tried) == FREE_WIDELY


def test_one_address_that_tries_many_accounts_is_slowed_down() -> None:
    throttle = LoginThrottle(FrozenClock())
    for number in range(60):
        fail(throttle, f"user{number}@b.cc", "198.51.100.1")
    assert waits(throttle, "somebody@b.cc", "198.51.100.1") > 0
    assert waits(throttle, "somebody@b.cc", "198.51.100.1", is_known=True) == 0


def test_success_forgives_the_account_at_this_address() -> None:
    clock = FrozenClock()
    throttle = LoginThrottle(clock)
    for _ in range(8):
        clock.move(waits(throttle, "a@b.cc", "192.0.2.1"))
        fail(throttle, "a@b.cc", "192.0.2.1")
    wait = waits(throttle, "a@b.cc", "192.0.2.1")
    assert wait > 0
    clock.move(wait)
    throttle.succeeded(throttle.begin("a@b.cc", "192.0.2.1"))
    for _ in range(FREE_FAILURES):
        assert fail(throttle, "a@b.cc", "192.0.2.1")


def test_wrong_codes_are_counted_by_the_account_alone() -> None:
    throttle = LoginThrottle(FrozenClock())
    for _ in range(FREE_FAILURES):
        throttle.begin_code("a@b.cc")
    with pytest.raises(TooMany):
        throttle.begin_code("A@b.cc")
    throttle.begin_code("b@b.cc")


@pytest.mark.slow
def test_a_million_strangers_fill_no_memory() -> None:
    throttle = LoginThrottle(FrozenClock())
    for number in range(1_000_000):
        fail(throttle, f"{number}@b.cc", f"2001:db8:{number >> 16:x}:{number & 0xFFFF:x}::")
    assert max(throttle.sizes()) == REMEMBERED_MAX


def test_a_network_asks_for_mail_a_bounded_number_of_times() -> None:
    clock = FrozenClock()
    quota = RequestQuota(clock)
    for _ in range(PER_WINDOW):
        quota.require("192.0.2.1")
    with pytest.raises(TooMany) as refusal:
        quota.require("192.0.2.1")
    quota.require("192.0.2.2")
    clock.move(refusal.value.retry_after_s or 0)
    quota.require("192.0.2.1")


class SlowCounts(MemoryCounts):
    """Its answer comes a while after the counts are in."""

    async def add(self, counts: Mapping[tuple[str, str], int]) -> Mapping[tuple[str, str], int]:
        totals = await super().add(counts)
        await asyncio.sleep(0.01)
        return totals


async def test_a_flush_cancelled_after_its_commit_counts_no_call_twice() -> None:
    store = SlowCounts()
    mine = Allowance(store, FrozenClock(NOW), "http://upgrade", 7)
    await mine.reserve(operator())
    flush = asyncio.ensure_future(mine.flush())
    await asyncio.sleep(0.001)
    flush.cancel()
    await asyncio.wait([flush])
    await mine.flush()
    assert store.counts["op", "2026-03"] == 1
    assert (await mine.usage(operator())).used == 1


async def test_what_is_shown_while_it_is_written_down_is_counted_once() -> None:
    store = SlowCounts()
    mine = Allowance(store, FrozenClock(NOW), "http://upgrade", 7)
    await mine.reserve(operator())
    async with asyncio.TaskGroup() as group:
        group.create_task(mine.flush())
        await asyncio.sleep(0.001)
        shown = await mine.usage(operator())
    assert shown.used == 1
