"""The decision: threshold, ceiling, and what is done with an agent nobody knows."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from assay.common.json import JsonObject, JsonValue
from assay.evaluation.model import (
    Cap,
    Evaluation,
    Evidence,
    Grade,
    SignalName,
    SignalResult,
    SignalScore,
)
from assay.evaluation.scoring import DEFAULT_WEIGHTS, ScoringPolicy, tiers_from
from assay.evaluation.visits import SILENT_CHANGE_COUNTS
from assay.gate.decision import RECHECKED_FOR, decide, denial, denial_message, valid_until
from assay.gate.model import ColdStart, Decision, GateInput
from assay.registries.model import Subject
from assay.wrappers.model import TrustDenied
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.ladder import STEADY, proven
from tests.support.fakes.trust import NETWORK, WALLET, onchain_agent

RULES = ScoringPolicy(DEFAULT_WEIGHTS, tiers_from())
SUBJECT = Subject(NETWORK, "7", WALLET, onchain_agent())
NOW: datetime = FrozenClock().now()
UNPROVEN: dict[str, JsonValue] = {"status": "tested", "why": None}
BROKEN: JsonValue = [{"service": "https://a.test", "kind": "a2a", "state": "not_functional"}]


def decided(
    behaviour: JsonObject, request: GateInput, value: float = 90, cap: Cap | None = None
) -> Decision:
    sandbox = SignalResult(
        SignalName.SANDBOX, Evidence(behaviour), SignalScore(value, 1.0, (), cap)
    )
    evaluation = Evaluation(
        *("e1", SUBJECT.key, "local", "7", WALLET),
        collected=(sandbox,),
        unavailable={},
        score=0,
        grade=Grade("C", "RED", "sandbox_only"),
        evaluated_at=NOW,
        rung=0,
    )
    return decide(SUBJECT, evaluation, request, RULES, cached=False)


def test_by_default_the_threshold_decides_and_rung_0_is_below_it() -> None:
    found = decided(UNPROVEN, GateInput())
    assert (found.allow, found.score.value, found.grade.tier) == (False, 64, "B")
    assert (found.denial_reason, found.cold_start) == ("insufficient_evidence", None)
    assert decided(UNPROVEN, GateInput(min_score=60)).allow


def test_what_works_and_is_controlled_passes_the_default_gate() -> None:
    found = decided({**UNPROVEN, **proven()}, GateInput())
    assert (found.allow, found.score.value, found.denial_reason) == (True, 74, None)


@pytest.mark.parametrize(
    ("cold_start", "allow", "route"),
    [("deny", False, "sandbox"), ("throttle", True, "prod_throttled"), ("allow", True, "prod")],
)
def test_cold_start_decides_on_agents_nobody_knows(
    cold_start: ColdStart,
    allow: bool,  # noqa: FBT001 - a column of the table
    route: str,
) -> None:
    found = decided(UNPROVEN, GateInput(cold_start=cold_start))
    assert (found.allow, found.grade.route, found.cold_start) == (allow, route, cold_start)
    assert found.score.value == 64
    assert found.is_throttled is (cold_start == "throttle")
    low = decided(UNPROVEN, GateInput(min_score=10, cold_start="deny"))
    assert (low.allow, low.denial_reason) == (False, "insufficient_evidence")


@pytest.mark.parametrize("cold_start", ["deny", "throttle", "allow", None])
def test_cold_start_lets_nobody_in_of_whom_something_bad_is_known(
    cold_start: ColdStart | None,
) -> None:
    request = GateInput(cold_start=cold_start)
    for found in (
        decided({**UNPROVEN, "function": BROKEN}, request),
        decided({**UNPROVEN, "active": False}, request),
        decided({**UNPROVEN, "criticalFailed": ["no_cross_talk"]}, request),
        decided(UNPROVEN, request, cap=Cap(34.99, "it leaks")),
    ):
        assert (found.allow, found.denial_reason) == (False, "low_score")
        assert found.cold_start is None


def test_cold_start_does_not_touch_agents_that_have_proven_something() -> None:
    request = GateInput(cold_start="deny")
    assert decided({**UNPROVEN, **proven()}, request).allow
    bad = decided({**UNPROVEN, **proven()}, GateInput(cold_start="allow"), value=20)
    assert (bad.allow, bad.denial_reason) == (False, "low_score")


def test_a_threshold_above_the_ceiling_is_not_met_for_want_of_evidence() -> None:
    found = decided({**UNPROVEN, **proven(), "history": STEADY}, GateInput(min_score=85))
    assert (found.allow, found.score.value) == (False, 84)
    assert found.denial_reason == "insufficient_evidence"
    assert {d.rung for d in found.score.place.next_demands} == {3}


def test_the_window_is_the_callers() -> None:
    request = GateInput(ttl_ms=1000)
    assert decided({**UNPROVEN, **proven()}, request).expires_at == NOW + timedelta(seconds=1)


def test_a_denial_says_grade_points_and_what_is_missing_in_one_sentence() -> None:
    unknown = decided(UNPROVEN, GateInput())
    said = denial_message(unknown, "the wrapper")
    assert said.startswith("This agent's grade is B (64 points); the wrapper asks for 65 points.")
    assert said.endswith("Nothing is known against it, but too little is known of it.")
    bad = decided({**UNPROVEN, **proven()}, GateInput(), value=20)
    assert denial_message(bad, "the gate").endswith("the gate asks for 65 points.")


def test_what_is_rechecked_or_silently_changed_is_reused_for_a_shorter_time() -> None:
    plain, rechecked, changed = (
        decided({**UNPROVEN, **proven(), **more}, GateInput()).evaluation
        for more in ({}, {"recheck": {"at": 1}}, {"history": {**STEADY, "silentChange": {"at": 1}}})
    )
    assert valid_until(plain) > NOW + RECHECKED_FOR
    assert valid_until(rechecked) == NOW + RECHECKED_FOR
    assert valid_until(changed) == NOW + SILENT_CHANGE_COUNTS


def test_a_denial_names_registered_agents_that_may_have_been_meant() -> None:
    found = replace(decided(UNPROVEN, GateInput()), did_you_mean=("9",))
    (meant,) = cast("Any", denial(found)["didYouMean"])
    assert meant == {"agentId": "9", "chain": "local", "send": "x-agent-id: 9"}
    assert denial(found)["denialReason"] == "insufficient_evidence"
    refused = TrustDenied.of(found)
    assert refused.extras == denial(found)
    assert "the wrapper asks for 65 points" in str(refused)
