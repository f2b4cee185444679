"""The ledger, on every database: one owner a payment, no move from an old reading, exact sums."""

import asyncio
import re
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Select, text
from sqlalchemy.dialects.sqlite import dialect

from assay.common.ids import new_id
from assay.db.engine import Database
from assay.payments.model import (
    CUT_SHORT,
    DirectFee,
    Due,
    Fees,
    IdentifierReused,
    InFlightAmount,
    LedgerEntry,
    PaymentState,
    StoredResponse,
)
from assay.payments.outcomes import Look, SettlementAttempt
from assay.payments.ports import upstream_key
from assay.payments.store import SqlLedgerStore
from assay.payments.store_ledger_statements import COMMITTED, HAS_PAID, LEASE, OF_A_CLAIM
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.ledger import MemoryLedgerStore
from tests.support.fakes.ledger_moves import moved_on

CLOCK = FrozenClock()
HOUR = timedelta(hours=1)
NETWORK = "eip155:8453"
RATE = Decimal("0.3")


def entry(nonce: str = "0x1", amount: int = 10, **fields: object) -> LedgerEntry:
    now = CLOCK.now()
    made = LedgerEntry(
        id=new_id(),
        protocol="x402",
        network=NETWORK,
        asset="0x" + "aa" * 20,
        payer="0x" + "bb" * 20,
        nonce=nonce,
        digest=f"digest {nonce}",
        amount=amount,
        pay_to="0x" + "cc" * 20,
        operator_id="op",
        wrapper_id="w",
        request_digest="r",
        state=PaymentState.CLAIMED,
        attempt=SettlementAttempt(""),
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


async def claim(ledger: SqlLedgerStore, made: LedgerEntry) -> tuple[bool, int]:
    found = await ledger.claim(made, CLOCK.now() - HOUR)
    return found.is_ours, found.committed.amount


@pytest.mark.parametrize("older", [False, True])
async def test_a_payments_secret_outlives_other_requests_and_a_change_of_ours(
    ledger: SqlLedgerStore, *, older: bool
) -> None:
    for store in (ledger, MemoryLedgerStore(CLOCK)):
        first = "01020304-0000-4000-8000-000000000000" if older else "01" * 16
        keys: list[str] = []
        for digest, secret in (("a", first), ("b", "02" * 16), ("a", "03" * 16)):
            made = entry(request_digest=digest, idempotency_key=secret)
            found = await store.claim(made, CLOCK.now())
            assert found.is_ours
            keys.append(upstream_key(found.entry))
            assert await store.move(found.entry, PaymentState.RELEASED, lease_until=CLOCK.now())
        assert keys[0] != keys[1]
        assert (keys[0] == keys[2]) is not older  # what was made of one request is kept with it
        assert all(str(UUID(key)) == key for key in keys)


def sums(committed: InFlightAmount) -> tuple[int, int]:
    return committed.amount, committed.fees


async def test_of_many_that_claim_a_payment_one_has_it(ledger: SqlLedgerStore) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(claim(ledger, entry())) for _ in range(20)]
    assert [task.result()[0] for task in tasks].count(True) == 1


async def test_a_fee_beside_the_seller_stays_as_it_was_quoted(ledger: SqlLedgerStore) -> None:
    """Also when its claim is taken over; an entry without one has none."""
    fee = DirectFee("0x" + "dd" * 20, 3)
    first = (await ledger.claim(entry(direct_fee=fee, fee_rate=RATE), CLOCK.now() - HOUR)).entry
    assert await ledger.move(first, PaymentState.RELEASED) is not None
    again = await ledger.claim(entry(direct_fee=fee, fee_rate=RATE), CLOCK.now() - HOUR)
    found = await ledger.find("eip155:8453", again.entry.digest)
    assert again.is_ours
    assert found is not None
    assert (found.direct_fee, found.fee_rate) == (fee, RATE)
    plain = (await ledger.claim(entry("0x2"), CLOCK.now() - HOUR)).entry
    read = await ledger.find("eip155:8453", plain.digest)
    assert read is not None
    assert read.direct_fee is None


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
    sent = await ledger.move(
        first, PaymentState.SETTLING, attempt=SettlementAttempt("0x" + "ee" * 32, "0xraw")
    )
    assert sent is not None
    assert await ledger.committed(entry("0x9")) == replace(claimed, sent=1)
    assert await ledger.move(sent, PaymentState.SETTLED) is not None
    later = CLOCK.now() + timedelta(seconds=1)
    await claim(ledger, entry("0x2", created_at=later, updated_at=later))
    another = await ledger.committed(entry("0x9"))
    assert (another.amount, another.sent) == (claimed.amount, 0)
    assert another != claimed


