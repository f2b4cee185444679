"""Shares and remembers results that several probes of one visit need."""

from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

from assay.common.cache import SingleFlight

T = TypeVar("T")


class AskedOnce:
    """Results by name, for one visit: as many as there are names in the code."""

    def __init__(self) -> None:
        self._flights: SingleFlight[None] = SingleFlight()
        self._results: dict[str, object] = {}

    async def get(self, name: str, ask: Callable[[], Awaitable[T]]) -> T:
        """Return the result of one call of `ask`; a failed call is repeated by the next probe."""

        async def made() -> None:  # Stored before the flight ends, so that later callers find it.
            self._results[name] = await ask()

        if name not in self._results:
            await self._flights.run(name, made)
        return cast("T", self._results[name])  # The name determines the type.
