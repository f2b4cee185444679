"""Ids of calls: UUIDv7 (RFC 9562) made of a row's time, and of its number under a key.

The number counts the calls of all tenants, so nobody may see it. Under a key that is drawn with the
table it gives the id's 62 random bits: the same for a row for ever, and nothing to be written.
"""

import hashlib
import hmac
from uuid import UUID

from sqlalchemy import select

from assay.db.engine import Database
from assay.db.schema.analytics import call_id_key

_RANDOM_BITS = 62
_FRACTION = 4096
"""Of the 12 bits behind the milliseconds. Source: RFC 9562, section 6.2, method 3."""


class CallIds:
    """Makes the ids, with the key of the database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._key: bytes | None = None

    async def ready(self) -> None:
        """Read the key, once. Raises `Unavailable`."""
        if self._key is None:
            async with self._database.read() as connection:
                row = (await connection.execute(select(call_id_key.c.key))).one()
            self._key = bytes(row[0])

    def of(self, at_us: int, seq: int) -> str:
        """The id of a row; `ready` has been awaited."""
        if self._key is None:
            raise RuntimeError("the key of the call ids was not read")
        digest = hmac.digest(self._key, seq.to_bytes(8), hashlib.sha256)
        ms, us = divmod(at_us, 1000)
        bits = ms << 80 | 7 << 76 | us * _FRACTION // 1000 << 64 | 0b10 << _RANDOM_BITS
        return str(UUID(int=bits | int.from_bytes(digest[:8]) >> 64 - _RANDOM_BITS))


def time_of(call_id: str) -> int | None:
    """The microseconds since 1970 in an id; None for what is not the id of a call."""
    try:
        bits = UUID(call_id).int
    except ValueError:
        return None
    fraction = bits >> 64 & _FRACTION - 1
    return (bits >> 80) * 1000 + -(-fraction * 1000 // _FRACTION)
