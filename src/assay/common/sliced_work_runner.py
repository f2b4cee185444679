"""Runs long computations on the event loop, one short slice at a time."""

import asyncio
from typing import TypeVar

from assay.common.sliced_work import Sliced

T = TypeVar("T")


class Slices:
    """Runs sliced computations side by side: one slice, then the loop, then the next slice.

    However many run, the loop is blocked for one slice at a time, and computations take turns in
    the order in which they asked.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def run(self, work: Sliced[T]) -> T:
        """Return the result of `work`; stop computing if the caller is cancelled."""
        ended: StopIteration | None = None
        while ended is None:
            async with self._turn:
                try:
                    next(work)
                except StopIteration as end:
                    ended = end
                await asyncio.sleep(0)  # the turn ends with this turn of the loop
        return ended.value
