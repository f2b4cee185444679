"""Short-lived facts in SQL: durable, and shared by every process on the database."""

from sqlalchemy import text

from assay.infra.sql.engine import Database, to_us
from assay.kit.clock import Clock

_PUT = (
    "INSERT INTO state (key, value, expires_us) VALUES (:key, :value, :expires_us)"
    " ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_us = excluded.expires_us"
)
_PUT_ALWAYS = text(_PUT)
_PUT_IF_ABSENT = text(f"{_PUT} WHERE state.expires_us <= :now_us RETURNING key")
_GET = text("SELECT value FROM state WHERE key = :key AND expires_us > :now_us")
_TAKE = text("DELETE FROM state WHERE key = :key AND expires_us > :now_us RETURNING value")
_PURGE = text("DELETE FROM state WHERE expires_us <= :now_us")


class SqlSharedState:
    """Implements `kit.state.SharedState`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def put_if_absent(self, key: str, value: str, ttl_s: float) -> bool:
        values = self._values(key, value, ttl_s) | {"now_us": self._now_us()}
        async with self._database.write() as connection:
            return (await connection.execute(_PUT_IF_ABSENT, values)).one_or_none() is not None

    async def put(self, key: str, value: str, ttl_s: float) -> None:
        async with self._database.write() as connection:
            await connection.execute(_PUT_ALWAYS, self._values(key, value, ttl_s))

    async def get(self, key: str) -> str | None:
        values = {"key": key, "now_us": self._now_us()}
        async with self._database.read() as connection:
            return (await connection.execute(_GET, values)).scalar_one_or_none()

    async def take(self, key: str) -> str | None:
        values = {"key": key, "now_us": self._now_us()}
        async with self._database.write() as connection:
            return (await connection.execute(_TAKE, values)).scalar_one_or_none()

    async def purge(self) -> None:
        """Remove what has ended; nothing depends on when."""
        async with self._database.write() as connection:
            await connection.execute(_PURGE, {"now_us": self._now_us()})

    def _values(self, key: str, value: str, ttl_s: float) -> dict[str, str | int]:
        return {"key": key, "value": value, "expires_us": self._now_us() + round(ttl_s * 1e6)}

    def _now_us(self) -> int:
        return to_us(self._clock.now())
