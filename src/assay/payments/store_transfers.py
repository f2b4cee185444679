"""Stores payouts and refunds in SQL, and sums statements over the ledger itself."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from sqlalchemy import (
    RowMapping,
    TextClause,
    and_,
    bindparam,
    case,
    func,
    insert,
    or_,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.audit.service import AuditEntry
from assay.audit.store import record
from assay.common.clock import Clock
from assay.common.errors import Conflict
from assay.db.engine import Database, from_us, to_us
from assay.db.schema.everything import payments, transfer_transactions
from assay.db.schema.payments import transfers
from assay.payments.model import PaymentState
from assay.payments.statement import (
    Draft,
    LedgerSum,
    NotOwed,
    ReceivedPayment,
    SignedTransfer,
    Transfer,
    TransferNotFound,
    TransferState,
    lines_of,
)

_PLAIN = (
    *("id", "kind", "operator_id", "payment_id", "network", "asset", "sender", "recipient"),
    *("amount", "of_balance", "nonce", "reason", "moves"),
)


class SqlTransferRows:
    """The rows of accounts, newest first."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(
        self, operator_id: str, before: str | None, limit: int, offset: int
    ) -> Sequence[Transfer]:
        """Return those after the one with the id `before`.

        Raises `TransferNotFound` for another account's.
        """
        mine = transfers.c.operator_id == operator_id
        place = tuple_(transfers.c.created_us, transfers.c.id)
        statement = select(transfers).where(mine)
        async with self._database.read() as connection:
            if before is not None:
                start = select(transfers.c.created_us).where(mine, transfers.c.id == before)
                at_us = (await connection.execute(start)).scalar_one_or_none()
                if at_us is None:
                    raise TransferNotFound("The transfer that the page begins after is not there.")
                statement = statement.where(place < tuple_(at_us, before))
            newest = statement.order_by(transfers.c.created_us.desc(), transfers.c.id.desc())
            rows = (await connection.execute(newest.limit(limit).offset(offset))).mappings().all()
        return [_transfer_of(row) for row in rows]

    async def count(self, operator_id: str) -> int:
        """Return how many there are."""
        statement = select(func.count()).where(transfers.c.operator_id == operator_id)
        async with self._database.read() as connection:
            return (await connection.execute(statement)).scalar_one()


def values_of(made: Transfer) -> dict[str, Any]:
    """Return the columns of a transfer."""
    return {name: getattr(made, name) for name in _PLAIN} | {
        "fee_rate": None if made.fee_rate is None else str(made.fee_rate),
        "state": made.state.value,
        "tx": made.transaction,
        "created_us": to_us(made.created_at),
        "updated_us": to_us(made.updated_at),
        "check_us": to_us(made.check_at),
    }


def _transfer_of(row: RowMapping) -> Transfer:
    """Return the transfer of a row."""
    return Transfer(
        **{name: row[name] for name in _PLAIN},
        fee_rate=None if row["fee_rate"] is None else Decimal(row["fee_rate"]),
        state=TransferState(row["state"]),
        transaction=row["tx"],
        created_at=from_us(row["created_us"]),
        updated_at=from_us(row["updated_us"]),
        check_at=from_us(row["check_us"]),
    )


STATEMENT_S = 60.0
"""Longest time for the sums over every account."""

_ALIKE = "operator_id, network, asset, fee_rate, of_balance, kind, is_done"

_RECEIVED = """
SELECT operator_id, network, asset, fee_rate, 'received' AS kind, amount, direct_fee,
  CASE WHEN watch_us IS NULL THEN 1 ELSE 0 END AS is_done,
  CASE WHEN direct_fee = 0 AND (fee_rate IS NOT NULL OR pay_to IN :payees)
    THEN 1 ELSE 0 END AS of_balance
FROM payments WHERE settled_us IS NOT NULL AND state IN ('settled', 'delivered')"""
"""Payments whose money is there: one that was taken back has left these states. Those from before
the rate was stored have none. While one is watched it is not final."""

