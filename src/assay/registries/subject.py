"""The agent that is evaluated."""

from dataclasses import dataclass

from assay.chains.model import Network, is_address
from assay.registries.model import OnchainAgent


@dataclass(frozen=True, slots=True)
class Subject:
    """The agent evaluated: of a registry, or a key agent (then `agent` is None)."""

    network: Network
    agent_id: str
    """Canonical token id, or the key agent's lower-case address."""
    wallet: str
    """The first address that acts for it: agentWallet, else owner; a key agent's own address."""
    agent: OnchainAgent | None

    @property
    def key(self) -> str:
        """Return the subject's name in stores and caches: `eip155:1/22`, or `key/0x...`."""
        return subject_key(self.network, self.agent_id)


def subject_key(network: Network, agent_id: str) -> str:
    """Return the key of the subject with this canonical agent id (see `Subject.key`)."""
    if is_address(agent_id):
        return f"key/{agent_id}"
    return f"{network.caip2}/{agent_id}"
