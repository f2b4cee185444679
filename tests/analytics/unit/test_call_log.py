"""Calls on their way into the log, over a store that refuses, breaks, and forgets to answer."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.analytics import log as call_log
from assay.analytics.log import CallLog
from assay.analytics.model import BatchId, CallLogEntry, CallsRefused
from assay.common.errors import Unavailable
from tests.support.fakes.calls import call

AT = datetime(2026, 3, 1, tzinfo=UTC)


class Store:
    """Refuses batches with the paths in `bad`; `fates` say how each write ends."""

    def __init__(self, bad: frozenset[str] = frozenset(), fates: Sequence[str] = ()) -> None:
        self.rows: list[str] = []
        self.bad = bad
        self.fates = list(fates)
        self.seen: set[BatchId] = set()
        self.tries = 0

    async def add(self, batch: Sequence[CallLogEntry], batch_id: BatchId | None = None) -> None:
        assert batch_id is not None
        self.tries += 1
        fate = self.fates.pop(0) if self.fates else "fine"
        if fate == "down":
            raise Unavailable("x")
        if any(row.kind.path in self.bad for row in batch):
            raise CallsRefused("too long")
        if batch_id not in self.seen:
            self.seen.add(batch_id)
            self.rows += [row.kind.path for row in batch]
        if fate == "lost":
            raise Unavailable("x")
        if fate == "cut":
            raise asyncio.CancelledError

    async def recent(self, operator_id: str, limit: int) -> Sequence[CallLogEntry]:
        raise NotImplementedError


def add(log: CallLog, count: int) -> list[str]:
    paths = [f"/{n}" for n in range(count)]
    for path in paths:
        log.add(call("op", "w", AT, path=path))
    return paths


async def settle(log: CallLog, store: Store) -> None:
    for _ in range(len(store.fates) + 1):
        try:
            await log.flush()
        except (Unavailable, asyncio.CancelledError):
            assert log.is_behind


@given(
    st.integers(0, 60),
    st.frozensets(st.integers(0, 59), max_size=8),
    st.lists(st.sampled_from(["fine", "down", "lost", "cut"]), max_size=30),
)
def test_every_good_row_is_stored_once_and_in_order_whatever_happens(
    count: int, bad: frozenset[int], fates: list[str]
) -> None:
    async def run() -> None:
        store, dropped = Store(frozenset(f"/{n}" for n in bad), fates), list[str]()
        log = CallLog(store, lambda row, _why: dropped.append(row.kind.path))
        paths = add(log, count)
        await settle(log, store)
        assert store.rows == [path for path in paths if path not in store.bad]
        assert dropped == [path for path in paths if path in store.bad]
        assert (log.refused, log.waiting, log.is_behind) == (len(dropped), 0, False)

    asyncio.run(run())


async def test_a_bad_row_costs_few_writes() -> None:
    store = Store(frozenset({"/17"}))
    log = CallLog(store)
    add(log, 5000)
    await log.flush()
    assert len(store.rows) == 4999
    assert store.tries <= 2 * 13 + 1  # two for each halving of 5000


async def test_a_store_that_is_down_costs_the_oldest_rows_and_they_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(call_log, "WAITING_MAX", 10)
    store = Store(fates=["down"])
    log = CallLog(store)
    paths = add(log, 25)
    assert (log.dropped, log.waiting) == (15, 10)
    with pytest.raises(Unavailable):
        await log.flush()
    assert (store.rows, log.waiting) == ([], 10)
    await log.flush()
    assert store.rows == paths[15:]
