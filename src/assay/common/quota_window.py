"""Counts of lent units in this process's memory, for processes that can ask it.

The supervisor of several serving processes keeps them (ADR 0059). The rule is that of the script
for Valkey (`net/valkey.py`), on this process's monotonic clock.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from assay.common.clock import Clock
from assay.common.quota_lease import COUNTED_S, Grant, WindowRequest

KEYS_MAX: Final = 200_000
"""Keys that are counted. Beyond it, the key asked for longest ago is forgotten, which only
forgives: 100 MB at most."""

FORGOTTEN_S: Final = COUNTED_S + 1
"""Seconds after which nothing of a key that nobody asks for counts any more."""


@dataclass(slots=True)
class _Lent:
    """What is lent of one key."""

    asked_s: float
    units: dict[int, int] = field(default_factory=dict[int, int])
    """Units by the second in which they were lent."""


class LocalWindow:
    """Implements `common.quota_lease.SharedWindow` for the process that counts."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lent: OrderedDict[str, _Lent] = OrderedDict()  # in the order of their last question

    async def ask(self, asks: Sequence[WindowRequest]) -> Sequence[Grant]:
        grants = [self._grant(ask) for ask in asks]
        self._forget()
        return grants

    async def check(self) -> None:
        """Do nothing: this process can always count."""

    def _grant(self, ask: WindowRequest) -> Grant:
        now_s = self._clock.monotonic_s()
        now = int(now_s)
        lent = self._lent.setdefault(ask.key, _Lent(now_s))
        self._lent.move_to_end(ask.key)
        lent.asked_s, units = now_s, lent.units
        if ask.back_second in units:
            units[ask.back_second] -= min(ask.back_units, units[ask.back_second])
        for second in [one for one, n in units.items() if one < now - COUNTED_S or not n]:
            del units[second]
        left = max(0, ask.limit - sum(units.values()))
        granted = min(left, max(ask.need, min(ask.want, left // 8)))
        if granted:
            units[now] = units.get(now, 0) + granted
        return Grant(granted, left - granted, now, min(units, default=now) + COUNTED_S + 1 - now_s)

    def _forget(self) -> None:
        oldest_s = self._clock.monotonic_s() - FORGOTTEN_S
        while self._lent:
            key = next(iter(self._lent))
            if len(self._lent) <= KEYS_MAX and self._lent[key].asked_s >= oldest_s:
                return
            del self._lent[key]
