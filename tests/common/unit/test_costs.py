"""What callers cost in a day is counted in bounded memory, and bounded."""

from contextvars import copy_context

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.common.costs import (
    DAY_S,
    SERVICE,
    Bearer,
    Cost,
    CostLedger,
    QuotaExceeded,
    address_bearer,
    serve_for,
)
from tests.support.fakes.clock import FrozenClock

ONE, OTHER = Bearer("operator 1"), Bearer("operator 2")


def ledger(quota: int = 10, **more: int) -> tuple[CostLedger, FrozenClock]:
    clock = FrozenClock()
    return CostLedger(clock, {Cost.EVALUATIONS: quota}, **more), clock


def required(costs: CostLedger, bearer: Bearer) -> QuotaExceeded | None:
    def ask() -> QuotaExceeded | None:
        serve_for(lambda: bearer)
        try:
            costs.require(Cost.RPC_CALLS, Cost.EVALUATIONS)
        except QuotaExceeded as error:
            return error
        return None

    return copy_context().run(ask)


def test_a_used_up_quota_is_named_and_says_when_again() -> None:
    costs, clock = ledger()
    costs.charge(Cost.EVALUATIONS, 10, ONE)
    error = required(costs, ONE)
    assert error is not None
    assert (error.code, error.extras) == (
        "quota_exceeded",
        {"quota": "evaluations", "limit": 10},
    )
    assert required(costs, OTHER) is None
    assert error.retry_after_s is not None
    clock.move(error.retry_after_s)
    assert required(costs, ONE) is None


@given(
    st.lists(st.tuples(st.floats(0, 50_000), st.integers(1, 5)), max_size=40),
    st.integers(1, 8),
)
def test_whoever_waits_as_long_as_told_may_go_on(
    steps: list[tuple[float, int]], quota: int
) -> None:
    costs, clock = ledger(quota)
    for wait_s, amount in steps:
        clock.move(wait_s)
        costs.charge(Cost.EVALUATIONS, amount, ONE)
    if (error := required(costs, ONE)) is not None:
        assert error.retry_after_s is not None
        clock.move(error.retry_after_s)
        assert required(costs, ONE) is None


def test_a_day_slides() -> None:
    costs, clock = ledger()
    clock.move(DAY_S / 2)  # from noon: what is counted of a calendar day is taken as even
    costs.charge(Cost.EVALUATIONS, 10, ONE)
    clock.move(DAY_S * 1.5)
    assert costs.used(Cost.EVALUATIONS, ONE) == 5
    clock.move(DAY_S)
    assert costs.used(Cost.EVALUATIONS, ONE) == 0


def test_work_of_nobody_and_of_unlimited_bearers_is_counted_and_not_bounded() -> None:
    costs, _ = ledger()
    paying = Bearer("operator 3", is_limited=False)
    costs.charge(Cost.EVALUATIONS, 99, paying)
    costs.charge(Cost.EVALUATIONS, 99)
    assert required(costs, paying) is None
    assert costs.used(Cost.EVALUATIONS, SERVICE) == 99
    assert costs.totals()[Cost.EVALUATIONS] == 198
    assert costs.largest(Cost.EVALUATIONS) == [("service", 99), ("operator 3", 99)]


def test_an_ipv6_network_is_one_bearer() -> None:
    assert address_bearer("2001:db8::1") == address_bearer("2001:db8::ffff:1")
    assert address_bearer("2001:db8::1") != address_bearer("2001:db8:0:1::1")
    assert address_bearer("::ffff:192.0.2.1") == address_bearer("192.0.2.1")


def test_only_so_many_bearers_are_remembered() -> None:
    costs, _ = ledger(bearers_max=100)
    for number in range(10_000):
        costs.charge(Cost.ROWS, 1, Bearer(f"address {number}"))
    assert len(costs) == 100
    assert costs.totals()[Cost.ROWS] == 10_000


@pytest.mark.parametrize("cost", Cost)
def test_every_cost_has_words_for_its_refusal(cost: Cost) -> None:
    costs = CostLedger(FrozenClock(), {cost: 1})
    costs.charge(cost, 1, ONE)

    def ask() -> None:
        serve_for(lambda: ONE)
        costs.require(cost)

    with pytest.raises(QuotaExceeded, match=f"quota of 1 {cost.replace('_', ' ')} a day"):
        copy_context().run(ask)
