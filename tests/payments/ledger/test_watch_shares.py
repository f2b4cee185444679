"""Looks of money that came in have a share of their own, whatever strangers leave to look at."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

import pytest
from sqlalchemy import insert, text

from assay.db.engine import Database
from assay.db.schema.everything import payments
from assay.payments.model import LedgerEntry, PaymentState, WatchedPayment
from assay.payments.store import values_of
from assay.payments.store_watches import SqlWatchStore
from tests.payments.ledger.test_ledger_store import CLOCK, HOUR, NETWORK, entry

AT_MOST = 200


@pytest.fixture
def watches(database: Database) -> SqlWatchStore:
    return SqlWatchStore(database)


async def watched(database: Database, entries: Sequence[LedgerEntry], *, before: timedelta) -> None:
    """Put rows into the ledger that have been due for a while, one longer than the next."""
    rows = [
        {
            **values_of(one),
            "watch_us": int((CLOCK.now() - before).timestamp() * 1e6) + number,
        }
        for number, one in enumerate(entries)
    ]
    async with database.write() as connection:
        await connection.execute(insert(payments), rows)


def released(number: int, payer: str = "") -> LedgerEntry:
    who = payer or f"0x{number:040x}"
    return entry(f"0xa{number}", payer=who, state=PaymentState.RELEASED)


def settled(number: int) -> LedgerEntry:
    return entry(f"0xb{number}", state=PaymentState.SETTLED, settled_at=CLOCK.now() - HOUR)


async def due(watches: SqlWatchStore) -> list[WatchedPayment]:
    now = CLOCK.now()
    return list(await watches.claim_due(NETWORK, now, now + HOUR, AT_MOST))


async def test_2000_released_rows_do_not_delay_the_look_of_one_that_paid(
    database: Database, watches: SqlWatchStore
) -> None:
    await watched(database, [released(n) for n in range(2000)], before=HOUR)
    real = settled(1)
    await watched(database, [real], before=timedelta(seconds=1))
    found = await due(watches)
    assert len(found) == AT_MOST
    assert real.id in {one.id for one in found}


async def test_a_payer_who_left_many_released_rows_does_not_delay_anothers(
    database: Database, watches: SqlWatchStore
) -> None:
    await watched(database, [released(n, "0x" + "ee" * 20) for n in range(1500)], before=HOUR)
    others = [released(5000 + n) for n in range(20)]
    await watched(database, others, before=timedelta(seconds=1))
    found = await due(watches)
    assert {one.id for one in others} <= {one.id for one in found}
    assert len(found) == AT_MOST


async def test_looks_of_money_leave_a_quarter_to_what_ended_unpaid(
    database: Database, watches: SqlWatchStore
) -> None:
    await watched(database, [settled(n) for n in range(300)], before=HOUR)
    await watched(database, [released(n) for n in range(300)], before=HOUR)
    states = Counter(one.state for one in await due(watches))
    assert states == {PaymentState.SETTLED: 150, PaymentState.RELEASED: 50}
    rest = Counter(one.state for one in await due(watches))
    assert rest == {PaymentState.SETTLED: 150, PaymentState.RELEASED: 50}
    assert Counter(one.state for one in await due(watches)) == {PaymentState.RELEASED: 200}


async def test_the_looks_are_found_by_their_indexes(database: Database) -> None:
    if database.kind != "sqlite":
        return
    await watched(database, [released(1)], before=HOUR)
    async with database.read() as connection:
        for condition, index in (("NOT NULL", "settled"), ("NULL", "unpaid")):
            plan = await connection.execute(
                text(
                    "EXPLAIN QUERY PLAN SELECT id FROM payments"  # noqa: S608
                    " WHERE network = :network"
                    f" AND watch_us <= :now AND settled_us IS {condition}"
                    " ORDER BY watch_us LIMIT 200"
                ),
                {"network": NETWORK, "now": 1},
            )
            assert f"ix_payments_watch_{index}" in " ".join(str(row) for row in plan)


async def test_each_network_has_looks_of_its_own(
    database: Database, watches: SqlWatchStore
) -> None:
    others = [
        entry(f"0xc{n}", network="eip155:1", state=PaymentState.RELEASED) for n in range(AT_MOST)
    ]
    await watched(database, others, before=HOUR)
    real = settled(1)
    await watched(database, [real], before=timedelta(seconds=1))
    assert [one.id for one in await due(watches)] == [real.id]
