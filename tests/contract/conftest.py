"""Databases for the contract suites: every test runs against each kind."""

from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from assay.db.engine import Database
from tests.services.compiled_sql import compiled_sql
from tests.services.databases import migrated
from tests.services.postgres import postgres

__all__ = ["compiled_sql", "database", "database_url", "empty_database_url"]


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[str]:
    """A migrated database of each kind."""
    with migrated(request.param, tmp_path) as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of each kind with nothing in it."""
    is_sqlite = request.param == "sqlite"
    return f"sqlite:///{tmp_path / 'assay.db'}" if is_sqlite else postgres().new_database()


@pytest.fixture
async def database(database_url: str) -> AsyncGenerator[Database]:
    """The same, opened."""
    opened = await Database.open(database_url)
    yield opened
    await opened.close()
