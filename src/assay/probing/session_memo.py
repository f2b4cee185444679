"""What several probes of one visit need is asked once, and remembered for the visit."""

from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

from assay.common.single_flight import SingleFlight

T = TypeVar("T")


class AskedOnce:
    """Results by name, for one visit: as many as there are names in the code."""

    def __init__(self) -> None:
        self._flights: SingleFlight[None] = SingleFlight()
        self._results: dict[str, object] = {}

    async def get(self, name: str, ask: Callable[[], Awaitable[T]]) -> T:
        """The result of the one call of `ask`; one that raised is made again by the next probe."""

        async def made() -> None:  # kept before the flight ends: who comes then finds it
            self._results[name] = await ask()

        if name not in self._results:
            await self._flights.run(name, made)
        return cast("T", self._results[name])  # the name decides the type
