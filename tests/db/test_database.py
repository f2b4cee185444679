"""Opening, migrating and losing a database."""

import asyncio
import sqlite3
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

from assay.common.errors import Unavailable
from assay.db.connect import DatabaseUrlError
from assay.db.engine import HEAD, Database
from assay.db.migration_plan import SchemaTooNew
from assay.db.schema.everything import METADATA
from assay.identity.model import KeyAgent
from assay.key_agents.store import SqlKeyAgentStore
from tests.support.postgres import postgres

NOW = datetime(2026, 3, 1, tzinfo=UTC)
SOURCE = Path(__file__).parents[2] / "src"


async def test_the_migrated_schema_is_the_one_the_stores_use(database: Database) -> None:
    async with database.read() as connection:
        differences = await connection.run_sync(
            lambda c: compare_metadata(MigrationContext.configure(c), METADATA)
        )
    assert differences == []


async def test_processes_that_start_at_once_migrate_once(empty_database_url: str) -> None:
    opened = [await Database.open(empty_database_url) for _ in range(4)]
    async with asyncio.TaskGroup() as group:
        for one in opened:
            group.create_task(one.migrate())
    async with opened[0].read() as connection:
        assert (await connection.execute(text("SELECT count(*) FROM operators"))).scalar() == 0
    for one in opened:
        await one.close()


async def test_a_fresh_sqlite_file_may_be_opened_by_many_at_once(tmp_path: Path) -> None:
    """SQLite refuses, without waiting, whoever turns a file to WAL while another does."""
    for turn in range(12):
        url = f"sqlite:///{tmp_path}/{turn}.db"
        opened = [await Database.open(url) for _ in range(8)]
        async with asyncio.TaskGroup() as group:
            for one in opened:
                group.create_task(one.ping())
        for one in opened:
            await one.close()


async def test_a_database_newer_than_the_code_is_refused(database: Database) -> None:
    async with database.write() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(SchemaTooNew, match="9999"):
        await database.migrate()


async def test_a_transaction_that_fails_leaves_nothing(database: Database) -> None:
    row = "INSERT INTO state (key, value, expires_us) VALUES ('k', 'v', 1)"
    with pytest.raises(RuntimeError, match="half-way"):  # noqa: PT012 - what fails is in it
        async with database.write() as connection:
            await connection.execute(text(row))
            raise RuntimeError("half-way")
    async with database.read() as connection:
        assert (await connection.execute(text("SELECT count(*) FROM state"))).scalar() == 0


@pytest.mark.slow
async def test_real_processes_that_start_at_once_all_start(empty_database_url: str) -> None:
    code = (
        "import asyncio, sys\n"
        "from assay.db.engine import Database\n"
        "async def main():\n"
        "    database = await Database.open(sys.argv[1])\n"
        "    await database.migrate()\n"
        "    await database.close()\n"
        "asyncio.run(main())\n"
    )
    command = [sys.executable, "-c", code, empty_database_url]
    started = [await asyncio.create_subprocess_exec(*command, cwd=SOURCE) for _ in range(3)]
    assert [await one.wait() for one in started] == [0, 0, 0]


def test_the_newest_migration_is_the_one_a_start_looks_for() -> None:
    config = Config()
    config.set_main_option("script_location", "assay.db:migrations")
    config.set_main_option("path_separator", "os")
    assert ScriptDirectory.from_config(config).get_heads() == [HEAD]


async def test_a_database_that_is_up_to_date_is_left_as_it_is(database: Database) -> None:
    await SqlKeyAgentStore(database).remember(KeyAgent("0x1", NOW))
    await database.migrate()
    assert await SqlKeyAgentStore(database).find("0x1") == KeyAgent("0x1", NOW)


@pytest.mark.parametrize(
    "url",
    ["", "mysql://h/d", "sqlite://", "sqlite:///", "sqlite:///:memory:", "nonsense", "http://x"],
)
async def test_other_urls_are_refused_without_repeating_them(url: str) -> None:
    with pytest.raises(DatabaseUrlError, match=r"^the database URL"):
        await Database.open(url)


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    database = await Database.open("postgresql://u:hush@127.0.0.1:9/d")
    with pytest.raises(Unavailable) as refusal:
        await database.ping()
    assert "hush" not in refusal.value.message
    await database.close()


async def test_a_server_that_came_back_is_used_again() -> None:
    database = await Database.open(postgres().new_database())
    await database.ping()
    postgres().drop_connections()
    await database.ping()
    await database.close()


async def test_closing_waits_for_what_is_under_way_and_lets_nothing_begin(
    database_url: str,
) -> None:
    """Work of callers that are gone goes on: it must find no pool that opens files again."""
    database = await Database.open(database_url)
    await database.migrate()
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        async with database.write() as connection:
            await connection.execute(text("DELETE FROM state"))
            begun.set()
            await go_on.wait()

    working = asyncio.ensure_future(work())
    await begun.wait()
    closing = asyncio.ensure_future(database.close())
    await asyncio.sleep(0)
    with pytest.raises(Unavailable, match="closed"):
        await database.ping()
    assert not closing.done()
    go_on.set()
    await working
    await closing


async def test_a_file_that_is_no_database_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "assay.db").write_bytes(b"this is no database" * 100)
    database = await Database.open(f"sqlite:///{tmp_path / 'assay.db'}")
    with pytest.raises(Unavailable):
        await database.migrate()
    await database.close()


async def test_writers_wait_for_each_other_instead_of_failing(tmp_path: Path) -> None:
    """SQLite has one writer; another process that writes for a while only delays us."""
    database = await Database.open(f"sqlite:///{tmp_path / 'assay.db'}")
    await database.migrate()
    other = sqlite3.connect(tmp_path / "assay.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")

    async def write() -> None:
        async with database.write() as connection:
            await connection.execute(text("DELETE FROM state"))

    waiting = asyncio.ensure_future(write())
    await asyncio.sleep(0.2)
    assert not waiting.done()
    other.execute("COMMIT")
    other.close()
    await asyncio.wait_for(waiting, 5)
    await database.close()
