"""Decides allow or deny from evidence. Pure: equal evaluations and requests decide equally.

Only this module builds the members of a denial, for the gate, wrappers and the playground.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Self

from assay.common.errors import Forbidden
from assay.common.json import JsonObject, JsonValue, is_object
from assay.evaluation.model import Evaluation, Score, SignalName, TierRoute
from assay.evaluation.scoring import ScoringPolicy, grade_score, lacks_knowledge
from assay.evaluation.visits import RECHECK, SILENT_CHANGE_COUNTS
from assay.gate.model import (
    INSUFFICIENT_EVIDENCE,
    LOW_SCORE,
    ColdStart,
    Decision,
    GateInput,
    Reuse,
)
from assay.registries.model import Subject
from assay.registries.registration import problems_of

PROBLEMS_SHOWN = 10


def denial(decision: Decision) -> JsonObject:
    """Return what counts against the agent, the greatest effect first, and what would change it.

    `denialReason` is `insufficient_evidence` if nothing counts against it and too little is known.
    `scoreLow` and `scoreHigh` are the score if every check that was not made had failed or passed.
    `rung` and `ceiling` say how good the agent can be known to be. `reasons` and `improve` are the
    decision's explanation, `problems` those of the registration file. `didYouMean` has the
    registered agents of the address that was judged as a key agent.
    """
    agent = decision.subject.agent
    problems: list[JsonValue] = [
        {"where": one.where, "found": one.found, "expected": one.expected}
        for one in (problems_of(agent) if agent else ())[:PROBLEMS_SHOWN]
    ]
    why = decision.explanation
    return {
        "agentId": decision.subject.agent_id,
        "tier": decision.grade.tier,
        "riskLevel": decision.grade.risk_level,
        "denialReason": decision.denial_reason,
        "score": decision.score.value,
        "scoreLow": decision.score.low,
        "scoreHigh": decision.score.high,
        "rung": decision.score.place.rung,
        "ceiling": decision.score.place.ceiling,
        "minScore": decision.min_score,
        "reasons": [*(why.reasons or decision.score.reasons)],
        "improve": [one.document() for one in why.improve],
        "problems": problems,
        "didYouMean": [
            {
                "agentId": agent_id,
                "chain": decision.subject.network.slug,
                "send": f"x-agent-id: {agent_id}",
            }
            for agent_id in decision.did_you_mean
        ],
    }


def denial_message(decision: Decision, asks: str) -> str:
    """Return the denial in one sentence; `asks` names who requires the points."""
    grade, score = decision.grade.tier, decision.score.value
    said = f"This agent's grade is {grade} ({score:g} points)"
    lacks = decision.denial_reason == INSUFFICIENT_EVIDENCE
    known = " Nothing is known against it, but too little is known of it." if lacks else ""
    return f"{said}; {asks} asks for {decision.min_score:g} points.{known}"


class Denied(Forbidden):
    """The agent did not pass; the extras say what would change it."""

    code = "trust_denied"

    @classmethod
    def of(cls, decision: Decision, asks: str = "the wrapper") -> Self:
        """Return the refusal for a denial, with all its extras; `asks` names who denies."""
        refusal = cls(denial_message(decision, asks))
        refusal.extras = {**denial(decision)}
        return refusal


INCONCLUSIVE_REUSE = timedelta(minutes=5)
"""Longest reuse of a result without behavioural evidence: the agent may have been down for a
moment, and a day's memory of that would be wrong for a day."""

_COLD_ROUTES: Mapping[ColdStart, TierRoute] = {"throttle": "prod_throttled", "allow": "prod"}
"""Routes of an unproven agent that is let in by request."""
VALID_FOR = timedelta(days=7)
"""Longest reuse of any result: all services are judged within it. Source:
evidence.md#asking-the-endpoint."""


RECHECKED_FOR = timedelta(days=1)
"""Longest reuse of a result whose last look was a re-check."""


def decide(
    subject: Subject,
    evaluation: Evaluation,
    request: GateInput,
    rules: ScoringPolicy,
    *,
    cached: bool,
    reuse: Reuse | None = None,
) -> Decision:
    """Return the decision: `allow` is exactly score >= minScore, except for `coldStart`.

    `coldStart` decides for unproven agents. `reuse` is why an evaluation older than asked for is
    used, if it is. Raises `EvidenceUnavailable`; it never guesses.
    """
    result = grade_score(
        evaluation.agent_id, evaluation.collected, evaluation.unavailable, rules, request.signals
    )
    cold = request.cold_start if _is_cold(result) else None
    meets = result.value >= request.min_score
    allow = meets if cold is None else cold != "deny"
    lacks = cold == "deny" or lacks_knowledge(result, request.min_score)
    grade = rules.tiers.grade(result.value)
    return Decision(
        allow=allow,
        subject=subject,
        score=result,
        grade=grade if cold is None else replace(grade, route=_COLD_ROUTES.get(cold, grade.route)),
        min_score=request.min_score,
        evaluation=evaluation,
        sandbox_ran=not cached,
        cached=cached,
        expires_at=reusable_until(evaluation, request) if reuse is None else reuse.until,
        cached_reason=None if reuse is None else reuse.reason,
        denial_reason=None if allow else INSUFFICIENT_EVIDENCE if lacks else LOW_SCORE,
        cold_start=cold,
    )


def _is_cold(found: Score) -> bool:
    """Return whether nothing is proven of the agent, and nothing is known against it."""
    return found.place.rung == 0 and not found.caps and not found.place.faults


def reusable_until(evaluation: Evaluation, request: GateInput) -> datetime:
    """Return until when the evaluation may answer a caller with this `ttlMs`."""
    return min(evaluation.evaluated_at + request.ttl, valid_until(evaluation))


def valid_until(evaluation: Evaluation) -> datetime:
    """Return until when an evaluation may be reused, whatever `ttlMs` says."""
    conclusive = any(
        c.signal is SignalName.SANDBOX
        and c.weighed.confidence > 0
        and c.evidence.data.get("status") != "inconclusive"
        for c in evaluation.collected
    )
    valid_for = VALID_FOR if conclusive else INCONCLUSIVE_REUSE
    if was_rechecked(evaluation):
        valid_for = min(valid_for, RECHECKED_FOR)
    if any(_has_silent_change(c.evidence.data.get("history")) for c in evaluation.collected):
        valid_for = min(valid_for, SILENT_CHANGE_COUNTS)
    return evaluation.evaluated_at + valid_for


def was_rechecked(evaluation: Evaluation) -> bool:
    """Return whether the last look at the agent was a re-check of a few requests."""
    return any(RECHECK in c.evidence.data for c in evaluation.collected)


def _has_silent_change(history: JsonValue) -> bool:
    return is_object(history) and bool(history.get("silentChange"))
