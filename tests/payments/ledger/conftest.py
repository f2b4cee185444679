"""The stage of payouts and refunds, on every database."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.payments.ledger.transfer_stage import USDC, WALLET, Stage
from tests.support.databases import migrated
from tests.support.fakes.clock import FrozenClock
from tests.support.token_chain import TokenChain, TokenNode, running


@pytest.fixture(params=["sqlite", "postgresql"])
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[Stage]:
    chain = TokenChain(84532, USDC, {WALLET: 10**9})
    nodes = [TokenNode(chain), TokenNode(chain)]
    with migrated(request.param, tmp_path) as url:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(running(*nodes))
            yield Stage(url, FrozenClock(), chain, nodes, stack)
