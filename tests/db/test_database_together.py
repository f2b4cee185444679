"""Short transactions that share a commit: each stands or falls alone, none is answered early."""

import asyncio
import sqlite3
import time
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path

import pytest
from sqlalchemy import bindparam, text

from assay.common.errors import InvalidRequest, Unavailable
from assay.db.engine import Database
from assay.db.group_commit import AT_ONCE, GroupCommitWriter
from assay.db.sql_transaction import SqlTransaction, Work
from tests.support.databases import migrated_sqlite

ADD = text("INSERT INTO key_agents (address, verified_us) VALUES (:address, 1)")
ADDRESSES = text("SELECT address FROM key_agents ORDER BY address")
STATE = text("SELECT count(*) AS total FROM key_agents WHERE address = :address")
NOWHERE = text("INSERT INTO paid_responses VALUES ('none', 200, '[]', 'x', 1, '')")
LATER = text("PRAGMA defer_foreign_keys = ON")


def adding(address: str) -> Work[int]:
    return lambda transaction: transaction.change(ADD, {"address": address})


async def addresses(database: Database) -> list[str]:
    return [
        row["address"]
        for row in await database.look(lambda transaction: transaction.rows(ADDRESSES, {}))
    ]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.db"


@pytest.fixture
async def sqlite(path: Path) -> AsyncGenerator[Database]:
    opened = await Database.open(migrated_sqlite(path), use_s=2)
    yield opened
    await opened.close()


class Turns(AbstractAsyncContextManager[None]):
    """Counts transactions."""

    def __init__(self) -> None:
        self.taken = 0

    async def __aenter__(self) -> None:
        self.taken += 1

    async def __aexit__(self, *_: object) -> None:
        return None


async def test_what_is_changed_is_there_when_it_is_answered(database: Database) -> None:
    await database.change(adding("0x1"))
    assert await addresses(database) == ["0x1"]


async def test_one_that_fails_is_undone_and_fails_nobody_else(database: Database) -> None:
    async def fails(transaction: SqlTransaction) -> None:
        await transaction.change(ADD, {"address": "0xbad"})
        raise ValueError("no")

    works: list[Work[object]] = [adding("0x1"), fails, adding("0x2"), fails, adding("0x3")]
    results = await asyncio.gather(  # noqa: TID251 - failures are what is looked at
        *(database.change(work) for work in works), return_exceptions=True
    )
    assert [type(result) for result in results] == [int, ValueError, int, ValueError, int]
    assert await addresses(database) == ["0x1", "0x2", "0x3"]


async def test_work_that_is_sure_and_fails_before_any_change_fails_alone(
    database: Database,
) -> None:
    works = [adding("0x\0"), adding("0x2")]
    results = await asyncio.gather(  # noqa: TID251
        *(database.change(work, is_sure=True) for work in works), return_exceptions=True
    )
    assert [type(result) for result in results] == [InvalidRequest, int]
    assert await addresses(database) == ["0x2"]


async def test_work_that_is_sure_and_fails_after_a_change_is_undone_with_all_beside_it(
    sqlite: Database,
) -> None:
    async def fails(transaction: SqlTransaction) -> None:
        await transaction.change(ADD, {"address": "0xbad"})
        raise ValueError("no")

    results = await asyncio.gather(  # noqa: TID251
        sqlite.change(adding("0x1")),
        sqlite.change(fails, is_sure=True),
        sqlite.change(adding("0x2"), is_sure=True),
        return_exceptions=True,
    )
    assert [type(result) for result in results] == [Unavailable] * 3
    assert await addresses(sqlite) == []
    await sqlite.change(adding("0x3"))
    assert await addresses(sqlite) == ["0x3"]


async def test_nothing_is_stored_after_the_database_has_undone_a_transaction_itself(
    sqlite: Database,
) -> None:
    """A rollback in the middle stands for a disk that is full."""

    async def undone(transaction: SqlTransaction) -> None:
        await transaction.connection.exec_driver_sql("ROLLBACK")
        raise OSError("the disk is full")

    results = await asyncio.gather(  # noqa: TID251
        sqlite.change(undone, is_sure=True),
        sqlite.change(adding("0x1"), is_sure=True),
        return_exceptions=True,
    )
    assert [type(result) for result in results] == [Unavailable] * 2
    assert await addresses(sqlite) == []


async def test_a_row_that_breaks_a_constraint_fails_alone(database: Database) -> None:
    works = [adding("0x1"), adding("0x1"), adding("0x2")]
    results = await asyncio.gather(  # noqa: TID251
        *(database.change(work) for work in works), return_exceptions=True
    )
    assert sum(isinstance(result, Exception) for result in results) == 1
    assert await addresses(database) == ["0x1", "0x2"]