_SENT = """
SELECT operator_id, network, asset, fee_rate, kind,
  CASE WHEN state = 'paid' THEN 1 ELSE 0 END AS is_done, amount, 0 AS direct_fee,
  CASE WHEN of_balance THEN 1 ELSE 0 END AS of_balance
FROM transfers WHERE state <> 'cancelled'"""


class SqlStatementStore:
    """Implements `payments.statement.StatementStore`; `payees` are the platform's wallets."""

    def __init__(self, database: Database, payees: Iterable[str]) -> None:
        self._database = database
        self._payees = tuple(sorted(payees))

    async def sums(self, operator_id: str) -> Sequence[LedgerSum]:
        async with self._database.snapshot(STATEMENT_S) as connection:
            return await _sums_of(connection, self._payees, operator_id)

    async def sums_for_admin(self) -> Sequence[LedgerSum]:
        async with self._database.snapshot(STATEMENT_S) as connection:
            return await _sums_of(connection, self._payees, None)


async def _sums_of(
    connection: AsyncConnection, payees: Sequence[str], operator_id: str | None
) -> Sequence[LedgerSum]:
    """Return the sums of one operator or of all, as the caller's transaction sees them."""
    whose = {} if operator_id is None else {"operator_id": operator_id}
    found: list[LedgerSum] = []
    for events, values in ((_RECEIVED, {"payees": payees or ("",)}), (_SENT, {})):
        statement = _summed(events, is_of_one=operator_id is not None)
        rows = (await connection.execute(statement, {**values, **whose})).mappings().all()
        found += map(_sum, rows)
    return found


def _summed(events: str, *, is_of_one: bool) -> TextClause:
    mine = " AND operator_id = :operator_id" if is_of_one else ""
    statement = text(
        f"SELECT {_ALIKE}, COUNT(*) AS events, SUM(amount) AS amount,"  # noqa: S608 - our own words
        f" SUM(direct_fee) AS direct_fee FROM ({events}{mine}) AS alike GROUP BY {_ALIKE}"
    )
    has_payees = events is _RECEIVED
    return statement.bindparams(bindparam("payees", expanding=True)) if has_payees else statement


def _sum(row: RowMapping) -> LedgerSum:
    return LedgerSum(
        operator_id=row["operator_id"],
        network=row["network"],
        asset=row["asset"],
        kind=row["kind"],
        of_balance=bool(row["of_balance"]),
        is_done=bool(row["is_done"]),
        fee_rate=None if row["fee_rate"] is None else Decimal(row["fee_rate"]),
        count=int(row["events"]),
        amount=int(row["amount"]),
        direct_fee=int(row["direct_fee"]),
    )


CHECK_MIN: Final = timedelta(seconds=4)
CHECK_MAX: Final = timedelta(minutes=10)
"""Longest time that a process has a transfer for itself: a tenth of its age, and half of the time
since it was paid."""

NEVER_US: Final = to_us(datetime.max.replace(tzinfo=UTC))
"""When a final transfer is looked at next."""


