"""Databases that have the newest schema already: migrated once per test process, then copied."""

import asyncio
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from assay.db.engine import Database
from tests.services.postgres import postgres


def migrated_sqlite(path: Path) -> str:
    """Put a database with the newest schema at a path; its URL."""
    shutil.copyfile(_template(), path)
    path.chmod(0o600)
    return f"sqlite:///{path}"


def migrated_postgresql() -> str:
    """The URL of a new database with the newest schema."""
    return postgres().new_database(_postgresql_template())


@cache
def _template() -> Path:
    folder = tempfile.TemporaryDirectory(prefix="assay-schema-")
    _folders.append(folder)
    path = Path(folder.name) / "assay.db"
    _migrate(f"sqlite:///{path}")
    return path


_folders: list[tempfile.TemporaryDirectory[str]] = []  # removed when the process ends


@cache
def _postgresql_template() -> str:
    url = postgres().new_database()
    _migrate(url)
    return url.rpartition("/")[2]


def _migrate(url: str) -> None:
    """In a thread, for the test that asks first has a running event loop."""

    async def run() -> None:
        database = await Database.open(url)
        await database.migrate()
        await database.close()

    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, run()).result()
