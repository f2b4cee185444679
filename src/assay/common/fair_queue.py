"""Queues for scarce resources that take turns, so that a flood of callers cannot shut one out.

Two classes wait: known callers, who get three turns of four, and strangers. Within a class callers
take turns, however many requests each has waiting (round robin, as in RFC 970's fair queueing).
Callers may belong to networks. In a full class, callers of the network with most waiting give up
places.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

from assay.common.errors import TooMany, Unavailable

KNOWN_TURNS: Final = 3
"""Turns of known callers in a row before a stranger has one."""

RETRY_S: Final = 2

LISTS: Final = (2, 512, 16)
"""How many whole lists of operators are made at once, how many wait, and how many of one operator
wait. One list may take some 50 MB of memory."""


class _Ticket(NamedTuple):
    """A place in the queue."""

    caller: str
    network: str
    turn: asyncio.Future[None]


class _Class:
    """Waiting callers of one class."""

    def __init__(self) -> None:
        self.callers: OrderedDict[str, deque[_Ticket]] = OrderedDict()
        self.networks: Counter[str] = Counter()
        self.count = 0

    def add(self, ticket: _Ticket) -> None:
        self.callers.setdefault(ticket.caller, deque()).append(ticket)
        self.networks[ticket.network] += 1
        self.count += 1

    def next(self) -> _Ticket:
        """Return the oldest ticket of the caller in turn, and move that caller to the end."""
        ticket = next(iter(self.callers.values()))[0]
        self.remove(ticket)
        if ticket.caller in self.callers:
            self.callers.move_to_end(ticket.caller)
        return ticket

    def remove(self, ticket: _Ticket) -> None:
        """Remove a ticket if it still waits."""
        tickets = self.callers.get(ticket.caller)
        if tickets is None or ticket not in tickets:
            return
        tickets.remove(ticket)
        if not tickets:
            del self.callers[ticket.caller]
        self.networks[ticket.network] -= 1
        if not self.networks[ticket.network]:
            del self.networks[ticket.network]
        self.count -= 1

    def displace(self, caller: str, network: str, overrun: TooMany) -> bool:
        """Refuse a ticket of the network with most waiting, or of the caller with most.

        Returns False if neither has more waiting than the new caller would have.
        """
        [(largest, waiting)] = self.networks.most_common(1)
        if waiting > self.networks[network] + 1:
            ticket = self._newest_of(largest)
        else:
            most = max(self.callers.values(), key=len)
            if len(most) <= len(self.callers.get(caller, ())) + 1:
                return False
            ticket = most[-1]
        self.remove(ticket)
        if not ticket.turn.done():  # cancelled, but its task has not seen it yet
            ticket.turn.set_exception(overrun)
        return True

    def _newest_of(self, network: str) -> _Ticket:
        """Return the newest ticket of the caller with most; of several, the last in turn."""
        theirs = (
            [one for one in tickets if one.network == network]
            for tickets in reversed(self.callers.values())
        )
        return max(theirs, key=len)[-1]


class FairQueue:
    """At most `at_once` callers hold a slot, and at most `waiting_max` of a class wait for one.

    One caller has at most `waiting_per_caller` waiting, so memory is bounded. A network that has
    nothing waiting gets a place unless `waiting_max` others have one each. A place that is the only
    one of its caller and of its network is not taken away.
    """

    def __init__(
        self, at_once: int, waiting_max: int, waiting_per_caller: int, what: str = "log-ins"
    ) -> None:
        """Create it; `what` names what waits, for refusals."""
        self._free = at_once
        self._waiting_max = waiting_max
        self._waiting_per_caller = waiting_per_caller
        self._what = what
        self._known, self._strangers = _Class(), _Class()
        self._turn = 0

    @property
    def waiting(self) -> int:
        """Return how many wait."""
        return self._known.count + self._strangers.count

    @asynccontextmanager
    async def slot(
        self, caller: str, *, is_known: bool, network: str | None = None
    ) -> AsyncGenerator[None]:
        """Hold a slot when the caller's turn comes. Without a network the caller is its own.

        Raises `TooMany` if the caller or its network has too many waiting. Raises `Unavailable` if
        the queue is full of callers and networks that have no more waiting than this one.
        """
        among = self._known if is_known else self._strangers
        await self._take(caller, caller if network is None else network, among)
        try:
            yield
        finally:
            self._give()

    async def _take(self, caller: str, network: str, among: _Class) -> None:
        if self._free > 0:
            self._free -= 1
            return
        if len(among.callers.get(caller, ())) >= self._waiting_per_caller:
            raise self._overrun()
        if among.count >= self._waiting_max and not among.displace(
            caller, network, self._overrun()
        ):
            message = f"Too many {self._what} at once: try again shortly."
            raise Unavailable(message, retry_after_s=RETRY_S)
        turn = asyncio.get_running_loop().create_future()
        ticket = _Ticket(caller, network, turn)
        among.add(ticket)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._give()  # the turn came at the same moment: pass it on
            among.remove(ticket)
            raise

    def _give(self) -> None:
        """Give the slot to the next in turn; it is free if nobody waits."""
        while self.waiting:
            turn = self._next().next().turn
            if not turn.done():
                turn.set_result(None)
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
