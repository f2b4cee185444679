"""Stores the payment ledger, and what payments bought, in SQL."""

import base64
import json
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeAlias

from pydantic_core import to_json
from sqlalchemy import delete, select

from assay.common.clock import Clock
from assay.common.dataclass_copy import changed
from assay.common.tasks import finish
from assay.db.engine import Database, from_us, to_us
from assay.db.schema.everything import paid_responses, payments
from assay.db.sql_transaction import SqlRow, SqlTransaction
from assay.payments.gas import GasTerms, closed
from assay.payments.model import (
    DirectFee,
    Due,
    Fees,
    IdentifierReused,
    InFlightAmount,
    LedgerEntry,
    Payment,
    PaymentClaim,
    PaymentState,
    StoredResponse,
    carried_look,
    first_look,
    require_legal,
)
from assay.payments.outcomes import NO_GAS, Look, SettlementAttempt
from assay.payments.ports import carried_secret
from assay.payments.store_gas import GasReservations, gas_of, gas_values
from assay.payments.store_ledger_statements import (
    BY_DIGEST,
    BY_KEY,
    COMMITTED,
    HAS_PAID,
    INSERT,
    LEASE,
    OF_A_CLAIM,
    PUT_OFF,
    PUT_OFF_ALL,
    PUTTING_OFF,
    REUSED,
    STORED,
    STORED_BYTES,
    TAKE_OVER,
    storing,
    writing,
)

_CALLER = b":caller"
"""Kept among the headers, under a name that no header can have (RFC 9110, section 5.1)."""


def packed(payment_id: str, stored_us: int, stored: StoredResponse) -> dict[str, Any]:
    """Return the columns of what a payment bought."""
    pairs = [*stored.headers, (_CALLER, stored.caller.encode())]
    text = to_json([part.decode("latin-1") for pair in pairs for part in pair]).decode()
    whose = {"payment_id": payment_id, "stored_us": stored_us}
    what = {"status": stored.status, "headers": text, "body": stored.body}
    return {**whose, **what, "receipt": stored.receipt}


def unpacked(row: SqlRow) -> StoredResponse:
    """Return what the columns hold."""
    parts = json.loads(row["headers"])
    if parts and isinstance(parts[0], list):  # as version 0.1 stored them
        parts = [base64.b64decode(part).decode("latin-1") for pair in parts for part in pair]
    plain = [part.encode("latin-1") for part in parts]
    pairs = list(zip(plain[::2], plain[1::2], strict=True))
    caller = next((value.decode() for name, value in pairs if name == _CALLER), "")
    headers = tuple(pair for pair in pairs if pair[0] != _CALLER)
    return StoredResponse(row["status"], headers, bytes(row["body"]), caller, row["receipt"])


def values_of(entry: LedgerEntry) -> dict[str, object]:
    """Return the columns of an entry."""
    return {
        "id": entry.id,
        "protocol": entry.protocol,
        "network": entry.network,
        "asset": entry.asset,
        "payer": entry.payer,
        "nonce": entry.nonce,
        "digest": entry.digest,
        "amount": entry.amount,
        "pay_to": entry.pay_to,
        "operator_id": entry.operator_id,
        "wrapper_id": entry.wrapper_id,
        "request_digest": entry.request_digest,
        "state": entry.state.value,
        **_attempt_values(entry.attempt),
        "reason": entry.reason,
        "credential": json.dumps(entry.credential, separators=(",", ":")),
        "version": entry.version,
        "identifier": entry.identifier,
        "fee_token": entry.fees.token,
        "fee_most": entry.fees.most,
        "fee_rate": None if entry.fee_rate is None else str(entry.fee_rate),
        "direct_fee": entry.direct_fee.amount if entry.direct_fee else 0,
        "direct_fee_payee": entry.direct_fee.payee if entry.direct_fee else "",
        "expires_us": to_us(entry.expires_at),
        "lease_us": to_us(entry.lease_until),
        "created_us": to_us(entry.created_at),
        "updated_us": to_us(entry.updated_at),
        "moves": entry.moves,
        "agent_id": entry.agent_id,
        "settled_us": None if entry.settled_at is None else to_us(entry.settled_at),
        **gas_values(entry.gas),
        **_look_values(entry.look),
        "watch_us": None,
        "wrapper_revision": entry.wrapper_revision,
        "idempotency_key": entry.idempotency_key,
    }


