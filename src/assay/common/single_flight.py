"""Of many callers that want the same thing at once, one does the work and all get its result."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class SingleFlight(Generic[T]):
    """Shares one running call per key; nothing is remembered after it ends.

    A caller that goes away does not take the work from the others: the call itself is a task
    of its own.
    """

    def __init__(self) -> None:
        self._flights: dict[str, asyncio.Task[T]] = {}

    async def run(self, key: str, work: Callable[[], Awaitable[T]]) -> T:
        """The result (or the exception) of the one call of `work` that is in flight for `key`."""
        flight = self._flights.get(key)
        if flight is None:
            flight = asyncio.get_running_loop().create_task(self._call(key, work))
            flight.add_done_callback(_retrieve)
            self._flights[key] = flight
        return await asyncio.shield(flight)

    async def _call(self, key: str, work: Callable[[], Awaitable[T]]) -> T:
        try:
            return await work()
        finally:
            del self._flights[key]


def _retrieve(flight: asyncio.Task[T]) -> None:
    """A failure that every caller has gone away from is nobody's; asyncio need not warn of it."""
    if not flight.cancelled():
        flight.exception()
