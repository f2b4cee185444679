from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from assay.chains.evm.rpc_network import JsonRpc
from assay.db.engine import Database
from tests.fakes.clock import FrozenClock
from tests.services.egress_process import Process
from tests.services.rpc_bench import QUICK, Bench


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    clock = FrozenClock()
    async with AsyncExitStack() as stack:
        rpc = JsonRpc(clock, QUICK)
        stack.push_async_callback(rpc.aclose)
        yield Bench(stack, clock, rpc)


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
async def one(database: Database, clock: FrozenClock) -> AsyncIterator[Process]:
    """A process that sends on egress budgets."""
    made = Process(database, clock)
    yield made
    await made.http.aclose()
