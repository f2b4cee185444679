"""The ledger writes the moves of the table and no other, on every database."""

from dataclasses import replace
from datetime import timedelta

import pytest

from assay.db.engine import Database
from assay.payments.model import TRANSITIONS, IllegalTransition, LedgerEntry, PaymentState
from assay.payments.outcomes import Look
from assay.payments.store import SqlLedgerStore
from tests.payments.ledger.test_ledger_store import CLOCK, HOUR, due, entry
from tests.support.fakes.ledger_moves import moved_on

ENDED = CLOCK.now() - HOUR
"""When a lease was over."""


@pytest.fixture
def ledger(database: Database) -> SqlLedgerStore:
    return SqlLedgerStore(database, CLOCK)


async def moved_to(
    ledger: SqlLedgerStore, state: PaymentState, nonce: str, **fields: object
) -> LedgerEntry:
    """An entry in that state, by legal moves."""
    found = (await ledger.claim(entry(nonce, **fields), CLOCK.now() - HOUR)).entry
    moved = found if state is PaymentState.CLAIMED else await moved_on(ledger, found, state)
    assert moved is not None
    return moved


async def read(ledger: SqlLedgerStore, known: LedgerEntry) -> LedgerEntry:
    found = await ledger.find(known.network, known.digest)
    assert found is not None
    return found


@pytest.mark.parametrize("before", PaymentState)
async def test_a_payment_is_moved_only_as_the_table_has_it(
    ledger: SqlLedgerStore, before: PaymentState
) -> None:
    for after in PaymentState:
        known = await moved_to(ledger, before, f"0x{after}")
        if after in TRANSITIONS[before]:
            moved = await ledger.move(known, after)
            assert moved is not None
            assert ((await read(ledger, known)).state, moved.moves) == (after, known.moves + 1)
        else:
            with pytest.raises(IllegalTransition):
                await ledger.move(known, after)
            assert await read(ledger, known) == known


@pytest.mark.parametrize("before", PaymentState)
async def test_only_what_is_being_settled_is_put_off(
    ledger: SqlLedgerStore, before: PaymentState
) -> None:
    known = await moved_to(ledger, before, "0x1")
    if PaymentState.PENDING in TRANSITIONS[before]:
        await ledger.put_off([known])
        assert (await read(ledger, known)).state is PaymentState.PENDING
    else:
        with pytest.raises(IllegalTransition):
            await ledger.put_off([known])
        assert await read(ledger, known) == known


@pytest.mark.parametrize("before", PaymentState)
async def test_an_outage_puts_off_only_what_is_being_settled(
    ledger: SqlLedgerStore, before: PaymentState
) -> None:
    known = await moved_to(ledger, before, "0x1", lease_until=ENDED)
    later = Look(CLOCK.now() + HOUR, misses=1)
    await ledger.put_off_all(known, later, "no node answers")
    found = await read(ledger, known)
    if PaymentState.PENDING in TRANSITIONS[before]:
        assert (found.state, found.look.at) == (PaymentState.PENDING, later.at)
    else:
        assert found == known


@pytest.mark.parametrize("before", PaymentState)
@pytest.mark.parametrize("is_abandoned", [False, True])
async def test_only_what_was_released_or_abandoned_is_claimed_anew(
    ledger: SqlLedgerStore, before: PaymentState, *, is_abandoned: bool
) -> None:
    lease = ENDED if is_abandoned else CLOCK.now() + HOUR
    known = await moved_to(ledger, before, "0x1", lease_until=lease)
    claim = await ledger.claim(entry("0x1"), CLOCK.now() - HOUR)
    is_free = before is PaymentState.RELEASED or (before is PaymentState.CLAIMED and is_abandoned)
    assert claim.is_ours is is_free
    assert claim.entry.id == known.id
    assert (await read(ledger, known)).state is (PaymentState.CLAIMED if is_free else before)


@pytest.mark.parametrize("before", PaymentState)
async def test_only_what_is_being_settled_is_leased_to_be_finished(
    ledger: SqlLedgerStore, before: PaymentState
) -> None:
    known = await moved_to(ledger, before, "0x1", lease_until=ENDED)
    leased = await ledger.lease_unfinished(due(), CLOCK.now() + HOUR)
    assert [one.id for one in leased] == [known.id] * (PaymentState.PENDING in TRANSITIONS[before])
    assert (await read(ledger, known)).state is before


@pytest.mark.parametrize("before", PaymentState)
async def test_no_move_is_made_from_an_older_reading(
    ledger: SqlLedgerStore, before: PaymentState
) -> None:
    known = await moved_to(ledger, before, "0x1")
    older = replace(known, moves=known.moves - 1)
    for after in TRANSITIONS[before]:
        assert await ledger.move(older, after, lease_until=CLOCK.now() + timedelta(1)) is None
    assert await read(ledger, known) == known
