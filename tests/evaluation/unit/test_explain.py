"""Causes are never praise, points are what the score's own function gives, caps come first."""

from collections.abc import Mapping
from importlib import import_module
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.caller_behaviour.scenarios import SCENARIOS
from assay.common.json import JsonObject
from assay.common.plugins import load_plugins
from assay.evaluation.causes import FIXES, Explainer
from assay.evaluation.demands import LadderPolicy
from assay.evaluation.explanations import Cause, RungAsk, explained
from assay.evaluation.model import Cap, Evidence, Score, SignalName, SignalResult, SignalScore
from assay.evaluation.ports import Signal
from assay.evaluation.scoring import DEFAULT_WEIGHTS, ScoringPolicy, grade_score, tiers_from
from assay.probing.ports import Finding, ProbeSession, Severity
from assay.probing.probes import PROBES
from tests.support.fakes.ladder import proven

SIGNALS = {
    SignalName(name): signal
    for name, signal in load_plugins(
        import_module("assay.evaluation.signals"), "SIGNAL", Signal
    ).items()
}
RULES = ScoringPolicy(DEFAULT_WEIGHTS, tiers_from(), LadderPolicy(ceilings=(100.0,) * 5))
"""No ceiling hides what the formula gives."""

LADDER = ScoringPolicy(DEFAULT_WEIGHTS, tiers_from())
AGENT = "7"
SANDBOX = SignalName.SANDBOX


class Check:
    """Passes if its evidence says so."""

    family: ClassVar[str] = "http"

    def __init__(self, name: str, severity: Severity) -> None:
        self.name, self.severity = name, severity

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        del visit
        return None

    def weigh(self, seen: JsonObject) -> Finding:
        return Finding("pass" if seen["ok"] else "fail", f"{self.name} says {seen['ok']}.")


CHECKS = {
    "minor_one": Check("minor_one", Severity.MINOR),
    "major_one": Check("major_one", Severity.MAJOR),
    "critical_one": Check("critical_one", Severity.CRITICAL),
    "critical_two": Check("critical_two", Severity.CRITICAL),
}
EXPLAINER = Explainer(SIGNALS, CHECKS, RULES)  # type: ignore[arg-type]


def behaviour(**outcomes: bool) -> SignalResult:
    probes: JsonObject = {name: {"ok": ok} for name, ok in outcomes.items()}
    evidence = Evidence({"status": "tested", "why": None, "probes": probes, **proven(kind="http")})
    return SignalResult(SANDBOX, evidence, SIGNALS[SANDBOX].weigh(evidence, CHECKS))  # type: ignore[arg-type]


def other(name: SignalName, value: float, confidence: float) -> SignalResult:
    return SignalResult(name, Evidence({}), SignalScore(value, confidence, (f"{name} is fine.",)))


def scored(
    *collected: SignalResult,
    missing: Mapping[SignalName, str] | None = None,
    rules: ScoringPolicy = RULES,
) -> Score:
    return grade_score(AGENT, collected, missing or {}, rules)


def value_of(*collected: SignalResult) -> float:
    return scored(*collected).value


REVIEWS, WALLET = other(SignalName.REGISTRY_8004, 97, 0.5), other(SignalName.WALLET, 60, 0.5)


def test_a_finding_is_worth_exactly_what_the_score_becomes_without_it() -> None:
    before = behaviour(minor_one=False, major_one=False, critical_one=True)
    found = scored(before, REVIEWS, WALLET)
    improve = EXPLAINER.explain(AGENT, (before, REVIEWS, WALLET), found).improve
    by_slug = {one.cause.slug: one for one in improve}
    for name in ("minor_one", "major_one"):
        put_right = {"minor_one": False, "major_one": False, "critical_one": True, name: True}
        after = value_of(behaviour(**put_right), REVIEWS, WALLET)
        assert by_slug[name].cause.score_after == after
        assert by_slug[name].points == round(after - found.value, 2)
        assert not by_slug[name].cause.is_upper_bound
    assert improve[0].points == max(one.points for one in improve)


def test_what_caps_the_score_comes_first_and_counts_until_all_of_it_is_gone() -> None:
    bad = behaviour(minor_one=False, major_one=True, critical_one=False, critical_two=False)
    found = scored(bad, REVIEWS)
    why = EXPLAINER.explain(AGENT, (bad, REVIEWS), found)
    assert found.value < 35
    assert [one.cause.slug for one in why.improve[:2]] == ["critical_one", "critical_two"]
    after = value_of(
        behaviour(minor_one=False, major_one=True, critical_one=True, critical_two=True), REVIEWS
    )
    assert {one.cause.score_after for one in why.improve[:2]} == {after}
    assert why.reasons[:2] == ("critical_one says False.", "critical_two says False.")


