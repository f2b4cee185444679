"""Asks contract wallets about signatures, on the chains configured for it (decisions 6)."""

from collections.abc import Mapping, Sequence

from assay.chains.model import Family, Network
from assay.chains.ports import ChainReader


class OnchainWallets:
    """ERC-1271 by `eth_call` on each of `networks` in turn; the first that accepts decides."""

    def __init__(self, readers: Mapping[Family, ChainReader], networks: Sequence[Network]) -> None:
        self._readers = readers
        self._networks = networks

    async def accept(self, address: str, digest: bytes, signature: bytes) -> bool:
        for network in self._networks:
            reader = self._readers[network.family]
            if await reader.accepts_signature(network, address, digest, signature):
                return True
        return False
