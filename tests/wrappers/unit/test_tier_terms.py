"""The choice of an agent's terms: the best entry its tier reaches, and never a dearer one."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.wrappers.model import AdmittedAgent, NotRequired, Terms, WrapperConfig
from assay.wrappers.tier_terms import TIERS, FreeQuota, TierTerms, period_of, terms_for

LIST_PRICE = 10_000


@st.composite
def pricings(draw: st.DrawFn) -> list[TierTerms]:
    """Entries as they are accepted: each tier once, best first, prices never rising."""
    places = sorted(draw(st.sets(st.integers(0, len(TIERS) - 1))))
    prices = sorted(draw(st.integers(0, LIST_PRICE)) for _ in places)
    return [TierTerms(TIERS[place], price) for place, price in zip(places, prices, strict=True)]


def paid(pricing: list[TierTerms], tier: str | None) -> int:
    terms = terms_for(pricing, tier)
    return LIST_PRICE if terms is None else terms.price


@given(pricing=pricings())
def test_a_better_tier_never_pays_more_and_nobody_more_than_the_list_price(
    pricing: list[TierTerms],
) -> None:
    prices = [paid(pricing, tier) for tier in TIERS]
    assert [*prices, LIST_PRICE] == sorted([*prices, LIST_PRICE])


@given(pricing=pricings(), tier=st.sampled_from(TIERS))
def test_an_agent_has_an_entry_that_it_reaches_and_the_best_of_those(
    pricing: list[TierTerms], tier: str
) -> None:
    terms = terms_for(pricing, tier)
    reached = [one for one in pricing if TIERS.index(one.min_tier) >= TIERS.index(tier)]
    assert terms == (reached[0] if reached else None)


@given(pricing=pricings(), tier=st.none() | st.text(max_size=4).filter(lambda t: t not in TIERS))
def test_without_a_known_tier_the_list_price_holds(
    pricing: list[TierTerms], tier: str | None
) -> None:
    assert paid(pricing, tier) == LIST_PRICE


@given(pricing=pricings(), tier=st.sampled_from(TIERS))
def test_the_order_of_the_entries_does_not_matter(pricing: list[TierTerms], tier: str) -> None:
    assert terms_for(pricing[::-1], tier) == terms_for(pricing, tier)


@pytest.mark.parametrize(("per", "name"), [("day", "2026-11-27"), ("month", "2026-11")])
def test_a_period_is_named_by_its_utc_date(per: str, name: str) -> None:
    at = datetime(2026, 11, 27, 23, 59, 59, tzinfo=UTC)
    assert period_of("day" if per == "day" else "month", at) == name


@pytest.mark.parametrize(
    ("strict", "free"),
    [
        (Terms(10_000), Terms(10_000, free_calls=1)),
        (Terms(10_000, free_calls=1), Terms(10_000, free_calls=31)),
        (Terms(10_000), Terms(20_000, tier_prices=(0, *(20_000,) * (len(TIERS) - 1)))),
        (
            Terms(10_000, tier_prices=(5_000, *(10_000,) * (len(TIERS) - 1))),
            Terms(10_000, tier_prices=(5_000,) * len(TIERS)),
        ),
    ],
)
def test_what_is_cheaper_for_some_agents_asks_less(strict: Terms, free: Terms) -> None:
    """So another spelling of the dearer wrapper's path does not lead to it."""
    assert strict.ask_more_than(free)
    assert not Terms(0).ask_more_than(strict)
    assert not strict.ask_more_than(strict)


def agent_of(agent_id: str, *, proven: bool = True, **fields: Any) -> AdmittedAgent:
    return AdmittedAgent(agent_id, "0xa", proven, "A", 80.0, **fields)


@pytest.mark.parametrize(
    ("agent", "limit", "quota"),
    [
        (
            AdmittedAgent("7", "0xa", proven=True, tier="A", score=80.0, chain="base", rung=1),
            "base/7",
            "base/7",
        ),
        (agent_of("7", chain="base", rung=1), "base/7", "base/7"),
        (agent_of("7", chain="base"), "base/7", ""),
        (agent_of("0xa", would_deny="low_score"), "", ""),
        (agent_of("7", rung=1, would_deny="low_score"), "7", "7"),
        (agent_of("7", proven=False, rung=1), "", ""),
    ],
)
def test_whom_a_limit_and_a_quota_count(agent: AdmittedAgent, limit: str, quota: str) -> None:
    """Nobody gets another limit by another wallet that costs nothing to make."""
    assert (agent.limit_key, agent.quota_key) == (limit, quota)
    assert NotRequired("0xpayer").limit_key == "0xpayer"


def test_the_terms_of_a_wrapper_have_the_price_of_each_tier() -> None:
    quota = FreeQuota(3, "day")
    pricing = [TierTerms("A", 4), TierTerms("B", 6)]
    config: Any = SimpleNamespace(
        trust_enabled=True,
        enforce="enforce",
        min_score=50.0,
        identity_proof="required",
        cold_start=None,
        price=LIST_PRICE,
        pricing=pricing,
        free_quota=quota,
    )
    terms = WrapperConfig.terms.fget(config)  # type: ignore[attr-defined]
    assert terms.prices == (LIST_PRICE, *(paid(pricing, tier) for tier in TIERS))
    assert terms.free_calls == 93
