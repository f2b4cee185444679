"""Short-lived entries in SQL: durable, and shared by every process on the database."""

from collections.abc import Sequence

from sqlalchemy import text

from assay.common.clock import Clock
from assay.common.shared_state import check_entry
from assay.db.engine import Database, to_us

PURGE_EVERY_S = 10.0
LIVING_MAX = 1000
PURGE_MAX = 5000
"""Entries removed at a time, so that no `put` waits for the removal of millions."""

_PUT = (
    "INSERT INTO state (key, value, expires_us) VALUES (:key, :value, :expires_us)"
    " ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_us = excluded.expires_us"
)
_PUT_ALWAYS = text(_PUT)
_PUT_IF_ABSENT = text(f"{_PUT} WHERE state.expires_us <= :now_us RETURNING key")
_GET = text("SELECT value FROM state WHERE key = :key AND expires_us > :now_us")
_LIVING = text(
    "SELECT value FROM state WHERE expires_us > :now_us AND expires_us <= :last_us"
    " AND substr(key, 1, :length) = :prefix ORDER BY key LIMIT :limit"
)
"""A prefix, and no range of keys: PostgreSQL may order texts by the rules of a language."""

_TAKE = text("DELETE FROM state WHERE key = :key AND expires_us > :now_us RETURNING value")
_PURGE = text(
    "DELETE FROM state WHERE key IN"
    " (SELECT key FROM state WHERE expires_us <= :now_us ORDER BY expires_us LIMIT :limit)"
    " AND expires_us <= :now_us RETURNING 1"
)
"""The time is checked twice: an entry replaced since the inner query must stay."""


class SqlSharedState:
    """Stores short-lived entries; implements `common.shared_state.SharedState`.

    Each `put` may remove expired entries, a bounded number every few seconds.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._purge_at_s = clock.monotonic_s()

    async def put_if_absent(self, key: str, value: str, ttl_s: float) -> bool:
        values = self._values(key, value, ttl_s)
        await self._purge_when_due()
        # Short transactions share their commits; every agent that proves an address makes one.
        values["now_us"] = self._now_us()
        return bool(
            await self._database.change(
                lambda transaction: transaction.rows(_PUT_IF_ABSENT, values)
            )
        )

    async def put(self, key: str, value: str, ttl_s: float) -> None:
        values = self._values(key, value, ttl_s)
        await self._purge_when_due()
        await self._database.change(lambda transaction: transaction.change(_PUT_ALWAYS, values))

    async def get(self, key: str) -> str | None:
        values = {"key": key, "now_us": self._now_us()}
        rows = await self._database.look(lambda transaction: transaction.rows(_GET, values))
        return rows[0]["value"] if rows else None

    async def living(self, prefix: str, ttl_s: float) -> Sequence[str]:
        """Return the unexpired values of keys with a prefix, at most `LIVING_MAX`.

        All of them must have been stored for `ttl_s` at most. Raises `Unavailable`.
        """
        now_us = self._now_us()
        values = {"now_us": now_us, "last_us": now_us + round(ttl_s * 1e6)}
        values |= {"prefix": prefix, "length": len(prefix), "limit": LIVING_MAX}
        async with self._database.read() as connection:
            return [str(one) for one in (await connection.execute(_LIVING, values)).scalars()]

    async def take(self, key: str) -> str | None:
        values = {"key": key, "now_us": self._now_us()}
        rows = await self._database.change(lambda transaction: transaction.rows(_TAKE, values))
        return rows[0]["value"] if rows else None

    async def _purge_when_due(self) -> None:
        """Remove expired entries before the put: a completed put must not be reported as failed."""
        now_s = self._clock.monotonic_s()
        if now_s < self._purge_at_s:
            return
        self._purge_at_s = now_s + PURGE_EVERY_S
        async with self._database.write() as connection:
            # Two concurrent purges could deadlock on each other's rows.
            await self._database.lock(connection, "purge of state")
            values = {"now_us": self._now_us(), "limit": PURGE_MAX}
            removed = (await connection.execute(_PURGE, values)).all()
        if len(removed) == PURGE_MAX:
            self._purge_at_s = now_s  # More entries remain: the next put continues.

    def _values(self, key: str, value: str, ttl_s: float) -> dict[str, str | int]:
        check_entry(key, value)
        return {"key": key, "value": value, "expires_us": self._now_us() + round(ttl_s * 1e6)}

    def _now_us(self) -> int:
        return to_us(self._clock.now())
