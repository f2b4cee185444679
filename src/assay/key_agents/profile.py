"""The profile of a key agent: an address that proved itself (interface.md#key-agent-profile)."""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from assay.chains.model import Network
from assay.common.clock import Clock
from assay.common.errors import Unavailable
from assay.evaluation.model import (
    BEHAVIOUR_MAX_AGE,
    Attestation,
    Grade,
    Score,
    SignalName,
    SignalResult,
)
from assay.evaluation.ports import EvaluationStore, Sources
from assay.evaluation.scoring import ScoringPolicy, place_of, score
from assay.evaluation.signals.personhood import SIGNAL as PERSONHOOD
from assay.evaluation.signals.personhood import evidence_of
from assay.identity.ports import KeyAgentStore
from assay.registries.subjects import key_agent


@dataclass(frozen=True, slots=True)
class KeyProfile:
    """What is known of an address; `score` and `grade` are None without behavioural data."""

    agent_address: str
    verified: bool
    score: float | None
    grade: Grade | None
    reasons: tuple[str, ...]
    at: datetime
    attestation: Attestation | None = None
    explained: Score | None = None
    """The score with its parts; None without behavioural data."""


class KeyProfiles:
    """Builds key agent profiles from what is stored; asks no outside source."""

    def __init__(
        self,
        key_agents: KeyAgentStore,
        store: EvaluationStore,
        home: Network,
        rules: ScoringPolicy,
        clock: Clock,
        sources: Sources = Sources(),  # noqa: B008 - frozen
    ) -> None:
        self._key_agents = key_agents
        self._store = store
        self._home = home
        self._rules = rules
        self._clock = clock
        self._sources = sources

    async def attestation(self, address: str) -> Attestation | None:
        """Return a trusted attester's statement about a lower-case address.

        Raises `common.errors.Unavailable` if that is unknown now.
        """
        source = self._sources.attestations
        return None if source is None else await source.newest(address)

    async def profile(self, address: str) -> KeyProfile:
        """Return the profile of a lower-case address; unverified if it never proved itself."""
        now = self._clock.now()
        verified = await self._key_agents.find(address) is not None
        subject = key_agent(self._home, address)
        evaluation = await self._store.newest(subject.key, now - BEHAVIOUR_MAX_AGE)
        reasons = (_proof(verified=verified),)
        behaviour = [
            c
            for c in (evaluation.collected if evaluation else ())
            if c.signal is SignalName.SANDBOX and c.weighed.confidence > 0
        ]
        if evaluation is None or not behaviour:
            silent = "No behaviour of this agent has been observed yet."
            return KeyProfile(
                address, verified, None, None, (*reasons, silent), now, await self._known(address)
            )
        if self._sources.personhoods is not None:
            evidence = evidence_of(await self._sources.personhoods.find(subject.key))
            weighed = PERSONHOOD.weigh(evidence, {})
            behaviour.append(SignalResult(SignalName.PERSONHOOD, evidence, weighed))
        named = {c.signal for c in behaviour}
        seen = [*behaviour, *(c for c in evaluation.collected if c.signal not in named)]
        found = place_of(address, seen, evaluation.unavailable, self._rules)
        result = score(behaviour, {}, self._rules.weights, found)
        return KeyProfile(
            address,
            verified,
            result.value,
            self._rules.tiers.grade(result.value),
            (*reasons, *result.reasons),
            now,
            await self._known(address),
            result,
        )

    async def _known(self, address: str) -> Attestation | None:
        """Return the attestation if it is known now: it is context here, not an answer."""
        with suppress(Unavailable):
            return await self.attestation(address)
        return None


def _proof(*, verified: bool) -> str:
    if verified:
        return "The agent proved that it controls this address."
    return "Nobody has proven control of this address yet."