async def test_text_no_database_can_hold_fails_its_sender_alone(database: Database) -> None:
    works = [adding("0x\0"), adding("0x2")]
    results = await asyncio.gather(  # noqa: TID251
        *(database.change(work) for work in works), return_exceptions=True
    )
    assert isinstance(results[0], InvalidRequest)
    assert await addresses(database) == ["0x2"]


async def test_what_waits_together_is_committed_together(sqlite: Database, path: Path) -> None:
    del sqlite  # has made the tables
    turns = Turns()
    lane = GroupCommitWriter(str(path), 1.0, turns, writes=True)
    count = AT_ONCE * 3
    async with asyncio.TaskGroup() as group:
        for n in range(count):
            group.create_task(lane.do(adding(f"0x{n}"), 15.0))
    assert turns.taken == 3
    lane.close()
    with sqlite3.connect(path) as other:
        assert other.execute("SELECT count(*) FROM key_agents").fetchone() == (count,)
    other.close()


async def test_a_commit_that_fails_is_told_to_all_whose_work_was_in_it(sqlite: Database) -> None:
    """A foreign key that is judged at the commit stands for a disk that fails there."""

    async def breaks_at_the_commit(transaction: SqlTransaction) -> None:
        await transaction.change(LATER, {})
        await transaction.change(NOWHERE, {})

    works: list[Work[object]] = [adding("0x1"), breaks_at_the_commit, adding("0x2")]
    results = await asyncio.gather(  # noqa: TID251
        *(sqlite.change(work) for work in works), return_exceptions=True
    )
    assert all(isinstance(result, Exception) for result in results)
    assert await addresses(sqlite) == []
    await sqlite.change(adding("0x3"))
    assert await addresses(sqlite) == ["0x3"]


async def test_work_whose_caller_has_gone_before_it_began_is_left_out(sqlite: Database) -> None:
    async with sqlite.write():  # holds the turn
        gone = asyncio.ensure_future(sqlite.change(adding("0xgone")))
        stays = asyncio.ensure_future(sqlite.change(adding("0xstays")))
        await asyncio.sleep(0.05)
        gone.cancel()
        with suppress(asyncio.CancelledError):
            await gone
    await stays
    assert await addresses(sqlite) == ["0xstays"]


async def test_readers_wait_for_no_writer(sqlite: Database) -> None:
    await sqlite.change(adding("0x1"))
    async with asyncio.timeout(1), sqlite.write() as connection:
        await connection.execute(text("DELETE FROM key_agents"))
        assert await addresses(sqlite) == ["0x1"]


async def test_a_lock_of_another_program_is_waited_for_within_the_limit(path: Path) -> None:
    database = await Database.open(f"sqlite:///{path}", use_s=0.3)
    await database.migrate()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    for _ in range(2):
        with pytest.raises(Unavailable):
            await database.change(adding("0x1"))
    other.execute("COMMIT")
    other.close()
    await database.change(adding("0x2"))
    assert await addresses(database) == ["0x2"]
    await database.close()


async def test_a_shared_commit_survives_a_power_cut(sqlite: Database) -> None:
    """`synchronous=FULL` (2): what is answered is on the disk."""
    found = await sqlite.change(
        lambda transaction: transaction.rows(text("PRAGMA synchronous"), {})
    )
    assert found[0]["synchronous"] == 2


async def test_work_that_waits_for_something_else_is_a_mistake_and_undone(
    sqlite: Database,
) -> None:
    async def waits(transaction: SqlTransaction) -> None:
        await transaction.change(ADD, {"address": "0x1"})
        await asyncio.sleep(0)

    with pytest.raises(TypeError, match="waited"):
        await sqlite.change(waits)
    assert await addresses(sqlite) == []


async def test_statements_may_carry_values_of_their_own(database: Database) -> None:
    await database.change(adding("0x1"))
    statement = STATE.bindparams(bindparam("address", "0x1"))
    rows = await database.look(lambda transaction: transaction.rows(statement, {}))
    assert rows[0]["total"] == 1


async def test_work_that_has_begun_ends_before_the_lane_does_and_the_rest_is_told(
    sqlite: Database, path: Path
) -> None:
    lane = GroupCommitWriter(str(path), 1.0, Turns(), writes=True)

    async def slow(transaction: SqlTransaction) -> None:
        time.sleep(0.2)  # noqa: ASYNC251 - in the lane's thread, where nothing else waits
        await transaction.change(ADD, {"address": "0xbegun"})

    begun = asyncio.ensure_future(lane.do(slow, 15.0))
    await asyncio.sleep(0.05)
    waits = asyncio.ensure_future(lane.do(adding("0xwaits"), 15.0))
    await asyncio.sleep(0)
    await asyncio.to_thread(lane.close)
    await begun
    for late in (waits, lane.do(adding("0xlate"), 15.0)):
        with pytest.raises(Unavailable):
            await late
    assert await addresses(sqlite) == ["0xbegun"]
