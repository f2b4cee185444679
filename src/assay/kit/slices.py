"""Long computations on the event loop, in short slices, one slice of them all at a time."""

import asyncio
from collections.abc import Generator
from typing import TypeAlias, TypeVar

T = TypeVar("T")

Sliced: TypeAlias = Generator[None, None, T]
"""A computation that yields after every slice and returns its result."""


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


def whole(work: Sliced[T]) -> T:
    """The result of `work`, at once."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value


class Meter:
    """Counts the characters that a computation reads, and says when its slice is over."""

    def __init__(self, slice_chars: int) -> None:
        self.read = 0
        """Every reading counts: what is read by two patterns counts twice."""
        self._slice_chars = slice_chars
        self._since = 0

    def spend(self, chars: int) -> bool:
        """Count so many characters; whether the slice is over."""
        self.read += chars
        self._since += chars
        if self._since < self._slice_chars:
            return False
        self._since = 0
        return True
