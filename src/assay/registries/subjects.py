"""Finds the agent that a request or a wallet names.

Finds the agent that a request names: an agent of a registry, or a key agent.

Resolves a wallet to its agent (interface.md#wallet-resolution).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from assay.chains.model import Family, Network, is_address
from assay.common.clock import Clock
from assay.common.costs import Cost, CostLedger
from assay.common.errors import InvalidRequest, Problem
from assay.registries.model import AgentNotFound, OnchainAgent, Subject, parse_agent_id
from assay.registries.ports import ChainReader


def canonical_agent_id(network: Network, agent_id: str) -> str:
    """Return an id of the network's registry, or a key agent's address in lower case.

    Raises `InvalidRequest`.
    """
    return agent_id.lower() if is_address(agent_id) else parse_agent_id(network, agent_id)


def named_agent_id(network: Network, named: str | None, address: str | None) -> str | None:
    """Return the agent that `x-agent-id` names, else the key agent of an EVM address; else None.

    Raises `InvalidRequest` for an invalid id.
    """
    if not named:
        return address if address is not None and is_address(address) else None
    try:
        return canonical_agent_id(network, named)
    except InvalidRequest as error:
        problem = Problem(("header", "x-agent-id"), error.message)
        raise InvalidRequest(
            "The header x-agent-id is not an agent id.", details=[problem]
        ) from None


def key_agent(network: Network, address: str) -> Subject:
    """Return the key agent of a lower-case address; `network` only names where it was requested."""
    return Subject(network, address, address, None)


class Subjects:
    """Finds subjects; registry agents through the reader of their network's family."""

    def __init__(
        self, readers: Mapping[Family, ChainReader], costs: CostLedger | None = None
    ) -> None:
        self._readers = readers
        self._costs = costs

    def reader(self, network: Network) -> ChainReader:
        """Return the reader of the network's family."""
        return self._readers[network.family]

    async def find(self, network: Network, agent_id: str) -> Subject:
        """Return the subject `agent_id` on `network`; a sequential id becomes the asset it names.

        Raises `InvalidRequest` for a malformed id, `AgentNotFound` for an id the registry does not
        know, `ChainUnavailable` when it cannot be asked. A key agent needs no registry: an address
        is always a subject. Raises `QuotaExceeded` for a caller that has cost too many requests to
        chain nodes today.
        """
        agent_id = canonical_agent_id(network, agent_id)
        if is_address(agent_id):
            return key_agent(network, agent_id)
        agent = await self.fetch_registered(network, agent_id)
        return Subject(network, agent.agent_id, agent.wallet or agent.owner, agent)

    async def fetch_registered(self, network: Network, agent_id: str) -> OnchainAgent:
        """Return the agent with a canonical id of the registry. Raises as `find`."""
        if self._costs is not None:
            self._costs.require(Cost.RPC_CALLS)
        return await self.reader(network).fetch_agent(network, agent_id)

    async def identify(self, network: Network, agent_id: str) -> str:
        """Return the id under which a subject is stored, without checking that it exists.

        Raises as `find`.
        """
        agent_id = canonical_agent_id(network, agent_id)
        if is_address(agent_id):
            return agent_id
        return await self.reader(network).identify(network, agent_id)


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
