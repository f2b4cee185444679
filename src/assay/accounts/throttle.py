"""Login attempts, slowed down per account and per address (decisions, section 12)."""

from collections import OrderedDict
from dataclasses import dataclass
from math import ceil

from assay.kit.clock import Clock
from assay.kit.errors import TooMany

FREE_FAILURES = 5
"""Failures that cost nothing: people mistype."""

DELAY_MAX_S = 900.0
FORGET_S = 3600.0
_REMEMBERED_MAX = 50_000


@dataclass(slots=True)
class _Failures:
    count: int
    last_s: float


class LoginThrottle:
    """Growing delays after failures: 2 s, 4 s, 8 s, ... up to 15 minutes, forgotten in an hour.

    Per account *and* address: an attacker's failures from elsewhere never lock the owner out of
    his own account, for his address has its own count; per address alone the delay only slows
    down somebody who tries many accounts.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: OrderedDict[str, _Failures] = OrderedDict()

    def check(self, email: str, address: str) -> None:
        """Raises `TooMany` while a delay runs."""
        now = self._clock.monotonic_s()
        wait = max(self._wait(key, free, now) for key, free in _keys(email, address))
        if wait > 0:
            raise TooMany(
                "Too many failed logins: wait before trying again.", retry_after_s=ceil(wait)
            )

    def failed(self, email: str, address: str) -> None:
        """Count one failure."""
        now = self._clock.monotonic_s()
        for key, _ in _keys(email, address):
            known = self._failures.pop(key, None)
            fresh = known is not None and now - known.last_s < FORGET_S
            self._failures[key] = _Failures(known.count + 1 if known and fresh else 1, now)
        while len(self._failures) > _REMEMBERED_MAX:
            self._failures.popitem(last=False)

    def succeeded(self, email: str, address: str) -> None:
        """Forget the account's failures from this address."""
        self._failures.pop(_keys(email, address)[0][0], None)

    def _wait(self, key: str, free: int, now: float) -> float:
        known = self._failures.get(key)
        if known is None or known.count < free or now - known.last_s >= FORGET_S:
            return 0
        delay = min(DELAY_MAX_S, 2.0 ** min(known.count - free + 1, 12))
        return known.last_s + delay - now


def _keys(email: str, address: str) -> tuple[tuple[str, int], tuple[str, int]]:
    """The two counts of an attempt and how many failures each lets pass freely."""
    return (f"{email.lower()}|{address}", FREE_FAILURES), (f"|{address}", FREE_FAILURES * 10)
