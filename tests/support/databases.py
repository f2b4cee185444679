"""Databases that have the newest schema already: migrated once per test process, then copied.

A copy of PostgreSQL's is lent to one test after another, emptied in between: a new one costs five
times as much, for each table is some files.
"""

import asyncio
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from assay.db.engine import Database
from tests.support.postgres import postgres


def migrated_sqlite(path: Path) -> str:
    """Put a database with the newest schema at a path; its URL."""
    shutil.copyfile(_template(), path)
    path.chmod(0o600)
    return f"sqlite:///{path}"


def give_schema(folder: Path) -> None:
    """Give a new data directory a database that need not be migrated; one in use stays."""
    if not folder.exists() or not any(folder.iterdir()):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        migrated_sqlite(folder / "assay.db")


def migrated_postgresql() -> str:
    """The URL of a new database with the newest schema."""
    return postgres().new_database(_postgresql_template())


@contextmanager
def migrated(kind: str, folder: Path) -> Generator[str]:
    """The URL of a database of this kind with the newest schema, for one test."""
    if kind == "sqlite":
        yield migrated_sqlite(folder / "assay.db")
    else:
        with lent_postgresql() as url:
            yield url


@contextmanager
def lent_postgresql() -> Generator[str]:
    """The URL of a database with the newest schema and no rows; nobody is connected at the end."""
    url = _returned.pop() if _returned else migrated_postgresql()
    yield url
    try:
        is_as_new = postgres().ask(_EMPTY + _SCHEMA, url) == _schema()
    except subprocess.CalledProcessError:  # it is locked, or its schema is another by now
        return
    if is_as_new:
        _returned.append(url)


_returned: list[str] = []

_EMPTY = """
SET lock_timeout = '1s';
SET session_replication_role = replica;
DO $$
DECLARE name text;
BEGIN
  FOR name IN
    SELECT oid::regclass FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
    AND relname NOT IN ('alembic_version', 'call_id_key')
  LOOP
    EXECUTE 'DELETE FROM ' || name;
  END LOOP;
  FOR name IN
    SELECT oid::regclass FROM pg_class
    WHERE relkind = 'S' AND relnamespace = 'public'::regnamespace
  LOOP
    PERFORM setval(name, 1, false);
  END LOOP;
END $$;
"""
"""All rows but those that migrations wrote."""

_SCHEMA = """
SELECT md5(string_agg(line, ' ' ORDER BY line)) FROM (
  SELECT concat_ws(' ', attrelid::regclass, attname, atttypid, attnotnull, attisdropped) AS line
  FROM pg_attribute JOIN pg_class ON attrelid = pg_class.oid
  WHERE relnamespace = 'public'::regnamespace
  UNION ALL SELECT concat_ws(' ', conname, contype, convalidated, pg_get_constraintdef(oid))
  FROM pg_constraint WHERE connamespace = 'public'::regnamespace
  UNION ALL SELECT 'trigger ' || tgname FROM pg_trigger WHERE NOT tgisinternal
  UNION ALL SELECT 'function ' || proname FROM pg_proc
  WHERE pronamespace = 'public'::regnamespace
  UNION ALL SELECT 'setting ' || setconfig::text FROM pg_db_role_setting
  UNION ALL SELECT 'row ' || written::text FROM alembic_version AS written
  UNION ALL SELECT 'row ' || written::text FROM call_id_key AS written
) AS lines;
"""
"""A digest of tables, indexes and rules, and of the rows that migrations wrote."""


@cache
def _schema() -> str:
    return postgres().ask(_SCHEMA, migrated_postgresql())


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
