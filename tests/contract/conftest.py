"""Databases for the contract suites: every test runs against each kind."""

from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import pytest

from assay.db.engine import Database
from tests.services.compiled_sql import compiled_sql
from tests.services.databases import migrated
from tests.services.postgres import postgres

__all__ = ["compiled_sql", "database", "database_url"]


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[str]:
    """An empty database of each kind; a migrated one in tests that ask for `database` too."""
    if "database" in request.fixturenames:
        with migrated(request.param, tmp_path) as url:
            yield url
    elif request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'assay.db'}"
    else:
        yield postgres().new_database()


@pytest.fixture
async def database(database_url: str) -> AsyncGenerator[Database]:
    """A migrated database of each kind."""
    opened = await Database.open(database_url)
    yield opened
    await opened.close()
