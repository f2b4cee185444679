"""Long computations on the event loop, in short slices, one slice of them all at a time."""

import asyncio
from typing import TypeVar

from assay.common.sliced_work import Sliced

T = TypeVar("T")


class Slices:
    """Runs sliced computations side by side: one slice, then the loop, then the next one's slice.

    However many run, the loop is held for one slice at a time, and each computation gets its turn
    in the order of asking.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def run(self, work: Sliced[T]) -> T:
        """The result of `work`; cancelled, it goes no further."""
        ended: StopIteration | None = None
        while ended is None:
            async with self._turn:
                try:
                    next(work)
                except StopIteration as end:
                    ended = end
                await asyncio.sleep(0)  # the turn ends with this turn of the loop
        return ended.value