async def test_a_released_payment_may_be_claimed_anew_for_another_request(
    ledger: SqlLedgerStore,
) -> None:
    first = (await ledger.claim(entry(), CLOCK.now() - HOUR)).entry
    assert await ledger.move(first, PaymentState.RELEASED) is not None
    again = await ledger.claim(entry(request_digest="other"), CLOCK.now() - HOUR)
    assert again.is_ours
    assert again.entry.id == first.id
    assert again.entry.request_digest == "other"
    assert (
        await ledger.move(first, PaymentState.SETTLING) is None
    )  # the old reading is worth nothing


async def test_an_abandoned_claim_is_taken_over_and_a_live_one_is_not(
    ledger: SqlLedgerStore,
) -> None:
    await ledger.claim(entry(), CLOCK.now() - HOUR)
    assert not (await claim(ledger, entry()))[0]
    later = CLOCK.now() + timedelta(minutes=1)
    assert (await claim(ledger, entry(created_at=later, lease_until=later + HOUR)))[0]


async def test_a_payment_moves_once_from_each_reading(ledger: SqlLedgerStore) -> None:
    made = (await ledger.claim(entry(), CLOCK.now() - HOUR)).entry
    attempt = SettlementAttempt("0x" + "ee" * 32, "0xraw")
    moved = await ledger.move(made, PaymentState.SETTLING, attempt=attempt)
    assert moved is not None
    assert moved.attempt == attempt
    assert await ledger.move(made, PaymentState.RELEASED) is None
    found = await ledger.find(made.network, made.digest)
    assert found == moved


async def test_what_was_bought_is_kept_with_the_move_and_forgotten_in_time(
    ledger: SqlLedgerStore,
) -> None:
    made = (await ledger.claim(entry(), CLOCK.now() - HOUR)).entry
    stored = StoredResponse(200, ((b"x-a", b"1"), (b"x-a", b"\xff")), b"\x00body", "192.0.2.1")
    moved = await ledger.move(made, PaymentState.SETTLING, stored=stored)
    assert moved is not None
    assert await ledger.stored(made.id) == stored
    assert (
        await ledger.move(made, PaymentState.SETTLED, stored=StoredResponse(500, (), b"")) is None
    )
    assert await ledger.stored(made.id) == stored
    assert await ledger.stored_bytes(made.id) == len(stored.body)
    assert await ledger.purge_stored(CLOCK.now() - HOUR) == 0
    assert await ledger.purge_stored(CLOCK.now() + HOUR) == 1
    assert await ledger.stored(made.id) is None
    assert await ledger.stored_bytes(made.id) is None


async def test_unfinished_are_those_nobody_works_on(ledger: SqlLedgerStore) -> None:
    for nonce, state in (
        ("0x1", PaymentState.SETTLING),
        ("0x2", PaymentState.PENDING),
        ("0x3", PaymentState.SETTLED),
    ):
        made = (await ledger.claim(entry(nonce), CLOCK.now() - HOUR)).entry
        assert await moved_on(ledger, made, state) is not None
    until = CLOCK.now() + HOUR
    assert await ledger.lease_unfinished(due(), until) == []
    later = CLOCK.now() + timedelta(minutes=1)
    found = await ledger.lease_unfinished(due(free_at=later), until)
    assert {one.nonce for one in found} == {"0x1", "0x2"}
    assert {one.lease_until for one in found} == {until}
    assert await ledger.lease_unfinished(due(free_at=later), until) == []  # they are leased now
    listed = await ledger.list("op", [PaymentState.SETTLED], 10)
    assert [one.nonce for one in listed] == ["0x3"]
    assert len(await ledger.list(None, [], 2)) == 2


