from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.evaluation.demands import LadderPolicy
from assay.evaluation.ladder import Demand, LadderPlace
from assay.evaluation.model import (
    Cap,
    Evidence,
    EvidenceUnavailable,
    SignalName,
    SignalResult,
    SignalScore,
)
from assay.evaluation.scoring import (
    BASE_SIGNALS,
    DEFAULT_WEIGHTS,
    PRIOR,
    lacks_knowledge,
    score,
    weights_from,
)
from tests.support.fakes.ladder import TOP


def collected(
    signal: SignalName, value: float, confidence: float = 1.0, cap: Cap | None = None
) -> SignalResult:
    return SignalResult(
        signal, Evidence({}), SignalScore(value, confidence, (f"{signal} says {value}",), cap)
    )


SANDBOX, REGISTRY = SignalName.SANDBOX, SignalName.REGISTRY_8004
worth = st.tuples(st.floats(0, 100), st.floats(0, 1))


def test_an_agent_nobody_knows_anything_about_scores_the_prior() -> None:
    result = score([collected(SANDBOX, 0, 0), collected(REGISTRY, 0, 0)], {}, DEFAULT_WEIGHTS, TOP)
    assert result.value == PRIOR
    assert result.confidence == 0


def test_full_confidence_in_every_signal_gives_their_weighted_mean() -> None:
    result = score([collected(SANDBOX, 90), collected(REGISTRY, 50)], {}, DEFAULT_WEIGHTS, TOP)
    assert result.value == 77.5  # (55 * 90 + 25 * 50) / 80


def test_a_signal_that_could_not_be_collected_pulls_to_the_prior_and_never_to_zero() -> None:
    whole = score([collected(SANDBOX, 90)], {}, DEFAULT_WEIGHTS, TOP)
    parted = score([collected(SANDBOX, 90)], {REGISTRY: "the chain is down"}, DEFAULT_WEIGHTS, TOP)
    assert whole.value == 90
    assert parted.value == 77.5  # 50 + 55/80 * 40
    assert parted.unavailable == (REGISTRY,)
    assert parted.confidence < whole.confidence
    assert any("the chain is down" in reason for reason in parted.reasons)


def test_without_one_signal_there_is_no_score() -> None:
    with pytest.raises(EvidenceUnavailable):
        score([], {SANDBOX: "down", REGISTRY: "down"}, DEFAULT_WEIGHTS, TOP)
    with pytest.raises(EvidenceUnavailable):
        score([collected(SANDBOX, 90)], {}, DEFAULT_WEIGHTS, TOP, frozenset({REGISTRY}))


def test_a_cap_holds_whatever_the_other_signals_say() -> None:
    cap = Cap(34.99, "it leaks keys")
    result = score(
        [collected(SANDBOX, 95, 1, cap), collected(REGISTRY, 100)], {}, DEFAULT_WEIGHTS, TOP
    )
    assert result.value == 34.99
    assert result.reasons[0] == "it leaks keys"


def test_only_the_asked_signals_count() -> None:
    both = [collected(SANDBOX, 10), collected(REGISTRY, 100)]
    assert score(both, {}, DEFAULT_WEIGHTS, TOP, frozenset({REGISTRY})).value == 100


def test_attestation_counts_only_when_asked_for() -> None:
    heard = [collected(SANDBOX, 80), collected(SignalName.ATTESTATION, 0)]
    assert score(heard, {}, DEFAULT_WEIGHTS, TOP).value == 80
    asked = frozenset({SANDBOX, SignalName.ATTESTATION})
    assert score(heard, {}, DEFAULT_WEIGHTS, TOP, asked).value < 80


@given(st.dictionaries(st.sampled_from(sorted(BASE_SIGNALS)), worth, min_size=1))
def test_every_score_lies_in_0_to_100_and_adds_up_from_its_contributions(
    heard: dict[SignalName, tuple[float, float]],
) -> None:
    result = score([collected(n, v, c) for n, (v, c) in heard.items()], {}, DEFAULT_WEIGHTS, TOP)
    assert 0 <= result.value <= 100
    assert result.value == pytest.approx(
        PRIOR + sum(c.points for c in result.contributions), abs=0.01
    )
    assert sum(c.weight for c in result.contributions) == pytest.approx(1, abs=1e-5)


@given(worth, worth, st.floats(0, 100))
def test_a_better_value_never_scores_less(
    sandbox: tuple[float, float], registry: tuple[float, float], better: float
) -> None:
    value, confidence = sandbox
    low, high = sorted((value, better))
    other = collected(REGISTRY, *registry)
    lower = score([collected(SANDBOX, low, confidence), other], {}, DEFAULT_WEIGHTS, TOP)
    higher = score([collected(SANDBOX, high, confidence), other], {}, DEFAULT_WEIGHTS, TOP)
    assert lower.value <= higher.value


