"""Small stand-ins at the ports of trust: a registry, signals, stores."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from assay.chains.model import (
    Account,
    AgentNotFound,
    Feedback,
    Network,
    OnchainAgent,
    Registration,
    Reviewer,
    Reviewers,
    WalletMatch,
)
from assay.kit.errors import ServiceError
from assay.trust.model import (
    FIRST_PREVIOUS_HASH,
    Cap,
    Evaluation,
    EvaluationCompleted,
    Evidence,
    SignalName,
    Snapshot,
    Subject,
    Unavailable,
    Weighed,
)
from assay.trust.ports import Probe, SignalNeeds
from tests.fakes.clock import FrozenClock

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
        NETWORK, agent_id, OWNER, wallet, "data:,", Registration(name="Seven"), None
    )


def established(address: str) -> Reviewer:
    """Somebody with a long past of their own."""
    rated = frozenset(f"{address}/{number}" for number in range(3))
    return Reviewer(1000, NOW_S - 365 * 86_400, rated)


class FakeChain:
    """A registry with the given agents; `down` makes every read fail so."""

    def __init__(self, *agents: OnchainAgent) -> None:
        self.agents = {agent.agent_id: agent for agent in agents or (onchain_agent(),)}
        self.feedback: tuple[Feedback, ...] = (
            Feedback(STRANGER, 1, Decimal(90), 0, "starred", ""),
        )
        self.reviewers: dict[str, Reviewer] = {}
        """Those who are not `established`."""
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

    async def fetch_reviewers(
        self, network: Network, agent: OnchainAgent, reviewers: Sequence[str]
    ) -> Reviewers:
        del network, agent
        if self.down:
            raise self.down
        given = {(f.client, f.index): NOW_S - 86_400 for f in self.feedback}
        known = {r: self.reviewers.get(r, established(r)) for r in reviewers}
        return Reviewers(known, given, 0)

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
    """Sees a number and is worth it; `says` may be `Unavailable` instead."""

    def __init__(
        self,
        name: SignalName,
        says: float | Unavailable,
        confidence: float = 1.0,
        cap: Cap | None = None,
    ) -> None:
        self.name = name
        self.says = says
        self.confidence = confidence
        self.cap = cap
        self.asked = 0

    async def collect(self, subject: Subject, needs: SignalNeeds) -> Evidence | Unavailable:
        del subject, needs
        self.asked += 1
        if isinstance(self.says, Unavailable):
            return self.says
        return Evidence({"seen": self.says}, interactions=3)

    def weigh(self, evidence: Evidence, probes: Mapping[str, Probe]) -> Weighed:
        del probes
        seen = evidence.data["seen"]
        assert isinstance(seen, int | float)
        return Weighed(seen, self.confidence, (f"{self.name} says {seen}",), self.cap)


class MemoryEvaluations:
    def __init__(self) -> None:
        self.rows: list[tuple[Evaluation, Snapshot]] = []

    async def add(self, evaluation: Evaluation, snapshot: Snapshot) -> Snapshot:
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


class NoBlobs:
    async def store(self, data: bytes) -> str | None:
        assert data.startswith(b"{")
        return None

    async def remove(self, uri: str) -> None:
        del uri

    async def trim(self, bytes_max: int, at_most: int) -> int:
        del bytes_max, at_most
        return 0


class Hears:
    def __init__(self) -> None:
        self.news: list[EvaluationCompleted] = []

    def evaluated(self, news: EvaluationCompleted) -> None:
        self.news.append(news)
