"""Stores claims of paid calls in SQL: every limit and the claim in one transaction, serialised."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import (
    ColumnElement,
    RowMapping,
    and_,
    case,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from assay.common.clock import Clock
from assay.common.json import JsonObject, is_object
from assay.db.engine import Database, from_us, to_us
from assay.db.schema.paid_calls import paid_calls
from assay.payments.statement import Draft
from assay.probing.paid_calls import EVERY, GAS, SHARE, TRIES_MAX, PaidCall, Sale, Spending

DAY: Final = timedelta(days=1)
_C = paid_calls.c
_LOCK: Final = "paid calls"
"""One writer at a time in all processes, so that a sum stays correct until the row is added."""

_CHARS_MAX: Final = {"service": 2048, "owner": 64, "site": 255, "domain": 255, "subject_key": 160}


class SqlPaidCallStore:
    """Stores claims in SQL; implements `probing.paid_calls.PaidCallStore`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def claim(self, wanted: PaidCall, day_budget: int) -> PaidCall | None:
        if any(len(getattr(wanted, name)) > most for name, most in _CHARS_MAX.items()):
            return None
        async with self._database.write() as connection:
            await self._database.lock(connection, _LOCK)
            earlier = await self._earlier(connection, wanted)
            if earlier is not None:
                return _of_row(earlier) if _may_be_spent(earlier, wanted) else None
            if await self._is_too_much(connection, wanted, day_budget):
                return None
            await connection.execute(insert(paid_calls).values(_values(wanted)))
        return wanted

    async def _earlier(self, connection: AsyncConnection, wanted: PaidCall) -> RowMapping | None:
        """Return the newest claim of a month with the agent, its payee or its site."""
        same = or_(
            _C.payee == wanted.payee,
            _C.subject_key == wanted.subject_key,
            _C.site == wanted.site,
        )
        since = _C.opened_us > to_us(wanted.opened_at - EVERY)
        statement = select(paid_calls).where(same, since).order_by(_C.opened_us.desc()).limit(1)
        return (await connection.execute(statement)).mappings().first()

    async def _is_too_much(
        self, connection: AsyncConnection, wanted: PaidCall, day_budget: int
    ) -> bool:
        """Return whether the claim exceeds the day's budget, or the owner's or domain's tenth."""
        today = _C.opened_us > to_us(wanted.opened_at - DAY)
        own, near = _C.owner == wanted.owner, _C.domain == wanted.domain
        sums = (_sum(own), _sum(near), func.coalesce(func.sum(_C.cost), 0))
        of_owner, of_domain, of_all = (await connection.execute(select(*sums).where(today))).one()
        cost, share = wanted.amount + GAS, day_budget // SHARE
        return max(of_owner, of_domain) + cost > share or of_all + cost > day_budget

    async def sign(self, call: PaidCall, draft: Draft) -> PaidCall:
        async with self._database.write() as connection:
            await self._database.lock(connection, _LOCK)
            row = (
                (await connection.execute(select(paid_calls).where(_C.id == call.id)))
                .mappings()
                .one()
            )
            if row["raw"]:
                return _of_row(row)
            own = and_(_C.sender == call.sender, _C.network == call.network)
            newest = (await connection.execute(select(func.max(_C.nonce)).where(own))).scalar_one()
            nonce = draft.nonce_min if newest is None else max(draft.nonce_min, newest + 1)
            signed = draft.sign(nonce)
            values = {
                "nonce": nonce,
                "raw": signed.raw,
                "transaction_hash": signed.transaction,
            }
            await connection.execute(update(paid_calls).where(_C.id == call.id).values(values))
        return replace(call, nonce=nonce, raw=signed.raw, transaction=signed.transaction)

    async def unfilled(self, sender: str, network: str, limit: int) -> Sequence[PaidCall]:
        statement = (
            select(paid_calls)
            .where(_C.sender == sender, _C.network == network, _C.raw != "", ~_C.is_filled)
            .order_by(_C.nonce.desc())
            .limit(limit)
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(statement)).mappings().all()
        return [_of_row(row) for row in reversed(rows)]

    async def filled(self, call: PaidCall) -> None:
        await self._update(call.id, is_filled=True)

    async def begin(self, call: PaidCall) -> None:
        await self._update(call.id, tries=_C.tries + 1)

    async def _update(self, call_id: str, **values: object) -> None:
        async with self._database.write() as connection:
            await connection.execute(update(paid_calls).where(_C.id == call_id).values(values))

    async def keep(self, call_id: str, bought: JsonObject, taken: int, *, is_proven: bool) -> None:
        async with self._database.write() as connection:
            one = _C.id == call_id
            await connection.execute(update(paid_calls).where(one).values(taken=taken))
            values = {"bought": json.dumps(bought), "is_proven": is_proven}
            unproven = () if is_proven else (~_C.is_proven,)
            kept_us = to_us(self._clock.now())
            await connection.execute(
                update(paid_calls).where(one, *unproven).values(**values, kept_us=kept_us)
            )

    async def known(self, sale: Sale, since: datetime) -> JsonObject | None:
        statement = (
            select(_C.bought)
            .where(
                _C.service == sale.service,
                _C.payee == sale.payee,
                _C.kept_us > to_us(since),
            )
            .order_by(_C.kept_us.desc())
            .limit(1)
        )
        async with self._database.read() as connection:
            found = (await connection.execute(statement)).scalar_one_or_none()
        bought = None if found is None else json.loads(found)
        return bought if is_object(bought) else None

    async def spending(self, now: datetime) -> Spending:
        today = _C.opened_us > to_us(now - DAY)
        columns = (
            _sum(today),
            func.count(),
            _count(_C.is_filled),
            _count(_C.is_proven),
            func.coalesce(func.sum(_C.taken), 0),
        )
        statement = select(*columns).where(_C.opened_us > to_us(now - EVERY))
        async with self._database.read() as connection:
            row = (await connection.execute(statement)).one()
        return Spending(*(int(value) for value in row))

    async def remove(self, before: datetime, limit: int) -> int:
        """Remove claims from before then; return how many."""
        old = select(_C.id).where(_C.opened_us < to_us(before)).limit(limit)
        async with self._database.write() as connection:
            gone = await connection.execute(delete(paid_calls).where(_C.id.in_(old)))
            return gone.rowcount


