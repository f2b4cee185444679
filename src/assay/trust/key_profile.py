"""The profile of a key agent: an address that proved itself (spec 2.2)."""

from dataclasses import dataclass
from datetime import datetime

from assay.chains.model import Network
from assay.identity.ports import KeyAgentStore
from assay.kit.clock import Clock
from assay.trust.model import BEHAVIOUR_MAX_AGE, Grade, SignalName
from assay.trust.ports import EvaluationStore
from assay.trust.scoring import score
from assay.trust.subjects import key_agent
from assay.trust.tiers import Rules


@dataclass(frozen=True, slots=True)
class KeyProfile:
    """What is known of an address; `score` and `grade` are None without behavioural data."""

    agent_address: str
    verified: bool
    score: float | None
    grade: Grade | None
    reasons: tuple[str, ...]
    at: datetime


class KeyProfiles:
    """Builds key agent profiles from what is stored; asks nobody."""

    def __init__(
        self,
        key_agents: KeyAgentStore,
        store: EvaluationStore,
        home: Network,
        rules: Rules,
        clock: Clock,
    ) -> None:
        self._key_agents = key_agents
        self._store = store
        self._home = home
        self._rules = rules
        self._clock = clock

    async def profile(self, address: str) -> KeyProfile:
        """The profile of a lower-case address; one that never proved itself is unverified."""
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
        if not behaviour:
            silent = "No behaviour of this agent has been observed yet."
            return KeyProfile(address, verified, None, None, (*reasons, silent), now)
        result = score(behaviour, {}, self._rules.weights)
        grade = self._rules.tiers.grade(result.value)
        return KeyProfile(address, verified, result.value, grade, (*reasons, *result.reasons), now)


def _proof(*, verified: bool) -> str:
    if verified:
        return "The agent proved that it controls this address."
    return "Nobody has proven control of this address yet."
