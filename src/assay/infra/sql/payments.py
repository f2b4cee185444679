"""The payment ledger in SQL."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

from sqlalchemy import Update, delete, select

from assay.infra.sql.desk import Desk, Row
from assay.infra.sql.engine import Database, from_us, to_us
from assay.infra.sql.ledger_statements import (
    BY_DIGEST,
    BY_KEY,
    CHANGING,
    COMMITTED,
    FAILURES,
    FORGET,
    INSERT,
    MOVE,
    REUSED,
    STORE,
    STORED,
    STORED_BYTES,
    TAKE_OVER,
)
from assay.infra.sql.paid_responses import packed, unpacked
from assay.infra.sql.rollups import RollupWriter, tally_move
from assay.infra.sql.tables import paid_responses, payments
from assay.kit.clock import Clock
from assay.payments.model import Attempt, Entry, Fees, IdentifierReused, State, Stored
from assay.payments.ports import Claim, Committed

_OPEN = (State.SETTLING, State.PENDING)


class SqlLedgerStore:
    """Implements `payments.ports.LedgerStore`.

    `moves` counts a row's changes, so that one made from an old reading comes to nothing.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._rollups = RollupWriter(database.kind)

    async def claim(self, fresh: Entry, failures_since: datetime) -> Claim:
        async def work(desk: Desk) -> Claim:
            # One payer's claims in one order: what is in flight is then counted exactly.
            await desk.lock(f"payer {fresh.network} {fresh.payer}")
            entry, is_ours = await _claim(desk, fresh)
            if not is_ours:
                return Claim(entry, is_ours=False, committed=Committed(), failures=0)
            committed = await _committed(desk, entry, self._clock.now())
            failures = await _failures(desk, entry, failures_since)
            return Claim(entry, is_ours=True, committed=committed, failures=failures)

        return await self._database.change(work)

    async def committed(self, entry: Entry) -> Committed:
        now = self._clock.now()
        return await self._database.look(lambda desk: _committed(desk, entry, now))

    async def find(self, network: str, digest: str) -> Entry | None:
        values = {"a_network": network, "a_digest": digest}
        rows = await self._database.look(lambda desk: desk.rows(BY_DIGEST, values))
        return _entry(rows[0]) if rows else None

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

        async def work(desk: Desk) -> bool:
            if not await _update(desk, MOVE, entry, moved):
                return False
            if stored is not None:
                await _store(desk, moved, stored)
            if tally is not None:
                await self._rollups.write(desk.connection, tally)
            return True

        if not await self._database.change(work):
            return None
        if tally is not None:
            self._rollups.written(tally)
        return moved

    async def stored_bytes(self, entry_id: str) -> int | None:
        values = {"an_id": entry_id}
        rows = await self._database.look(lambda desk: desk.rows(STORED_BYTES, values))
        return int(rows[0]["size"]) if rows else None

    async def stored(self, entry_id: str) -> Stored | None:
        values = {"an_id": entry_id}
        rows = await self._database.look(lambda desk: desk.rows(STORED, values))
        return unpacked(rows[0]) if rows else None

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


async def _claim(desk: Desk, fresh: Entry) -> tuple[Entry, bool]:
    """The entry, new, taken over, or as somebody else has it; and whether it is ours."""
    if fresh.identifier is not None:
        await _refuse_reuse(desk, fresh)
    found = await desk.rows(BY_KEY, _key(fresh))
    if not found:
        await desk.change(INSERT, _values(fresh))
        return fresh, True
    known = _entry(found[0])
    abandoned = known.state is State.CLAIMED and known.lease_until <= fresh.created_at
    if known.state is not State.RELEASED and not abandoned:
        return known, False
    taken = replace(fresh, id=known.id, moves=known.moves + 1)
    if known.idempotency_key and known.request_digest == fresh.request_digest:
        taken = replace(taken, idempotency_key=known.idempotency_key)  # the upstream may have run
    return taken, await _update(desk, TAKE_OVER, known, taken)


async def _committed(desk: Desk, entry: Entry, now: datetime) -> Committed:
    """Of one network all payments are in one asset, so its index finds them."""
    values = {**_key(entry), "now_us": to_us(now), "a_fee_token": entry.fees.token}
    (row,) = await desk.rows(COMMITTED, values)
    return Committed(*(int(row[name]) for name in ("amount", "fees", "sent", "mark")))


async def _refuse_reuse(desk: Desk, fresh: Entry) -> None:
    values = {**_key(fresh), "an_operator": fresh.operator_id, "an_identifier": fresh.identifier}
    if await desk.rows(REUSED, values):
        raise IdentifierReused("This payment-identifier belongs to another payment.")


async def _failures(desk: Desk, entry: Entry, since: datetime) -> int:
    values = {**_key(entry), "since_us": to_us(since)}
    del values["a_nonce"]
    return int((await desk.rows(FAILURES, values))[0]["total"])


async def _update(desk: Desk, statement: Update, known: Entry, moved: Entry) -> bool:
    """Whether the row was still as it was read."""
    values = _values(moved)
    del values["id"]
    if statement is MOVE:
        values = {name: values[name] for name in CHANGING}
    values |= {"an_id": known.id, "moves_read": known.moves}
    return await desk.change(statement, values) == 1


async def _store(desk: Desk, entry: Entry, stored: Stored) -> None:
    await desk.change(FORGET, {"an_id": entry.id})
    whose = {"payment_id": entry.id, "stored_us": to_us(entry.updated_at)}
    await desk.change(STORE, whose | packed(stored))


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
        "fee_token": entry.fees.token,
        "fee_most": entry.fees.most,
        "fee_rate": None if entry.fee_rate is None else str(entry.fee_rate),
        "expires_us": to_us(entry.expires_at),
        "lease_us": to_us(entry.lease_until),
        "created_us": to_us(entry.created_at),
        "updated_us": to_us(entry.updated_at),
        "moves": entry.moves,
        "agent_id": entry.agent_id,
        "settled_us": None if entry.settled_at is None else to_us(entry.settled_at),
        "wrapper_revision": entry.wrapper_revision,
        "idempotency_key": entry.idempotency_key,
    }


def _entry(row: Row) -> Entry:
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
        fees=Fees(row["fee_token"], row["fee_most"]),
        fee_rate=None if row["fee_rate"] is None else Decimal(row["fee_rate"]),
        expires_at=from_us(row["expires_us"]),
        lease_until=from_us(row["lease_us"]),
        created_at=from_us(row["created_us"]),
        updated_at=from_us(row["updated_us"]),
        moves=row["moves"],
        agent_id=row["agent_id"],
        settled_at=None if row["settled_us"] is None else from_us(row["settled_us"]),
        wrapper_revision=row["wrapper_revision"],
        idempotency_key=row["idempotency_key"],
    )
