"""A reader of our own over the loopback node and indexer, with a clock the test turns."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from assay.chains.evm.rpc_endpoint import RpcLimits
from assay.chains.evm.rpc_network import JsonRpc
from assay.chains.model import Network
from assay.chains.solana.clusters import cluster_row
from assay.common.clock import SystemClock
from assay.net.egress.client import GuardedHttp
from assay.net.egress.url import EgressPolicy
from assay.registries.documents import GuardedDocuments
from assay.registries.families.solana import SolanaReader
from assay.registries.ports import ReaderDependencies
from assay.registries.solana_index import HttpAgentIndex
from tests.support.fakes.clock import FrozenClock
from tests.support.solana.indexer import Indexer, indexer
from tests.support.solana.registry import Registry
from tests.support.solana.rpc import Node, node

QUICK = RpcLimits(endpoint_s=1.0, total_s=2.0, reply_bytes_max=1024 * 1024)


@dataclass
class Reading:
    registry: Registry
    node: Node
    index: Indexer
    network: Network
    rpc: JsonRpc
    reader: SolanaReader
    clock: FrozenClock

    def later(self, seconds: float = 31.0) -> None:
        """What was remembered is forgotten."""
        self.clock.move(seconds)


@asynccontextmanager
async def reading(registry: Registry | None = None) -> AsyncGenerator[Reading]:
    registry = registry or Registry()
    clock = FrozenClock()
    http = GuardedHttp(EgressPolicy(allow_private=True, require_https=False))
    rpc, index = JsonRpc(SystemClock(), QUICK), HttpAgentIndex(SystemClock())
    needs = ReaderDependencies(rpc, GuardedDocuments(http, None), index, clock)
    with node(registry) as serving, indexer(registry) as listing:
        network = cluster_row("mainnet-beta", serving.url, listing.url)
        try:
            yield Reading(registry, serving, listing, network, rpc, SolanaReader(needs), clock)
        finally:
            await index.aclose()
            await rpc.aclose()
            await http.aclose()
