"""What wrappers have been leaves in time; what is in force, quoted or paid for stays."""

from datetime import timedelta
from typing import Any

from sqlalchemy import insert, text

from assay.admin.store_retention import SqlRetention
from assay.app.retention import Retention
from assay.db.engine import Database
from assay.db.schema.everything import payments
from assay.db.store_costs import SqlCostStore
from assay.payments.model import PaymentState
from assay.payments.store import values_of
from assay.settings import load
from assay.wrappers.store import REMOVE, SqlWrapperStore
from tests.payments.ledger.test_ledger_store import entry
from tests.support.fakes.clock import FrozenClock
from tests.wrappers.test_stores_wrappers import AT, CLOCK, add, changed, config, store

__all__ = ["store"]

LATER = AT + timedelta(days=3)


async def made(store: SqlWrapperStore, config_id: str, revisions: int) -> None:
    """A wrapper with so many revisions, one a second."""
    now = config(config_id, path=f"/{config_id}")
    assert await add(store, now)
    for number in range(1, revisions):
        now, result = await changed(store, now, number, price=number)
        assert result == "changed"


async def paid(database: Database, *numbers: int) -> None:
    """A payment of the wrapper `a` in each state, under one of the revisions each time."""
    mine: dict[str, Any] = {"operator_id": "one", "wrapper_id": "a"}
    rows = [
        values_of(entry(f"0x{number}", **mine, wrapper_revision=number, state=state))
        for number, state in zip(numbers, PaymentState, strict=True)
    ]
    async with database.write() as connection:
        await connection.execute(insert(payments), rows)


async def left(store: SqlWrapperStore, config_id: str) -> list[int]:
    found, total = await store.history("one", config_id, 1_000, 0)
    numbers = [one.config.revision for one in found]
    assert total == len(numbers)
    return numbers[::-1]


async def test_the_oldest_beyond_the_newest_few_leave_in_batches(
    store: SqlWrapperStore, database: Database
) -> None:
    await made(store, "a", 12)
    await made(store, "b", 4)
    assert await store.deactivate("one", "b")
    retention = SqlRetention(database)
    assert [await retention.remove_revisions(4, LATER, 5) for _ in range(3)] == [5, 2, 0]
    # The first says what the wrapper was made as.
    assert await left(store, "a") == [1, 9, 10, 11, 12]
    assert await left(store, "b") == [1, 2, 3, 4, 5]
    await changed(store, (await store.list("one"))[-1], 100, description="goes on")
    assert (await store.find("one", "a")) is not None


async def test_what_any_payment_was_claimed_under_stays(
    store: SqlWrapperStore, database: Database
) -> None:
    await made(store, "a", 20)
    await made(store, "b", 20)
    states = range(3, 3 + len(PaymentState))
    await paid(database, *states)
    assert await SqlRetention(database).remove_revisions(2, LATER, 100) > 0
    assert await left(store, "a") == [1, *states, 19, 20]
    assert await left(store, "b") == [1, 19, 20]
    for number in states:
        assert await store.revision("one", "a", number) is not None


async def test_what_may_still_be_quoted_stays(store: SqlWrapperStore, database: Database) -> None:
    await made(store, "a", 10)
    before = AT + timedelta(seconds=5)
    await SqlRetention(database).remove_revisions(1, before, 100)
    assert await left(store, "a") == [1, 5, 6, 7, 8, 9, 10]  # the fifth ended just then
    assert await store.quoted("one", "a", config().network, 4, before - timedelta(seconds=1))


async def test_the_setting_says_how_many_and_0_keeps_all(
    store: SqlWrapperStore, database: Database
) -> None:
    await made(store, "a", 10)
    stores = SqlRetention(database), SqlCostStore(database, CLOCK)
    soon = AT + timedelta(hours=23)
    for kept, at, found in ((0, LATER, 10), (4, soon, 10), (4, LATER, 5), (1, LATER, 2)):
        settings = load(wrapper_revisions=kept, snapshot_blocks_mib=0)
        await Retention(*stores, None, settings, FrozenClock(at)).run()  # type: ignore[arg-type]
        assert len(await left(store, "a")) == found


async def test_looking_for_payments_reads_no_other_rows(database: Database) -> None:
    """Each revision costs one search of an index, which rows of a first revision are not in."""
    async with database.read() as connection:
        if connection.dialect.name != "sqlite":
            return
        values = {"kept": 1, "before_us": 1, "limit": 1}
        plan = await connection.execute(text(f"EXPLAIN QUERY PLAN {REMOVE.text}"), values)
        steps = [row[3] for row in plan]
        assert any(step.startswith("SEARCH p USING COVERING INDEX ix_pay") for step in steps), steps
        assert any(step.startswith("SEARCH r USING ") for step in steps), steps