@given(st.lists(worth, min_size=4, max_size=4))
def test_the_order_of_the_signals_does_not_matter(worths: list[tuple[float, float]]) -> None:
    heard = [collected(n, v, c) for n, (v, c) in zip(sorted(BASE_SIGNALS), worths, strict=True)]
    scores = {score(list(order), {}, DEFAULT_WEIGHTS, TOP).value for order in permutations(heard)}
    assert len(scores) == 1


@pytest.mark.parametrize(
    "overrides", [{"nonsense": 1}, {"sandbox": 0}, {"sandbox": -1}, {"8004": float("nan")}]
)
def test_weights_that_make_no_sense_are_refused(overrides: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="signal"):
        weights_from(overrides)


def test_an_overridden_weight_counts() -> None:
    weights = weights_from({"8004": 55})
    assert score([collected(SANDBOX, 90), collected(REGISTRY, 50)], {}, weights, TOP).value == 70


def on(rung: int) -> LadderPlace:
    ceilings = LadderPolicy().ceilings
    demand = Demand(rung + 1, "more", "missing", "More is asked for.")
    return LadderPlace(rung, ceilings[rung], is_unconfirmed=False, demands=(demand,))


def human(level: str = "orb") -> SignalResult:
    return SignalResult(SignalName.PERSONHOOD, Evidence({"level": level}), SignalScore(100, 0.9))


@pytest.mark.parametrize("selected", [*map(frozenset, [[SANDBOX], [REGISTRY]]), frozenset()])
@pytest.mark.parametrize("rung", range(5))
def test_the_ceiling_holds_for_every_selection_of_signals(
    rung: int, selected: frozenset[SignalName]
) -> None:
    heard = [collected(SANDBOX, 100), collected(REGISTRY, 100), human()]
    found = score(heard, {}, DEFAULT_WEIGHTS, on(rung), selected)
    assert found.value == on(rung).ceiling
    assert max(found.low, found.high) <= on(rung).ceiling


def test_a_ceiling_that_hides_a_bonus_says_so() -> None:
    found = score([collected(SANDBOX, 70), human()], {}, DEFAULT_WEIGHTS, on(1))
    assert (found.value, found.before_ceiling, found.bonus, found.hidden_bonus) == (74, 78, 8, 4)
    assert any("4.00 of them of the bonus" in reason for reason in found.reasons)
    above = score([collected(SANDBOX, 90), human()], {}, DEFAULT_WEIGHTS, on(1))
    assert (above.value, above.hidden_bonus) == (74, 8)
    below = score([collected(SANDBOX, 60), human()], {}, DEFAULT_WEIGHTS, on(1))
    assert (below.value, below.hidden_bonus) == (68, 0)


def test_formula_then_bonus_then_caps_then_ceiling() -> None:
    cap = Cap(34.99, "it leaks keys")
    found = score([collected(SANDBOX, 100, 1, cap), human()], {}, DEFAULT_WEIGHTS, on(1))
    assert (found.value, found.before_ceiling) == (34.99, 34.99)
    low = score([collected(SANDBOX, 0), human()], {}, DEFAULT_WEIGHTS, on(1))
    assert low.value == 8  # nothing else is subtracted


def test_low_and_high_suppose_what_was_not_asked_failed_or_passed() -> None:
    weighed = SignalScore(80, 0.5, low=SignalScore(20, 0.7), high=SignalScore(90, 0.7))
    heard = [SignalResult(SANDBOX, Evidence({}), weighed)]
    found = score(heard, {}, DEFAULT_WEIGHTS, TOP)
    assert (found.low, found.value, found.high) == (29, 65, 78)
    assert score(heard, {}, DEFAULT_WEIGHTS, on(1)).high == 74


def test_what_is_denied_for_want_of_knowledge_is_told_from_what_is_known_to_be_bad() -> None:
    unknown = score([collected(SANDBOX, 50, 0)], {}, DEFAULT_WEIGHTS, on(0))
    hidden = score([collected(SANDBOX, 90)], {}, DEFAULT_WEIGHTS, on(0))
    bad = score([collected(SANDBOX, 20)], {}, DEFAULT_WEIGHTS, on(0))
    assert [lacks_knowledge(s, 65) for s in (unknown, hidden, bad)] == [True, True, False]
    fault = replace(on(0).demands[0], is_fault=True)
    broken = replace(on(0), demands=(fault,))
    known = score([collected(SANDBOX, 90)], {}, DEFAULT_WEIGHTS, broken)
    assert not lacks_knowledge(known, 65)
