"""Databases for the contract suites: every test runs against each kind."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from assay.infra.sql.engine import Database
from tests.services.postgres import postgres


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'assay.db'}"
    return postgres().new_database()


@pytest.fixture
async def database(database_url: str) -> AsyncGenerator[Database]:
    """A migrated database of each kind."""
    opened = await Database.open(database_url)
    await opened.migrate()
    yield opened
    await opened.close()
