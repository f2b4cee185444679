"""Odd URLs, hostile text, locks that are held, disks that are full: what a database must stand."""

import asyncio
import contextlib
import sqlite3
import stat
from collections.abc import AsyncGenerator, Coroutine
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from assay.accounts.store_operators import SqlApiKeyStore, SqlOperatorStore
from assay.common.errors import InvalidRequest, Unavailable
from assay.db.connect import DatabaseUrlError
from assay.db.engine import Database
from assay.identity.model import KeyAgent
from assay.key_agents.store import SqlKeyAgentStore
from tests.support.eventually import never
from tests.support.postgres import postgres

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
async def impatient(database_url: str) -> AsyncGenerator[Database]:
    """A database of each kind that gives up on every use after a moment."""
    opened = await Database.open(database_url, use_s=0.3)
    yield opened
    await opened.close()


def modes_in(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


async def remember(database: Database, address: str) -> None:
    await SqlKeyAgentStore(database).remember(KeyAgent(address, NOW))


@pytest.mark.parametrize(
    "options", ["sslmode=disable", "sslmode=prefer&application_name=assay", "statement_timeout=9s"]
)
async def test_a_postgresql_url_may_carry_the_options_of_libpq(options: str) -> None:
    database = await Database.open(f"{postgres().new_database()}?{options}")
    await database.migrate()
    await database.ping()
    await database.close()


async def test_a_postgresql_url_may_name_several_hosts() -> None:
    url = postgres().new_database()
    there = f"127.0.0.1:{postgres().port}"
    database = await Database.open(url.replace(there, f"127.0.0.1:9,{there}"))
    await database.ping()
    await database.close()


@pytest.mark.parametrize("wrong", ["?sslmode=bogus", "?no_such_option=1", "?application_name"])
async def test_a_part_that_cannot_be_used_is_refused_without_repeating_the_url(wrong: str) -> None:
    url = postgres().new_database().replace("postgres@", "postgres:hush@")
    database = await Database.open(url + wrong)
    with pytest.raises(DatabaseUrlError, match=r"^the database URL") as refusal:
        await database.ping()
    await database.close()
    assert "hush" not in str(refusal.value)


@pytest.mark.parametrize("wrong", ["postgresql://h:port/d", "postgresql://[::1/d"])
async def test_a_url_that_is_none_is_refused_when_it_is_first_used(wrong: str) -> None:
    database = await Database.open(wrong)
    with pytest.raises(DatabaseUrlError, match=r"^the database URL"):
        await database.ping()
    await database.close()


@pytest.mark.parametrize("name", ["a?b.db", "50%25.db", "a b#c.db", "\u4e2d.db"])
async def test_a_path_is_taken_as_it_is_and_the_file_is_nobody_elses(
    tmp_path: Path, name: str
) -> None:
    database = await Database.open(f"sqlite:///{tmp_path / name}")
    await database.migrate()
    modes = modes_in(tmp_path)
    await database.close()
    assert set(modes) == {name, f"{name}-wal", f"{name}-shm"}
    assert set(modes.values()) == {0o600}


@pytest.mark.parametrize("hostile", ["a\0b", "\ud800", "\udfff@x.yy"])
async def test_text_no_database_can_hold_is_its_senders_mistake(
    database: Database, hostile: str
) -> None:
    for asked in (
        SqlOperatorStore(database).find_by_email(hostile),
        SqlApiKeyStore(database).revoke("o", hostile),
        SqlApiKeyStore(database).touch({hostile: NOW, "k": NOW}),
        remember(database, hostile),
    ):
        with pytest.raises(InvalidRequest):
            await asked
    await database.ping()


@pytest.mark.parametrize("text_", ["' OR 1=1 --", "\u4e2d\U0001f600", "%", "\\", "\x01\x7f"])
async def test_any_other_text_is_held_and_found_as_it_is(database: Database, text_: str) -> None:
    await remember(database, text_)
    assert await SqlKeyAgentStore(database).find(text_) == KeyAgent(text_, NOW)
    assert await SqlKeyAgentStore(database).find(text_ + "x") is None


async def test_what_was_bound_is_in_no_error(database: Database) -> None:
    row = "INSERT INTO key_agents (address, verified_us) VALUES (:address, 1)"
    with pytest.raises(IntegrityError) as clash:  # noqa: PT012 - what fails is in it
        async with database.write() as connection:
            for _ in range(2):
                await connection.execute(text(row), {"address": "hush"})
    assert "parameters hidden" in str(clash.value)


async def test_a_writer_that_waits_too_long_is_told_so_and_holds_nobody_up_after(
    impatient: Database, database_url: str
) -> None:
    other = await Database.open(database_url)
    async with other.write() as connection:
        await other.lock(connection, "name")
        await connection.execute(text("DELETE FROM state"))
        with pytest.raises(Unavailable):
            async with impatient.write() as waiting:
                await impatient.lock(waiting, "name")
    await asyncio.sleep(0.2)
    await remember(other, "0x1")
    await remember(impatient, "0x2")
    await other.close()


async def test_a_transaction_that_takes_too_long_is_undone(impatient: Database) -> None:
    with pytest.raises(Unavailable):  # noqa: PT012 - what fails is in it
        async with impatient.write() as connection:
            await connection.execute(
                text("INSERT INTO key_agents (address, verified_us) VALUES ('0x1', 1)")
            )
            await never()
    await remember(impatient, "0x2")
    assert await SqlKeyAgentStore(impatient).find("0x1") is None
    assert await SqlKeyAgentStore(impatient).find("0x2") is not None


async def cancelled(work: Coroutine[object, object, object], after_s: float) -> None:
    task = asyncio.ensure_future(work)
    await asyncio.sleep(after_s)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def test_callers_that_go_away_leave_no_lock_and_no_connection_behind(
    database: Database,
) -> None:
    """More of them than there are connections, at every moment of a write."""
    for step in range(40):
        await cancelled(remember(database, f"0x{step}"), step * 0.0002)
        await cancelled(SqlKeyAgentStore(database).find("0x"), step * 0.0001)
    async with asyncio.TaskGroup() as group:
        for n in range(40):
            group.create_task(remember(database, f"after {n}"))
    assert await SqlKeyAgentStore(database).find("after 39") is not None


async def test_readers_do_not_wait_for_writers(tmp_path: Path) -> None:
    """A crowd of waiting writers takes none of the connections readers need."""
    database = await Database.open(f"sqlite:///{tmp_path / 'a.db'}", use_s=5)
    await database.migrate()
    async with database.write() as connection, asyncio.TaskGroup() as group:
        await connection.execute(text("DELETE FROM state"))
        waiting = [group.create_task(remember(database, f"0x{n}")) for n in range(50)]
        async with asyncio.timeout(1):
            for _ in range(20):
                await SqlKeyAgentStore(database).find("0x1")
        assert not any(task.done() for task in waiting)
        await connection.rollback()
        for task in waiting:
            task.cancel()
    await database.close()


@pytest.mark.parametrize("harm", ["max_page_count=1", "query_only=ON"])
async def test_a_full_or_read_only_disk_is_unavailable_and_what_was_there_is_still_read(
    tmp_path: Path, harm: str
) -> None:
    """SQLite raises `max_page_count` to what is in use: then there is no room for one more."""
    database = await Database.open(f"sqlite:///{tmp_path / 'a.db'}")
    await database.migrate()
    await remember(database, "0x1")
    async with database.read() as connection:
        await connection.execute(text(f"PRAGMA {harm}"))
    with pytest.raises(Unavailable):
        await remember(database, "0x" + "2" * 50_000)
    assert await SqlKeyAgentStore(database).find("0x1") is not None
    await database.close()


async def test_a_commit_survives_a_power_cut(tmp_path: Path) -> None:
    """`synchronous=FULL` (2): what guards access is on the disk when it is answered."""
    database = await Database.open(f"sqlite:///{tmp_path / 'a.db'}")
    async with database.read() as connection:
        found = [
            (await connection.execute(text(f"PRAGMA {name}"))).scalar_one()
            for name in ("journal_mode", "synchronous", "foreign_keys")
        ]
    assert found == ["wal", 2, 1]
    await database.close()


async def test_a_lock_of_another_program_is_waited_for_within_the_limit(tmp_path: Path) -> None:
    database = await Database.open(f"sqlite:///{tmp_path / 'a.db'}", use_s=0.3)
    await database.migrate()
    other = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable):
        await remember(database, "0x1")
    other.execute("COMMIT")
    other.close()
    await remember(database, "0x2")
    await database.close()
