"""The payment ledger in SQL."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy import RowMapping, Update, bindparam, delete, func, insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.infra.sql.engine import Database, from_us, to_us
from assay.infra.sql.paid_responses import packed, unpacked
from assay.infra.sql.rollups import RollupWriter, tally_move
from assay.infra.sql.tables import paid_responses, payments
from assay.kit.clock import Clock
from assay.payments.model import Attempt, Entry, IdentifierReused, State, Stored
from assay.payments.ports import Claim

_IN_FLIGHT = (State.CLAIMED, State.SETTLING, State.PENDING)
_OPEN = (State.SETTLING, State.PENDING)

# Built once: making a statement costs more than running it, and a payment runs a dozen.
_OF_THE_PAYER = (
    payments.c.network == bindparam("a_network"),
    payments.c.asset == bindparam("an_asset"),
    payments.c.payer == bindparam("a_payer"),
)
_IS_THE_ONE = payments.c.nonce == bindparam("a_nonce")
_INSERT = insert(payments)
_BY_KEY = select(payments).where(*_OF_THE_PAYER, _IS_THE_ONE)
_BY_DIGEST = select(payments).where(
    payments.c.network == bindparam("a_network"), payments.c.digest == bindparam("a_digest")
)
_AS_READ = (payments.c.id == bindparam("an_id"), payments.c.moves == bindparam("moves_read"))
_CHANGING = ("state", "tx", "raw_tx", "reason", "lease_us", "updated_us", "moves", "settled_us")
_MOVE = update(payments).where(*_AS_READ).values({name: bindparam(name) for name in _CHANGING})
_TAKE_OVER = (
    update(payments)
    .where(*_AS_READ)
    .values({c.name: bindparam(c.name) for c in payments.c if c.name != "id"})
)
_COMMITTED = select(func.coalesce(func.sum(payments.c.amount), 0)).where(
    *_OF_THE_PAYER,
    payments.c.nonce != bindparam("a_nonce"),
    payments.c.state.in_(_IN_FLIGHT),
    or_(payments.c.state != State.CLAIMED, payments.c.lease_us > bindparam("now_us")),
)
_FAILURES = (
    select(func.count())
    .select_from(payments)
    .where(
        *_OF_THE_PAYER,
        payments.c.state == State.FAILED,
        payments.c.updated_us >= bindparam("since_us"),
    )
)
_REUSED = select(payments.c.nonce).where(
    *_OF_THE_PAYER,
    payments.c.operator_id == bindparam("an_operator"),
    payments.c.identifier == bindparam("an_identifier"),
    payments.c.nonce != bindparam("a_nonce"),
)
_STORED = select(paid_responses).where(paid_responses.c.payment_id == bindparam("an_id"))
_FORGET = delete(paid_responses).where(paid_responses.c.payment_id == bindparam("an_id"))
_STORE = insert(paid_responses)


class SqlLedgerStore:
    """Implements `payments.ports.LedgerStore`.

    `moves` counts a row's changes, so that one made from an old reading comes to nothing.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._rollups = RollupWriter(database.kind)

    async def claim(self, fresh: Entry, failures_since: datetime) -> Claim:
        async with self._database.write() as connection:
            # One payer's claims in one order: what is in flight is then counted exactly.
            await self._database.lock(connection, f"payer {fresh.network} {fresh.payer}")
            entry, is_ours = await self._claim(connection, fresh)
            if not is_ours:
                return Claim(entry, is_ours=False, committed=0, failures=0)
            committed = await self._committed(connection, entry)
            failures = await _failures(connection, entry, failures_since)
        return Claim(entry, is_ours=True, committed=committed, failures=failures)

    async def committed(self, entry: Entry) -> int:
        async with self._database.read() as connection:
            return await self._committed(connection, entry)

    async def find(self, network: str, digest: str) -> Entry | None:
        values = {"a_network": network, "a_digest": digest}
        async with self._database.read() as connection:
            row = (await connection.execute(_BY_DIGEST, values)).mappings().first()
        return None if row is None else _entry(row)

    async def move(
        self,
        entry: Entry,
        state: State,
        *,
        attempt: Attempt | None = None,
        reason: str = "",
        lease_until: datetime | None = None,
        stored: Stored | None = None,
    ) -> Entry | None:
        now = self._clock.now()
        moved = replace(
            entry,
            state=state,
            settled_at=entry.settled_at or (now if state is State.SETTLED else None),
            attempt=attempt or entry.attempt,
            reason=reason[:500],
            lease_until=lease_until or entry.lease_until,
            updated_at=now,
            moves=entry.moves + 1,
        )
        tally = tally_move(entry, moved)
        async with self._database.write() as connection:
            if not await _update(connection, _MOVE, entry, moved):
                return None
            if stored is not None:
                await _store(connection, moved, stored)
            if tally is not None:
                await self._rollups.write(connection, tally)
        if tally is not None:
            self._rollups.written(tally)
        return moved

    async def stored(self, entry_id: str) -> Stored | None:
        async with self._database.read() as connection:
            found = await connection.execute(_STORED, {"an_id": entry_id})
            row = found.mappings().one_or_none()
        return None if row is None else unpacked(row)

    async def unfinished(self, before: datetime, at_most: int) -> Sequence[Entry]:
        statement = (
            select(payments)
            .where(payments.c.state.in_(_OPEN), payments.c.lease_us < to_us(before))
            .order_by(payments.c.lease_us)
            .limit(at_most)
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return [_entry(row) for row in rows]

    async def purge_stored(self, before: datetime) -> int:
        statement = delete(paid_responses).where(paid_responses.c.stored_us < to_us(before))
        async with self._database.write() as connection:
            return (await connection.execute(statement)).rowcount

    async def list(
        self, operator_id: str | None, states: Sequence[State], at_most: int
    ) -> Sequence[Entry]:
        statement = select(payments).order_by(payments.c.created_us.desc()).limit(at_most)
        if operator_id is not None:
            statement = statement.where(payments.c.operator_id == operator_id)
        if states:
            statement = statement.where(payments.c.state.in_(states))
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return [_entry(row) for row in rows]

    async def _claim(self, connection: AsyncConnection, fresh: Entry) -> tuple[Entry, bool]:
        """The entry, new, taken over, or as somebody else has it; and whether it is ours."""
        if fresh.identifier is not None:
            await _refuse_reuse(connection, fresh)
        found = (await connection.execute(_BY_KEY, _key(fresh))).mappings().one_or_none()
        if found is None:
            await connection.execute(_INSERT, _values(fresh))
            return fresh, True
        known = _entry(found)
        abandoned = known.state is State.CLAIMED and known.lease_until <= fresh.created_at
        if known.state is not State.RELEASED and not abandoned:
            return known, False
        taken = replace(fresh, id=known.id, moves=known.moves + 1)
        return taken, await _update(connection, _TAKE_OVER, known, taken)

    async def _committed(self, connection: AsyncConnection, entry: Entry) -> int:
        values = {**_key(entry), "now_us": to_us(self._clock.now())}
        return int((await connection.execute(_COMMITTED, values)).scalar_one())


async def _refuse_reuse(connection: AsyncConnection, fresh: Entry) -> None:
    values = {**_key(fresh), "an_operator": fresh.operator_id, "an_identifier": fresh.identifier}
    if (await connection.execute(_REUSED, values)).first() is not None:
        raise IdentifierReused("This payment-identifier belongs to another payment.")


async def _failures(connection: AsyncConnection, entry: Entry, since: datetime) -> int:
    values = {**_key(entry), "since_us": to_us(since)}
    del values["a_nonce"]
    return int((await connection.execute(_FAILURES, values)).scalar_one())


async def _update(
    connection: AsyncConnection, statement: Update, known: Entry, moved: Entry
) -> bool:
    """Whether the row was still as it was read."""
    values = _values(moved)
    del values["id"]
    if statement is _MOVE:
        values = {name: values[name] for name in _CHANGING}
    values |= {"an_id": known.id, "moves_read": known.moves}
    return (await connection.execute(statement, values)).rowcount == 1


async def _store(connection: AsyncConnection, entry: Entry, stored: Stored) -> None:
    await connection.execute(_FORGET, {"an_id": entry.id})
    whose = {"payment_id": entry.id, "stored_us": to_us(entry.updated_at)}
    await connection.execute(_STORE, whose | packed(stored))


def _key(entry: Entry) -> dict[str, object]:
    return {
        "a_network": entry.network,
        "an_asset": entry.asset,
        "a_payer": entry.payer,
        "a_nonce": entry.nonce,
    }


def _values(entry: Entry) -> dict[str, object]:
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
        "tx": entry.attempt.transaction,
        "raw_tx": entry.attempt.raw,
        "reason": entry.reason,
        "credential": json.dumps(entry.credential),
        "version": entry.version,
        "identifier": entry.identifier,
        "expires_us": to_us(entry.expires_at),
        "lease_us": to_us(entry.lease_until),
        "created_us": to_us(entry.created_at),
        "updated_us": to_us(entry.updated_at),
        "moves": entry.moves,
        "agent_id": entry.agent_id,
        "settled_us": None if entry.settled_at is None else to_us(entry.settled_at),
    }


def _entry(row: RowMapping) -> Entry:
    return Entry(
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
        state=State(row["state"]),
        attempt=Attempt(row["tx"], row["raw_tx"]),
        reason=row["reason"],
        credential=json.loads(row["credential"]),
        version=row["version"],
        identifier=row["identifier"],
        expires_at=from_us(row["expires_us"]),
        lease_until=from_us(row["lease_us"]),
        created_at=from_us(row["created_us"]),
        updated_at=from_us(row["updated_us"]),
        moves=row["moves"],
        agent_id=row["agent_id"],
        settled_at=None if row["settled_us"] is None else from_us(row["settled_us"]),
    )
