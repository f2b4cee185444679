"""Finds the agent that a request names: an agent of a registry, or a key agent."""

from collections.abc import Mapping

from assay.chains.model import Family, Network, is_address
from assay.common.costs import Cost, CostLedger
from assay.registries.model import OnchainAgent, parse_agent_id
from assay.registries.ports import ChainReader
from assay.registries.subject import Subject


def canonical_agent_id(network: Network, agent_id: str) -> str:
    """Return an id of the network's registry, or a key agent's address in lower case.

    Raises `InvalidRequest`.
    """
    return agent_id.lower() if is_address(agent_id) else parse_agent_id(network, agent_id)


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
