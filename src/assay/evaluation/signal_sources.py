"""External dependencies of signals beyond the registry and the sandbox."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from assay.common.json import JsonObject
from assay.evaluation.model import Attestation
from assay.personhood.model import (
    HumanRegistry,
    PersonhoodStore,
)
from assay.probing.deposited_access import EvaluationCredentials
from assay.probing.judge import ChatModel
from assay.probing.paid_calls import PaidCalls
from assay.probing.ports import OutOfBandUrl, PendingResult
from assay.probing.unannounced import UnannouncedVisits
from assay.registries.subject import Subject
from assay.reputation.facts import FactsSource


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


class OutOfBandUrls(Protocol):
    """Creates addresses that were never published."""

    def new(self, subject_key: str = "") -> OutOfBandUrl:
        """Return a new address for an agent."""
        ...


class IssuesCallbacks(Protocol):
    """Creates addresses where an agent delivers the result of one message."""

    async def issue(self, *, announced: bool) -> PendingResult | None:
        """Return a new one; None if agents cannot reach this service. Never raises."""
        ...


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of signals beyond the registry and the sandbox; None is not configured."""

    attestations: AttestationSource | None = None
    attested: AttestedPeople | None = None
    humans: HumanRegistry | None = None
    personhoods: PersonhoodStore | None = None
    conduct: CallerBehaviourSource | None = None
    lures: OutOfBandUrls | None = None
    callbacks: IssuesCallbacks | None = None
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
