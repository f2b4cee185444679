"""Rate limits per caller, in memory: a leaky bucket.

GCRA (ITU-T I.371): one number a caller, and no window edges that allow bursts. If processes share
their limits (ADR 0012), a sliding window of 60 seconds over all of them applies as well.
"""

from collections import OrderedDict
from dataclasses import dataclass
from math import ceil

from typing_extensions import override

from assay.common.addresses import caller_of, parsed_address
from assay.common.clock import Clock
from assay.common.errors import TooMany
from assay.common.quota_lease import QuotaLease

__all__ = [
    "RateLimit",
    "RateLimitVerdict",
    "SharedRateLimit",
    "caller_of",
    "parsed_address",
    "rate_limit",
    "refuse",
]

CALLERS_MAX = 100_000
"""Callers remembered. Beyond it, the caller unseen for longest is forgotten, which only
forgives."""


@dataclass(frozen=True, slots=True)
class RateLimitVerdict:
    """The result of a limit for one request."""

    allowed: bool
    limit: int
    remaining: int
    reset_s: int
    """Seconds until the whole limit is free again; if refused, until one request is allowed.

    For a shared limit, until the oldest request leaves the window, which allows one more.
    """


class RateLimit:
    """At most `per_minute` requests a minute and caller; a full minute's worth may come at once."""

    def __init__(self, per_minute: int, clock: Clock) -> None:
        self.per_minute = per_minute
        self._clock = clock
        self._cost_s = 60.0 / per_minute
        self._full_at_s: OrderedDict[str, float] = OrderedDict()

    def take(self, caller: str) -> RateLimitVerdict | None:
        """Count a request unless it is refused; None if only `admit` can decide."""
        now = self._clock.monotonic_s()
        full_at = max(now, self._full_at_s.get(caller, now)) + self._cost_s
        over_s = full_at - now - 60.0
        if over_s > 1e-9:  # noqa: PLR2004 - what adding up floats may cost
            return self._refused(over_s)
        self.count(caller, full_at)
        remaining = int((60.0 - (full_at - now)) / self._cost_s + 1e-9)
        return RateLimitVerdict(
            allowed=True, limit=self.per_minute, remaining=remaining, reset_s=ceil(full_at - now)
        )

    def room(self, caller: str) -> float | None:
        """Return the argument for `count` if a request is allowed now, else None.

        Counts nothing.
        """
        now = self._clock.monotonic_s()
        known = self._full_at_s.get(caller, now)
        full_at = (max(now, known)) + self._cost_s
        return full_at if full_at - now <= 60.0 + 1e-9 else None

    def count(self, caller: str, full_at: float) -> None:
        """Count the request that `room` has allowed, before the next call of `room`."""
        self._full_at_s[caller] = full_at
        self._full_at_s.move_to_end(caller)
        if len(self._full_at_s) > CALLERS_MAX:
            self._full_at_s.popitem(last=False)

    def give_back(self, caller: str) -> None:
        """Take back one counted request that turned out to belong to another caller."""
        full_at = self._full_at_s.get(caller)
        if full_at is not None:
            self._full_at_s[caller] = full_at - self._cost_s

    async def admit(self, caller: str) -> RateLimitVerdict:
        """Decide like `take`, or by the shared count if `take` cannot."""
        return self.take(caller) or self._refused(1.0)

    async def require(self, caller: str) -> None:
        """Count one request; raises `TooMany` when it is refused."""
        refuse(self.take(caller) or await self.admit(caller))

    def _refused(self, reset_s: float) -> RateLimitVerdict:
        return RateLimitVerdict(
            allowed=False, limit=self.per_minute, remaining=0, reset_s=ceil(reset_s)
        )


class SharedRateLimit(RateLimit):
    """A limit shared with other processes; without them, each process limits by itself.

    Requests admitted here are also counted here, so that one process never admits more than it
    would alone, whatever the shared count forgets.
    """

    def __init__(self, name: str, per_minute: int, clock: Clock, quota_lease: QuotaLease) -> None:
        super().__init__(per_minute, clock)
        self._prefix = f"traffic {name} "
        self._quota_lease = quota_lease

    @override
    def take(self, caller: str) -> RateLimitVerdict | None:
        if self._quota_lease.is_local:
            return super().take(caller)
        return super().take(caller) if self._quota_lease.has(self._prefix + caller) else None

    @override
    def room(self, caller: str) -> float | None:
        """As in the base class; also None if no leased quota is left."""
        if not self._quota_lease.is_local and not self._quota_lease.has(self._prefix + caller):
            return None
        return super().room(caller)

    @override
    def count(self, caller: str, full_at: float) -> None:
        super().count(caller, full_at)
        if not self._quota_lease.is_local:
            self._quota_lease.use(self._prefix + caller)

    @override
    def give_back(self, caller: str) -> None:
        super().give_back(caller)
        if not self._quota_lease.is_local:
            self._quota_lease.release(self._prefix + caller)

    @override
    async def admit(self, caller: str) -> RateLimitVerdict:
        key = self._prefix + caller
        room = await self._quota_lease.take(key, self.per_minute)
        if room is None:
            return await super().admit(caller)
        left, reset_s = room
        if left < 0:
            return self._refused(reset_s)
        full_at = super().room(caller)
        if full_at is None:  # The shared count has forgotten what this process admitted.
            self._quota_lease.release(key)
            return self._refused(reset_s)
        super().count(caller, full_at)
        return RateLimitVerdict(
            allowed=True, limit=self.per_minute, remaining=left, reset_s=reset_s
        )


def rate_limit(
    name: str, per_minute: int, clock: Clock, quota_lease: QuotaLease | None
) -> RateLimit:
    """Return a limit of this process, or a shared one by its name if there is a lease."""
    if quota_lease is None:
        return RateLimit(per_minute, clock)
    return SharedRateLimit(name, per_minute, clock, quota_lease)


def refuse(verdict: RateLimitVerdict) -> None:
    """Raise `TooMany` unless the verdict allows the request."""
    if not verdict.allowed:
        raise TooMany("Too many requests: slow down.", retry_after_s=max(1, verdict.reset_s))