def _moved_values(known: LedgerEntry, moved: LedgerEntry) -> dict[str, object]:
    """Return the columns that a move writes: what differs, and all that may for a released entry.

    A released entry may differ from its row already, in what its mover found out meanwhile. State,
    reason and lease may differ in the row, because `PUT_OFF_ALL` does not count as a move.
    """
    is_released = moved.state is PaymentState.RELEASED
    values: dict[str, object] = {
        "updated_us": to_us(moved.updated_at),
        "moves": moved.moves,
        "state": moved.state.value,
        "reason": moved.reason,
        "lease_us": to_us(moved.lease_until),
    }
    # The same object has not changed; comparing it would take longer than writing it.
    if is_released or moved.attempt is not known.attempt:
        values |= _attempt_values(moved.attempt)
    if is_released or moved.settled_at != known.settled_at:
        values["settled_us"] = None if moved.settled_at is None else to_us(moved.settled_at)
    if is_released or moved.gas is not known.gas:
        values |= gas_values(moved.gas)
    return values | _look_values(moved.look) if is_released else values


def _attempt_values(attempt: SettlementAttempt) -> dict[str, object]:
    return {
        "tx": attempt.transaction,
        "raw_tx": attempt.raw,
        "earlier_tx": " ".join(attempt.earlier),
    }


def _look_values(look: Look) -> dict[str, object]:
    """Return the columns of a look."""
    return {
        "look_us": look_us(look),
        "questions": look.questions,
        "misses": look.misses,
        "is_used": look.is_used,
    }


def look_us(look: Look) -> int:
    """Return its time in microseconds; 0 for at once."""
    return 0 if look.at is None else to_us(look.at)


def direct_fee_of(row: SqlRow) -> DirectFee | None:
    """Return what the platform was to be paid beside the seller."""
    amount = row["direct_fee"]
    return DirectFee(row["direct_fee_payee"], amount) if amount else None


def entry_of(row: SqlRow) -> LedgerEntry:
    """Return the entry of a row."""
    if isinstance(row, sqlite3.Row):  # it searches all columns for each name
        row = dict(zip(row.keys(), row, strict=True))
    return LedgerEntry(
        id=row["id"],
        protocol=row["protocol"],
        network=row["network"],
        asset=row["asset"],
        payer=row["payer"],
        nonce=row["nonce"],
        digest=row["digest"],
        amount=row["amount"],
        pay_to=row["pay_to"],
        operator_id=row["operator_id"],
        wrapper_id=row["wrapper_id"],
        request_digest=row["request_digest"],
        state=PaymentState(row["state"]),
        attempt=SettlementAttempt(
            row["tx"], row["raw_tx"], earlier=tuple(row["earlier_tx"].split())
        ),
        reason=row["reason"],
        credential=json.loads(row["credential"]),
        version=row["version"],
        identifier=row["identifier"],
        fees=Fees(row["fee_token"], row["fee_most"]),
        fee_rate=None if row["fee_rate"] is None else Decimal(row["fee_rate"]),
        direct_fee=direct_fee_of(row),
        expires_at=from_us(row["expires_us"]),
        lease_until=from_us(row["lease_us"]),
        created_at=from_us(row["created_us"]),
        updated_at=from_us(row["updated_us"]),
        moves=row["moves"],
        agent_id=row["agent_id"],
        settled_at=None if row["settled_us"] is None else from_us(row["settled_us"]),
        gas=gas_of(row),
        look=Look(
            from_us(row["look_us"]) if row["look_us"] else None,
            row["questions"],
            row["misses"],
            row["is_used"],
        ),
        wrapper_revision=row["wrapper_revision"],
        idempotency_key=row["idempotency_key"],
    )


