"""The egress budget's counts in SQL: one ledger for every process on the database."""

import hashlib
from dataclasses import dataclass

from sqlalchemy import and_, bindparam, case, delete, func, insert, select, update

from assay.common.clock import Clock
from assay.common.egress_budget import (
    ACCOUNT_PART,
    BUDGET_S,
    OTHERS_S,
    RESERVED_PART,
    SHARED_PART,
    BudgetSpent,
    Ceiling,
    EgressClaim,
    EgressUse,
    UseClass,
)
from assay.common.ids import new_id
from assay.db.engine import Database, to_us
from assay.db.schema.budgets import egress_usage
from assay.db.sql_transaction import SqlTransaction

PURGE_EVERY_S = 10.0
PURGE_MAX = 5000
"""Rows removed at a time, so that no claim waits for the removal of millions."""

ASKING_MAX = 64
"""Largest number of refused requesters kept as asking: it only matters that there are others."""

_ROWS = egress_usage
_LIVE = (_ROWS.c.budget == bindparam("a_budget"), _ROWS.c.expires_us > bindparam("now_us"))
_SHARED = _ROWS.c.is_shared == 1
_MINE = and_(_SHARED, _ROWS.c.account == bindparam("an_account"))
_TOTALS = select(
    func.count().label("requests"),
    func.coalesce(func.sum(_ROWS.c.bytes), 0).label("bytes"),
    func.coalesce(func.sum(case((_SHARED, 1), else_=0)), 0).label("shared_requests"),
    func.coalesce(func.sum(case((_SHARED, _ROWS.c.bytes), else_=0)), 0).label("shared_bytes"),
    func.coalesce(func.sum(case((_MINE, 1), else_=0)), 0).label("account_requests"),
    func.coalesce(func.sum(case((_MINE, _ROWS.c.bytes), else_=0)), 0).label("account_bytes"),
    func.min(_ROWS.c.expires_us).label("oldest_us"),
).where(*_LIVE)
_RESERVED = (
    select(
        _ROWS.c.account.label("asker"),
        func.count().label("requests"),
        func.coalesce(func.sum(_ROWS.c.bytes), 0).label("bytes"),
    )
    .where(*_LIVE, _ROWS.c.account.like("%/%"))
    .group_by(_ROWS.c.account)
)
_INSERT = insert(_ROWS).values({c.name: bindparam(c.name) for c in _ROWS.c if c.name != "seq"})
_OF_EXCHANGE = _ROWS.c.exchange == bindparam("an_exchange")
_ADD = (
    update(_ROWS)
    .where(_OF_EXCHANGE)
    .values(bytes=_ROWS.c.bytes + bindparam("more"), expires_us=bindparam("until_us"))
)
_SETTLE = (
    update(_ROWS)
    .where(_OF_EXCHANGE)
    .values(bytes=bindparam("size"), expires_us=bindparam("until_us"))
)
_FORGET = delete(_ROWS).where(_OF_EXCHANGE)
_PURGE = delete(_ROWS).where(
    _ROWS.c.seq.in_(
        select(_ROWS.c.seq)
        .where(_ROWS.c.expires_us <= bindparam("now_us"))
        .order_by(_ROWS.c.expires_us)
        .limit(PURGE_MAX)
    )
)


@dataclass(frozen=True, slots=True)
class _Left:
    """What one use may still take of one budget."""

    requests: int
    size_bytes: int
    oldest_us: int | None


