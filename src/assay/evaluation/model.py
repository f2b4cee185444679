"""Evidence, its weight, and the evaluation that follows from it.

An evaluation can be recomputed: it keeps, for every signal, the evidence and the result. The same
evidence gives the same score and the same snapshot hash on any machine
(conventions.md#signals-and-score).
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
    """Every signal of the interface; the loaded plugins implement some of them.

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
    """A profile of a human owner, verified by the attester."""

    source: str
    handle: str


@dataclass(frozen=True, slots=True)
class Attestation:
    """A trusted attester's statement about an address (interface.md#attestation-context)."""

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
    """Requests made to the agent for it."""
    transcript: JsonObject = field(default_factory=dict[str, JsonValue])
    """Our questions and the answers, with their seed. They differ at every visit, and are not part
    of `data`, which follows from them."""


@dataclass(frozen=True, slots=True)
class SignalUnavailable:
    """The signal could not be collected now; never the same as a bad value."""

    reason: str


@dataclass(frozen=True, slots=True)
class Cap:
    """A ceiling on the whole score, and the sentence that explains it."""

    score: float
    reason: str


@dataclass(frozen=True, slots=True)
class SignalScore:
    """The worth of evidence: `value` 0..100, `confidence` 0..1 (0: nothing is known).

    `reasons` are readable sentences, the weightiest first.
    """

    value: float
    confidence: float
    reasons: tuple[str, ...] = ()
    cap: Cap | None = None
    low: "SignalScore | None" = None
    high: "SignalScore | None" = None
    """The same if every applicable check that was not made had failed, or passed."""
    checks: Mapping[str, str] = field(default_factory=dict[str, str])
    """The result of every applicable check over all visits of the window: `passed`, `failed` or
    `not_made`."""


@dataclass(frozen=True, slots=True)
class SignalResult:
    """One signal of one evaluation: its evidence, and the evidence's worth."""

    signal: SignalName
    evidence: Evidence
    weighed: SignalScore


@dataclass(frozen=True, slots=True)
class Contribution:
    """A signal's part in one score; `weight` is normalised over the selected signals.

    `points` is how far the signal moved the score away from the prior, in score points.
    """

    signal: SignalName
    value: float
    weight: float
    confidence: float
    points: float
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Score:
    """A score 0..100 with 2 decimals, and everything it was computed from."""

    value: float
    confidence: float
    contributions: tuple[Contribution, ...]
    unavailable: tuple[SignalName, ...]
    caps: tuple[Cap, ...]
    bonus: float
    """Points for a proven human, added to the signals' points."""
    reasons: tuple[str, ...]
    """The weightiest sentences, weightiest first."""
    place: LadderPlace
    """The rung that bounds the score."""
    low: float
    high: float
    """The score if every applicable check that was not made had failed, or passed."""
    before_ceiling: float
    """The result of formula, bonus and caps before the rung's ceiling."""
    hidden_bonus: float
    """The part of the bonus that the ceiling hides."""
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
    """The score over all signals collected, under the configured weights."""
    grade: Grade
    evaluated_at: datetime
    rung: int | None = None
    """The rung proven then; None, like all fields below, for evaluations older than the ladder."""
    policy: JsonObject | None = None

    @property
    def interactions(self) -> int:
        """Return the number of requests made to the agent in this evaluation."""
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
    """Hash of all evidence and the policy; None for snapshots older than the ladder."""
    record: str | None = None
    """The verdict record hashed by `snapshot_hash`, canonical JSON; None as above."""


BEHAVIOUR_MAX_AGE = timedelta(hours=24)
"""Older behavioural evidence does not count in a profile; the gate's default ttl
(interface.md#limits)."""

FIRST_PREVIOUS_HASH = "0x0"
"""`previousHash` of an agent's first snapshot. Source: conventions.md#snapshots."""


UNFINISHED = "unfinished"
"""Why an evaluation was not made: our time did not suffice for a critical check or a proof of
function."""

INDEXING = "indexing"
"""Why an evaluation was not made: events it needs are still being read from the chain."""

EVALUATION_QUOTA = "evaluation_quota"
"""Why an evaluation was not made: gates have used up this agent's evaluations of the hour."""


@dataclass(frozen=True, slots=True)
class EvaluationCompleted:
    """The message to listeners: webhooks, write-back (interface.md#events).

    With `reused` it is not new and is sent to no listener: no evaluation could be made for that
    reason, and this is the newest existing one; if there is none, it says that the agent was not
    tested, and is not stored.
    """

    evaluation: Evaluation
    snapshot: Snapshot
    reused: str | None = None
    next_try_at: datetime | None = None
    """When an unfinished evaluation is retried in the background."""


@dataclass(frozen=True, slots=True)
class EvaluationChange:
    """What an evaluation changed: the earlier tier, and the silent changes."""

    tier_before: str | None = None
    drift: tuple[str, ...] = ()
