"""Parameters shared by operations about agents: which agent, and on which chain."""

from typing import Annotated

from fastapi import Depends, Header, Path, Query, Request

from assay.chains.model import Network
from assay.chains.networks import Networks
from assay.registries.schemas import ADDRESS
from assay.server.route import service

AgentId = Annotated[
    str,
    Path(
        alias="agentId",
        max_length=100,
        description="ERC-8004 token id in decimal; on Solana the asset's public key, or a"
        " sequential id.",
        examples=["22"],
    ),
]

AgentAddress = Annotated[
    str,
    Path(
        alias="agentAddress",
        pattern=ADDRESS,
        description="The key agent's address: 0x and 40 hexadecimal digits, in any case.",
        examples=["0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"],
    ),
]


def network_of(
    request: Request,
    chain: Annotated[
        str | None, Query(max_length=64, description="Slug of the chain; wins over `x-chain`.")
    ] = None,
    x_chain: Annotated[
        str | None, Header(max_length=64, description="Slug of the chain; absent: the default.")
    ] = None,
) -> Network:
    """Return the chain that a request names, or the default one."""
    networks = service(request, Networks)
    named = chain if chain is not None else x_chain
    return networks.default if named is None else networks.by_slug(named)


OnNetwork = Annotated[Network, Depends(network_of)]
