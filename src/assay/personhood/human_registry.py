"""Reads Self's on-chain registry of agents backed by humans."""

from collections.abc import Sequence

from assay.chains.evm.abi import BadAnswer
from assay.chains.model import ChainUnavailable, Network, is_address
from assay.chains.networks import Networks
from assay.chains.rpc import ContractCall, Returned, Rpc
from assay.common.cache import Cache
from assay.common.clock import Clock
from assay.personhood import self_registry
from assay.personhood.model import HumanRecord

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
        agent, trusted = await self._ask(
            [self_registry.agent_id(at, address), self_registry.own_provider(at)]
        )
        if agent == 0:
            return HumanRecord(registered=False)
        fresh, provider, human = await self._ask(
            [
                self_registry.is_fresh(at, agent),
                self_registry.provider_of(at, agent),
                self_registry.human_of(at, agent),
            ]
        )
        (agents,) = await self._ask([self_registry.agents_of(at, human)])
        return HumanRecord(
            registered=True, holds=fresh == 1 and provider == trusted != 0, agents=agents
        )

    async def _ask(self, calls: Sequence[ContractCall]) -> list[int]:
        answers = await self._rpc.call(self._network, calls)
        try:
            return [
                self_registry.read_number(answer.data if isinstance(answer, Returned) else b"")
                for answer in answers
            ]
        except BadAnswer as error:
            raise ChainUnavailable(
                "Self's registry gave no answer that can be believed.",
                detail=str(error),
                retry_after_s=10,
            ) from error
