"""Laws of reputation over any payers and votes."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.common.json import JsonObject
from assay.common.numbers import MICRO
from assay.reputation.model import Payer, Reputation, Vote, payer_json, reputation_of
from assay.reputation.rules import (
    FULL,
    PRIOR_MASS,
    ReputationValue,
    assess,
    clusters_of,
    customers,
    decay,
    threshold,
    usual_price,
)
from tests.support.cases import first_then_slow

ROOT = Path(__file__).parents[3]
TODAY = 20_000

days = st.integers(TODAY - 400, TODAY)
addresses = st.sampled_from([f"0xa{n}" for n in range(12)])
payers = st.builds(
    Payer,
    addresses,
    st.dictionaries(days, st.integers(0, 10 * MICRO), max_size=4),
    st.integers(0, 5 * MICRO),
    st.integers(0, 10 * MICRO),
    st.booleans(),
    st.lists(st.sampled_from(["0xs1", "0xs2", "0xs3"]), max_size=2).map(tuple),
    st.booleans(),
)
votes = st.builds(Vote, addresses, st.floats(0, 100), st.none() | days)


def world(paid: list[Payer], cast: list[Vote], price: int = 10_000) -> Reputation:
    return Reputation(
        tuple({p.address: p for p in paid}.values()),
        tuple({v.address: v for v in cast}.values()),
        TODAY,
        price,
    )


worlds = st.builds(
    world, st.lists(payers, max_size=10), st.lists(votes, max_size=12), st.integers(0, MICRO)
)


def moved(result: ReputationValue | None) -> float:
    """Points that the signal moves a score by when it is the only one."""
    return 0.0 if result is None else result.confidence * (result.value - 50.0)


def customer(n: int, rating: float | None, dollars: float = 4, age: int = 60) -> tuple[Payer, Vote]:
    address = f"0xb{n:039x}"
    spent = {TODAY - age: round(dollars * MICRO / 2), TODAY - age + 1: round(dollars * MICRO / 2)}
    payer = Payer(address, spent, elsewhere=round(dollars * MICRO), is_charge=True)
    return payer, Vote(address, 50.0 if rating is None else rating, TODAY - 3)


def crowd(count: int, rating: float, **how: float) -> Reputation:
    made = [customer(n, rating, **how) for n in range(count)]  # type: ignore[arg-type]
    return world([p for p, _ in made], [v for _, v in made])


@given(worlds)
def test_the_result_is_on_the_scale_and_confidence_below_one(seen: Reputation) -> None:
    found = assess(seen)
    if found is not None:
        assert 0 <= found.value <= 100
        assert 0 <= found.confidence < 1
        assert found.cap is None or 0 <= found.cap < 100
        assert found.mass <= len(seen.payers) + 3.0001


@given(worlds, st.randoms(use_true_random=False))
def test_the_order_of_payments_and_votes_does_not_matter(seen: Reputation, rng: object) -> None:
    paid, cast = list(seen.payers), list(seen.votes)
    rng.shuffle(paid)  # type: ignore[attr-defined]
    rng.shuffle(cast)  # type: ignore[attr-defined]
    shuffled = replace(seen, payers=tuple(paid), votes=tuple(cast))
    assert assess(shuffled) == assess(seen)
    assert customers(shuffled, is_main=True) == customers(seen, is_main=True)


@given(worlds)
def test_the_evidence_read_back_gives_the_same(seen: Reputation) -> None:
    data = {
        "day": seen.day,
        "price": seen.price,
        "payers": {p.address: payer_json(p) for p in seen.payers},
        "votes": {v.address: {"rating": repr(v.rating), "day": v.day} for v in seen.votes},
    }
    again = reputation_of(json.loads(json.dumps(data)))
    assert assess(again) == assess(seen)


@given(worlds, st.integers(1, 3000), st.sampled_from([0.0, 100.0]))
@settings(max_examples=60, deadline=None)
def test_voters_without_money_move_a_score_by_three_points_at_most_together(
    seen: Reputation, count: int, rating: float
) -> None:
    strangers = tuple(Vote(f"0xf{n:039x}", rating, TODAY) for n in range(count))
    paying = replace(
        seen, votes=tuple(v for v in seen.votes if v.address in {p.address for p in seen.payers})
    )
    before = assess(replace(paying, votes=tuple(v for v in paying.votes)))
    after = assess(replace(paying, votes=(*paying.votes, *strangers)))
    assert abs(moved(after) - moved(before)) <= 3.0
    assert (after.cap if after else None) == (before.cap if before else None)


@given(worlds, st.floats(0, 100), st.integers(1, 10**9))
@settings(max_examples=100)
def test_one_cluster_moves_a_score_a_little_whatever_it_pays(
    seen: Reputation, rating: float, dollars: int
) -> None:
    """Forty accounts of one source, any money, any age: one customer."""
    paid = tuple(
        Payer(f"0xf{n:039x}", {TODAY - 60: dollars * MICRO}, elsewhere=10**12, sources=("0xf",))
        for n in range(40)
    )
    cast = tuple(Vote(p.address, rating, TODAY) for p in paid)
    after = replace(seen, payers=seen.payers + paid, votes=seen.votes + cast)
    bound = 100 / PRIOR_MASS + 0.02
    assert abs(moved(assess(after)) - moved(assess(seen))) <= bound


@given(worlds, st.lists(st.integers(1, 3 * MICRO), min_size=1, max_size=60), st.floats(0, 100))
@settings(max_examples=100)
def test_money_bounds_what_any_number_of_accounts_adds(
    seen: Reputation, spent: list[int], rating: float
) -> None:
    paid = tuple(
        Payer(f"0xf{n:039x}", {TODAY - 60: amount}, elsewhere=10**12)
        for n, amount in enumerate(spent)
    )
    cast = tuple(Vote(p.address, rating, TODAY) for p in paid)
    alone = replace(seen, payers=paid, votes=cast)
    weight = sum(c.weight for c in clusters_of(alone))
    assert weight <= sum(spent) / FULL + 1e-6


@given(worlds, st.data())
@settings(max_examples=100)
def test_a_better_vote_of_a_customer_never_lowers_the_value(
    seen: Reputation, data: st.DataObject
) -> None:
    """Without a change point, which compares times."""
    still = replace(seen, votes=tuple(replace(v, day=None) for v in seen.votes))
    if not still.votes:
        return
    at = data.draw(st.integers(0, len(still.votes) - 1))
    better = replace(still.votes[at], rating=data.draw(st.floats(still.votes[at].rating, 100)))
    lifted = replace(still, votes=(*still.votes[:at], better, *still.votes[at + 1 :]))
    before, after = assess(still), assess(lifted)
    assert (before is None) == (after is None)
    if before is not None and after is not None:
        assert after.value >= before.value
        assert (after.cap or 100) >= (before.cap or 100)


@given(worlds, st.integers(0, 3 * MICRO))
def test_what_came_back_was_not_spent(seen: Reputation, more: int) -> None:
    returned = replace(
        seen, payers=tuple(replace(p, returned=p.returned + more) for p in seen.payers)
    )
    before = {c.members: c.weight for c in clusters_of(seen)}
    for c in clusters_of(returned):
        assert c.weight <= before[c.members] + 1e-9


@given(st.floats(0, 10**5), st.floats(0, 10**5))
def test_age_only_lowers_what_a_customer_counts(age: float, more: float) -> None:
    assert decay(age + more) <= decay(age) <= 1
    assert decay(180) == 0.5


@given(st.lists(st.integers(1, MICRO), min_size=4, max_size=20), st.integers(1, 10))
def test_who_pays_much_cannot_raise_what_it_takes_to_be_a_customer(
    prices: list[int], buyers: int
) -> None:
    paid = {f"a{n}": [price] for n, price in enumerate(prices)}
    dear = {f"b{n}": [100 * MICRO] * 50 for n in range(buyers)}
    assert threshold(usual_price(paid | dear)) <= min(MICRO, 10 * max(prices))


def test_the_agents_own_side_is_no_customer() -> None:
    seen = crowd(40, 100)
    own = replace(seen, payers=tuple(replace(p, is_own=True) for p in seen.payers))
    assert assess(own) is None
    assert customers(own, is_main=True)["clusters"] == 0


def test_a_voter_who_paid_less_than_it_takes_is_one_of_everybody_else() -> None:
    seen = replace(crowd(40, 100, dollars=0.9), price=MICRO)
    found = assess(seen)
    assert found is not None
    assert (found.others, found.mass) == (40, 2.0)
    cheap = assess(replace(seen, price=1000))
    assert cheap is not None
    assert cheap.others == 0


def test_customers_who_come_back_in_silence_are_mild_praise() -> None:
    seen = replace(crowd(100, 0), votes=())
    found = assess(seen)
    assert found is not None
    assert found.value == 75.0
    said = assess(crowd(100, 100))
    assert said is not None
    assert said.mass > 2 * found.mass


def test_silent_plain_transfers_are_no_purchases() -> None:
    seen = crowd(100, 0)
    plain = tuple(replace(p, is_charge=False) for p in seen.payers)
    assert assess(replace(seen, payers=plain, votes=())) is None


def _changed(before: float, after: float, newer: int, spread: int) -> tuple[ReputationValue, float]:
    """A hundred old customers, and newer ones whose votes fall on `spread` days."""
    made = [customer(n, before) for n in range(100)]
    more = [customer(1000 + n, after) for n in range(newer)]
    old = [replace(v, day=TODAY - 200) for _, v in made]
    new = [replace(v, day=TODAY - n % spread) for n, (_, v) in enumerate(more)]
    found = assess(world([p for p, _ in made + more], old + new))
    assert found is not None
    return found, (100 * before + newer * after) / (100 + newer)


@pytest.mark.parametrize(("before", "after"), [(95, 5), (5, 95)])
def test_a_change_of_the_customers_word_counts_in_both_directions_alike(
    before: float, after: float
) -> None:
    few, _ = _changed(before, after, 12, 12)
    assert not few.changed
    hasty, _ = _changed(before, after, 60, 2)
    assert not hasty.changed
    changed, plain = _changed(before, after, 60, 20)
    assert changed.changed
    assert (changed.value < plain) == (after < before)
    mirrored, _ = _changed(after, before, 60, 20)
    assert mirrored.value == pytest.approx(100 - changed.value, abs=0.02)


def test_nobody_replaces_the_rest_by_being_newest() -> None:
    """A week's fifty accounts against two hundred customers: before, they counted alone."""
    made = [customer(n, 95) for n in range(200)]
    fresh = [customer(1000 + n, 0, dollars=2, age=7) for n in range(50)]
    votes = [v for _, v in made] + [replace(v, day=TODAY) for _, v in fresh]
    before = assess(world([p for p, _ in made], votes[:200]))
    after = assess(world([p for p, _ in made + fresh], votes))
    assert before is not None
    assert after is not None
    assert after.value > 90
    assert 0.2778 * (moved(before) - moved(after)) < 3


