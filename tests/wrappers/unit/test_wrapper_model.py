"""Terms of wrappers compared, and whom a call is counted for."""

from typing import Any, cast

import pytest

from assay.wrappers.model import (
    AdmittedAgent,
    AuthorizedRequest,
    NotRequired,
    PaymentLimits,
    RateLimitedRequest,
    RoutedRequest,
    Terms,
)

BASE = Terms(price=5, min_score=60, cold_start="throttle")


@pytest.mark.parametrize(
    ("stricter", "than"),
    [
        (Terms(price=6, min_score=60, cold_start="throttle"), BASE),
        (Terms(price=5, min_score=61, cold_start="throttle"), BASE),
        (Terms(price=5, min_score=60, cold_start="deny"), BASE),
        (Terms(price=5, min_score=60, cold_start="throttle", needs_proof=True), BASE),
        (BASE, Terms(price=5)),
    ],
    ids=["price", "score", "cold start", "proof", "any trust"],
)
def test_terms_that_ask_more_in_one_thing_ask_more(stricter: Terms, than: Terms) -> None:
    assert stricter.ask_more_than(than)
    assert not than.ask_more_than(stricter)


def test_equal_terms_ask_no_more_of_each_other() -> None:
    assert not BASE.ask_more_than(BASE)
    assert not Terms().ask_more_than(Terms(price=1, min_score=10, cold_start="deny"))


async def test_payments_are_counted_against_nothing_unless_limits_are_given() -> None:
    limits = PaymentLimits()
    await limits.refused()
    await limits.signed("0x1")
    await limits.verified("0x1")


def test_a_limit_counts_an_agent_only_where_it_has_proven_who_it_is() -> None:
    registered = AdmittedAgent("7", "0x1", proven=True, tier="A", score=80, chain="base")
    by_address = AdmittedAgent("0x1", "0x1", proven=True, tier="A", score=80)
    claimed = AdmittedAgent("7", "0x1", proven=False, tier="A", score=80, chain="base")
    assert [one.key for one in (registered, by_address, claimed)] == ["base/7", "0x1", ""]


def test_a_request_keeps_its_wrapper_through_all_stages() -> None:
    route = cast("Any", type("Route", (), {"config": "the wrapper"})())
    routed = RoutedRequest(cast("Any", None), route)
    limited = RateLimitedRequest(AuthorizedRequest(routed, NotRequired("k")), ())
    assert limited.matched is routed
    assert limited.matched.config == "the wrapper"
