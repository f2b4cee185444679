"""`assay migrate --plan`: what would run, what it locks, and that it changes nothing."""

from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.db.engine import HEAD, Database
from assay.db.migration_plan import SchemaTooNew, configured, planned, scripts
from tests.support.commands import command as assay
from tests.support.databases import migrated_sqlite
from tests.support.postgres import postgres

_LOCKED = text(
    "SELECT DISTINCT relname FROM pg_locks JOIN pg_class ON pg_class.oid = relation"
    " WHERE pid = pg_backend_pid() AND relkind = 'r' AND relnamespace = 'public'::regnamespace"
    " AND mode IN ('AccessExclusiveLock', 'ShareLock')"
)
_FILES = text(
    "SELECT relname, relfilenode FROM pg_class"
    " WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
)


async def to(database: Database, revision: str) -> None:
    async with database.write(60) as connection:
        await connection.run_sync(
            lambda sync: command.upgrade(configured(connection=sync), revision)
        )


async def files(connection: AsyncConnection) -> dict[str, int]:
    """The file of each table: another one after a rewrite."""
    return {str(name): int(file) for name, file in (await connection.execute(_FILES)).all()}


async def test_a_database_of_an_earlier_version_lacks_what_came_after_it(
    empty_database_url: str,
) -> None:
    database = await Database.open(empty_database_url)
    current, lacking = await database.plan()
    assert (current, lacking[0].revision, lacking[-1].revision) == (None, "0001", HEAD)
    await to(database, "0041")
    before, lacking = await database.plan()
    assert (before, lacking[0].revision) == ("0041", "0042")
    assert await database.revision() == "0041"  # nothing has run
    assert lacking[0].says[0].startswith("Policies of the gate")
    await to(database, "head")
    assert await database.plan() == (HEAD, [])
    await database.close()


async def test_a_database_newer_than_the_code_has_no_plan(database: Database) -> None:
    async with database.write() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(SchemaTooNew, match="9999"):
        await database.plan()


@pytest.mark.slow
async def test_no_migration_locks_or_rewrites_a_table_that_its_plan_does_not_name() -> None:
    """Each migration is run on PostgreSQL, and the locks of its transaction are read."""
    database = await Database.open(postgres().new_database())
    for one in planned(scripts(), None):
        async with database.write(60) as connection:
            before = await files(connection)
            await connection.run_sync(
                lambda sync, to=one.revision: command.upgrade(configured(connection=sync), to)
            )
            locked = set((await connection.execute(_LOCKED)).scalars()) & before.keys()
            after = await files(connection)
        rewritten = {table for table, file in before.items() if after.get(table) != file}
        said = "\n".join(one.effects)
        if "its file" not in said:
            unsaid = {table for table in locked if f" {table}:" not in said}
            assert unsaid - {"alembic_version"} == set(), one
        assert rewritten == set(), one
    await database.close()


def asked(folder: Path) -> tuple[int, str]:
    done = assay(
        *("migrate", "--plan"),
        environment={"ASSAY_DATA_DIR": str(folder), "PATH": "/usr/bin:/bin"},
    )
    return done.returncode, done.stdout


def test_the_command_shows_the_plan_and_creates_nothing(tmp_path: Path) -> None:
    code, text_ = asked(tmp_path / "none")
    assert code == 0
    assert text_.startswith("the database has no schema yet: ")
    assert f"\n{HEAD}  " in text_
    assert "- makes the table payments" in text_
    assert not (tmp_path / "none").exists()
    migrated_sqlite(tmp_path / "assay.db")
    assert asked(tmp_path) == (0, f"the schema is {HEAD}: nothing would run\n")
