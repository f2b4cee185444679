"""The gate's request and its decision.

Source: interface.md#gate-decision, #trust-evaluation; conventions.md#gate.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from assay.evaluation.explanations import Explanation
from assay.evaluation.model import Evaluation, Grade, Score, SignalName
from assay.evaluation.scoring import MIN_SCORE_DEFAULT
from assay.registries.model import Subject

TTL_MS_DEFAULT = 86_400_000
"""Default reuse window of a sandbox result, 24 hours. Source: interface.md#limits."""

TTL_MAX = timedelta(days=3650)
"""A longer reuse window counts as this one."""


ColdStart = Literal["deny", "throttle", "allow"]
"""What happens to an agent on rung 0 against which nothing is known; None: the threshold
decides."""

INSUFFICIENT_EVIDENCE = "insufficient_evidence"
"""Denial reason if nothing is known against the agent, and too little about it."""

LOW_SCORE = "low_score"
"""Denial reason if something is known against the agent."""


COLD_PER_MINUTE = 10
"""Requests a minute of an unproven agent that `coldStart` lets in slowly, for each account or
wrapper."""


@dataclass(frozen=True, slots=True)
class GateInput:
    """The body of a gate call, with its defaults; an empty `signals` means every base signal."""

    min_score: float = MIN_SCORE_DEFAULT
    ttl_ms: float = TTL_MS_DEFAULT
    signals: frozenset[SignalName] = frozenset()
    cold_start: ColdStart | None = None

    @property
    def ttl(self) -> timedelta:
        """Return the reuse window, at most `TTL_MAX`: a longer one only makes dates overflow."""
        return timedelta(milliseconds=min(self.ttl_ms, TTL_MAX / timedelta(milliseconds=1)))


@dataclass(frozen=True, slots=True)
class GatePolicy:
    """What a proxy's check asks; callers may raise `minScore`, never lower it."""

    input: GateInput = field(default_factory=GateInput)
    chain: str | None = None
    """The chain of agents whose caller names none; None: the service's default."""
    authorities: tuple[str, ...] = ()
    """Public hosts of the API for which Web Bot Auth signatures are accepted; empty: none are."""


@dataclass(frozen=True, slots=True)
class Reuse:
    """Why the newest evaluation is used although it is older than asked for, and until when."""

    reason: str
    until: datetime


@dataclass(frozen=True, slots=True)
class Stale:
    """What an answer rests on although its source does not answer, and how old that is."""

    what: Literal["key", "controllers", "evaluation"]
    age_s: float


@dataclass(frozen=True, slots=True)
class Decision:
    """Allow or deny, and its basis."""

    allow: bool
    subject: Subject
    score: Score
    grade: Grade
    min_score: float
    evaluation: Evaluation
    sandbox_ran: bool
    cached: bool
    expires_at: datetime
    """Until when the evaluation may be reused under the requested `ttlMs`."""
    cached_reason: str | None = None
    """Why an evaluation older than `ttlMs` was used: `evaluation_quota` or `egress_budget`."""
    denial_reason: str | None = None
    """Why it denies: `insufficient_evidence` or `low_score`; None if it allows."""
    cold_start: ColdStart | None = None
    """The request's `coldStart`, if it decided instead of the threshold."""

    @property
    def is_throttled(self) -> bool:
        """Return whether it is let in slowly, only because the request says so."""
        return self.allow and self.cold_start == "throttle"

    explanation: Explanation = field(default_factory=Explanation)
    """For a denial: what counts against the agent, and what would change it; else empty."""
    did_you_mean: tuple[str, ...] = ()
    """For the denial of a key agent: registered agents that its address speaks for."""
