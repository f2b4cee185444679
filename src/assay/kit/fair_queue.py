"""Waiting for a scarce resource, by turns: a flood from many callers cannot shut one caller out.

Two classes wait: known callers, who get three turns of four, and strangers. Within a class the
callers take turns, whatever each of them has waiting (round robin, as in RFC 970's fair queueing).
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from assay.kit.errors import TooMany, Unavailable

KNOWN_TURNS: Final = 3
"""Turns of known callers in a row before a stranger has one."""

RETRY_S: Final = 2

_Ticket = asyncio.Future[None]


class _Class:
    """Callers of one class that wait."""

    def __init__(self) -> None:
        self.callers: OrderedDict[str, deque[_Ticket]] = OrderedDict()
        self.count = 0

    def add(self, caller: str, ticket: _Ticket) -> None:
        self.callers.setdefault(caller, deque()).append(ticket)
        self.count += 1

    def next(self) -> _Ticket:
        """The oldest ticket of the caller whose turn it is, who then goes to the end."""
        caller, tickets = self.callers.popitem(last=False)
        ticket = tickets.popleft()
        self.count -= 1
        if tickets:
            self.callers[caller] = tickets
        return ticket

    def remove(self, caller: str, ticket: _Ticket) -> None:
        """Remove a ticket that is not waited for any more, if it still waits."""
        tickets = self.callers.get(caller)
        if tickets is None or ticket not in tickets:
            return
        tickets.remove(ticket)
        self.count -= 1
        if not tickets:
            del self.callers[caller]

    def displace(self, caller: str, overrun: TooMany) -> bool:
        """Refuse the newest ticket of the caller with most, if that is more than `caller` has."""
        most = max(self.callers, key=lambda one: len(self.callers[one]))
        if len(self.callers[most]) <= len(self.callers.get(caller, ())) + 1:
            return False
        ticket = self.callers[most].pop()
        self.count -= 1
        ticket.set_exception(overrun)
        return True


class FairQueue:
    """At most `at_once` hold a slot; at most `waiting_max` of a class wait for one.

    One caller has at most `waiting_per_caller` waiting. Memory is bounded by the waiting.
    """

    def __init__(
        self, at_once: int, waiting_max: int, waiting_per_caller: int, what: str = "log-ins"
    ) -> None:
        """`what` waits, as refusals say it."""
        self._free = at_once
        self._waiting_max = waiting_max
        self._waiting_per_caller = waiting_per_caller
        self._what = what
        self._known, self._strangers = _Class(), _Class()
        self._turn = 0

    @property
    def waiting(self) -> int:
        """How many wait."""
        return self._known.count + self._strangers.count

    @asynccontextmanager
    async def slot(self, caller: str, *, is_known: bool) -> AsyncGenerator[None]:
        """Hold a slot, once it is the caller's turn.

        Raises `TooMany` when the caller has too many waiting itself, and `Unavailable` when the
        queue is full of callers that have no more waiting than this one.
        """
        await self._take(caller, self._known if is_known else self._strangers)
        try:
            yield
        finally:
            self._give()

    async def _take(self, caller: str, among: _Class) -> None:
        if self._free > 0:
            self._free -= 1
            return
        if len(among.callers.get(caller, ())) >= self._waiting_per_caller:
            raise self._overrun()
        if among.count >= self._waiting_max and not among.displace(caller, self._overrun()):
            message = f"Too many {self._what} at once: try again shortly."
            raise Unavailable(message, retry_after_s=RETRY_S)
        ticket: _Ticket = asyncio.get_running_loop().create_future()
        among.add(caller, ticket)
        try:
            await ticket
        except asyncio.CancelledError:
            if ticket.done() and not ticket.cancelled() and ticket.exception() is None:
                self._give()  # the turn came in the same moment: somebody else has it
            among.remove(caller, ticket)
            raise

    def _give(self) -> None:
        """Hand the slot to the next in turn; it is free when nobody waits."""
        while self.waiting:
            ticket = self._next().next()
            if not ticket.done():
                ticket.set_result(None)
                return
        self._free += 1

    def _next(self) -> _Class:
        self._turn = (self._turn + 1) % (KNOWN_TURNS + 1)
        if not self._known.count or (self._turn == 0 and self._strangers.count):
            return self._strangers
        return self._known

    def _overrun(self) -> TooMany:
        message = f"Too many {self._what} at once from here: slow down."
        return TooMany(message, retry_after_s=RETRY_S)
