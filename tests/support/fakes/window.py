"""Shared counts in memory, on a clock that is moved: what the script in Valkey does, said again."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from assay.common.errors import Unavailable
from assay.common.quota_lease import COUNTED_S, Grant, WindowRequest


class Time(Protocol):
    def monotonic_s(self) -> float: ...


class MemoryWindow:
    """Implements `common.quota_lease.SharedWindow`, with whatever can go wrong on the way."""

    def __init__(self, clock: Time) -> None:
        self._clock = clock
        self.lent: dict[str, dict[int, int]] = {}
        self.gone = False
        self.loses_answers = False
        self.asked = 0
        self.on_the_way: Callable[[], None] = lambda: None
        """Called before a question arrives, and before its answer does."""

    async def ask(self, asks: Sequence[WindowRequest]) -> Sequence[Grant]:
        self.asked += 1
        self.on_the_way()
        await asyncio.sleep(0)
        if self.gone:
            raise Unavailable("The shared state cannot be used now.", detail="gone")
        grants = [self._grant(ask) for ask in asks]
        self.on_the_way()
        await asyncio.sleep(0)
        if self.loses_answers:
            raise Unavailable("The shared state cannot be used now.", detail="lost")
        return grants

    async def check(self) -> None:
        if self.gone:
            raise Unavailable("The shared state cannot be used now.", detail="gone")

    def _grant(self, ask: WindowRequest) -> Grant:
        now_s = self._clock.monotonic_s()
        now = int(now_s)
        lent = self.lent.setdefault(ask.key, {})
        if ask.back_second in lent:
            lent[ask.back_second] -= min(ask.back_units, lent[ask.back_second])
        for second in [s for s, units in lent.items() if s < now - COUNTED_S or not units]:
            del lent[second]
        left = max(0, ask.limit - sum(lent.values()))
        units = min(left, max(ask.need, min(ask.want, left // 8)))
        oldest = min(lent, default=now)
        if units:
            lent[now] = lent.get(now, 0) + units
        return Grant(units, left - units, now, oldest + COUNTED_S + 1 - now_s)
