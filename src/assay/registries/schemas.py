"""Chains, and problems of registration files, in responses.

The `chain` object of responses (interface.md#trust-profile).
"""

from typing import Annotated

from pydantic import Field

from assay.chains.model import Network
from assay.registries.model import OnchainAgent
from assay.registries.registration import problems_of
from assay.server.schemas import ResponseModel


class EvmChainResponse(ResponseModel):
    """An EVM chain."""

    name: Annotated[str, Field(examples=["ethereum"])]
    """The network's slug."""
    chain_id: Annotated[int, Field(examples=[1])]
    """Its EIP-155 chain id."""


class SolanaChainResponse(ResponseModel):
    """A Solana cluster."""

    network: Annotated[str, Field(examples=["solana"])]
    """The network's slug."""
    cluster: Annotated[str, Field(examples=["mainnet-beta"])]
    """The cluster's name."""


ChainResponse = EvmChainResponse | SolanaChainResponse


def chain(network: Network) -> ChainResponse:
    """Return the chain object of a network."""
    if network.family == "solana":
        return SolanaChainResponse(network=network.slug, cluster=network.cluster)
    return EvmChainResponse(name=network.slug, chain_id=network.chain_id)


ADDRESS = r"^0x[a-fA-F0-9]{40}$"
"""Source: interface.md#key-agents."""


class FileProblemResponse(ResponseModel):
    """One problem of the agent's registration file."""

    where: Annotated[
        str,
        Field(
            description="A path into the file; `file` or `tokenURI` for all of it.",
            examples=["services[0].endpoint"],
        ),
    ]
    found: Annotated[str, Field(examples=["nothing"])]
    """What the file says there."""
    expected: Annotated[str, Field(examples=["one URL"])]
    """What it should say."""


FileProblems = Annotated[
    list[FileProblemResponse],
    Field(description="What is wrong with the registration file; empty where nothing is."),
]


def file_problems(agent: OnchainAgent | None) -> list[FileProblemResponse]:
    """Return the problems of an agent's file; a key agent has no file and so no problems."""
    listed = () if agent is None else problems_of(agent)
    return [
        FileProblemResponse(where=one.where, found=one.found, expected=one.expected)
        for one in listed
    ]
