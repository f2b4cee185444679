"""Answers an operator's questions about calls, money and agents.

Source: interface.md#analytics-records, #dashboard.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from assay.analytics.log import CallLog
from assay.analytics.model import (
    AgentCounted,
    AgentNotSeen,
    AgentOrder,
    CallNotFound,
    CallSums,
    EndpointCounted,
    LogFilter,
    LoggedCall,
    Stats,
)
from assay.analytics.store_analytics import SqlAnalyticsStore
from assay.common.clock import Clock

RECENT_CALLS: Final = 20
"""Calls shown with an agent."""

FEW_ROWS: Final = 500
FRESH_S: Final = 2.0
BUSY_S: Final = 0.05
"""Longest wait of an answer for rows that are being written. A few rows are written in a moment,
and waited for. Under load the answer is prompt instead, and may lack the last second."""

EXPORTED_AT_ONCE: Final = 500
EXPORTED_MAX: Final = 1_000_000
"""Calls of one export; `before` with the last one's id continues it."""

_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class ReportPage:
    """A part of the log: from just before the call of that id, so many, after so many."""

    before: str | None = None
    limit: int = 50
    offset: int = 0


class Analytics:
    """Answers from roll-ups, including what this process has logged."""

    def __init__(
        self, store: SqlAnalyticsStore, log: CallLog, clock: Clock, kept_days: int = 0
    ) -> None:
        """Create it; `kept_days` is how many days the log holds, today included; 0: every day."""
        self._store = store
        self._log = log
        self._clock = clock
        self._kept_days = kept_days
        self._flushing: asyncio.Task[None] | None = None

    async def stats(self, operator_id: str) -> Stats:
        """Return the sums so far, and of the current UTC day."""
        await self.fresh()
        return await self._store.stats(operator_id, self._today())

    async def revenue(self, operator_id: str, days: int) -> Sequence[tuple[date, CallSums]]:
        """Return the last UTC days, oldest first, today and days without calls included."""
        await self.fresh()
        last = self._today()
        found = await self._store.days(operator_id, last - days + 1, last)
        return [
            (_EPOCH + timedelta(days=day), found.get(day, CallSums()))
            for day in range(last - days + 1, last + 1)
        ]

    async def top_endpoints(
        self, operator_id: str, limit: int, offset: int = 0
    ) -> tuple[Sequence[EndpointCounted], int]:
        """Return a page of wrappers by calls, most first, and how many there are."""
        await self.fresh()
        return await self._store.top_endpoints(operator_id, limit, offset)

    async def agents(
        self, operator_id: str, order: AgentOrder, limit: int, offset: int
    ) -> tuple[Sequence[AgentCounted], int]:
        """Return a page of agents, and how many there are."""
        await self.fresh()
        return await self._store.agents(operator_id, order, limit, offset)

    async def agent(
        self, operator_id: str, agent_id: str
    ) -> tuple[AgentCounted, Sequence[EndpointCounted], Sequence[LoggedCall]]:
        """Return an agent, what it called, and its newest calls. Raises `AgentNotSeen`."""
        await self.fresh()
        found = await self._store.agent(operator_id, agent_id)
        if found is None:
            raise AgentNotSeen("No call of this agent is in your log.")
        endpoints = await self._store.agent_endpoints(operator_id, agent_id)
        which = LogFilter(agent_id=agent_id)
        recent = await self._store.logs(operator_id, which, None, None, RECENT_CALLS, 0)
        return found, endpoints, recent

    async def logs(
        self, operator_id: str, which: LogFilter, page: ReportPage
    ) -> tuple[Sequence[LoggedCall], int]:
        """Return a page of the log, newest first, and how many calls there are in all pages.

        Pages that name the last seen call (`before`) neither repeat nor miss a call, whatever is
        logged meanwhile. Raises `CallNotFound` for an unknown `before`.
        """
        await self.fresh()
        before = await self._position(operator_id, page.before)
        first_day = self._first_day(which)
        total = await self._store.count(operator_id, which, first_day)
        at = (before, page.limit, page.offset)
        return await self._store.logs(operator_id, which, first_day, *at), total

    async def export(
        self, operator_id: str, which: LogFilter, page: ReportPage
    ) -> AsyncIterator[Sequence[LoggedCall]]:
        """Yield the log in pieces, newest first, at most `page.limit` calls.

        Raises like `logs`.
        """
        await self.fresh()
        before = await self._position(operator_id, page.before)
        return self._pieces(operator_id, which, before, min(page.limit, EXPORTED_MAX))

    async def _pieces(
        self, operator_id: str, which: LogFilter, before: tuple[int, int] | None, left: int
    ) -> AsyncIterator[Sequence[LoggedCall]]:
        first_day = self._first_day(which)
        while left > 0:
            wanted = min(left, EXPORTED_AT_ONCE)
            piece = await self._store.logs(operator_id, which, first_day, before, wanted, 0)
            if piece:
                yield piece
            if len(piece) < wanted:
                return
            left -= wanted
            before = await self._store.position(operator_id, piece[-1].id)

    async def _position(self, operator_id: str, call_id: str | None) -> tuple[int, int] | None:
        if call_id is None:
            return None
        found = await self._store.position(operator_id, call_id)
        if found is None:
            raise CallNotFound("The call named by `before` is not in your log.")
        return found

    async def fresh(self) -> None:
        """Wait until recent calls are counted, unless writing them takes long."""
        if not self._log.is_behind:
            return
        if self._flushing is None or self._flushing.done():
            self._flushing = asyncio.get_running_loop().create_task(self._log.flush())
        patience_s = FRESH_S if self._log.waiting <= FEW_ROWS else BUSY_S
        done, _ = await asyncio.wait({self._flushing}, timeout=patience_s)
        for task in done:
            task.exception()  # the writer itself tries again, and logs it

    def _first_day(self, which: LogFilter) -> int | None:
        """Return the first day to show: none whose rows are removed, or about to be."""
        asked = [days for days in (which.days, self._kept_days) if days]
        return self._today() - min(asked) + 1 if asked else None

    def _today(self) -> int:
        return (self._clock.now().date() - _EPOCH).days