async def open_entry(ledger: SqlLedgerStore, nonce: str, **fields: object) -> LedgerEntry:
    """One whose process is gone, and whose next look is as given."""
    look = fields.pop("look", Look())
    gone = CLOCK.now() - HOUR
    made = (await ledger.claim(entry(nonce, lease_until=gone, **fields), CLOCK.now() - HOUR)).entry
    moved = await ledger.move(made, PaymentState.SETTLING)
    assert moved is not None
    await ledger.put_off([replace(moved, look=look)])  # type: ignore[arg-type]
    found = await ledger.find(made.network, made.digest)
    assert found is not None
    return found


def due(**fields: object) -> Due:
    made = Due("eip155:8453", CLOCK.now(), CLOCK.now(), 100, 100)
    return replace(made, **fields)  # type: ignore[arg-type]


async def leased(ledger: SqlLedgerStore, asked: Due) -> set[str]:
    return {one.nonce for one in await ledger.lease_unfinished(asked, CLOCK.now() + HOUR)}


async def test_a_payment_is_unfinished_again_when_its_next_look_has_come(
    ledger: SqlLedgerStore,
) -> None:
    later = Look(CLOCK.now() + timedelta(seconds=1), 3, 2)
    kept = await open_entry(ledger, "0x1", look=later)
    assert (kept.look, kept.state) == (later, PaymentState.PENDING)
    assert await leased(ledger, due()) == set()
    assert await leased(ledger, due(look_at=later.at)) == {"0x1"}
    await open_entry(ledger, "0x2", look=later)
    assert await leased(ledger, due(look_at=None)) == {"0x2"}


async def test_of_many_askers_each_unfinished_payment_has_one(ledger: SqlLedgerStore) -> None:
    for number in range(20):
        await open_entry(ledger, f"0x{number}")
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(leased(ledger, due(limit=7))) for _ in range(6)]
    found = [nonce for task in tasks for nonce in task.result()]
    assert len(found) == len(set(found)) == 20


async def test_nobodys_second_payment_comes_before_anybodys_first(ledger: SqlLedgerStore) -> None:
    for number in range(10):
        await open_entry(ledger, f"0x{number}")
    late = Look(CLOCK.now())
    await open_entry(ledger, "0xb1", payer="0x" + "b1" * 20, look=late)
    await open_entry(ledger, "0xb2", payer="0x" + "b2" * 20, look=late)
    first = await leased(ledger, due(limit=3))
    assert {"0xb1", "0xb2"} < first
    assert len(await leased(ledger, due(of_payer=4))) == 4


async def test_each_network_has_its_own_unfinished_payments(ledger: SqlLedgerStore) -> None:
    """However many another one has, and whatever of them is leased."""
    for number in range(3):
        await open_entry(ledger, f"0x{number}")
    await open_entry(ledger, "0x9", network="eip155:1", look=Look(CLOCK.now()))
    assert await leased(ledger, due(limit=1, network="eip155:1")) == {"0x9"}
    assert await leased(ledger, due(network="eip155:1")) == set()
    assert await leased(ledger, due(network="unknown")) == set()
    assert await leased(ledger, due()) == {"0x0", "0x1", "0x2"}


async def test_unfinished_payments_are_found_without_reading_what_was_paid(
    database: Database, ledger: SqlLedgerStore
) -> None:
    if database.kind != "sqlite":
        pytest.skip("the other's plan depends on what it has counted")
    await claim(ledger, entry())
    found = re.sub(r"\?", "1", str(LEASE.compile(dialect=dialect())))
    rows = await database.look(
        lambda transaction: transaction.rows(text(f"EXPLAIN QUERY PLAN {found}"), {})
    )
    details = [row["detail"] for row in rows if " payments " in row["detail"]]
    assert details
    assert all("ix_payments_state (state=?" in one or "(id=?)" in one for one in details)


