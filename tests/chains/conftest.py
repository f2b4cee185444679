"""A bench of nodes for tests of JSON-RPC."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from assay.chains.evm.rpc_network import JsonRpc
from tests.support.fakes.clock import FrozenClock
from tests.support.rpc_bench import QUICK, Bench


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    clock = FrozenClock()
    async with AsyncExitStack() as stack:
        rpc = JsonRpc(clock, QUICK)
        stack.push_async_callback(rpc.aclose)
        yield Bench(stack, clock, rpc)