def test_what_rung_three_asks_for_is_counted_by_clusters_and_days() -> None:
    seen = crowd(20, 90, dollars=2, age=40)
    assert customers(seen, is_main=True) == {
        "clusters": 20,
        "unproven": 0,
        "days": 2,
        "largestShare": 0.05,
        "usdNet": "40.000000",
        "sinceDays": 40,
        "network": "main",
    }
    joined = replace(seen, payers=tuple(replace(p, sources=("0xs",)) for p in seen.payers))
    assert customers(joined, is_main=False)["clusters"] == 1
    tied = replace(seen, payers=tuple(replace(p, counts_as_customer=False) for p in seen.payers))
    assert customers(tied, is_main=True)["usdNet"] == "0.000000"


def test_who_lost_nothing_elsewhere_is_no_independent_customer() -> None:
    """What is paid to an agent costs its own side nothing: that is who was paid."""
    seen = crowd(20, 90, dollars=2, age=40)
    alone = replace(seen, payers=tuple(replace(p, elsewhere=0) for p in seen.payers))
    found = customers(alone, is_main=True)
    assert (found["clusters"], found["unproven"], found["usdNet"]) == (0, 20, "0.000000")
    assert (found["days"], found["sinceDays"], found["largestShare"]) == (0, 0, 0.0)


