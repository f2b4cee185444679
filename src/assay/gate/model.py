"""What a gate is asked and what it answers (spec 2.5, 4.2; decisions, section 8)."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from assay.trust.model import Evaluation, Grade, Score, SignalName, Subject

MIN_SCORE_DEFAULT = 65.0
"""Default threshold. Source: spec, section 8."""

TTL_MS_DEFAULT = 86_400_000
"""Default reuse window of a sandbox result, 24 hours. Source: spec, section 8."""

TTL_MAX = timedelta(days=3650)
"""A reuse window beyond this is taken as this."""


@dataclass(frozen=True, slots=True)
class GateRequest:
    """The body of a gate call, with its defaults; an empty `signals` means every base signal."""

    min_score: float = MIN_SCORE_DEFAULT
    ttl_ms: float = TTL_MS_DEFAULT
    signals: frozenset[SignalName] = frozenset()

    @property
    def ttl(self) -> timedelta:
        """The reuse window; beyond `TTL_MAX` nothing changes, and dates would overflow."""
        return timedelta(milliseconds=min(self.ttl_ms, TTL_MAX / timedelta(milliseconds=1)))


@dataclass(frozen=True, slots=True)
class Reuse:
    """Why the newest evaluation is used though it is older than asked for, and until when."""

    reason: str
    until: datetime


@dataclass(frozen=True, slots=True)
class Decision:
    """Allow or deny, and everything it rests on."""

    allow: bool
    subject: Subject
    score: Score
    grade: Grade
    min_score: float
    evaluation: Evaluation
    sandbox_ran: bool
    cached: bool
    expires_at: datetime
    """Until when the evaluation may be reused under the asked `ttlMs`."""
    cached_reason: str | None = None
    """Why an evaluation older than `ttlMs` was used: `evaluation_quota` or `egress_budget`."""
