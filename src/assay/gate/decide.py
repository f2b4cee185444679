"""Evidence -> allow or deny. Pure: the same evaluation and request give the same decision."""

from datetime import datetime, timedelta

from assay.gate.model import Decision, GateRequest, Reuse
from assay.trust.model import Evaluation, SignalName, Subject
from assay.trust.scoring import score
from assay.trust.tiers import Rules

INCONCLUSIVE_REUSE = timedelta(minutes=5)
"""How long a result without behavioural evidence is reused at most: the agent may have been down
for a moment, and a day's memory of that would be a day's wrong answer."""


def decide(
    subject: Subject,
    evaluation: Evaluation,
    request: GateRequest,
    rules: Rules,
    *,
    cached: bool,
    reuse: Reuse | None = None,
) -> Decision:
    """`allow` is exactly score >= minScore. Raises `EvidenceUnavailable`, never guesses.

    `reuse` is why an evaluation older than asked for is used, if it is.
    """
    result = score(evaluation.collected, evaluation.unavailable, rules.weights, request.signals)
    return Decision(
        allow=result.value >= request.min_score,
        subject=subject,
        score=result,
        grade=rules.tiers.grade(result.value),
        min_score=request.min_score,
        evaluation=evaluation,
        sandbox_ran=not cached,
        cached=cached,
        expires_at=reusable_until(evaluation, request) if reuse is None else reuse.until,
        cached_reason=None if reuse is None else reuse.reason,
    )


def reusable_until(evaluation: Evaluation, request: GateRequest) -> datetime:
    """Until when the evaluation may answer for a caller with this `ttlMs`."""
    conclusive = any(
        c.signal is SignalName.SANDBOX and c.weighed.confidence > 0 for c in evaluation.collected
    )
    reuse = request.ttl if conclusive else min(request.ttl, INCONCLUSIVE_REUSE)
    return evaluation.evaluated_at + reuse