def test_money_counts_as_revenue_as_far_as_as_much_was_lost_elsewhere() -> None:
    seen = crowd(20, 90, dollars=200, age=40)
    little = replace(seen, payers=tuple(replace(p, elsewhere=MICRO) for p in seen.payers))
    assert customers(little, is_main=True)["usdNet"] == "20.000000"


@pytest.mark.parametrize("tries", first_then_slow([3, 12]))
def test_the_bars_of_the_adversary_are_held(tries: int) -> None:
    run = [sys.executable, "bench/reputation.py", "--json", "--tries", str(tries)]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    prices = {p["what"]: (p["usd"], p["days"]) for p in json.loads(done.stdout)["prices"]}
    assert prices["rung 3"][0] >= 4.6
    assert prices["rung 3"][1] >= 30
    assert prices["rung 3, sellers listed"][0] >= 22
    assert prices["rung 3 of the next, listed"][0] >= 20
    assert prices["rung 4"][0] >= 14
    assert prices["rung 4, sellers listed"][0] >= 1000
    assert prices["critical finding to allow"][0] >= 10


def test_a_payer_that_paid_nothing_is_a_voter_like_everybody_else() -> None:
    """It was one of a customer's cluster until it paid a reseller, which moved the score."""
    nothing = Payer("0xb", {}, sources=("0xs",))
    votes = (Vote("0xa", 0.0, None), Vote("0xb", 0.0, None))
    seen = Reputation((Payer("0xa", {19_600: 1}, sources=("0xs",)), nothing), votes, 20_000, 0)
    reselling = replace(seen, payers=(seen.payers[0], replace(nothing, resold={19_600: 1})))
    assert assess(seen) == assess(reselling) == assess(replace(seen, payers=seen.payers[:1]))


