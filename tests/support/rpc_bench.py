"""Nodes on loopback and the client under test over them."""

from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest

from assay.chains.evm.rpc_endpoint import RpcLimits
from assay.chains.evm.rpc_network import JsonRpc
from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import ContractCall
from tests.support.ethereum_node import (
    CHAIN_ID,
    HEAD,
    REGISTRY,
    Node,
    owner,
    owner_of,
    refusal,
    running,
)
from tests.support.fakes.clock import FrozenClock

QUICK = RpcLimits(endpoint_s=0.5, total_s=2.0, reply_bytes_max=100_000)
ONE = [ContractCall(REGISTRY, owner_of(7))]
THREE = [ContractCall(REGISTRY, owner_of(n)) for n in (1, 999, 2)]


def expected(block: int = HEAD) -> list[bytes]:
    return [owner(1, block), refusal(999), owner(2, block)]


@dataclass
class Bench:
    """One client, its clock, and the nodes of one test."""

    stack: AsyncExitStack
    clock: FrozenClock
    rpc: JsonRpc

    async def network(self, *nodes: Node, multicall: bool = True) -> Network:
        urls = [(await self.stack.enter_async_context(running(n))).url("/key123") for n in nodes]
        return Network(
            slug="local",
            name="Local",
            chain_id=CHAIN_ID,
            testnet=True,
            identity_registry=REGISTRY,
            reputation_registry=REGISTRY,
            rpc_urls=tuple(urls),
            source="a test",
            multicall3=multicall,
        )


async def unavailable(bench: Bench, network: Network) -> ChainUnavailable:
    with pytest.raises(ChainUnavailable) as raised:
        await bench.rpc.call(network, THREE)
    return raised.value
