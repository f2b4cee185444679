"""Databases for the contract suites: every test runs against each kind."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from assay.db.engine import Database
from tests.services.databases import migrated_postgresql, migrated_sqlite
from tests.services.postgres import postgres


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty database of each kind; a migrated one in tests that ask for `database` too."""
    is_migrated = "database" in request.fixturenames
    if request.param == "sqlite":
        path = tmp_path / "assay.db"
        return migrated_sqlite(path) if is_migrated else f"sqlite:///{path}"
    return migrated_postgresql() if is_migrated else postgres().new_database()


@pytest.fixture
async def database(database_url: str) -> AsyncGenerator[Database]:
    """A migrated database of each kind."""
    opened = await Database.open(database_url)
    yield opened
    await opened.close()