def _sum(of: ColumnElement[bool]) -> ColumnElement[int]:
    return func.coalesce(func.sum(case((of, _C.cost), else_=0)), 0)


def _count(of: ColumnElement[bool]) -> ColumnElement[int]:
    return func.coalesce(func.sum(case((of, 1), else_=0)), 0)


def _may_be_spent(row: RowMapping, wanted: PaidCall) -> bool:
    """Return whether it is for the same service and payee, has money left and proved nothing."""
    names = ("subject_key", "service", "payee", "network", "sender")
    is_same = all(row[name] == getattr(wanted, name) for name in names)
    return is_same and not row["is_proven"] and row["tries"] < TRIES_MAX


def _values(call: PaidCall) -> dict[str, object]:
    named = ("id", "subject_key", "service", "payee", "owner", "site", "domain", "network")
    return {
        **{name: getattr(call, name) for name in (*named, "sender", "wallet", "amount")},
        "cost": call.amount + GAS,
        "opened_us": to_us(call.opened_at),
        "raw": "",
        "transaction_hash": "",
        "is_filled": False,
        "tries": 0,
        "is_proven": False,
        "taken": 0,
    }


def _of_row(row: RowMapping) -> PaidCall:
    named = ("id", "subject_key", "service", "payee", "owner", "site", "domain", "network")
    return PaidCall(
        **{name: row[name] for name in (*named, "sender", "wallet", "amount", "nonce", "raw")},
        opened_at=from_us(row["opened_us"]),
        transaction=row["transaction_hash"],
        is_filled=bool(row["is_filled"]),
    )
