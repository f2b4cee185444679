"""Reads Self's on-chain registry of agents backed by humans.

Calls to Self's registry of human-backed agents, and its answers. Pure.

Source: self-agent-id contracts (`SelfAgentRegistry`, read functions); personhood-proofs.md#self.
"""

from collections.abc import Sequence

from assay.chains.evm.abi import WORD, AbiReader, BadAnswer, address_word, word
from assay.chains.model import ChainUnavailable, Network, is_address
from assay.chains.networks import Networks
from assay.chains.rpc import ContractCall, Returned, Rpc
from assay.common.cache import Cache
from assay.common.clock import Clock
from assay.personhood.model import HumanRecord


def agent_id(registry: str, address: str) -> ContractCall:
    """Call `getAgentId(bytes32)` for the key that is an address."""
    return _call(registry, "bc936c52", address_word(address))


def _is_fresh(registry: str, agent: int) -> ContractCall:
    """Call `isProofFresh(uint256)`: not revoked and not expired, unlike `hasHumanProof`."""
    return _call(registry, "7d08e2f3", word(agent))


def _provider_of(registry: str, agent: int) -> ContractCall:
    """`getProofProvider(uint256)`."""
    return _call(registry, "4a9a1a28", word(agent))


def _own_provider(registry: str) -> ContractCall:
    """`selfProofProvider()`."""
    return _call(registry, "f22e4593", b"")


def _human_of(registry: str, agent: int) -> ContractCall:
    """`getHumanNullifier(uint256)`."""
    return _call(registry, "5b0ad7ca", word(agent))


def _agents_of(registry: str, human: int) -> ContractCall:
    """`getAgentCountForHuman(uint256)`."""
    return _call(registry, "c85a34fa", word(human))


def _read_number(data: bytes) -> int:
    """Decode one number. Raises `BadAnswer`."""
    return AbiReader(data[:WORD]).number(0)


def _call(registry: str, selector: str, argument: bytes) -> ContractCall:
    return ContractCall(registry, bytes.fromhex(selector) + argument)


TTL_S = 300.0


def contract_of(text: str, networks: Networks, what: str) -> tuple[Network, str]:
    """Parse `chain:0x...` as a chain and a lower-case address; raises `ValueError`."""
    slug, _, address = text.partition(":")
    if slug not in networks.rows or not is_address(address):
        raise ValueError(f"{what} must be chain:0x..., such as celo:0x{'0' * 40}")
    return networks.rows[slug], address.lower()


class SelfHumans:
    """Reads Self's registry; implements `personhood.model.HumanRegistry`."""

    def __init__(self, rpc: Rpc, network: Network, registry: str, clock: Clock) -> None:
        self._rpc = rpc
        self._network = network
        self._registry = registry
        self._known: Cache[HumanRecord] = Cache(clock, TTL_S)

    async def find(self, address: str) -> HumanRecord:
        return await self._known.get(address, lambda: self._read(address))

    async def _read(self, address: str) -> HumanRecord:
        at = self._registry
        agent, trusted = await self._ask([agent_id(at, address), _own_provider(at)])
        if agent == 0:
            return HumanRecord(registered=False)
        fresh, provider, human = await self._ask(
            [
                _is_fresh(at, agent),
                _provider_of(at, agent),
                _human_of(at, agent),
            ]
        )
        (agents,) = await self._ask([_agents_of(at, human)])
        return HumanRecord(
            registered=True, holds=fresh == 1 and provider == trusted != 0, agents=agents
        )

    async def _ask(self, calls: Sequence[ContractCall]) -> list[int]:
        answers = await self._rpc.call(self._network, calls)
        try:
            return [
                _read_number(answer.data if isinstance(answer, Returned) else b"")
                for answer in answers
            ]
        except BadAnswer as error:
            raise ChainUnavailable(
                "Self's registry gave no answer that can be believed.",
                detail=str(error),
                retry_after_s=10,
            ) from error
