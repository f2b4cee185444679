"""Serialises visits to one host, so that none uses up the budget of another.

A host that has not consented has room for few visits a minute. If many begin at once, all of them
are cut short and none is evidence. So a host gets one visit at a time, per class of its budget and
over all processes; hosts that consent get as many as their budget allows. Source: ADR 0016.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Final

from assay.common.cache import BoundedMap
from assay.common.egress_budget import (
    SHARED_PART,
    BudgetLedger,
    BudgetRules,
    Ceiling,
    EgressUse,
    UseClass,
    current_use,
)
from assay.common.errors import TooMany, Unavailable
from assay.common.fair_queue import FairQueue
from assay.common.ids import new_id
from assay.common.shared_state import SharedState
from assay.http1.model import Target
from assay.net.egress.consent import Consents, origin_of
from assay.net.egress.ports import Begins
from assay.net.egress.request_slots import own_wait
from assay.net.egress.url import EgressPolicy, domain_of, is_exempt, parse_target

VISIT_MOST: Final = Ceiling(60, 256 * 1024)
"""The most a visit takes. A host's concurrent visits are as many as it has room for."""

VISIT_USUAL: Final = Ceiling(15, 0)
"""What a visit of a host takes until one has been measured: one website. Source: ADR 0016, cost."""

WAIT_PART: Final = 2
"""A visit waits for at most one part in this many of its time: the rest is needed for visiting."""

TURN_PART: Final = 4
"""For one part in this many of its time a visit has its hosts to itself. A visit that takes longer
sends little; a host that answers slowly on purpose must not delay all other visits."""

POLL_S: Final = 0.1
"""How often the first in line checks whether a visit of another process has ended."""

WAITING_MAX: Final = 64
WAITING_PER_ACCOUNT: Final = 16
"""Visits that wait for one host in this process: of all accounts, which take turns, and of one."""

HOSTS_REMEMBERED: Final = 10_000


@dataclass(frozen=True, slots=True)
class _Host:
    """A budget that a visit draws on, for one class."""

    key: str
    ceiling: Ceiling
    use: EgressUse

    @property
    def name(self) -> str:
        """Return the name of its turns in the state that all processes share."""
        is_shared = self.use.use_class is UseClass.SHARED
        text = f"{'shared' if is_shared else 'reserved'} {self.key}"
        return "visit/" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def at_once(self) -> int:
        """Return how many visits may run concurrently."""
        part = SHARED_PART if self.use.use_class is UseClass.SHARED else 1
        by_requests = self.ceiling.requests // part // VISIT_MOST.requests
        by_size = self.ceiling.size_bytes // part // VISIT_MOST.size_bytes
        return max(1, min(by_requests, by_size))


@dataclass(frozen=True, slots=True)
class _Asked:
    """A requested turn.

    Its deadline, how long it has its host to itself, and the least requests.
    """

    host: _Host
    ends_s: float
    lease_s: float
    least: int


def _queue() -> FairQueue:
    return FairQueue(1, WAITING_MAX, WAITING_PER_ACCOUNT)


@dataclass(slots=True)
class _Line:
    """Visits of this process that wait for one host; the first of them polls for all."""

    queue: FairQueue = field(default_factory=_queue)
    count: int = 0


