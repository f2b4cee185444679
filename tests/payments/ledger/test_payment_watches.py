"""When payments are looked at again, on every database: shared by processes; revenue follows."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from assay.analytics.store_analytics import SqlAnalyticsStore
from assay.analytics.store_rollups import SqlRollupProof
from assay.db.engine import Database
from assay.payments.model import ENDED, LOOKS, DirectFee, LedgerEntry, PaymentState, watched_payment
from assay.payments.outcomes import SettlementAttempt
from assay.payments.store import SqlLedgerStore
from assay.payments.store_watches import SqlWatchStore
from assay.payments.watcher import plan_of
from tests.payments.ledger.test_ledger_store import CLOCK, HOUR, NETWORK, entry
from tests.support.fakes.calls import counted_ledger
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.ledger_moves import moved_on

LONG = timedelta(days=1)


@pytest.fixture
def ledger(database: Database) -> SqlLedgerStore:
    return counted_ledger(database, CLOCK)


@pytest.fixture
def watches(database: Database) -> SqlWatchStore:
    return SqlWatchStore(database)


async def settled(ledger: SqlLedgerStore, nonce: str = "0x1") -> LedgerEntry:
    made = (await ledger.claim(entry(nonce), CLOCK.now() - HOUR)).entry
    return await moved(ledger, made, PaymentState.SETTLED)


async def moved(ledger: SqlLedgerStore, made: LedgerEntry, state: PaymentState) -> LedgerEntry:
    found = await moved_on(ledger, made, state, attempt=SettlementAttempt("0x" + "ee" * 32))
    assert found is not None
    return found


async def due(watches: SqlWatchStore, after: timedelta, limit: int = 100) -> list[str]:
    now = CLOCK.now() + after
    return [one.id for one in await watches.claim_due(NETWORK, now, now + HOUR, limit)]


async def funnel(database: Database) -> tuple[int, int, int]:
    """Revenue, settled and failed; proven against the ledger."""
    assert not any((await SqlRollupProof(database).differences()).values())
    stats = await SqlAnalyticsStore(database).stats("op", 0)
    return stats.total.revenue, stats.funnel.settled, stats.funnel.failed


async def test_a_settled_payment_is_due_once_and_an_open_one_never(
    ledger: SqlLedgerStore, watches: SqlWatchStore
) -> None:
    made = await settled(ledger)
    opened = (await ledger.claim(entry("0x2"), CLOCK.now() - HOUR)).entry
    await moved(ledger, opened, PaymentState.PENDING)
    assert await due(watches, LOOKS[0] - timedelta(seconds=1)) == []
    assert await due(watches, LOOKS[0]) == [made.id]
    assert await due(watches, LOOKS[0]) == []
    assert await due(watches, LOOKS[0] + HOUR) == [made.id]  # a process that died meanwhile


async def test_delivering_it_changes_nothing_of_when_it_is_looked_at(
    ledger: SqlLedgerStore, watches: SqlWatchStore
) -> None:
    made = await settled(ledger)
    await watches.plan([plan_of(made, CLOCK.now() + HOUR)])
    await moved(ledger, made, PaymentState.DELIVERED)
    assert await due(watches, HOUR - timedelta(seconds=1)) == []
    assert await due(watches, HOUR) == [made.id]


async def test_many_processes_share_what_is_due(
    ledger: SqlLedgerStore, watches: SqlWatchStore
) -> None:
    made = [(await settled(ledger, f"0x{n}")).id for n in range(40)]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(due(watches, LONG, 15)) for _ in range(6)]
    found = [one for task in tasks for one in task.result()]
    while more := await due(watches, LONG, 15):
        found += more
    assert sorted(found) == sorted(made)


async def test_an_open_one_is_left_to_the_reconciler_until_it_has_settled(
    ledger: SqlLedgerStore, watches: SqlWatchStore
) -> None:
    """It was to be looked at when it was claimed. A look that is under way when it settles would
    say that it is done with."""
    made = (await ledger.claim(entry(), CLOCK.now() - HOUR)).entry
    opened = await moved(ledger, made, PaymentState.PENDING)
    assert [await due(watches, LONG), await due(watches, 2 * LONG)] == [[], []]
    paid = await moved(ledger, opened, PaymentState.SETTLED)
    assert await due(watches, LOOKS[0]) == [paid.id]


async def test_what_is_final_is_never_due_again(
    ledger: SqlLedgerStore, watches: SqlWatchStore
) -> None:
    made = await settled(ledger)
    await watches.plan([plan_of(made, None)])
    await watches.plan([plan_of(made, CLOCK.now())])  # of a process that was slow
    assert await due(watches, LONG) == []


async def test_a_reversed_payment_takes_its_revenue_back_on_the_day_it_had_settled(
    database: Database, watches: SqlWatchStore
) -> None:
    clock = FrozenClock()
    ledger = counted_ledger(database, clock)
    made, other = await settled(ledger), await settled(ledger, "0x2")
    assert await funnel(database) == (20, 2, 0)
    clock.move(3 * 86_400)
    reversed_ = await ledger.move(made, PaymentState.REVERSED, reason="expired_unused")
    assert reversed_ is not None
    assert await funnel(database) == (10, 1, 0)
    assert await due(watches, LONG) == [other.id]
    day = int(CLOCK.now().timestamp()) // 86_400
    days = await SqlAnalyticsStore(database).days("op", day, day + 5)
    assert {number: counted.revenue for number, counted in days.items()} == {day: 10}


async def test_a_failed_payment_is_looked_at_once_its_authorisation_has_ended(
    database: Database, ledger: SqlLedgerStore, watches: SqlWatchStore
) -> None:
    """Whoever has it may still submit it: the payee then has the money."""
    made = (await ledger.claim(entry(), CLOCK.now() - HOUR)).entry
    failed = await moved(ledger, made, PaymentState.FAILED)
    assert await funnel(database) == (0, 0, 1)
    assert await due(watches, HOUR) == []
    assert await due(watches, HOUR + ENDED) == [failed.id]
    await moved(ledger, failed, PaymentState.SETTLED)
    assert await funnel(database) == (10, 1, 0)


async def test_one_that_nobody_can_submit_any_more_is_not_looked_at(
    ledger: SqlLedgerStore, watches: SqlWatchStore
) -> None:
    made = (await ledger.claim(entry(), CLOCK.now() - HOUR)).entry
    failed = await moved_on(ledger, made, PaymentState.FAILED, reason="authorization_cancelled")
    assert failed is not None
    assert await due(watches, LONG) == []


async def test_one_that_failed_when_it_had_ended_is_not_looked_at(
    ledger: SqlLedgerStore, watches: SqlWatchStore
) -> None:
    ended = entry("0x1", expires_at=CLOCK.now() - HOUR)
    made = (await ledger.claim(ended, CLOCK.now() - HOUR)).entry
    await moved(ledger, made, PaymentState.FAILED)
    assert await due(watches, LONG) == []


async def test_a_late_look_writes_nothing_over_what_has_moved(ledger: SqlLedgerStore) -> None:
    made = await settled(ledger)
    delivered = await moved(ledger, made, PaymentState.DELIVERED)
    assert await ledger.move(made, PaymentState.REVERSED) is None
    assert await ledger.find(made.network, made.digest) == replace(delivered)


async def test_a_plan_that_was_made_of_another_state_changes_nothing(
    ledger: SqlLedgerStore, watches: SqlWatchStore
) -> None:
    """A slow watcher that knows it as failed must not end the looks of what has settled since."""
    made = (await ledger.claim(entry(), CLOCK.now() - HOUR)).entry
    failed = await moved(ledger, made, PaymentState.FAILED)
    paid = await moved(ledger, failed, PaymentState.SETTLED)
    await watches.plan([plan_of(failed, None)])
    assert await due(watches, LOOKS[0]) == [paid.id]


async def test_what_is_claimed_is_what_the_ledger_has(
    ledger: SqlLedgerStore, watches: SqlWatchStore
) -> None:
    fee = DirectFee("0x" + "fe" * 20, 3)
    made = (await ledger.claim(replace(entry(), direct_fee=fee), CLOCK.now() - HOUR)).entry
    paid = await moved(ledger, made, PaymentState.SETTLED)
    now = CLOCK.now() + LONG
    assert await watches.claim_due(NETWORK, now, now, 1) == [
        watched_payment(paid, "0x" + "ee" * 32)
    ]
    assert await watches.entries([paid.id, "another"]) == [paid]