OnMove: TypeAlias = Callable[
    [SqlTransaction, LedgerEntry, LedgerEntry], Awaitable[Callable[[], None] | None]
]
"""Runs inside the transaction that moves an entry, and only writes. It receives the entry before
and after. What it returns, if anything, is called after the commit."""

_WATCHED = (PaymentState.SETTLED, PaymentState.FAILED, PaymentState.REVERSED)


class SqlLedgerStore:
    """Payments and what they bought; every change is durable before it is answered.

    Of any number of processes, at most one works on an entry. A change names the state and the
    lease that it was read with, and does nothing if they have changed.

    `moves` counts a row's changes, so a change that was made from an old reading does nothing. A
    move and what `on_move` writes are committed together, or neither is.
    """

    def __init__(self, database: Database, clock: Clock, on_move: OnMove | None = None) -> None:
        self._database = database
        self._clock = clock
        self._on_move = on_move
        self._gas = GasReservations(database)
        self._storing = storing(database.kind)

    async def claim(
        self, fresh: LedgerEntry, failures_since: datetime, gas: GasTerms | None = None
    ) -> PaymentClaim:
        """Claim the payment of `fresh`, unless somebody has; with `gas`, reserve gas for it.

        Raises `IdentifierReused` if its identifier belongs to another payment of this payer, and
        `GasSpent` if its seller has nothing left for gas; then nothing is claimed.

        It is unique over (network, asset, payer, nonce). An entry that was released, or claimed by
        a process whose lease has run out, is claimed again. Claims of one payer have one order:
        `committed` counts all that came before and are still in flight. A caller that is cancelled
        meanwhile gets its claim, to be released, and sees the cancellation at its next wait.
        """

        async def work(transaction: SqlTransaction) -> PaymentClaim:
            # One payer's claims have one order, so what is in flight is counted exactly.
            await transaction.lock(f"payer {fresh.network} {fresh.payer}")
            entry, is_ours = await self._claim(transaction, fresh, gas)
            if not is_ours:
                return PaymentClaim(entry, is_ours=False, committed=InFlightAmount(), failures=0)
            values = _in_flight(entry, self._clock.now()) | {"since_us": to_us(failures_since)}
            (row,) = await transaction.rows(OF_A_CLAIM, values)
            failures = int(row["failures"])
            return PaymentClaim(
                entry, is_ours=True, committed=_committed_of(row), failures=failures
            )

        return await finish(self._database.change(work))

    async def committed(self, entry: LedgerEntry) -> InFlightAmount:
        """Return what the payer has in flight now, without this entry."""
        values = _in_flight(entry, self._clock.now())
        (row,) = await self._database.look(lambda transaction: transaction.rows(COMMITTED, values))
        return _committed_of(row)

    async def has_paid(self, payment: Payment) -> bool:
        """Return whether money of the payer has come in before, in the same asset."""
        network = payment.quote.network
        values = {"a_network": network.id, "an_asset": network.asset.address}
        rows = await self._database.look(
            lambda transaction: transaction.rows(HAS_PAID, {**values, "a_payer": payment.payer})
        )
        return bool(rows)

    async def find(self, network: str, digest: str) -> LedgerEntry | None:
        """Return the entry of exactly this credential."""
        values = {"a_network": network, "a_digest": digest}
        rows = await self._database.look(lambda transaction: transaction.rows(BY_DIGEST, values))
        return entry_of(rows[0]) if rows else None

    async def move(
        self,
        entry: LedgerEntry,
        state: PaymentState,
        *,
        attempt: SettlementAttempt | None = None,
        reason: str = "",
        lease_until: datetime | None = None,
        stored: StoredResponse | None = None,
    ) -> LedgerEntry | None:
        """Move an entry on, store what it bought, and charge its gas, in one transaction.

        Returns None, unchanged, if the row is not as `entry` says. Raises `IllegalTransition`.
        """
        require_legal(entry.state, state)
        now = self._clock.now()
        moved = changed(
            entry,
            state=state,
            settled_at=entry.settled_at or (now if state is PaymentState.SETTLED else None),
            attempt=attempt or entry.attempt,
            reason=reason[:500],
            lease_until=lease_until or entry.lease_until,
            updated_at=now,
            moves=entry.moves + 1,
        )
        moved = _with_gas(entry, moved)
        values = _moved_values(entry, moved) | _watch_of_move(entry, moved)
        statement = writing(frozenset(values))
        values |= _as_read(entry)
        kept = None if stored is None else packed(moved.id, to_us(now), stored)

        committed: Callable[[], None] | None = None

        async def work(transaction: SqlTransaction) -> bool:
            nonlocal committed
            if await transaction.change(statement, values) != 1:
                return False
            if kept is not None:
                await transaction.change(self._storing, kept)
            await self._gas.settle_up(transaction, entry, moved)
            if self._on_move is not None:
                committed = await self._on_move(transaction, entry, moved)
            return True

        if not await self._database.change(work, is_sure=True):
            return None
        if committed is not None:
            committed()
        return moved

    async def stored_bytes(self, entry_id: str) -> int | None:
        """Return the body size of what a payment bought, while it is kept."""
        values = {"an_id": entry_id}
        rows = await self._database.look(lambda transaction: transaction.rows(STORED_BYTES, values))
        return int(rows[0]["size"]) if rows else None

    async def stored(self, entry_id: str) -> StoredResponse | None:
        """Return what a payment bought, while it is kept."""
        values = {"an_id": entry_id}
        rows = await self._database.look(lambda transaction: transaction.rows(STORED, values))
        return unpacked(rows[0]) if rows else None

    async def lease_unfinished(self, due: Due, lease_until: datetime) -> Sequence[LedgerEntry]:
        """Return those that are due, leased until then: each to one asker."""
        values = {
            "a_network": due.network,
            "free_us": to_us(due.free_at),
            "due_us": 2**62 if due.look_at is None else to_us(due.look_at),
            "limit": due.limit,
            "of_payer": due.of_payer,
            "until_us": to_us(lease_until),
        }

        async def work(transaction: SqlTransaction) -> list[LedgerEntry]:
            # Of two concurrent calls, the second takes the next ones.
            await transaction.lock(f"unfinished payments {due.network}")
            return [entry_of(row) for row in await transaction.rows(LEASE, values)]

        return await self._database.change(work)

    async def put_off(self, entries: Sequence[LedgerEntry]) -> None:
        """Store each as pending, with its own `reason`, `lease_until` and `look`.

        Those that have moved since they were read stay as they are.
        """
        now = self._clock.now()

        async def work(transaction: SqlTransaction) -> None:
            for entry in entries:
                require_legal(entry.state, PaymentState.PENDING)
                moves = entry.moves + 1
                moved = changed(entry, state=PaymentState.PENDING, updated_at=now, moves=moves)
                values = values_of(moved)
                put_off = {name: values[name] for name in PUTTING_OFF}
                await transaction.change(PUT_OFF, put_off | _as_read(entry))

        await self._database.change(work)

    async def put_off_all(self, leased: LedgerEntry, look: Look, reason: str) -> None:
        """Postpone the looks of a network's unfinished entries to `look.at`, which is not None.

        What was leased with it, to the same moment, is pending and free, with that reason.
        """
        values = {
            "a_network": leased.network,
            "a_look_us": look_us(look),
            "the_misses": look.misses,
            "leased_us": to_us(leased.lease_until),
            "now_us": to_us(self._clock.now()),
            "a_reason": reason[:500],
        }
        await self._database.change(lambda transaction: transaction.change(PUT_OFF_ALL, values))

    async def purge_stored(self, before: datetime) -> int:
        """Remove what was bought before that moment; return how many."""
        statement = delete(paid_responses).where(paid_responses.c.stored_us < to_us(before))
        async with self._database.write() as connection:
            return (await connection.execute(statement)).rowcount

    async def list(
        self, operator_id: str | None, states: Sequence[PaymentState], limit: int
    ) -> Sequence[LedgerEntry]:
        """Return entries, newest first."""
        statement = select(payments).order_by(payments.c.created_us.desc()).limit(limit)
        if operator_id is not None:
            statement = statement.where(payments.c.operator_id == operator_id)
        if states:
            statement = statement.where(payments.c.state.in_(states))
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return [entry_of(row) for row in rows]

    async def _claim(
        self, transaction: SqlTransaction, fresh: LedgerEntry, gas: GasTerms | None
    ) -> tuple[LedgerEntry, bool]:
        """Return the entry and whether it is ours: new, taken over, or another process's."""
        if fresh.identifier is not None:
            await _refuse_reuse(transaction, fresh)
        found = await transaction.rows(BY_KEY, _key(fresh))
        known = entry_of(found[0]) if found else None
        if known is not None and not _may_take_over(known, fresh.created_at):
            return known, False
        if known is not None:  # the reservation of a process that is gone
            await self._gas.settle_up(transaction, known, changed(known, gas=NO_GAS))
        if gas is not None:
            fresh = changed(fresh, gas=await self._gas.reserve(transaction, fresh, gas))
        if known is None:
            await transaction.change(INSERT, values_of(fresh) | _watch(fresh))
            return fresh, True
        taken = changed(
            fresh,
            id=known.id,
            moves=known.moves + 1,
            look=carried_look(known),
            idempotency_key=carried_secret(known, fresh),
        )
        values = values_of(taken)
        del values["id"]
        await transaction.change(TAKE_OVER, values | _watch(taken) | _as_read(known))
        return taken, True


