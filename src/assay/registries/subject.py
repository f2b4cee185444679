"""Who is evaluated."""

from dataclasses import dataclass

from assay.chains.model import Network, is_address
from assay.registries.model import OnchainAgent


@dataclass(frozen=True, slots=True)
class Subject:
    """Who is evaluated: an agent of a registry, or a key agent (then `agent` is None)."""

    network: Network
    agent_id: str
    """Canonical token id, or the key agent's lower-case address."""
    wallet: str
    """The address that speaks first for it: agentWallet, else owner; a key agent's own address."""
    agent: OnchainAgent | None

    @property
    def key(self) -> str:
        """Names the subject in stores and caches: `eip155:1/22`, or `key/0x...`."""
        return subject_key(self.network, self.agent_id)


def subject_key(network: Network, agent_id: str) -> str:
    """The key of the subject with this canonical agent id (see `Subject.key`)."""
    if is_address(agent_id):
        return f"key/{agent_id}"
    return f"{network.caip2}/{agent_id}"
