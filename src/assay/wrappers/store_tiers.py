"""Stores what agents were quoted for their tier, and their free calls, for every process.

A quota is spent by one statement each, so concurrent calls never exceed it together. A process
whose clock is behind never opens an earlier period again.
"""

from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import delete, select, text

from assay.db.engine import Database, to_us
from assay.db.schema.everything import free_calls, tier_quotes
from assay.wrappers.model import QUOTES_MAX
from assay.wrappers.tier_terms import FreeQuota, period_of

KNOWN_MAX: Final = 50_000
"""Quotes and spent quotas that a process remembers, each, so that it asks no database."""

SPENT_KEPT: Final = timedelta(seconds=5)
"""How long a process remembers that a quota is spent: another one may give a call back."""

_LONGER: Final = 1.25
"""A quote is kept for so many times its life, so that most calls need not write it again."""

_KEPT: Final = {"day": timedelta(days=2), "month": timedelta(days=62)}
"""How long the count of a period is kept: no process's clock is so far behind."""

_QUOTE = text(
    "INSERT INTO tier_quotes (wrapper_id, agent, revision, price, until_us)"
    " VALUES (:wrapper_id, :agent, :revision, :price, :until_us)"
    " ON CONFLICT (wrapper_id, agent, revision, price) DO UPDATE SET until_us = excluded.until_us"
    " WHERE tier_quotes.until_us < excluded.until_us"
)

_SPEND = text(
    "INSERT INTO free_calls (wrapper_id, per, agent, period, used)"
    " VALUES (:wrapper_id, :per, :agent, :period, 1)"
    " ON CONFLICT (wrapper_id, per, agent) DO UPDATE SET period = excluded.period,"
    " used = CASE WHEN free_calls.period = excluded.period THEN free_calls.used + 1 ELSE 1 END"
    " WHERE free_calls.period < excluded.period"
    " OR (free_calls.period = excluded.period AND free_calls.used < :calls)"
    " RETURNING used"
)

_GIVE_BACK = text(
    "UPDATE free_calls SET used = used - 1 WHERE wrapper_id = :wrapper_id AND per = :per"
    " AND agent = :agent AND period = :period AND used > 0"
)


class SqlTierStore:
    """Quotes and free calls by wrapper and agent."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._quoted: OrderedDict[tuple[str, str, int, int], datetime] = OrderedDict()
        self._spent: OrderedDict[tuple[str, str, str], tuple[int, datetime]] = OrderedDict()

    async def quote(
        self, wrapper_id: str, agent: str, revision: int, price: int, now: datetime, life_s: float
    ) -> None:
        """Record that an agent is quoted a price of a revision now, to be paid within `life_s`."""
        key = (wrapper_id, agent, revision, price)
        life = timedelta(seconds=life_s)
        known = self._quoted.get(key)
        if known is not None and known >= now + life:
            return
        until = now + life * _LONGER
        values = dict(zip(("wrapper_id", "agent", "revision", "price"), key, strict=True))
        async with self._database.write() as connection:
            await connection.execute(_QUOTE, {**values, "until_us": to_us(until)})
        self._quoted[key] = until
        if len(self._quoted) > KNOWN_MAX:
            self._quoted.popitem(last=False)

    async def quoted(self, wrapper_id: str, agent: str, price: int, now: datetime) -> Sequence[int]:
        """Return the revisions of which this agent may pay this price now, newest first."""
        columns = tier_quotes.c
        statement = (
            select(columns.revision)
            .where(
                columns.wrapper_id == wrapper_id,
                columns.agent == agent,
                columns.price == price,
                columns.until_us >= to_us(now),
            )
            .order_by(columns.revision.desc())
            .limit(QUOTES_MAX)
        )
        async with self._database.read() as connection:
            return (await connection.execute(statement)).scalars().all()

    async def spend(self, wrapper_id: str, agent: str, quota: FreeQuota, now: datetime) -> bool:
        """Use one free call of the agent; return whether it had one left."""
        key, period = (wrapper_id, quota.per, agent), period_of(quota.per, now)
        calls, until = self._spent.get(key, (0, now))
        if calls == quota.calls and now < until:
            return False
        values = {**_values(key), "period": period, "calls": quota.calls}
        async with self._database.write() as connection:
            used = (await connection.execute(_SPEND, values)).scalar_one_or_none()
        if used is None:
            self._spent[key] = (quota.calls, now + SPENT_KEPT)
            if len(self._spent) > KNOWN_MAX:
                self._spent.popitem(last=False)
        return used is not None

    async def give_back(
        self, wrapper_id: str, agent: str, quota: FreeQuota, spent_at: datetime
    ) -> None:
        """Give back a free call that was not forwarded."""
        key = (wrapper_id, quota.per, agent)
        values = {**_values(key), "period": period_of(quota.per, spent_at)}
        async with self._database.write() as connection:
            await connection.execute(_GIVE_BACK, values)
        self._spent.pop(key, None)

    async def remove(self, now: datetime, limit: int) -> int:
        """Remove quotes that have ended, and counts of past periods; return how many rows."""
        quotes, counts = tier_quotes.c, free_calls.c
        ended = select(quotes.wrapper_id, quotes.agent, quotes.revision, quotes.price).where(
            quotes.until_us < to_us(now)
        )
        removed = 0
        async with self._database.write() as connection:
            rows = (await connection.execute(ended.limit(limit))).all()
            for row in rows:
                statement = delete(tier_quotes).where(
                    quotes.wrapper_id == row.wrapper_id,
                    quotes.agent == row.agent,
                    quotes.revision == row.revision,
                    quotes.price == row.price,
                    quotes.until_us < to_us(now),
                )
                removed += (await connection.execute(statement)).rowcount
            for per, kept in _KEPT.items():
                before = period_of("day" if per == "day" else "month", now - kept)
                old = select(counts.wrapper_id, counts.agent).where(
                    counts.per == per, counts.period < before
                )
                for row in (await connection.execute(old.limit(limit))).all():
                    statement = delete(free_calls).where(
                        counts.wrapper_id == row.wrapper_id,
                        counts.per == per,
                        counts.agent == row.agent,
                        counts.period < before,
                    )
                    removed += (await connection.execute(statement)).rowcount
        return removed


def _values(key: tuple[str, str, str]) -> dict[str, object]:
    return dict(zip(("wrapper_id", "per", "agent"), key, strict=True))
