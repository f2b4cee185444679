"""Everything of Solana that the service speaks to, started together and ended together."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.support.solana.clusters import MAINNET, Cluster
from tests.support.solana.endpoints import Zoo, zoo
from tests.support.solana.indexer import Indexer, indexer
from tests.support.solana.registry import Registry
from tests.support.solana.rpc import Node, node


@dataclass(frozen=True, repr=False)
class SolanaWorld:
    registry: Registry
    rpc: Node
    index: Indexer
    zoo: Zoo


@contextmanager
def solana_world(cluster: Cluster = MAINNET) -> Generator[SolanaWorld]:
    registry = Registry(cluster)
    with node(registry) as rpc, indexer(registry) as index, zoo() as services:
        yield SolanaWorld(registry, rpc, index, services)
