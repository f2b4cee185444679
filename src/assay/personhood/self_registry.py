"""Calls to Self's registry of human-backed agents, and its answers. Pure.

Source: self-agent-id contracts (`SelfAgentRegistry`, read functions); personhood-proofs.md#self.
"""

from assay.chains.evm.abi import WORD, AbiReader, address_word, word
from assay.chains.rpc import ContractCall


def agent_id(registry: str, address: str) -> ContractCall:
    """Call `getAgentId(bytes32)` for the key that is an address."""
    return _call(registry, "bc936c52", address_word(address))


def is_fresh(registry: str, agent: int) -> ContractCall:
    """Call `isProofFresh(uint256)`: not revoked and not expired, unlike `hasHumanProof`."""
    return _call(registry, "7d08e2f3", word(agent))


def provider_of(registry: str, agent: int) -> ContractCall:
    """`getProofProvider(uint256)`."""
    return _call(registry, "4a9a1a28", word(agent))


def own_provider(registry: str) -> ContractCall:
    """`selfProofProvider()`."""
    return _call(registry, "f22e4593", b"")


def human_of(registry: str, agent: int) -> ContractCall:
    """`getHumanNullifier(uint256)`."""
    return _call(registry, "5b0ad7ca", word(agent))


def agents_of(registry: str, human: int) -> ContractCall:
    """`getAgentCountForHuman(uint256)`."""
    return _call(registry, "c85a34fa", word(human))


def read_number(data: bytes) -> int:
    """Decode one number. Raises `BadAnswer`."""
    return AbiReader(data[:WORD]).number(0)


def _call(registry: str, selector: str, argument: bytes) -> ContractCall:
    return ContractCall(registry, bytes.fromhex(selector) + argument)
