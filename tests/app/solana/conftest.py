from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.support.solana.house import SolanaHouse, open_solana


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[SolanaHouse]:
    async with open_solana(tmp_path) as found:
        yield found
