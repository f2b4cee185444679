"""What other processes changed, and whether the database answers: one connection beside the pool.

On PostgreSQL, triggers announce in the writing transaction what processes remember: accounts, keys,
wrappers, revoked sessions, evaluations and proofs of personhood (migration 0045). Each process
hears it within a moment of the commit. If nothing is received, as through PgBouncer in transaction
mode, everything is doubted once a second instead.

On SQLite the feed does nothing: what its process changes counts at once anyway.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, Final, Never, TypeVar, cast

from sqlalchemy import text

from assay.common.errors import Unavailable
from assay.db.connect import NO_CONNECTION
from assay.db.engine import Database

CHANNEL: Final = "assay.changes"

ASKED_EVERY_S: Final = 1.0
"""Seconds between two questions to the database; between two doubts while nothing is received."""

ANSWER_S: Final = 2.0
"""Longest wait for an answer. Without one, and then without a new connection, it is away."""

RETRIED_S: Final = 0.25
"""Seconds between two tries to connect to a database that is away."""

CHECKED_EVERY: Final = 30
"""Every so many questions it is checked that announcements are received."""

_LATE_S: Final = 0.25

T = TypeVar("T")


class _LoopLate(Exception):
    """This process was too late to know whether it got an answer in time."""


class ChangeFeed:
    """Listens to one PostgreSQL; tells what changed, and when everything has to be doubted."""

    def __init__(
        self,
        url: str,
        database: Database,
        on_change: Callable[[str], None],
        on_doubt: Callable[[], None],
    ) -> None:
        """`on_change` is called with what a trigger announced: a kind and an id, after a space."""
        self._url = url
        self._database = database
        self._on_change = on_change
        self._on_doubt = on_doubt
        self.is_live = False
        """Whether announcements are received."""

    async def run(self) -> None:
        """Listen until cancelled, and say whether the database answers.

        Returns at once for SQLite.
        """
        if self._database.kind != "postgresql":
            return
        while True:
            try:
                connection = await self._connected()
            except _LoopLate:
                continue
            except Exception as error:  # noqa: BLE001 - whatever it is, it is tried again
                await self._without_connection(error)
                continue
            self._database.set_away(is_away=False)
            try:
                await self._follow(connection)
            except Exception:  # noqa: BLE001 - whatever it is, a new connection says whether it answers
                self.is_live = False
            finally:
                connection.terminate()
            await asyncio.sleep(RETRIED_S)

    async def _connected(self) -> Any:  # noqa: ANN401 - the driver has no type annotations
        """Return a connection that has just answered."""
        import asyncpg  # noqa: PLC0415 - an installation on SQLite does without it  # pyright: ignore[reportMissingTypeStubs]

        dial = cast("Callable[..., Awaitable[Any]]", asyncpg.connect)  # pyright: ignore[reportUnknownMemberType]
        return await _in_time(dial(self._url))

    async def _without_connection(self, error: Exception) -> None:
        is_away = _is_no_answer(error)
        self._database.set_away(is_away=is_away)
        if not is_away:  # it answers, and has no place for this connection
            self._on_doubt()
        await asyncio.sleep(RETRIED_S if is_away else ASKED_EVERY_S)

    async def _follow(self, connection: Any) -> Never:  # noqa: ANN401 - see above
        """Ask once a second, and hear what is announced meanwhile. Raises if it is lost."""
        lost, received, own = asyncio.Event(), asyncio.Event(), f"assay_{secrets.token_hex(8)}"

        def lose(_connection: object) -> None:
            lost.set()

        def receive(_connection: object, _pid: int, _channel: str, _said: str) -> None:
            received.set()

        def change(_connection: object, _pid: int, _channel: str, said: str) -> None:
            self._on_change(said)

        connection.add_termination_listener(lose)
        await _in_time(connection.add_listener(CHANNEL, change))
        await _in_time(connection.add_listener(own, receive))
        self._on_doubt()  # something may have changed before
        for number in count():
            if number % CHECKED_EVERY:
                await _in_time(connection.execute("SELECT 1"))
            else:
                self.is_live = await self._receives(own, received)
            if not self.is_live:
                self._on_doubt()
            await _first(lost.wait(), ASKED_EVERY_S)
            if lost.is_set():
                break
        raise ConnectionError("the connection was lost")

    async def _announce(self, channel: str) -> None:
        async with self._database.write() as connection:
            await connection.execute(text(f"NOTIFY {channel}"))

    async def _receives(self, own: str, received: asyncio.Event) -> bool:
        """Announce something that only this process listens to; return whether it is received."""
        received.clear()
        try:  # by another connection: behind a pooler its own would come back without `LISTEN`
            await _in_time(self._announce(own))
        except (Unavailable, TimeoutError):
            return False
        await _first(received.wait(), ANSWER_S)
        return received.is_set()


async def _in_time(work: Awaitable[T]) -> T:
    """Return the result. Raises `TimeoutError` after `ANSWER_S`, and `_LoopLate`."""
    loop = asyncio.get_running_loop()
    begun_s = loop.time()
    try:
        async with asyncio.timeout(ANSWER_S):
            return await work
    except TimeoutError:
        if loop.time() - begun_s > ANSWER_S + _LATE_S:
            raise _LoopLate from None
        raise


async def _first(work: Awaitable[object], limit_s: float) -> None:
    """Wait for the work, for `limit_s` at most."""
    try:
        async with asyncio.timeout(limit_s):
            await work
    except TimeoutError:
        return


def _is_no_answer(error: Exception) -> bool:
    """Return whether nobody serves there, as opposed to a refusal of this connection."""
    state = str(getattr(error, "sqlstate", None))
    is_full = state.startswith("53")
    return isinstance(error, OSError) or (state.startswith(NO_CONNECTION) and not is_full)
