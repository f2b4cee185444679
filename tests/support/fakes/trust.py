"""Small stand-ins at the ports of trust: a registry, signals, stores."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from assay.chains.model import Account, Network
from assay.common.errors import ServiceError
from assay.common.json import JsonObject
from assay.evaluation.listing import AgentListing
from assay.evaluation.model import (
    FIRST_PREVIOUS_HASH,
    Cap,
    Evaluation,
    EvaluationCompleted,
    Evidence,
    SignalName,
    SignalScore,
    SignalUnavailable,
    Snapshot,
)
from assay.evaluation.ports import SignalDependencies
from assay.evaluation.visits import VisitRecord
from assay.probing.ports import Probe
from assay.registries.model import (
    AgentNotFound,
    Feedback,
    OnchainAgent,
    RegistrationFile,
    Subject,
    WalletMatch,
)
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.ladder import ON_TOP

NETWORK = Network(
    slug="local",
    name="Local",
    chain_id=31337,
    testnet=True,
    identity_registry="0x" + "1" * 40,
    reputation_registry="0x" + "2" * 40,
    rpc_urls=("http://127.0.0.1:1",),
    source="tests",
)
NOW_S = int(FrozenClock().now().timestamp())
OWNER, WALLET, STRANGER = "0x" + "a" * 40, "0x" + "b" * 40, "0x" + "c" * 40


def onchain_agent(agent_id: str = "7", wallet: str | None = WALLET) -> OnchainAgent:
    return OnchainAgent(
        NETWORK, agent_id, OWNER, wallet, "data:,", RegistrationFile(name="Seven"), None
    )


class FakeChain:
    """A registry with the given agents; `down` makes every read fail so."""

    def __init__(self, *agents: OnchainAgent) -> None:
        self.agents = {agent.agent_id: agent for agent in agents or (onchain_agent(),)}
        self.feedback: tuple[Feedback, ...] = (
            Feedback(STRANGER, 1, Decimal(90), 0, "starred", ""),
        )
        self.account = Account(100, is_contract=False, balance=10**18, since_days=365)
        self.down: ServiceError | None = None
        self.reads = 0
        self.contracts: dict[str, frozenset[str]] = {}
        """Chains (slugs) on which the contract at an address accepts every signature."""
        self.contract_calls = 0

    async def identify(self, network: Network, agent_id: str) -> str:
        del network
        return agent_id

    async def fetch_agent(self, network: Network, agent_id: str) -> OnchainAgent:
        self.reads += 1
        if self.down:
            raise self.down
        if agent_id not in self.agents:
            raise AgentNotFound("The registry knows no agent of this id.")
        return replace(self.agents[agent_id], network=network)

    async def fetch_feedback(self, network: Network, agent_id: str) -> tuple[Feedback, ...]:
        del network, agent_id
        if self.down:
            raise self.down
        return self.feedback

    async def fetch_agents_of(self, network: Network, wallet: str) -> tuple[WalletMatch, ...]:
        del network
        if self.down:
            raise self.down
        return tuple(
            WalletMatch(a.agent_id, "owner" if a.owner == wallet else "agentWallet")
            for a in self.agents.values()
            if wallet in a.controllers
        )

    async def fetch_account(self, network: Network, address: str) -> Account:
        del network, address
        if self.down:
            raise self.down
        return self.account

    async def accepts_signature(
        self, network: Network, wallet: str, digest: bytes, signature: bytes
    ) -> bool:
        del digest, signature
        self.contract_calls += 1
        return network.slug in self.contracts.get(wallet, frozenset())


class FakeSignal:
    """Sees a number and is worth it; `says` may be `SignalUnavailable` instead.

    Its evidence proves what rung 4 asks of such a signal: `proves` may be something else.
    """

    def __init__(
        self,
        name: SignalName,
        says: float | SignalUnavailable,
        confidence: float = 1.0,
        cap: Cap | None = None,
    ) -> None:
        self.name = name
        self.says = says
        self.confidence = confidence
        self.cap = cap
        self.asked = 0
        self.proves: JsonObject = ON_TOP.get(name, {})

    async def collect(
        self, subject: Subject, needs: SignalDependencies
    ) -> Evidence | SignalUnavailable:
        del subject, needs
        self.asked += 1
        if isinstance(self.says, SignalUnavailable):
            return self.says
        return Evidence({**self.proves, "seen": self.says}, interactions=3)

    def weigh(self, evidence: Evidence, probes: Mapping[str, Probe]) -> SignalScore:
        del probes
        seen = evidence.data["seen"]
        assert isinstance(seen, int | float)
        return SignalScore(seen, self.confidence, (f"{self.name} says {seen}",), self.cap)


class MemoryEvaluations:
    def __init__(self) -> None:
        self.rows: list[tuple[Evaluation, Snapshot]] = []
        self.visits: list[VisitRecord] = []

    async def add(
        self,
        evaluation: Evaluation,
        snapshot: Snapshot,
        visit: VisitRecord | None = None,
        listing: AgentListing | None = None,
    ) -> Snapshot:
        del listing
        self.visits += [] if visit is None else [visit]
        last = await self.newest_snapshot(evaluation.subject_key)
        previous = last.snapshot_hash if last else FIRST_PREVIOUS_HASH
        stored = replace(snapshot, previous_hash=previous)
        self.rows.append((evaluation, stored))
        return stored

    async def newest(self, subject_key: str, since: datetime) -> Evaluation | None:
        found = [e for e, _ in self.rows if e.subject_key == subject_key]
        return found[-1] if found and found[-1].evaluated_at >= since else None

    async def newest_snapshot(self, subject_key: str) -> Snapshot | None:
        found = [s for _, s in self.rows if s.subject_key == subject_key]
        return found[-1] if found else None

    async def recent(self, subject_key: str, since: datetime) -> list[VisitRecord]:
        return [v for v in self.visits if v.subject_key == subject_key and v.at >= since]

    async def of_group(self, group: str, exclude: str, since: datetime) -> VisitRecord | None:
        del group, exclude, since
        return None


class NoBlobs:
    async def store(self, data: bytes) -> str | None:
        assert data.startswith(b"{")
        return None

    async def remove(self, uri: str) -> None:
        del uri

    async def trim(self, bytes_max: int, limit: int) -> int:
        del bytes_max, limit
        return 0


class Hears:
    def __init__(self) -> None:
        self.news: list[EvaluationCompleted] = []

    def evaluated(self, news: EvaluationCompleted) -> None:
        self.news.append(news)
