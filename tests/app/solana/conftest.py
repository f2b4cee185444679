from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.support.solana.live_service import SolanaTestService, open_solana


@pytest.fixture
async def service(tmp_path: Path) -> AsyncGenerator[SolanaTestService]:
    async with open_solana(tmp_path) as found:
        yield found