class SqlTransferStore:
    """Payouts and refunds, durable before they are answered."""

    def __init__(self, database: Database, payees: Iterable[str], clock: Clock) -> None:
        self._database = database
        self._payees = tuple(sorted(payees))
        self._clock = clock

    async def payment_for_admin(self, payment_id: str) -> ReceivedPayment | None:
        """Return a payment that may be refunded."""
        statement = select(payments).where(payments.c.id == payment_id)
        async with self._database.read() as connection:
            row = (await connection.execute(statement)).mappings().one_or_none()
        if row is None:
            return None
        names = ("id", "operator_id", "network", "asset", "payer", "pay_to", "amount", "direct_fee")
        return ReceivedPayment(
            **{name: row[name] for name in names},
            state=PaymentState(row["state"]),
            fee_rate=None if row["fee_rate"] is None else Decimal(row["fee_rate"]),
            settled_at=_moment(row["settled_us"]),
            watch_at=_moment(row["watch_us"]),
        )

    async def add(self, made: Transfer, draft: Draft | None, audit_entry: AuditEntry) -> Transfer:
        """Add a transfer; if drafted, with its wallet's next nonce and its signed transaction.

        Raises `Conflict` for a payment that was refunded already, and `NotOwed` if the operator is
        owed less; then nothing is added.
        """
        try:
            async with self._database.write() as connection:
                # One operator's transfers have one order: none uses what another has taken.
                await self._database.lock(connection, f"balance {made.operator_id}")
                if draft is None:
                    await connection.execute(insert(transfers).values(values_of(made)))
                else:
                    nonce = await self._next_nonce(connection, made, draft)
                    signed = draft.sign(nonce)
                    made = replace(made, nonce=nonce, transaction=signed.transaction)
                    await connection.execute(insert(transfers).values(values_of(made)))
                    await self._keep(connection, made, signed)
                if made.of_balance:
                    await self._require_owed(connection, made)
                await record(connection, audit_entry)
        except IntegrityError as error:
            raise Conflict("This payment has been given back, or is being.") from error
        return made

    async def sign_again(self, known: Transfer, signed: SignedTransfer) -> Transfer | None:
        """Store another transaction of the same nonce; return None if the row has moved."""
        moved = self._moved(known, known.state, signed.transaction, known.reason)
        async with self._database.write() as connection:
            if not await _update(connection, known, moved):
                return None
            await self._keep(connection, moved, signed)
        return moved

    async def move(
        self,
        known: Transfer,
        state: TransferState,
        *,
        transaction: str = "",
        reason: str = "",
        audit_entry: AuditEntry | None = None,
    ) -> Transfer | None:
        """Move a row on; return None if it is no longer as `known` says.

        Raises `Conflict` for a transaction that is another transfer's, or that paid for something.
        """
        moved = self._moved(known, state, transaction or known.transaction, reason)
        try:
            async with self._database.write() as connection:
                if not await _update(connection, known, moved):
                    return None
                if transaction:
                    await self._claim(connection, moved)
                await record(connection, audit_entry)
        except IntegrityError as error:
            raise Conflict("That transaction is another transfer's.") from error
        return moved

    async def due(
        self, now: datetime, since: Mapping[TransferState, datetime], limit: int
    ) -> Sequence[Transfer]:
        """Return what the chain must be asked about, each taken by one process for a while.

        Signed ones come first. Of other states, it returns those that came to it after that moment
        of `since`.
        """
        is_signed = transfers.c.state == TransferState.SIGNED
        recent = [
            and_(transfers.c.state == state, transfers.c.updated_us > to_us(moment))
            for state, moment in since.items()
        ]
        statement = (
            select(transfers)
            .where(or_(is_signed, *recent), transfers.c.check_us <= to_us(now))
            .order_by(case((is_signed, 0), else_=1), transfers.c.nonce)
            .limit(limit)
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return [taken for row in rows if (taken := await self._take(_transfer_of(row), now))]

    async def finish(self, known: Transfer) -> None:
        """Stop looking at it, unless it has moved meanwhile."""
        unmoved = (transfers.c.id == known.id, transfers.c.moves == known.moves)
        async with self._database.write() as connection:
            await connection.execute(update(transfers).where(*unmoved).values(check_us=NEVER_US))

    async def transactions(self, transfer_id: str) -> Sequence[SignedTransfer]:
        """Return everything that was signed for a transfer, oldest first."""
        own = transfer_transactions
        statement = (
            select(own)
            .where(own.c.transfer_id == transfer_id)
            .order_by(own.c.fee, own.c.created_us)
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return [SignedTransfer(row["tx"], row["raw_tx"], row["fee"], row["tip"]) for row in rows]

    async def find_for_admin(self, transfer_id: str) -> Transfer | None:
        """Return it by its own id, or its payment's."""
        is_it = or_(transfers.c.id == transfer_id, transfers.c.payment_id == transfer_id)
        # A cancelled refund may exist beside the one that was made instead.
        newest = select(transfers).where(is_it).order_by(transfers.c.created_us.desc()).limit(1)
        async with self._database.read() as connection:
            row = (await connection.execute(newest)).mappings().one_or_none()
        return None if row is None else _transfer_of(row)

    async def list_for_admin(self, operator_id: str | None, limit: int) -> Sequence[Transfer]:
        """Return transfers, newest first."""
        statement = select(transfers).order_by(transfers.c.created_us.desc()).limit(limit)
        if operator_id is not None:
            statement = statement.where(transfers.c.operator_id == operator_id)
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return [_transfer_of(row) for row in rows]

    async def _next_nonce(self, connection: AsyncConnection, made: Transfer, draft: Draft) -> int:
        """Return the lowest nonce above all that the chain has seen and all that were signed."""
        await self._database.lock(connection, f"nonces {made.network} {made.sender}")
        last = select(func.max(transfers.c.nonce)).where(
            transfers.c.network == made.network, transfers.c.sender == made.sender
        )
        used = (await connection.execute(last)).scalar_one()
        return draft.nonce_min if used is None else max(draft.nonce_min, used + 1)

    async def _require_owed(self, connection: AsyncConnection, made: Transfer) -> None:
        """Require that what is owed without the new row is not below zero."""
        sums = await _sums_of(connection, self._payees, made.operator_id)
        for line in lines_of(sums):
            if (line.network, line.asset) == (made.network, made.asset) and line.payable < 0:
                message = "The operator is owed less than that of payments that are final."
                raise NotOwed(message)

    async def _keep(
        self, connection: AsyncConnection, made: Transfer, signed: SignedTransfer
    ) -> None:
        values = {
            "network": made.network,
            "tx": signed.transaction,
            "transfer_id": made.id,
            "raw_tx": signed.raw,
            "fee": signed.fee,
            "tip": signed.tip,
            "created_us": to_us(self._clock.now()),
        }
        await connection.execute(insert(transfer_transactions).values(values))

    async def _claim(self, connection: AsyncConnection, moved: Transfer) -> None:
        """Require that the transaction belongs to this transfer only, and paid for nothing."""
        own, bought = transfer_transactions, payments
        mine = select(own.c.transfer_id).where(
            own.c.network == moved.network, own.c.tx == moved.transaction
        )
        if (await connection.execute(mine)).scalar_one_or_none() == moved.id:
            return
        paying = select(bought.c.id).where(
            bought.c.network == moved.network,
            bought.c.asset == moved.asset,
            bought.c.payer == moved.sender,
            func.lower(bought.c.tx) == moved.transaction,
        )
        if (await connection.execute(paying)).first() is not None:
            raise Conflict("That transaction paid for calls: it gave nothing back.")
        await self._keep(connection, moved, SignedTransfer(moved.transaction, "", 0, 0))

    async def _take(self, known: Transfer, now: datetime) -> Transfer | None:
        """Take the row for one process for a while; return None if another one has it."""
        share = 2 if known.state is TransferState.PAID else 10
        pause = min(max((now - known.updated_at) / share, CHECK_MIN), CHECK_MAX)
        until_us = to_us(now + pause)
        statement = (
            update(transfers)
            .where(transfers.c.id == known.id, transfers.c.check_us == to_us(known.check_at))
            .values(check_us=until_us)
        )
        async with self._database.write() as connection:
            taken = (await connection.execute(statement)).rowcount == 1
        return replace(known, check_at=now + pause) if taken else None

    def _moved(
        self, known: Transfer, state: TransferState, transaction: str, reason: str
    ) -> Transfer:
        return replace(
            known,
            state=state,
            transaction=transaction,
            reason=reason[:500],
            updated_at=self._clock.now(),
            moves=known.moves + 1,
        )


async def _update(connection: AsyncConnection, known: Transfer, moved: Transfer) -> bool:
    """Update the row if it is still as it was read; return whether it was."""
    statement = (
        update(transfers)
        .where(transfers.c.id == known.id, transfers.c.moves == known.moves)
        .values(
            state=moved.state.value,
            tx=moved.transaction,
            reason=moved.reason,
            updated_us=to_us(moved.updated_at),
            moves=moved.moves,
        )
    )
    return (await connection.execute(statement)).rowcount == 1


def _moment(microseconds: int | None) -> datetime | None:
    return None if microseconds is None else from_us(microseconds)
