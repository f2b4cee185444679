"""Bounds the bytes that are held in memory at once, by all holders and by each."""

import asyncio
from collections import deque
from dataclasses import dataclass

from assay.common.errors import Unavailable

PARTS = 4
"""A holder has at most one part of this many, unless it holds a single thing. A budget may have
more parts."""

SQUEEZED = 2
"""A budget holds at most this many times its size, unless it holds a single thing."""

SMALL_BYTES = 64 * 1024
"""Things up to this size are not counted: the number of connections bounds them."""


@dataclass(slots=True, eq=False)
class _Waiting:
    holder: str
    size: int
    own: int
    let_in: asyncio.Future[None]


class MemoryBudget:
    """A number of bytes; if there is no room, a request waits some seconds, in order of arrival.

    A thing larger than a part is accepted while its holder holds nothing else, and one larger than
    the budget while nobody does: other limits say how large one thing may be.
    """

    def __init__(self, size: int, wait_s: float = 0.0, parts: int = PARTS) -> None:
        self.size = size
        self._part = size // parts
        self.reserved = 0
        self._wait_s = wait_s
        self._by_holder: dict[str, int] = {}
        self._waiting: deque[_Waiting] = deque()

    async def take(self, holder: str, size: int, own: int = 0) -> None:
        """Reserve bytes until they are released. Raises `Unavailable`.

        `own` is what the same thing already holds.
        """
        waiting = _Waiting(holder, size, own, asyncio.get_running_loop().create_future())
        if not self._waiting and self._has_part(waiting) and self._has_room(waiting):
            self._add(holder, size)
        elif self._wait_s:
            await self._wait(waiting)
        else:
            raise _full()

    def overcommit(self, holder: str, size: int, own: int = 0) -> None:
        """Reserve like `take`, but beyond the budget as well: up to twice its size."""
        if self.reserved != own and self.reserved + size > SQUEEZED * self.size:
            raise _full()
        self._add(holder, size)

    def give(self, holder: str, size: int) -> None:
        """Release what was reserved, or a part of it."""
        self._remove(holder, size)
        self._let_in()

    async def _wait(self, waiting: _Waiting) -> None:
        self._waiting.append(waiting)
        self._let_in()
        try:
            async with asyncio.timeout(self._wait_s):
                await asyncio.shield(waiting.let_in)
        except BaseException as error:
            self._withdraw(waiting)
            if isinstance(error, TimeoutError):
                raise _full() from None
            raise

    def _withdraw(self, waiting: _Waiting) -> None:
        if waiting.let_in.done():
            self._remove(waiting.holder, waiting.size)
        else:
            self._waiting.remove(waiting)
        self._let_in()

    def _let_in(self) -> None:
        still: deque[_Waiting] = deque()
        passed: set[str] = set()
        while self._waiting:
            first = self._waiting.popleft()
            if first.holder in passed or not self._has_part(first):
                passed.add(first.holder)  # this holder's later requests stay behind this one
                still.append(first)
            elif self._has_room(first):
                self._add(first.holder, first.size)
                first.let_in.set_result(None)
            else:
                still.append(first)
                break
        still.extend(self._waiting)
        self._waiting = still

    def _has_part(self, one: _Waiting) -> bool:
        reserved = self._by_holder.get(one.holder, 0)
        return reserved == one.own or reserved + one.size <= self._part

    def _has_room(self, one: _Waiting) -> bool:
        return self.reserved == one.own or self.reserved + one.size <= self.size

    def _add(self, holder: str, size: int) -> None:
        self.reserved += size
        self._by_holder[holder] = self._by_holder.get(holder, 0) + size

    def _remove(self, holder: str, size: int) -> None:
        self.reserved -= size
        left = self._by_holder[holder] - size
        if left:
            self._by_holder[holder] = left
        else:
            del self._by_holder[holder]


class Reservation:
    """The bytes of a budget that are reserved for one thing."""

    __slots__ = ("_holder", "_room", "_small", "size")

    def __init__(self, room: MemoryBudget, holder: str, small: int = SMALL_BYTES) -> None:
        """Create it; up to `small` bytes are not counted."""
        self._room = room
        self._holder = holder
        self._small = small
        self.size = 0

    async def take(self, size: int) -> None:
        """Reserve at least this many bytes in all. Raises `Unavailable`."""
        if more := self._more(size):
            await self._room.take(self._holder, more, self.size)
            self.size += more

    def overcommit(self, size: int) -> None:
        """Reserve like `take`, at once and beyond the budget as well. Raises `Unavailable`."""
        if more := self._more(size):
            self._room.overcommit(self._holder, more, self.size)
            self.size += more

    def keep(self, size: int) -> None:
        """Release all but this many bytes."""
        left = size if size > self._small else 0
        if left < self.size:
            self._room.give(self._holder, self.size - left)
            self.size = left

    def close(self) -> None:
        """Release everything. It may be called again."""
        self.keep(0)

    def _more(self, size: int) -> int:
        return max(0, size - self.size) if size > self._small else 0


def _full() -> Unavailable:
    return Unavailable("Too many large bodies are on their way: try again.", retry_after_s=1)
