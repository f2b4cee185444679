"""The `chain` object of responses (interface.md#trust-profile)."""

from typing import Annotated

from pydantic import Field

from assay.chains.model import Network
from assay.server.schemas_base import ResponseModel


class EvmChainResponse(ResponseModel):
    """An EVM chain."""

    name: Annotated[str, Field(examples=["ethereum"])]
    chain_id: Annotated[int, Field(examples=[1])]


class SolanaChainResponse(ResponseModel):
    """A Solana cluster."""

    network: Annotated[str, Field(examples=["solana"])]
    cluster: Annotated[str, Field(examples=["mainnet-beta"])]


ChainResponse = EvmChainResponse | SolanaChainResponse


def chain(network: Network) -> ChainResponse:
    """Return the chain object of a network."""
    if network.family == "solana":
        return SolanaChainResponse(network=network.slug, cluster=network.cluster)
    return EvmChainResponse(name=network.slug, chain_id=network.chain_id)


ADDRESS = r"^0x[a-fA-F0-9]{40}$"
"""Source: interface.md#key-agents."""