class HostTurns:
    """Coordinates visits by the shared state; implements `net.egress.ports.VisitTurns`."""

    def __init__(
        self,
        state: SharedState,
        ledger: BudgetLedger,
        consents: Consents,
        policy: EgressPolicy,
        rules: BudgetRules,
    ) -> None:
        self._state = state
        self._ledger = ledger
        self._consents = consents
        self._policy = policy
        self._rules = rules
        self._lines: dict[str, _Line] = {}
        self._taken: BoundedMap[str, Ceiling] = BoundedMap(HOSTS_REMEMBERED)

    @asynccontextmanager
    async def turn(
        self, urls: Sequence[str], visit_s: float, *, least: int = 0
    ) -> AsyncGenerator[Begins]:
        """Implement `VisitTurns.turn`.

        A visit that had to wait begins only if the hosts have as much budget left as the visit
        before it took. One that did not wait begins in any case: if something cuts it short, that
        was not a visit. With `least` it is whole only if the hosts have enough left, whether it
        waited or not.
        """
        ends_s = asyncio.get_running_loop().time() + visit_s / WAIT_PART
        async with AsyncExitStack() as stack:
            found: Begins = "whole"
            try:
                for host in await self._hosts(urls):
                    turn = self._turn(_Asked(host, ends_s, visit_s / TURN_PART, least))
                    begins = await stack.enter_async_context(turn)
                    found = begins if begins != "whole" else found
                    if found == "not":
                        break
            except Unavailable:  # Requests could not be counted either.
                found = "not"
            yield found

    async def _hosts(self, urls: Sequence[str]) -> list[_Host]:
        """Return the hosts in one fixed order, so that two visits cannot deadlock."""
        hosts: dict[str, _Host] = {}
        for url in urls:
            target = parse_target(url, self._policy)
            if not isinstance(target, Target) or is_exempt(target.host, self._policy, self._rules):
                continue
            origin = origin_of(target)
            key, ceiling = f"domain {domain_of(target.host)}", self._rules.unproven
            if await self._consents.find(origin) is not None:
                key, ceiling = f"origin {origin}", self._rules.consenting
            hosts[key] = _Host(key, ceiling, current_use())
        return [host for _, host in sorted(hosts.items())]

    @asynccontextmanager
    async def _turn(self, asked: "_Asked") -> AsyncGenerator[Begins]:
        host, mark = asked.host, new_id()
        with own_wait():
            place = await self._wait(asked, mark)
        if place is None:
            yield "not"
            return
        try:
            before = await self._left(host)
            is_whole = not asked.least or await self._has_room(host)
            yield "whole" if is_whole else "least"
            with suppress(Unavailable):
                after = await self._left(host)
                if is_whole:
                    self._taken.put(host.name, _difference(before, after))
        finally:
            await asyncio.shield(self._end(place, mark))

    async def _wait(self, asked: "_Asked", mark: str) -> str | None:
        """Return the slot taken for the visit; None if it may not begin."""
        host = asked.host
        line = self._lines.setdefault(host.name, _Line())
        waits = line.count > 0
        line.count += 1
        try:
            if (waits or asked.least) and not await self._has_room(host, asked.least):
                return None
            async with (
                asyncio.timeout_at(asked.ends_s),
                line.queue.slot(host.use.account, is_known=True),
            ):
                return await self._first(asked, mark, waits=waits or asked.least > 0)
        except (TimeoutError, TooMany):
            return None
        finally:
            line.count -= 1
            if not line.count:
                del self._lines[host.name]

    async def _first(self, asked: "_Asked", mark: str, *, waits: bool) -> str | None:
        """Do the same once the visit is the first in line."""
        host = asked.host
        while (place := await self._take(host, mark, asked.lease_s)) is None:
            waits = True
            if not await self._has_room(host, asked.least):
                return None
            await asyncio.sleep(POLL_S)
        if waits and not await self._has_room(host, asked.least):
            await self._end(place, mark)
            return None
        return place

    async def _take(self, host: _Host, mark: str, lease_s: float) -> str | None:
        for number in range(host.at_once):
            place = f"{host.name}/{number}"
            if await self._state.put_if_absent(place, mark, lease_s):
                return place
        return None

    async def _end(self, place: str, mark: str) -> None:
        with suppress(Unavailable):  # It expires by itself.
            # Otherwise it took too long, and belongs to another visit.
            if await self._state.get(place) == mark:
                await self._state.take(place)

    async def _has_room(self, host: _Host, least: int = 0) -> bool:
        """Return whether the host has budget for a visit, or for `least` requests if set."""
        usual = self._taken.get(host.name) or VISIT_USUAL
        left, needed = await self._left(host), Ceiling(least, 0) if least else usual
        return left.requests >= needed.requests and left.size_bytes >= needed.size_bytes

    async def _left(self, host: _Host) -> Ceiling:
        return await self._ledger.left(host.key, host.ceiling, host.use)


def _difference(before: Ceiling, after: Ceiling) -> Ceiling:
    requests = max(0, before.requests - after.requests)
    return Ceiling(requests, max(0, before.size_bytes - after.size_bytes))
