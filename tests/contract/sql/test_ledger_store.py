"""The ledger, on every database: one owner a payment, no move from an old reading, exact sums."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.dialects.sqlite import dialect

from assay.infra.sql.engine import Database
from assay.infra.sql.ledger_statements import COMMITTED, FAILURES
from assay.infra.sql.payments import SqlLedgerStore
from assay.kit.ids import new_id
from assay.payments.claims import Committed
from assay.payments.model import Attempt, Entry, Fees, IdentifierReused, State, Stored
from tests.fakes.clock import FrozenClock

CLOCK = FrozenClock()
HOUR = timedelta(hours=1)


def entry(nonce: str = "0x1", amount: int = 10, **fields: object) -> Entry:
    now = CLOCK.now()
    made = Entry(
        id=new_id(),
        protocol="x402",
        network="eip155:8453",
        asset="0x" + "aa" * 20,
        payer="0x" + "bb" * 20,
        nonce=nonce,
        digest=f"digest {nonce}",
        amount=amount,
        pay_to="0x" + "cc" * 20,
        operator_id="op",
        wrapper_id="w",
        request_digest="r",
        state=State.CLAIMED,
        attempt=Attempt(""),
        reason="",
        credential={"signature": "0x"},
        version=2,
        identifier=None,
        expires_at=now + HOUR,
        lease_until=now + timedelta(seconds=30),
        created_at=now,
        updated_at=now,
    )
    return replace(made, **fields)  # type: ignore[arg-type]


@pytest.fixture
def ledger(database: Database) -> SqlLedgerStore:
    return SqlLedgerStore(database, CLOCK)


async def claim(ledger: SqlLedgerStore, made: Entry) -> tuple[bool, int]:
    found = await ledger.claim(made, CLOCK.now() - HOUR)
    return found.is_ours, found.committed.amount


def sums(committed: Committed) -> tuple[int, int]:
    return committed.amount, committed.fees


async def test_of_many_that_claim_a_payment_one_has_it(ledger: SqlLedgerStore) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(claim(ledger, entry())) for _ in range(20)]
    assert [task.result()[0] for task in tasks].count(True) == 1


async def test_what_is_in_flight_is_counted_exactly(ledger: SqlLedgerStore) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(claim(ledger, entry(f"0x{n}"))) for n in range(15)]
    assert sorted(task.result()[1] for task in tasks) == [10 * n for n in range(15)]
    assert (await ledger.committed(entry("0x3"))).amount == 140


async def test_what_was_sent_and_what_is_new_show_in_what_is_in_flight(
    ledger: SqlLedgerStore,
) -> None:
    """Equal sums may be of other payments, and what was sent may have left the balance."""
    first = (await ledger.claim(entry("0x1"), CLOCK.now() - HOUR)).entry
    claimed = await ledger.committed(entry("0x9"))
    assert claimed.sent == 0
    sent = await ledger.move(first, State.SETTLING, attempt=Attempt("0x" + "ee" * 32, "0xraw"))
    assert sent is not None
    assert await ledger.committed(entry("0x9")) == replace(claimed, sent=1)
    assert await ledger.move(sent, State.SETTLED) is not None
    later = CLOCK.now() + timedelta(seconds=1)
    await claim(ledger, entry("0x2", created_at=later, updated_at=later))
    another = await ledger.committed(entry("0x9"))
    assert (another.amount, another.sent) == (claimed.amount, 0)
    assert another != claimed


async def test_a_released_payment_may_be_claimed_anew_for_another_request(
    ledger: SqlLedgerStore,
) -> None:
    first = (await ledger.claim(entry(), CLOCK.now() - HOUR)).entry
    assert await ledger.move(first, State.RELEASED) is not None
    again = await ledger.claim(entry(request_digest="other"), CLOCK.now() - HOUR)
    assert again.is_ours
    assert again.entry.id == first.id
    assert again.entry.request_digest == "other"
    assert await ledger.move(first, State.SETTLING) is None  # the old reading is worth nothing


async def test_an_abandoned_claim_is_taken_over_and_a_live_one_is_not(
    ledger: SqlLedgerStore,
) -> None:
    await ledger.claim(entry(), CLOCK.now() - HOUR)
    assert not (await claim(ledger, entry()))[0]
    later = CLOCK.now() + timedelta(minutes=1)
    assert (await claim(ledger, entry(created_at=later, lease_until=later + HOUR)))[0]


async def test_a_payment_moves_once_from_each_reading(ledger: SqlLedgerStore) -> None:
    made = (await ledger.claim(entry(), CLOCK.now() - HOUR)).entry
    attempt = Attempt("0x" + "ee" * 32, "0xraw")
    moved = await ledger.move(made, State.SETTLING, attempt=attempt)
    assert moved is not None
    assert moved.attempt == attempt
    assert await ledger.move(made, State.FAILED) is None
    found = await ledger.find(made.network, made.digest)
    assert found == moved


async def test_what_was_bought_is_kept_with_the_move_and_forgotten_in_time(
    ledger: SqlLedgerStore,
) -> None:
    made = (await ledger.claim(entry(), CLOCK.now() - HOUR)).entry
    stored = Stored(200, ((b"x-a", b"1"), (b"x-a", b"\xff")), b"\x00body", "192.0.2.1")
    moved = await ledger.move(made, State.SETTLING, stored=stored)
    assert moved is not None
    assert await ledger.stored(made.id) == stored
    assert await ledger.move(made, State.SETTLED, stored=Stored(500, (), b"")) is None
    assert await ledger.stored(made.id) == stored
    assert await ledger.stored_bytes(made.id) == len(stored.body)
    assert await ledger.purge_stored(CLOCK.now() - HOUR) == 0
    assert await ledger.purge_stored(CLOCK.now() + HOUR) == 1
    assert await ledger.stored(made.id) is None
    assert await ledger.stored_bytes(made.id) is None


async def test_unfinished_are_those_nobody_works_on(ledger: SqlLedgerStore) -> None:
    for nonce, state in (("0x1", State.SETTLING), ("0x2", State.PENDING), ("0x3", State.SETTLED)):
        made = (await ledger.claim(entry(nonce), CLOCK.now() - HOUR)).entry
        assert await ledger.move(made, state) is not None
    assert await ledger.unfinished(CLOCK.now(), 10) == []
    found = await ledger.unfinished(CLOCK.now() + timedelta(minutes=1), 10)
    assert {one.nonce for one in found} == {"0x1", "0x2"}
    listed = await ledger.list("op", [State.SETTLED], 10)
    assert [one.nonce for one in listed] == ["0x3"]
    assert len(await ledger.list(None, [], 2)) == 2


async def test_fees_are_in_flight_with_what_they_are_the_fees_of(ledger: SqlLedgerStore) -> None:
    asset, other = entry().asset, "0x" + "dd" * 20
    await claim(ledger, entry("0x1", 100, fees=Fees(asset, 7)))
    await claim(ledger, entry("0x2", 40, fees=Fees(other, 900)))
    in_other = entry("0x3", 1, fees=Fees(other, 5))
    assert sums(await ledger.committed(in_other)) == (147, 900)
    assert sums(await ledger.committed(entry("0x4", fees=Fees(asset, 5)))) == (147, 7)
    found = await ledger.claim(in_other, CLOCK.now() - HOUR)
    assert sums(found.committed) == (147, 900)
    known = await ledger.find(in_other.network, in_other.digest)
    assert known == in_other
    assert await ledger.move(in_other, State.RELEASED)
    assert sums(await ledger.committed(entry("0x4"))) == (147, 0)


async def test_what_is_in_flight_is_found_without_reading_what_was_paid_before(
    database: Database, ledger: SqlLedgerStore
) -> None:
    """A payer's thousandth payment must not cost a thousand times his first."""
    if database.kind != "sqlite":
        pytest.skip("the other's plan depends on what it has counted")
    await claim(ledger, entry())
    for statement in (COMMITTED, FAILURES):
        text_ = str(statement.compile(dialect=dialect()))
        plan = text(f"EXPLAIN QUERY PLAN {text_.replace('?', '1')}")
        rows = await database.look(lambda desk, plan=plan: desk.rows(plan, {}))
        details = " ".join(row["detail"] for row in rows)
        assert "ix_payments_payer" in details
        assert "state=?" in details


async def test_failures_of_a_payer_are_counted(ledger: SqlLedgerStore) -> None:
    for nonce in ("0x1", "0x2"):
        made = (await ledger.claim(entry(nonce), CLOCK.now() - HOUR)).entry
        await ledger.move(made, State.FAILED, reason="transaction_failed")
    assert (await ledger.claim(entry("0x3"), CLOCK.now() - HOUR)).failures == 2
    assert (await ledger.claim(entry("0x4"), CLOCK.now() + HOUR)).failures == 0


async def test_an_identifier_stands_for_one_payment(ledger: SqlLedgerStore) -> None:
    identifier = "order-0123456789"
    await ledger.claim(entry("0x1", identifier=identifier), CLOCK.now() - HOUR)
    with pytest.raises(IdentifierReused):
        await ledger.claim(entry("0x2", identifier=identifier), CLOCK.now() - HOUR)
    stranger = entry("0x3", identifier=identifier, payer="0x" + "dd" * 20)
    assert (await claim(ledger, stranger))[0]
