from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from assay.infra.http.rpc import JsonRpc
from tests.fakes.clock import FrozenClock
from tests.services.rpc_bench import QUICK, Bench


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    clock = FrozenClock()
    async with AsyncExitStack() as stack:
        rpc = JsonRpc(clock, QUICK)
        stack.push_async_callback(rpc.aclose)
        yield Bench(stack, clock, rpc)
