"""A node that many ask at once answers callers by turns, not whoever asks most."""

import asyncio
from contextlib import AsyncExitStack, suppress

from assay.chains.evm.rpc_endpoint import RpcLimits
from assay.chains.evm.rpc_network import JsonRpc
from assay.chains.model import ChainUnavailable, Network
from assay.common.costs import Bearer, serve_for
from tests.support.ethereum_node import HEAD, Node, owner
from tests.support.fakes.clock import FrozenClock
from tests.support.rpc_bench import ONE, Bench

LIMITS = RpcLimits(endpoint_s=3.0, total_s=8.0, concurrency=4)
"""With a node that takes 0.2 s: four at once, twenty a second."""


async def _read(bench: Bench, network: Network) -> None:
    with suppress(ChainUnavailable):
        await bench.rpc.call(network, ONE)


async def test_a_flood_of_reads_of_one_caller_leaves_others_their_turn() -> None:
    """First come, first served, the flood had all places for longer than anybody waits."""
    async with AsyncExitStack() as stack:
        clock = FrozenClock()
        rpc = JsonRpc(clock, LIMITS)
        stack.push_async_callback(rpc.aclose)
        bench = Bench(stack, clock, rpc)
        network = await bench.network(Node(delay_s=0.2))
        await rpc.call(network, ONE)
        async with asyncio.TaskGroup() as group:
            serve_for(lambda: Bearer("operator 1"))
            flood = [group.create_task(_read(bench, network)) for _ in range(150)]
            await asyncio.sleep(0)
            serve_for(lambda: Bearer("address 203.0.113.9"))
            [found] = await rpc.call(network, ONE)
            assert found.data == owner(7, HEAD)
            assert not all(task.done() for task in flood)
            for task in flood:
                task.cancel()
