"""External dependencies of evaluations and of signals, and the interface of a signal.

External dependencies of signals beyond the registry and the sandbox.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import ClassVar, Protocol, TypeAlias

from assay.common.clock import Clock
from assay.common.json import JsonObject
from assay.common.sliced_work_runner import Slices
from assay.control.identity import Control
from assay.evaluation.listing import AgentListing
from assay.evaluation.model import (
    Attestation,
    Evaluation,
    EvaluationCompleted,
    Evidence,
    SignalName,
    SignalScore,
    SignalUnavailable,
    Snapshot,
)
from assay.evaluation.visits import VisitRecord
from assay.net.egress.ports import EgressClient, VisitTurns
from assay.personhood.model import HumanRegistry, PersonhoodStore
from assay.probing.deposited_access import EvaluationCredentials
from assay.probing.judge import ChatModel
from assay.probing.out_of_band_url import OutOfBandCalls
from assay.probing.paid_calls import PaidCalls
from assay.probing.ports import AgentDialers, PendingResult, Probe, ReadsConsents
from assay.probing.result_callbacks import Callbacks
from assay.probing.unannounced import UnannouncedVisits
from assay.registries.model import Subject
from assay.registries.ports import ChainReader
from assay.reputation.model import FactsSource


class AttestationSource(Protocol):
    """Attestations of addresses by the attesters an operator trusts."""

    async def newest(self, address: str) -> Attestation | None:
        """Return the newest valid attestation of a lower-case address.

        Raises `common.errors.Unavailable` if it is unknown: None is never a guess.
        """
        ...


class AttestedPeople(Protocol):
    """Records which address used an attestation of a person first."""

    async def others(self, address: str, traits: Sequence[str]) -> int:
        """Claim a person's traits for an address; return how many others used any of them before.

        An address that is not evaluated for long loses its claim.
        """
        ...


class CallerBehaviourSource(Protocol):
    """Reads how agents behave as callers."""

    async def observed(self, addresses: Sequence[str]) -> JsonObject:
        """Return what the lower-case addresses did: `course` by scenario, `wrappers` in counts.

        `passedDays` are the days on which a whole run was passed, `paidUsd` what was paid to
        unrelated wrappers. Empty for unknown callers; free of times.
        """
        ...


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of signals beyond the registry and the sandbox; None is not configured."""

    attestations: AttestationSource | None = None
    attested: AttestedPeople | None = None
    humans: HumanRegistry | None = None
    personhoods: PersonhoodStore | None = None
    conduct: CallerBehaviourSource | None = None
    lures: OutOfBandCalls | None = None
    callbacks: Callbacks | None = None
    visits: UnannouncedVisits | None = None
    judge: ChatModel | None = None
    reputation: FactsSource | None = None
    messages: Callable[[str, str], Awaitable[bool]] | None = None
    """Counts a message to an agent (subject key, address); False when the day's are used up."""
    credentials: EvaluationCredentials | None = None
    """Credentials that owners deposited for services that require one."""
    sales: PaidCalls | None = None

    def talking(
        self, subject_key: str, *, announced: bool
    ) -> tuple[
        Callable[[str], Awaitable[bool]] | None,
        Callable[[], Awaitable[PendingResult | None]] | None,
    ]:
        """Return what counts the messages of a visit, and what issues its callbacks."""
        counts, issues = self.messages, self.callbacks
        return (
            partial(counts, subject_key) if counts else None,
            partial(issues.issue, announced=announced) if issues else None,
        )


async def conduct_of(subject: Subject, sources: Sources) -> JsonObject:
    """Return how the agent, or its controller, behaved as a caller; empty without observations."""
    if sources.conduct is None:
        return {}
    agent = subject.agent
    return await sources.conduct.observed(
        sorted(agent.controllers) if agent else [subject.agent_id]
    )


class EvaluationStore(Protocol):
    """Stores evaluations with all their evidence, and the chain of snapshots."""

    async def add(
        self,
        evaluation: Evaluation,
        snapshot: Snapshot,
        visit: VisitRecord | None = None,
        listing: AgentListing | None = None,
    ) -> Snapshot:
        """Store them in one transaction, with the visit the evaluation rests on, and its listing.

        The store sets `previous_hash` to the `snapshot_hash` of the subject's newest snapshot, so
        that two concurrent writers still make one chain; returns what was stored.
        """
        ...

    async def newest(self, subject_key: str, since: datetime) -> Evaluation | None:
        """Return the newest evaluation not older than `since`."""
        ...

    async def newest_snapshot(self, subject_key: str) -> Snapshot | None:
        """Return the last link of the subject's chain."""
        ...

    async def history(self, after: int, limit: int) -> Sequence[tuple[int, Evaluation, Snapshot]]:
        """Return evaluations after a position, oldest first, each with its position."""
        ...

    async def is_oldest(self, snapshot: Snapshot) -> bool:
        """Return whether all earlier snapshots of its subject were removed, or it was itself.

        The oldest remaining one has the last removed one as its `previous_hash`.
        """
        ...


class SnapshotBlobs(Protocol):
    """Stores encrypted snapshot data, addressed by content."""

    async def store(self, data: bytes) -> str | None:
        """Encrypt and store; return `ipfs://<CIDv1>`, or None if storing is switched off.

        Raises `common.errors.Unavailable` if the store does not accept it.
        """
        ...

    async def load(self, uri: str) -> bytes | None:
        """Return the data stored under an address, or None if it is unavailable now.

        Raises `ValueError` if the stored data was changed.
        """
        ...

    async def remove(self, uri: str) -> None:
        """Remove the data under an address if possible; a missing block is not an error."""
        ...

    async def trim(self, bytes_max: int, limit: int) -> int:
        """Remove the oldest data until at most `bytes_max` bytes remain; return how many went.

        At most `limit` at once. If something else bounds the store, none.
        """
        ...


Listener: TypeAlias = Callable[[EvaluationCompleted], None]
"""Called once for every evaluation that really ran; must neither fail nor wait."""


@dataclass(frozen=True, slots=True)
class SignalDependencies:
    """What a signal may use to collect."""

    reader: ChainReader
    http: EgressClient
    dialers: AgentDialers
    probes: Mapping[str, Probe]
    clock: Clock
    deadline_s: float
    """Time limit of this collection in seconds; unfinished work is left out and reported."""
    sources: Sources = field(default_factory=Sources)
    slices: Slices = field(default_factory=Slices)
    """Shared by all evaluations of a process, so that they take turns."""
    consents: ReadsConsents | None = None
    """Without it every host counts as consenting: for tests of the rest."""
    turns: VisitTurns | None = None
    """Without it every visit begins at once."""
    control: Control | None = None
    """Without it control of the services is not determined: for tests of the rest."""
    may_recheck: bool = False
    """Whether a few requests suffice if there is no room for a whole visit: see
    `evaluation.signals.sandbox`."""


class Signal(Protocol):
    """A source of trust: `collect` (through ports), then `weigh` (pure).

    `collect` returns `SignalUnavailable` for external faults and never raises for them.
    """

    name: ClassVar[SignalName]

    async def collect(
        self, subject: Subject, needs: SignalDependencies
    ) -> Evidence | SignalUnavailable:
        """Return the signal's evidence about the subject, within `needs.deadline_s`."""
        ...

    def weigh(self, evidence: Evidence, probes: Mapping[str, Probe]) -> SignalScore:
        """Return the evidence's worth. Only the signal made of `probes` uses them."""
        ...
