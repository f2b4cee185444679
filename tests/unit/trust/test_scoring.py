from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.trust.model import Cap, Collected, Evidence, EvidenceUnavailable, SignalName, Weighed
from assay.trust.scoring import BASE_SIGNALS, DEFAULT_WEIGHTS, PRIOR, score, weights_from


def collected(
    signal: SignalName, value: float, confidence: float = 1.0, cap: Cap | None = None
) -> Collected:
    return Collected(
        signal, Evidence({}), Weighed(value, confidence, (f"{signal} says {value}",), cap)
    )


SANDBOX, REGISTRY = SignalName.SANDBOX, SignalName.REGISTRY_8004
worth = st.tuples(st.floats(0, 100), st.floats(0, 1))


def test_an_agent_nobody_knows_anything_about_scores_the_prior() -> None:
    result = score([collected(SANDBOX, 0, 0), collected(REGISTRY, 0, 0)], {}, DEFAULT_WEIGHTS)
    assert result.value == PRIOR
    assert result.confidence == 0


def test_full_confidence_in_every_signal_gives_their_weighted_mean() -> None:
    result = score([collected(SANDBOX, 90), collected(REGISTRY, 50)], {}, DEFAULT_WEIGHTS)
    assert result.value == 77.5  # (55 * 90 + 25 * 50) / 80


def test_a_signal_that_could_not_be_collected_pulls_to_the_prior_and_never_to_zero() -> None:
    whole = score([collected(SANDBOX, 90)], {}, DEFAULT_WEIGHTS)
    parted = score([collected(SANDBOX, 90)], {REGISTRY: "the chain is down"}, DEFAULT_WEIGHTS)
    assert whole.value == 90
    assert parted.value == 77.5  # 50 + 55/80 * 40
    assert parted.unavailable == (REGISTRY,)
    assert parted.confidence < whole.confidence
    assert any("the chain is down" in reason for reason in parted.reasons)


def test_without_one_signal_there_is_no_score() -> None:
    with pytest.raises(EvidenceUnavailable):
        score([], {SANDBOX: "down", REGISTRY: "down"}, DEFAULT_WEIGHTS)
    with pytest.raises(EvidenceUnavailable):
        score([collected(SANDBOX, 90)], {}, DEFAULT_WEIGHTS, frozenset({REGISTRY}))


def test_a_cap_holds_whatever_the_other_signals_say() -> None:
    cap = Cap(34.99, "it leaks keys")
    result = score([collected(SANDBOX, 95, 1, cap), collected(REGISTRY, 100)], {}, DEFAULT_WEIGHTS)
    assert result.value == 34.99
    assert result.reasons[0] == "it leaks keys"


def test_only_the_asked_signals_count() -> None:
    both = [collected(SANDBOX, 10), collected(REGISTRY, 100)]
    assert score(both, {}, DEFAULT_WEIGHTS, frozenset({REGISTRY})).value == 100


def test_attestation_counts_only_when_asked_for() -> None:
    heard = [collected(SANDBOX, 80), collected(SignalName.ATTESTATION, 0)]
    assert score(heard, {}, DEFAULT_WEIGHTS).value == 80
    asked = frozenset({SANDBOX, SignalName.ATTESTATION})
    assert score(heard, {}, DEFAULT_WEIGHTS, asked).value < 80


@given(st.dictionaries(st.sampled_from(sorted(BASE_SIGNALS)), worth, min_size=1))
def test_every_score_lies_in_0_to_100_and_adds_up_from_its_contributions(
    heard: dict[SignalName, tuple[float, float]],
) -> None:
    result = score([collected(n, v, c) for n, (v, c) in heard.items()], {}, DEFAULT_WEIGHTS)
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
    lower = score([collected(SANDBOX, low, confidence), other], {}, DEFAULT_WEIGHTS)
    higher = score([collected(SANDBOX, high, confidence), other], {}, DEFAULT_WEIGHTS)
    assert lower.value <= higher.value


@given(st.lists(worth, min_size=4, max_size=4))
def test_the_order_of_the_signals_does_not_matter(worths: list[tuple[float, float]]) -> None:
    heard = [collected(n, v, c) for n, (v, c) in zip(sorted(BASE_SIGNALS), worths, strict=True)]
    scores = {score(list(order), {}, DEFAULT_WEIGHTS).value for order in permutations(heard)}
    assert len(scores) == 1


@pytest.mark.parametrize(
    "overrides", [{"nonsense": 1}, {"sandbox": 0}, {"sandbox": -1}, {"8004": float("nan")}]
)
def test_weights_that_make_no_sense_are_refused(overrides: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="signal"):
        weights_from(overrides)


def test_an_overridden_weight_counts() -> None:
    weights = weights_from({"8004": 55})
    assert score([collected(SANDBOX, 90), collected(REGISTRY, 50)], {}, weights).value == 70
