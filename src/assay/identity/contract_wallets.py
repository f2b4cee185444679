"""Verifies signatures of contract wallets on the configured chains.

Source: conventions.md#agent-identity.
"""

from collections.abc import Mapping, Sequence

from assay.chains.model import Family, Network
from assay.common.costs import Cost, CostLedger
from assay.common.errors import Unavailable
from assay.identity.model import ContractProof
from assay.registries.ports import ChainReader

CHAINS_MAX = 8
"""Most chains in one proof; a session stores them in its token."""


class OnchainWallets:
    """ERC-1271 by `eth_call` on each of `networks`; the first is the home chain of key agents."""

    def __init__(
        self,
        readers: Mapping[Family, ChainReader],
        networks: Sequence[Network],
        costs: CostLedger,
    ) -> None:
        self._readers = readers
        self._networks = networks
        self._costs = costs

    async def accept(self, address: str, digest: bytes, signature: bytes) -> ContractProof | None:
        self._costs.require(Cost.RPC_CALLS)
        accepted: list[Network] = []
        failure: Unavailable | None = None
        for network in self._networks:
            reader = self._readers[network.family]
            try:
                if await reader.accepts_signature(network, address, digest, signature):
                    accepted.append(network)
            except Unavailable as error:
                failure = error
        if accepted:
            chains = tuple(network.caip2 for network in accepted[:CHAINS_MAX])
            return ContractProof(chains, accepted[0] is self._networks[0])
        if failure is not None:
            raise failure
        return None
