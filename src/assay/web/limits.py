"""How often one caller may ask: a bucket that leaks evenly, per caller, in memory.

GCRA (ITU-T I.371): one number a caller, no window edges to burst over.
"""

from collections import OrderedDict
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from math import ceil

from assay.kit.clock import Clock
from assay.kit.errors import TooMany

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


def caller_of(address: str) -> str:
    """Whom an address stands for: an IPv6 network of 64 bits is one caller (RFC 6177)."""
    parsed = parsed_address(address)
    if isinstance(parsed, IPv6Address):
        return str(IPv6Address(int(parsed) >> 64 << 64))
    return address if parsed is None else str(parsed)


def parsed_address(text: str) -> IPv4Address | IPv6Address | None:
    """The address in a text, or None.

    An IPv4 address in IPv6 clothes is the IPv4 address (RFC 4291, section 2.5.5.2): all of them
    share one network of 64 bits, so they would otherwise be one caller and in no proxy's network.
    """
    try:
        parsed = ip_address(text)
    except ValueError:
        return None
    mapped = parsed.ipv4_mapped if isinstance(parsed, IPv6Address) else None
    return mapped or parsed