resales = st.dictionaries(addresses, st.dictionaries(days, st.integers(1, 500 * MICRO)), max_size=6)


@given(worlds, resales)
def test_money_of_resellers_moves_no_score_and_makes_nobody_the_largest(
    seen: Reputation, sold: dict[str, dict[int, int]]
) -> None:
    """Whatever anybody pays to a reseller: it may be themselves."""
    known = {p.address: p for p in seen.payers}
    paid = {a: replace(known.get(a) or Payer(a, {}), resold=days) for a, days in sold.items()}
    with_them = replace(seen, payers=tuple((known | paid).values()))
    before, after = assess(seen), assess(with_them)
    assert (before and before.value, before and before.cap) == (
        after and after.value,
        after and after.cap,
    )
    assert moved(before) == moved(after)
    assert reputation_of(_data(with_them)) == with_them
    shown = customers(with_them, is_main=True)
    more = float(str(shown["usdNet"])) - float(str(customers(seen, is_main=True)["usdNet"]))
    assert -1e-6 <= more <= len(paid) * (FULL + MICRO) / MICRO + 1e-6 or seen.price == 0


def _data(seen: Reputation) -> JsonObject:
    return {
        "day": seen.day,
        "price": seen.price,
        "payers": {p.address: payer_json(p) for p in seen.payers},
        "votes": {v.address: {"rating": repr(v.rating), "day": v.day} for v in seen.votes},
    }


def test_twenty_customers_of_resellers_are_customers_as_far_as_they_lost_elsewhere() -> None:
    def shown(elsewhere: int, each: int = MICRO) -> dict[str, object]:
        made = [
            Payer(f"0xc{n}", {}, elsewhere=elsewhere, resold={TODAY - 30 + n % 10: each})
            for n in range(20)
        ]
        return dict(customers(Reputation(tuple(made), (), TODAY, 0), is_main=True))

    whole = shown(MICRO)
    assert (whole["clusters"], whole["days"], whole["usdNet"]) == (20, 10, "20.000000")
    assert shown(MICRO - 1)["clusters"] == 0
    assert shown(500 * MICRO, each=500 * MICRO)["usdNet"] == "40.000000"


def test_payments_that_are_not_proven_yet_raise_nothing_and_may_lower() -> None:
    paid = Payer("0xa", {TODAY - 1: 100 * MICRO}, elsewhere=100 * MICRO, is_pending=True)
    praised = world([paid], [Vote("0xa", 100.0, TODAY - 1)])
    blamed = world([paid], [Vote("0xa", 0.0, TODAY - 1)])
    assert [one.weight for one in clusters_of(praised)] == [0.0]
    assert [one.weight > 0 for one in clusters_of(blamed)] == [True]


def test_evidence_of_another_form_is_read_as_nothing() -> None:
    found = reputation_of({"payers": {"0xa": {"spent": [1], "resold": "2"}}, "votes": []})
    assert found.payers == (Payer("0xa", {}),)