async def test_a_row_is_as_whoever_moved_it_was_told(ledger: SqlLedgerStore) -> None:
    """Only what differs is written, and nothing that differs is left out."""
    until = CLOCK.now() + HOUR
    now = (await ledger.claim(entry(), CLOCK.now() - HOUR)).entry
    for state, attempt, reason, lease in (
        (PaymentState.SETTLING, None, "", until),
        (PaymentState.SETTLING, SettlementAttempt("0x1", "0xraw"), "", None),
        (
            PaymentState.SETTLING,
            SettlementAttempt("0x2", "0xraw2", earlier=("0x1",)),
            "too cheap",
            None,
        ),
        (PaymentState.PENDING, None, "", until + HOUR),
        (
            PaymentState.SETTLED,
            SettlementAttempt("0x2", "0xraw2", spent=7, earlier=("0x1",)),
            "",
            until,
        ),
        (PaymentState.DELIVERED, None, "", None),
        (PaymentState.REVERSED, None, "gone", None),
    ):
        moved = await ledger.move(now, state, attempt=attempt, reason=reason, lease_until=lease)
        assert moved is not None
        found = await ledger.find(now.network, now.digest)
        assert found is not None
        assert replace(found, attempt=replace(found.attempt, spent=moved.attempt.spent)) == moved
        now = moved


async def test_a_move_from_an_older_reading_undoes_what_was_put_off_meanwhile(
    ledger: SqlLedgerStore,
) -> None:
    """Putting off all of a network counts as no move of any."""
    known = await open_entry(ledger, "0x1")
    await ledger.put_off_all(known, Look(CLOCK.now() + HOUR, misses=1), "no node answers")
    moved = await ledger.move(known, known.state)
    assert moved is not None
    found = await ledger.find(known.network, known.digest)
    assert found is not None
    assert (found.state, found.reason) == (moved.state, "")
    assert found.lease_until == moved.lease_until


async def test_what_its_mover_found_out_is_written_of_a_released_row(
    ledger: SqlLedgerStore,
) -> None:
    known = (await ledger.claim(entry(), CLOCK.now() - HOUR)).entry
    told = replace(known, look=Look(CLOCK.now() + HOUR, 2, 1), lease_until=CLOCK.now())
    moved = await ledger.move(told, PaymentState.RELEASED, reason="nobody was served")
    assert moved is not None
    assert await ledger.find(known.network, known.digest) == moved


async def test_what_has_moved_meanwhile_is_not_put_off(ledger: SqlLedgerStore) -> None:
    one, other = await open_entry(ledger, "0x1"), await open_entry(ledger, "0x2")
    assert await ledger.move(one, PaymentState.SETTLED) is not None
    later = Look(CLOCK.now() + HOUR)
    await ledger.put_off([replace(each, look=later) for each in (one, other)])
    found = await ledger.find(one.network, one.digest)
    assert found is not None
    assert found.state is PaymentState.SETTLED
    assert await leased(ledger, due()) == set()


async def test_a_network_is_put_off_and_no_other_and_nothing_comes_sooner_for_it(
    ledger: SqlLedgerStore,
) -> None:
    until, sooner = CLOCK.now() + HOUR, CLOCK.now() + timedelta(minutes=1)
    first = await open_entry(ledger, "0x1")
    await open_entry(ledger, "0x2", look=Look(until + HOUR))
    await open_entry(ledger, "0x3", network="eip155:1")
    await ledger.put_off_all(first, Look(until, 0, 3), "down")
    await ledger.put_off_all(first, Look(sooner, 0, 3), "down")
    assert await leased(ledger, due(free_at=until)) == set()
    assert await leased(ledger, due(free_at=until, network="eip155:1")) == {"0x3"}
    assert await leased(ledger, due(free_at=until, look_at=until)) == {"0x1"}
    kept = await ledger.find(first.network, first.digest)
    assert kept is not None
    assert kept.look == Look(until, 0, 3)


