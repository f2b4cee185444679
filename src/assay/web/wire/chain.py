"""The `chain` object of answers (spec 2.1)."""

from typing import Annotated

from pydantic import Field

from assay.chains.model import Network
from assay.web.wire.shape import Answer


class ChainShape(Answer):
    """An EVM chain."""

    name: Annotated[str, Field(examples=["ethereum"])]
    chain_id: Annotated[int, Field(examples=[1])]


def chain(network: Network) -> ChainShape:
    """The chain object of a network."""
    return ChainShape(name=network.slug, chain_id=network.chain_id)