def _with_gas(entry: LedgerEntry, moved: LedgerEntry) -> LedgerEntry:
    gas = closed(entry, moved)
    return moved if gas is moved.gas else changed(moved, gas=gas)


def _may_take_over(known: LedgerEntry, now: datetime) -> bool:
    abandoned = known.state is PaymentState.CLAIMED and known.lease_until <= now
    return known.state is PaymentState.RELEASED or abandoned


def _in_flight(entry: LedgerEntry, now: datetime) -> dict[str, object]:
    """Return what is in flight: all payments of a network have one asset, so its index is used."""
    return {**_key(entry), "now_us": to_us(now), "a_fee_token": entry.fees.token}


def _committed_of(row: SqlRow) -> InFlightAmount:
    return InFlightAmount(*(int(row[name]) for name in ("amount", "fees", "sent", "mark")))


async def _refuse_reuse(transaction: SqlTransaction, fresh: LedgerEntry) -> None:
    values = {**_key(fresh), "an_operator": fresh.operator_id, "an_identifier": fresh.identifier}
    if await transaction.rows(REUSED, values):
        raise IdentifierReused("This payment-identifier belongs to another payment.")


def _as_read(known: LedgerEntry) -> dict[str, object]:
    """Return the condition that a row is still as it was read."""
    return {"an_id": known.id, "moves_read": known.moves}


def _watch_of_move(entry: LedgerEntry, moved: LedgerEntry) -> dict[str, object]:
    """Return when the chain is looked at again, if the move begins or ends a watch."""
    begins = moved.state in _WATCHED and moved.state is not entry.state
    return _watch(moved) if begins or moved.state is PaymentState.RELEASED else {}


def _watch(moved: LedgerEntry) -> dict[str, object]:
    look = first_look(moved)
    return {"watch_us": None if look is None else to_us(look)}


def _key(entry: LedgerEntry) -> dict[str, object]:
    return {
        "a_network": entry.network,
        "an_asset": entry.asset,
        "a_payer": entry.payer,
        "a_nonce": entry.nonce,
    }