def test_praise_is_never_a_ground_of_a_denial() -> None:
    good = behaviour(minor_one=True, major_one=True, critical_one=True)
    found = scored(good, REVIEWS, WALLET)
    why = EXPLAINER.explain(AGENT, (good, REVIEWS, WALLET), found)
    praise = {reason for c in found.contributions if c.points > 0 for reason in c.reasons}
    assert praise
    assert why.reasons
    assert not praise & set(why.reasons)


def test_missing_evidence_of_a_human_says_what_proves_one_and_what_it_is_worth() -> None:
    none = Evidence({"registered": False, "holds": False, "agents": None})
    absent = SignalResult(SignalName.SELF, none, SIGNALS[SignalName.SELF].weigh(none, {}))
    good = behaviour(major_one=True)
    found = scored(good, absent)
    improve = {o.cause.slug: o for o in EXPLAINER.explain(AGENT, (good, absent), found).improve}
    proven = Evidence({"registered": True, "holds": True, "agents": 1})
    present = SignalResult(SignalName.SELF, proven, SIGNALS[SignalName.SELF].weigh(proven, {}))
    assert improve["self"].cause.score_after == value_of(good, present)
    assert "passport" in improve["self"].cause.action
    assert improve["personhood_bonus"].points == 8


def test_a_signal_that_could_not_be_read_is_a_cause_and_no_reproach() -> None:
    good = behaviour(major_one=True)
    missing = {SignalName.REGISTRY_8004: "the chain is down"}
    found = scored(good, missing=missing)
    why = EXPLAINER.explain(AGENT, (good,), found)
    assert "The signal 8004 could not be read now." in why.reasons


def test_checks_that_were_not_finished_are_named_with_what_they_can_be_worth() -> None:
    evidence = Evidence(
        {
            "status": "tested",
            "why": None,
            "probes": {"minor_one": {"ok": True}, "major_one": "unfinished"},
            **proven(kind="http"),
        }
    )
    half = SignalResult(SANDBOX, evidence, SIGNALS[SANDBOX].weigh(evidence, CHECKS))  # type: ignore[arg-type]
    found = scored(half)
    improve = {o.cause.slug: o for o in EXPLAINER.explain(AGENT, (half,), found).improve}
    after = value_of(behaviour(minor_one=True, major_one=True))
    assert improve["unfinished"].cause.score_after == after
    assert "major_one" in improve["unfinished"].cause.finding


worth = st.tuples(st.floats(0, 100), st.floats(0, 1))


@given(
    st.dictionaries(st.sampled_from(sorted(CHECKS)), st.booleans()),
    st.dictionaries(st.sampled_from([SignalName.REGISTRY_8004, SignalName.WALLET]), worth),
    st.sampled_from([RULES, LADDER]),
)
def test_improve_is_never_empty_below_the_best_grade(
    outcomes: dict[str, bool], others: dict[SignalName, tuple[float, float]], rules: ScoringPolicy
) -> None:
    collected = [behaviour(**outcomes), *(other(n, v, c) for n, (v, c) in others.items())]
    found = scored(*collected, rules=rules)
    explainer = Explainer(SIGNALS, CHECKS, rules)  # type: ignore[arg-type]
    why = explainer.explain(AGENT, collected, found)
    assert found.value >= 95 or why.improve
    assert explainer.explain(AGENT, list(reversed(collected)), found) == why
    assert all(one.cause.action and one.cause.docs for one in why.improve)


def test_what_the_next_rung_asks_for_is_worth_up_to_its_ceiling() -> None:
    asks = [RungAsk("visits", "Five visits on three days.", "docs/grades.md", 84)]
    why = explained([Cause("minor_one", "m", "do", "docs", 74)], 74.0, asks, before_ceiling=80.0)
    (only,) = why.improve
    assert (only.cause.slug, only.points, only.cause.score_after) == ("visits", 6.0, 80.0)
    assert only.cause.is_upper_bound
    (first, second) = explained(
        [Cause("critical", "c", "do", "docs", 50, is_cap=True)], 34.99, asks, before_ceiling=90.0
    ).improve
    assert (first.cause.slug, second.cause.slug) == ("visits", "critical") or first.cause.is_cap


def test_a_cap_without_gain_is_still_named() -> None:
    (only,) = explained([Cause("critical", "c", "do", "docs", 20, is_cap=True)], 20.0).improve
    assert only.points == 0


@pytest.mark.parametrize("check", sorted({*PROBES, *SCENARIOS}))
def test_every_check_says_how_to_fix_what_it_finds(check: str) -> None:
    assert FIXES[check].endswith(".")


def test_a_cap_of_another_signal_does_not_hide_the_others() -> None:
    capped = SignalResult(
        SignalName.REGISTRY_8004, Evidence({}), SignalScore(10, 0.5, ("Bad.",), Cap(34.99, "Bad."))
    )
    found = scored(behaviour(major_one=True), capped)
    why = EXPLAINER.explain(AGENT, (behaviour(major_one=True), capped), found)
    assert why.improve[0].cause.slug == "8004"
    assert why.reasons[0] == "Bad."
