"""The call log's writing, on every database: each call once, and a bad row alone is lost."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from assay.analytics.log import BATCH_MAX, CallLog
from assay.analytics.model import BatchId, CallLogEntry, CallsRefused
from assay.analytics.store_analytics import SqlAnalyticsStore
from assay.analytics.store_calls import SqlCallStore
from assay.analytics.store_rollups import SqlRollupProof
from assay.common.errors import Unavailable
from assay.db.engine import Database, to_us
from tests.support.fakes.calls import PAYER, call, changed

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = to_us(AT) // 86_400_000_000

FULL = changed(
    call("op", "w", AT),
    request_id="req-1",
    method="POST",
    path="/items/7?x=ü",
    agent_id="7",
    agent_address="0x" + "ab" * 20,
    identity_proven=True,
    payer=PAYER,
    client="2001:db8::1",
    tier="AAA",
    score=97.25,
    status=502,
    outcome="wrapper_request_failed",
    latency_us=12_345,
    cost=2_500_000,
    payment_id="p" * 36,
    request_bytes=2**40,
    response_bytes=2**41,
    chain="base",
    route="prod",
)

BAD: dict[str, dict[str, Any]] = {
    "a NUL character": {"path": "/\0"},
    "half a character": {"path": "/\ud800"},
    "a number too large": {"request_bytes": 2**63},
    "no wrapper": {"wrapper_id": None},
    "no status": {"status": None},
}


async def calls_of(database: Database, who: str = "op") -> int:
    return (await SqlAnalyticsStore(database).stats(who, DAY)).total.calls


async def paths_of(database: Database) -> list[str]:
    return [one.kind.path for one in reversed(await SqlCallStore(database).recent("op", 10_000))]


async def test_a_call_comes_back_as_it_was(database: Database) -> None:
    store = SqlCallStore(database)
    await store.add([FULL, call("op", "w", AT + timedelta(microseconds=1)), call("ot", "w", AT)])
    newest, oldest = await store.recent("op", 10)
    assert oldest == FULL
    assert newest == call("op", "w", AT + timedelta(microseconds=1))
    assert await store.recent("op", 1) == [newest]
    assert await store.recent("nobody", 10) == []


async def test_a_batch_is_stored_once_however_often_it_is_handed_in(database: Database) -> None:
    one, other = SqlCallStore(database), SqlCallStore(database)
    await one.add([FULL], BatchId("log", 1))
    await one.add([FULL], BatchId("log", 1))
    await other.add([FULL], BatchId("log", 1))
    assert await calls_of(database) == 1
    await one.add([FULL], BatchId("log", 2))
    await other.add([FULL], BatchId("another log", 1))
    assert await calls_of(database) == 3
    assert not any((await SqlRollupProof(database).differences()).values())


async def test_the_same_batch_from_two_at_once_is_stored_once(database: Database) -> None:
    stores = [SqlCallStore(database) for _ in range(6)]
    batch = [changed(FULL, agent_id=str(n)) for n in range(50)]
    async with asyncio.TaskGroup() as group:
        for store in stores:
            group.create_task(store.add(batch, BatchId("log", 7)))
    assert await calls_of(database) == 50
    assert not any((await SqlRollupProof(database).differences()).values())


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
async def test_a_batch_with_a_bad_row_is_refused_whole(
    database: Database, bad: dict[str, Any]
) -> None:
    store = SqlCallStore(database)
    with pytest.raises(CallsRefused):
        await store.add([FULL, changed(FULL, **bad)], BatchId("log", 1))
    assert await calls_of(database) == 0
    await store.add([FULL], BatchId("log", 1))  # nothing of the refused one was kept
    assert await calls_of(database) == 1


async def test_a_text_too_long_is_refused_and_no_outage(database: Database) -> None:
    if database.kind == "sqlite":
        pytest.skip("SQLite takes a text of any length")
    with pytest.raises(CallsRefused):
        await SqlCallStore(database).add([changed(FULL, request_id="r" * 65)])


async def test_one_bad_row_is_dropped_and_all_others_are_kept_in_order(database: Database) -> None:
    told: list[tuple[CallLogEntry, str]] = []
    log = CallLog(SqlCallStore(database), lambda row, why: told.append((row, why)))
    for n in range(100):
        log.add(call("op", "w" if n != 41 else None, AT, path=f"/{n}"))  # type: ignore[arg-type]
    await log.flush()
    assert await paths_of(database) == [f"/{n}" for n in range(100) if n != 41]
    assert [(row.kind.path, bool(why)) for row, why in told] == [("/41", True)]
    assert (log.refused, log.is_behind) == (1, False)
    assert not any((await SqlRollupProof(database).differences()).values())
    log.add(call("op", "w", AT))
    await log.flush()
    assert await calls_of(database) == 100


async def test_whatever_is_added_can_be_stored(database: Database) -> None:
    """The values are bounded when they are added: nothing a caller sends makes a row bad."""
    log = CallLog(SqlCallStore(database))
    for bad in list(BAD.values())[:3]:
        log.add(changed(FULL, **bad))
    long = {"request_id": "r", "method": "M", "path": "/", "agent_id": "7", "client": "c"}
    log.add(changed(FULL, **{name: text * 5000 for name, text in long.items()}))
    log.add(changed(FULL, score=float("nan"), latency_us=-1, response_bytes=2**70, status=2**31))
    await log.flush()
    assert (await calls_of(database), log.refused) == (5, 0)
    assert not any((await SqlRollupProof(database).differences()).values())


class Interrupted(SqlCallStore):
    """Its answer is lost once, after the commit: a cancellation or a broken connection."""

    def __init__(self, database: Database, how: BaseException) -> None:
        super().__init__(database)
        self.how: BaseException | None = how

    async def add(self, batch: Sequence[CallLogEntry], batch_id: BatchId | None = None) -> None:
        await super().add(batch, batch_id)
        how, self.how = self.how, None
        if how is not None:
            raise how


@pytest.mark.parametrize("how", [asyncio.CancelledError(), Unavailable("x")], ids=["cut", "gone"])
async def test_a_flush_interrupted_after_its_commit_counts_no_call_twice(
    database: Database, how: BaseException
) -> None:
    log = CallLog(Interrupted(database, how))
    for n in range(BATCH_MAX + 10):
        log.add(call("op", "w", AT, path=f"/{n}"))
    with pytest.raises(type(how)):
        await log.flush()
    assert log.is_behind
    await log.flush()
    assert await calls_of(database) == BATCH_MAX + 10
    assert len(set(await paths_of(database))) == BATCH_MAX + 10
    assert not log.is_behind


async def test_a_flush_cancelled_at_any_moment_counts_every_call_once(database: Database) -> None:
    log, rows = CallLog(SqlCallStore(database)), 0
    for n in range(25):
        for _ in range(20):
            log.add(call("op", "w", AT, agent_id=str(n)))
            rows += 1
        flush = asyncio.ensure_future(log.flush())
        await asyncio.sleep(0.0007 * n)
        flush.cancel()
        await asyncio.wait([flush])
    await log.flush()
    assert await calls_of(database) == rows
    assert not any((await SqlRollupProof(database).differences()).values())
