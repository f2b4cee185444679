"""What is public of an evaluation adds up, explains itself, and names no paid signal."""

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from assay.evaluation.changes import changes
from assay.evaluation.demands import Demand
from assay.evaluation.explanations import Cause, Improvement
from assay.evaluation.ladder import LadderPlace
from assay.evaluation.model import (
    Cap,
    Evaluation,
    Evidence,
    Grade,
    Score,
    SignalName,
    SignalResult,
    SignalScore,
)
from assay.evaluation.public_report import (
    PAID,
    ceiling_reason,
    demands_of,
    improvements_of,
    parts_of,
)
from assay.evaluation.scoring import DEFAULT_WEIGHTS, score

VOUCHERS = "2 of: a validator, a stake of 500 USD; there are: attester, human."
worth = st.tuples(st.floats(0, 100), st.floats(0, 1))
results = st.dictionaries(st.sampled_from(SignalName), worth, min_size=1)
caps = st.none() | st.builds(Cap, st.floats(0, 64), st.just("It leaks."))
places = st.builds(
    lambda rung: LadderPlace(
        rung,
        (64.0, 74.0, 84.0, 89.0, 100.0)[rung],
        is_unconfirmed=False,
        demands=(Demand(rung + 1, "vouchers", "missing", VOUCHERS),) if rung < 4 else (),
    ),
    st.integers(0, 4),
)


def collected(
    found: dict[SignalName, tuple[float, float]], cap: Cap | None = None
) -> tuple[SignalResult, ...]:
    return tuple(
        SignalResult(
            name,
            Evidence({"level": "orb"} if name is SignalName.PERSONHOOD else {}),
            SignalScore(value, confidence, (f"{name} says {value}.",), cap),
        )
        for name, (value, confidence) in found.items()
    )


def scored(
    found: dict[SignalName, tuple[float, float]], cap: Cap | None, place: LadderPlace
) -> Score:
    base = {SignalName.SANDBOX: (50.0, 0.0), **found}
    return score(collected(base, cap), {}, DEFAULT_WEIGHTS, place)


@given(results, caps, places)
def test_the_parts_add_up_to_the_score_and_name_no_paid_signal(
    found: dict[SignalName, tuple[float, float]], cap: Cap | None, place: LadderPlace
) -> None:
    result = scored(found, cap, place)
    parts = parts_of(result)
    assert abs(sum(part.points for part in parts) - result.value) <= 0.05
    said = " ".join(reason for part in parts for reason in part.reasons)
    assert not any(f"{name} says" in said for name in (*PAID, SignalName.WALLET))


@given(results, caps, places)
def test_what_bounds_the_score_is_said_and_who_vouches_is_not(
    found: dict[SignalName, tuple[float, float]], cap: Cap | None, place: LadderPlace
) -> None:
    result = scored(found, cap, place)
    said = ceiling_reason(result)
    assert "human" not in said
    assert said.endswith(".")
    assert "at at" not in said
    assert all("human" not in one.asks for one in demands_of(result))
    if place.rung < 4:
        assert f"{place.ceiling:g}" in said
    if result.caps:
        assert "It leaks" in said


def test_what_would_raise_the_score_says_nothing_of_paid_signals_or_vouchers() -> None:
    slugs = ("self", "personhood_bonus", "attestation", "personhood", "wallet", "vouchers", "x")
    listed = [Improvement(Cause(slug, VOUCHERS, VOUCHERS, "docs", 90.0), 1.0) for slug in slugs]
    shown = improvements_of(listed)
    assert [one.cause.slug for one in shown] == ["vouchers", "x"]
    assert "human" not in shown[0].cause.finding + shown[0].cause.action


def evaluation(found: dict[SignalName, tuple[float, float]], rung: int, value: float) -> Evaluation:
    return Evaluation(
        id="1",
        subject_key="eip155:1/7",
        chain="ethereum",
        agent_id="7",
        wallet="0x",
        collected=collected(found),
        unavailable={},
        score=value,
        grade=Grade("B", "RED", "sandbox"),
        evaluated_at=datetime(2026, 3, 1, tzinfo=UTC),
        rung=rung,
    )


rows = st.builds(evaluation, results, st.integers(0, 4), st.floats(0, 100))


@given(rows, rows)
def test_a_score_that_changed_has_a_reason_and_an_unchanged_evaluation_has_none(
    before: Evaluation, after: Evaluation
) -> None:
    assert changes(before, before) == ()
    said = changes(before, after)
    assert said or abs(before.score - after.score) < 0.01
    assert all(sentence.endswith(".") for sentence in said)
    assert not any(str(name) in sentence for name in PAID for sentence in said)


def test_checks_that_turned_are_named() -> None:
    def with_checks(**checks: str) -> Evaluation:
        one = collected({SignalName.SANDBOX: (50.0, 0.5)})[0]
        weighed = replace(one.weighed, checks=checks)
        return replace(evaluation({}, 1, 50.0), collected=(replace(one, weighed=weighed),))

    before = with_checks(reachable="passed", no_bombs="failed", honest_status="passed")
    after = with_checks(reachable="failed", no_bombs="passed", honest_status="not_made", a="passed")
    assert changes(before, after) == (
        "Failed: reachable.",
        "Passed again: no_bombs.",
        "1 more check was passed.",
        "Could not be checked: honest_status.",
    )
