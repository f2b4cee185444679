"""Evidence, what it weighs, and the evaluation that follows from it.

An evaluation is recomputable: it keeps, for every signal, the evidence and what followed from it.
Same evidence, same score, same snapshot hash, on any machine (conventions.md#signals-and-score).
Source: interface.md#trust-profile, #gate-decision, #sandbox-result, #snapshot, #enumerated-values.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

from assay.common.errors import NotFound
from assay.common.errors import Unavailable as UnavailableError
from assay.common.json import JsonObject, JsonValue
from assay.evaluation.ladder import LadderPlace

Tier = Literal["AAA", "AA", "A", "BAA", "BA", "B", "CAA", "CA", "C"]
"""Letter grades, best first. Source: conventions.md#tiers."""

RiskLevel = Literal["GREEN", "YELLOW", "RED"]
TierRoute = Literal["prod", "prod_throttled", "sandbox", "sandbox_only"]


class SignalName(StrEnum):
    """Every signal the interface knows; the ones built are the loaded plugins.

    Source: interface.md#enumerated-values.
    """

    REGISTRY_8004 = "8004"
    SANDBOX = "sandbox"
    PERSONHOOD = "personhood"
    SELF = "self"
    ATTESTATION = "attestation"
    WALLET = "wallet"


class EvidenceUnavailable(UnavailableError):
    """Every selected signal was unavailable: the gate never guesses.

    Source: conventions.md#signals-and-score.
    """

    code = "evidence_unavailable"


class SnapshotNotFound(NotFound):
    """No snapshot yet: a sandbox evaluation must be triggered first.

    Source: interface.md#snapshot-refusals.
    """

    code = "snapshot_not_found"


@dataclass(frozen=True, slots=True)
class Handle:
    """A profile of a human owner, verified by whoever attested it."""

    source: str
    handle: str


@dataclass(frozen=True, slots=True)
class Attestation:
    """What a trusted attester says of an address (interface.md#attestation-context)."""

    uid: str
    attester: str
    chain: str
    handles: tuple[Handle, ...]
    owner: str | None = None
    organization: str | None = None
    profile_url: str | None = None
    credential_url: str | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a signal saw: JSON without wall-clock times or raw timings, so that it can be hashed."""

    data: JsonObject
    interactions: int = 0
    """Requests made to the agent to see it."""
    transcript: JsonObject = field(default_factory=dict[str, JsonValue])
    """What was asked in words of ours and what came back, with the seed of it: other evidence at
    every visit, and no part of `data`, which follows from it."""


@dataclass(frozen=True, slots=True)
class SignalUnavailable:
    """The signal could not be collected now; never the same as a bad value."""

    reason: str


@dataclass(frozen=True, slots=True)
class Cap:
    """A ceiling on the whole score, and the sentence that says why."""

    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class SignalScore:
    """What evidence is worth: `value` 0..100, `confidence` 0..1 (0: nothing is known).

    `reasons` are sentences a person understands, the weightiest first.
    """

    value: float
    confidence: float
    reasons: tuple[str, ...] = ()
    cap: Cap | None = None
    low: "SignalScore | None" = None
    high: "SignalScore | None" = None
    """The same, had every applicable check that was not made failed, or passed."""
    checks: Mapping[str, str] = field(default_factory=dict[str, str])
    """Every applicable check with what all visits of the window say of it: `passed`, `failed`
    or `not_made`."""


@dataclass(frozen=True, slots=True)
class SignalResult:
    """One signal of one evaluation: its evidence, and what that was found to be worth."""

    signal: SignalName
    evidence: Evidence
    weighed: SignalScore


@dataclass(frozen=True, slots=True)
class Contribution:
    """A signal's part in one score; `weight` is normalised over the selected signals.

    `points` is what the signal moved the score away from the prior, in score points.
    """

    signal: SignalName
    value: float
    weight: float
    confidence: float
    points: float
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Score:
    """A score 0..100 with 2 decimals and everything it came from."""

    value: float
    confidence: float
    contributions: tuple[Contribution, ...]
    unavailable: tuple[SignalName, ...]
    caps: tuple[Cap, ...]
    bonus: float
    """Points for a proven human, on top of what the signals say."""
    reasons: tuple[str, ...]
    """The sentences that weighed most, weightiest first."""
    place: LadderPlace
    """The rung that bounds the score."""
    low: float
    high: float
    """The score had every applicable check that was not made failed, or passed."""
    before_ceiling: float
    """What formula, bonus and caps give before the rung's ceiling."""
    hidden_bonus: float
    """Of the bonus, the points that the ceiling hides."""
    checks_made: int
    checks_applicable: int
    """How many of the checks that apply to the agent could be made."""


@dataclass(frozen=True, slots=True)
class Grade:
    """What a score means (conventions.md#tiers)."""

    tier: Tier
    risk_level: RiskLevel
    route: TierRoute


@dataclass(frozen=True, slots=True)
class Evaluation:
    """One evaluation of one subject, as stored."""

    id: str
    subject_key: str
    chain: str
    """The network's slug."""
    agent_id: str
    wallet: str
    collected: tuple[SignalResult, ...]
    unavailable: Mapping[SignalName, str]
    """Signals that could not be collected, with the reason."""
    score: float
    """Over all signals collected, under the configured weights."""
    grade: Grade
    evaluated_at: datetime
    rung: int | None = None
    """The rung proven then; None for evaluations made before there was a ladder, and so below."""
    policy: JsonObject | None = None

    @property
    def interactions(self) -> int:
        """Requests made to the agent in this evaluation."""
        return sum(c.evidence.interactions for c in self.collected)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The hash chain's link for one evaluation.

    Source: interface.md#snapshot; conventions.md#snapshots.
    """

    id: str
    evaluation_id: str
    subject_key: str
    agent_id: str
    snapshot_hash: str
    previous_hash: str
    encrypted_data_uri: str | None
    interaction_count: int
    taken_at: datetime
    evidence_hash: str | None = None
    """Of all evidence and the policy; None for snapshots made before there was a ladder."""
    record: str | None = None
    """The verdict record that `snapshot_hash` is of, canonical JSON; None as above."""


BEHAVIOUR_MAX_AGE = timedelta(hours=24)
"""Older behavioural evidence no longer counts in a profile; the gate's default ttl
(interface.md#limits)."""

FIRST_PREVIOUS_HASH = "0x0"
"""`previousHash` of an agent's first snapshot. Source: conventions.md#snapshots."""


UNFINISHED = "unfinished"
"""Why an evaluation was not made: a critical check, or a proof of function, lacked our time."""

INDEXING = "indexing"
"""Why an evaluation was not made: events it needs are still being read from the chain."""

EVALUATION_QUOTA = "evaluation_quota"
"""Why an evaluation was not made: gates have caused as many of this agent as they may an hour."""


@dataclass(frozen=True, slots=True)
class EvaluationCompleted:
    """The news that goes to listeners: webhooks, write-back (interface.md#events).

    With `reused` it is no news, and goes to nobody: none could be made for that reason, and this is
    the newest there was; without one it says that the agent was not tested, and is not stored.
    """

    evaluation: Evaluation
    snapshot: Snapshot
    reused: str | None = None
    next_try_at: datetime | None = None
    """When it is tried again in the background, for one that could not be finished."""


@dataclass(frozen=True, slots=True)
class EvaluationChange:
    """What an evaluation changed: the tier before it, and what was silently changed."""

    tier_before: str | None = None
    drift: tuple[str, ...] = ()
