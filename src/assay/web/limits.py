"""How often one caller may ask: a bucket that leaks evenly, per caller, in memory.

GCRA (ITU-T I.371): one number a caller, no window edges to burst over.
"""

from collections import OrderedDict
from dataclasses import dataclass
from math import ceil

from assay.kit.addresses import caller_of, parsed_address
from assay.kit.clock import Clock
from assay.kit.errors import TooMany

__all__ = ["RateLimit", "Verdict", "caller_of", "parsed_address", "refuse"]

CALLERS_MAX = 100_000
"""Callers remembered; the one unseen for longest is forgotten first, which only ever forgives."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a limit says of one request."""

    allowed: bool
    limit: int
    remaining: int
    reset_s: int
    """Seconds until the whole limit is there again; when refused, until one request is."""


class RateLimit:
    """At most `per_minute` requests a minute and caller, a minute's worth of them at once."""

    def __init__(self, per_minute: int, clock: Clock) -> None:
        self.per_minute = per_minute
        self._clock = clock
        self._cost_s = 60.0 / per_minute
        self._full_at_s: OrderedDict[str, float] = OrderedDict()

    def take(self, caller: str) -> Verdict:
        """Count one request of the caller, unless it is refused."""
        now = self._clock.monotonic_s()
        full_at = max(now, self._full_at_s.get(caller, now)) + self._cost_s
        over_s = full_at - now - 60.0
        if over_s > 1e-9:  # noqa: PLR2004 - what adding up floats may cost
            return Verdict(allowed=False, limit=self.per_minute, remaining=0, reset_s=ceil(over_s))
        self.count(caller, full_at)
        remaining = int((60.0 - (full_at - now)) / self._cost_s + 1e-9)
        return Verdict(
            allowed=True, limit=self.per_minute, remaining=remaining, reset_s=ceil(full_at - now)
        )

    def room(self, caller: str) -> float | None:
        """What `count` takes when a request is allowed now, else None; nothing is counted."""
        now = self._clock.monotonic_s()
        known = self._full_at_s.get(caller, now)
        full_at = (max(now, known)) + self._cost_s
        return full_at if full_at - now <= 60.0 + 1e-9 else None

    def count(self, caller: str, full_at: float) -> None:
        """Count the request that `room` has allowed, before another is asked about."""
        self._full_at_s[caller] = full_at
        self._full_at_s.move_to_end(caller)
        if len(self._full_at_s) > CALLERS_MAX:
            self._full_at_s.popitem(last=False)

    def require(self, caller: str) -> None:
        """Count one request; raises `TooMany` when it is refused."""
        refuse(self.take(caller))


def refuse(verdict: Verdict) -> None:
    """Raises `TooMany` unless the verdict allows."""
    if not verdict.allowed:
        raise TooMany("Too many requests: slow down.", retry_after_s=max(1, verdict.reset_s))