class SqlBudgetLedger:
    """Counts egress usage, on the wall clock that all processes share.

    Implements `common.egress_budget.BudgetLedger`. If the clock is set back, counts last longer; if
    it is set forward, the skipped time is forgiven.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._purge_at_s = clock.monotonic_s()

    async def claim(self, claim: EgressClaim) -> BudgetSpent | None:
        await self._purge_when_due()
        now_us = self._now_us()
        row = {
            "exchange": claim.exchange,
            "budget": _hashed(claim.key),
            "is_shared": int(claim.use.use_class is UseClass.SHARED),
            "account": _asker(claim.use),
            "bytes": claim.size_bytes,
            "expires_us": now_us + round((claim.ends_s + BUDGET_S) * 1e6),
        }

        async def work(transaction: SqlTransaction) -> BudgetSpent | None:
            await transaction.lock(f"egress {row['budget']}")
            left = await _left(transaction, claim.key, claim.ceiling, claim.use, now_us)
            if left.requests < 1 or left.size_bytes < claim.size_bytes:
                await _note_asking(transaction, claim, now_us)
                return _spent(left, now_us, BUDGET_S)
            await transaction.change(_INSERT, row)
            return None

        return await self._database.change(work)

    async def extend(self, claims: tuple[EgressClaim, ...], wanted_bytes: int) -> int:
        now_us = self._now_us()
        # In one order for all, so that no two deadlock.
        ordered = sorted(claims, key=lambda claim: _hashed(claim.key))

        async def work(transaction: SqlTransaction) -> int:
            granted = wanted_bytes
            for claim in ordered:
                await transaction.lock(f"egress {_hashed(claim.key)}")
                left = await _left(transaction, claim.key, claim.ceiling, claim.use, now_us)
                granted = min(granted, left.size_bytes)
            if granted <= 0:
                return 0
            until_us = now_us + round((max(c.ends_s for c in ordered) + BUDGET_S) * 1e6)
            whose = {"an_exchange": ordered[0].exchange}
            await transaction.change(_ADD, whose | {"more": granted, "until_us": until_us})
            return granted

        return await self._database.change(work) if ordered else wanted_bytes

    async def settle(self, exchange: str, size_bytes: int) -> None:
        values = {
            "an_exchange": exchange,
            "size": size_bytes,
            "until_us": self._now_us() + round(BUDGET_S * 1e6),
        }
        await self._database.change(lambda transaction: transaction.change(_SETTLE, values))

    async def forget(self, exchange: str) -> None:
        values = {"an_exchange": exchange}
        await self._database.change(lambda transaction: transaction.change(_FORGET, values))

    async def left(self, key: str, ceiling: Ceiling, use: EgressUse) -> Ceiling:
        now_us = self._now_us()
        found = await self._database.change(
            lambda transaction: _left(transaction, key, ceiling, use, now_us),
        )
        return Ceiling(max(0, found.requests), max(0, found.size_bytes))

    async def count(self, key: str, limit: int, window_s: float) -> BudgetSpent | None:
        now_us = self._now_us()
        row = {
            "exchange": new_id(),
            "budget": _hashed(key),
            "is_shared": 0,
            "account": "",
            "bytes": 0,
            "expires_us": now_us + round(window_s * 1e6),
        }

        async def work(transaction: SqlTransaction) -> BudgetSpent | None:
            await transaction.lock(f"egress {row['budget']}")
            left = await _left(transaction, key, Ceiling(limit, 0), EgressUse(UseClass.OWN), now_us)
            if left.requests < 1:
                return _spent(left, now_us, window_s)
            await transaction.change(_INSERT, row)
            return None

        return await self._database.change(work)

    async def _purge_when_due(self) -> None:
        now_s = self._clock.monotonic_s()
        if now_s < self._purge_at_s:
            return
        self._purge_at_s = now_s + PURGE_EVERY_S
        now_us = self._now_us()

        async def work(transaction: SqlTransaction) -> int:
            # Two concurrent purges could deadlock on each other's rows.
            await transaction.lock("purge of egress")
            return await transaction.change(_PURGE, {"now_us": now_us})

        if await self._database.change(work) == PURGE_MAX:
            self._purge_at_s = now_s  # More rows remain: the next claim continues.

    def _now_us(self) -> int:
        return to_us(self._clock.now())


async def _left(
    transaction: SqlTransaction, key: str, ceiling: Ceiling, use: EgressUse, now_us: int
) -> _Left:
    values = {"a_budget": _hashed(key), "now_us": now_us, "an_account": use.account}
    [row] = await transaction.rows(_TOTALS, values)
    requests = [ceiling.requests - row["requests"]]
    sizes = [ceiling.size_bytes - int(row["bytes"])]
    if use.use_class is UseClass.SHARED:
        requests.append(ceiling.requests // SHARED_PART - row["shared_requests"])
        sizes.append(ceiling.size_bytes // SHARED_PART - int(row["shared_bytes"]))
        if use.account:
            requests.append(ceiling.requests // ACCOUNT_PART - row["account_requests"])
            sizes.append(ceiling.size_bytes // ACCOUNT_PART - int(row["account_bytes"]))
    if use.use_class is UseClass.RESERVED and use.agent:
        for left in await _reserved_left(transaction, key, ceiling, use, now_us):
            requests.append(left.requests)
            sizes.append(left.size_bytes)
    return _Left(min(requests), min(sizes), row["oldest_us"])


async def _reserved_left(
    transaction: SqlTransaction, key: str, ceiling: Ceiling, use: EgressUse, now_us: int
) -> list[_Left]:
    """Return what the use's account and agent have left while others ask for the same budget."""
    counted = await transaction.rows(_RESERVED, {"a_budget": _hashed(key), "now_us": now_us})
    asking = await transaction.rows(_RESERVED, {"a_budget": _asking(key), "now_us": now_us})
    found: list[_Left] = []
    mine = _asker(use).split("/")
    for part in range(len(mine)):
        if not (part or use.account):
            continue  # A scheduled visit belongs to no account.
        if all(row["asker"].split("/")[part] == mine[part] for row in (*counted, *asking)):
            continue  # No other account asks.
        own = [row for row in counted if row["asker"].split("/")[part] == mine[part]]
        requests = ceiling.requests // RESERVED_PART - sum(row["requests"] for row in own)
        size_bytes = ceiling.size_bytes // RESERVED_PART - sum(int(row["bytes"]) for row in own)
        found.append(_Left(requests, size_bytes, None))
    return found


async def _note_asking(transaction: SqlTransaction, claim: EgressClaim, now_us: int) -> None:
    """Record a refused request of the reserved class, so that others leave room for it."""
    if claim.use.use_class is not UseClass.RESERVED or not claim.use.agent:
        return
    asker = _asker(claim.use)
    asking = await transaction.rows(_RESERVED, {"a_budget": _asking(claim.key), "now_us": now_us})
    if len(asking) >= ASKING_MAX or any(row["asker"] == asker for row in asking):
        return
    row = {
        "exchange": new_id(),
        "budget": _asking(claim.key),
        "is_shared": 0,
        "account": asker,
        "bytes": 0,
        "expires_us": now_us + round(OTHERS_S * 1e6),
    }
    await transaction.change(_INSERT, row)


def _asker(use: EgressUse) -> str:
    """Return the account column's value: the account, or account and agent of a reserved use."""
    if use.use_class is not UseClass.RESERVED:
        return use.account
    return f"{_short(use.account)}/{_short(use.agent)}" if use.agent else ""


def _asking(key: str) -> str:
    return _hashed(f"asking for {key}")


def _short(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _spent(left: _Left, now_us: int, window_s: float) -> BudgetSpent:
    if left.oldest_us is None:
        return BudgetSpent(window_s)
    return BudgetSpent(max(0.0, (left.oldest_us - now_us) / 1e6))


def _hashed(key: str) -> str:
    return hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
