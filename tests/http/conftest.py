"""The service in this process, for every HTTP test."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.http.house import House, open_house
from tests.services.compiled_sql import compiled_sql

__all__ = ["compiled_sql", "house"]


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[House]:
    async with open_house(tmp_path / "data") as opened:
        yield opened
