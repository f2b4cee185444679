"""What signals beyond the registry and the sandbox need of the outside."""

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
from assay.probing.ports import OutOfBandUrl, PendingResult
from assay.probing.purchases import PaidCalls
from assay.probing.unannounced import UnannouncedVisits
from assay.registries.subject import Subject
from assay.reputation.facts import FactsSource


class AttestationSource(Protocol):
    """Attestations of addresses by the attesters an operator trusts."""

    async def newest(self, address: str) -> Attestation | None:
        """The newest that holds now, of a lower-case address.

        Raises `common.errors.Unavailable` when that cannot be told: none is never a guess.
        """
        ...


class AttestedPeople(Protocol):
    """Which address used an attestation of a person first."""

    async def others(self, address: str, traits: Sequence[str]) -> int:
        """Use what names a person, for an address; how many other addresses used any of it before.

        An address that is not evaluated for long gives it back.
        """
        ...


class CallerBehaviourSource(Protocol):
    """How agents behave as callers."""

    async def observed(self, addresses: Sequence[str]) -> JsonObject:
        """What any of the lower-case addresses did: `course` by obstacle, `wrappers` in counts.

        `passedDays` are the days on which a whole run of the course was passed, `paidUsd` what was
        paid to unrelated wrappers. Empty for callers never seen; free of times.
        """
        ...


class OutOfBandUrls(Protocol):
    """Makes addresses that nobody has seen."""

    def new(self, subject_key: str = "") -> OutOfBandUrl:
        """One of them, for an agent."""
        ...


class IssuesCallbacks(Protocol):
    """Makes addresses where an agent delivers the result of one message."""

    async def issue(self, *, announced: bool) -> PendingResult | None:
        """One of them; None where agents cannot reach this service. Raises nothing."""
        ...


@dataclass(frozen=True, slots=True)
class Sources:
    """Where signals beyond the registry and the sandbox look; None is not configured."""

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
    """Counts a message to an agent (subject key, address); false when a day's are used up."""
    credentials: EvaluationCredentials | None = None
    """What owners deposited for services that are closed without."""
    sales: PaidCalls | None = None

    def talking(
        self, subject_key: str, *, announced: bool
    ) -> tuple[
        Callable[[str], Awaitable[bool]] | None,
        Callable[[], Awaitable[PendingResult | None]] | None,
    ]:
        """What counts the messages of a visit, and what issues its callbacks."""
        counts, issues = self.messages, self.callbacks
        return (
            partial(counts, subject_key) if counts else None,
            partial(issues.issue, announced=announced) if issues else None,
        )


async def conduct_of(subject: Subject, sources: Sources) -> JsonObject:
    """How the agent, or whoever speaks for it, behaved as a caller; empty where nobody watches."""
    if sources.conduct is None:
        return {}
    agent = subject.agent
    return await sources.conduct.observed(
        sorted(agent.controllers) if agent else [subject.agent_id]
    )
