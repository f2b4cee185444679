"""Resolves a wallet to its agent (interface.md#wallet-resolution)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from assay.chains.model import Family, Network
from assay.common.clock import Clock
from assay.common.costs import Cost, CostLedger
from assay.registries.model import AgentNotFound
from assay.registries.ports import ChainReader


@dataclass(frozen=True, slots=True)
class Resolution:
    """The agent that a wallet may act for; of several the one with the lowest id."""

    wallet: str
    agent_id: str
    source: str
    chain_id: int
    agent_name: str
    at: datetime


class WalletResolver:
    """Resolves wallets on any network that has a reader."""

    def __init__(
        self,
        readers: Mapping[Family, ChainReader],
        clock: Clock,
        costs: CostLedger | None = None,
    ) -> None:
        self._readers = readers
        self._clock = clock
        self._costs = costs

    async def resolve(self, network: Network, wallet: str) -> Resolution:
        """Return the agent of a lower-case wallet.

        Raises `AgentNotFound` if it has none, `ChainUnavailable` if that is unknown, and
        `QuotaExceeded` for a caller that has cost too many requests to chain nodes today.
        """
        if self._costs is not None:
            self._costs.require(Cost.RPC_CALLS)
        reader = self._readers[network.family]
        matches = await reader.fetch_agents_of(network, wallet)
        if not matches:
            raise AgentNotFound("This wallet neither owns an agent nor is one's agentWallet.")
        first = matches[0]
        agent = await reader.fetch_agent(network, first.agent_id)
        name = agent.registration.name if agent.registration else ""
        at = self._clock.now()
        return Resolution(wallet, first.agent_id, first.source, network.chain_id, name, at)