async def test_what_was_leased_is_free_again_when_its_network_is_put_off(
    ledger: SqlLedgerStore,
) -> None:
    await open_entry(ledger, "0x1")
    (mine,) = await ledger.lease_unfinished(due(), CLOCK.now() + HOUR)
    until = CLOCK.now() + timedelta(minutes=1)
    await ledger.put_off_all(mine, Look(until, 0, 1), "down")
    assert await leased(ledger, due(free_at=until, look_at=until)) == {"0x1"}


async def test_every_hash_of_a_payment_is_kept(ledger: SqlLedgerStore) -> None:
    made = (await ledger.claim(entry(), CLOCK.now() - HOUR)).entry
    attempt = SettlementAttempt("0xc", "0xraw", earlier=("0xa", "0xb"))
    assert await ledger.move(made, PaymentState.SETTLING, attempt=attempt) is not None
    found = await ledger.find(made.network, made.digest)
    assert found is not None
    assert found.attempt == attempt


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
    assert await ledger.move(in_other, PaymentState.RELEASED)
    assert sums(await ledger.committed(entry("0x4"))) == (147, 0)


@pytest.mark.parametrize("statement", [COMMITTED, OF_A_CLAIM, HAS_PAID])
async def test_what_is_asked_of_a_payer_is_found_without_reading_what_was_paid_before(
    database: Database, ledger: SqlLedgerStore, statement: Select[Any]
) -> None:
    """A payer's thousandth payment must not cost a thousand times his first."""
    if database.kind != "sqlite":
        pytest.skip("the other's plan depends on what it has counted")
    await claim(ledger, entry())
    asked = str(statement.compile(dialect=dialect()))  # with its places: the plan is for those
    values = (None,) * asked.count("?")
    rows = await database.look(
        lambda transaction: transaction.connection.exec_driver_sql(
            f"EXPLAIN QUERY PLAN {asked}", values
        )
    )
    found = [row["detail"] for row in rows if " payments " in row["detail"]]
    by_state = "ix_payments_payer (network=? AND asset=? AND payer=? AND state=?)"
    assert found
    assert all(by_state in one for one in found)


async def test_calls_that_a_payers_payments_cut_short_count_as_failures(
    ledger: SqlLedgerStore,
) -> None:
    for nonce, reason in (("0x1", CUT_SHORT), ("0x2", "wrapper_request_failed")):
        claim = await ledger.claim(entry(nonce), CLOCK.now() - HOUR)
        await ledger.move(
            claim.entry, PaymentState.RELEASED, reason=reason, lease_until=CLOCK.now()
        )
    assert (await ledger.claim(entry("0x3"), CLOCK.now() - HOUR)).failures == 1


async def test_failures_of_a_payer_are_counted(ledger: SqlLedgerStore) -> None:
    for nonce in ("0x1", "0x2"):
        made = (await ledger.claim(entry(nonce), CLOCK.now() - HOUR)).entry
        await moved_on(ledger, made, PaymentState.FAILED, reason="transaction_failed")
    assert (await ledger.claim(entry("0x3"), CLOCK.now() - HOUR)).failures == 2
    assert (await ledger.claim(entry("0x4"), CLOCK.now() + HOUR)).failures == 0


async def test_an_identifier_stands_for_one_payment(ledger: SqlLedgerStore) -> None:
    identifier = "order-0123456789"
    await ledger.claim(entry("0x1", identifier=identifier), CLOCK.now() - HOUR)
    with pytest.raises(IdentifierReused):
        await ledger.claim(entry("0x2", identifier=identifier), CLOCK.now() - HOUR)
    stranger = entry("0x3", identifier=identifier, payer="0x" + "dd" * 20)
    assert (await claim(ledger, stranger))[0]
