"""How often somebody may ask for something within an hour: a window in memory, bounded."""

from collections import OrderedDict, deque
from math import ceil
from typing import Final

from assay.common.clock import Clock
from assay.common.errors import TooMany

PER_WINDOW: Final = 20
WINDOW_S: Final = 3600.0
NETWORKS_MAX: Final = 50_000
"""Networks remembered; the one unseen for longest is forgotten first, which only ever forgives."""


class RequestQuota:
    """At most `per_window` requests of a network, or of an account, in any `WINDOW_S`."""

    def __init__(self, clock: Clock, per_window: int = PER_WINDOW) -> None:
        self._clock = clock
        self._per_window = per_window
        self._asked: OrderedDict[str, deque[float]] = OrderedDict()

    def require(self, network: str) -> None:
        """Count one request. Raises `TooMany`, and counts nothing, beyond the quota."""
        now = self._clock.monotonic_s()
        recent = self._asked.pop(network, None) or deque[float]()
        while recent and now - recent[0] >= WINDOW_S:
            recent.popleft()
        self._asked[network] = recent
        if len(recent) >= self._per_window:
            wait = recent[0] + WINDOW_S - now
            raise TooMany("Too many requests of this kind: wait.", retry_after_s=ceil(wait))
        recent.append(now)
        while len(self._asked) > NETWORKS_MAX:
            self._asked.popitem(last=False)
