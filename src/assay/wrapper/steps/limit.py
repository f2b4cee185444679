"""The wrapper's rate limit: a window of 60 seconds that slides, per wrapper and agent."""

from collections import OrderedDict, deque
from dataclasses import dataclass, field

from assay.kit.addresses import caller_of
from assay.kit.clock import Clock
from assay.wrapper.model import Admitted, RateLimitExceeded, Trusted, WrapperConfig

WINDOW_S = 60
CALLERS_MAX = 200_000
"""Callers remembered; the one unseen for longest is forgotten first."""


@dataclass(slots=True)
class _Window:
    """Calls of each second, oldest first. A second counts until all of it is 60 seconds old."""

    seconds: deque[list[int]] = field(default_factory=deque[list[int]])
    total: int = 0

    def forget_before(self, oldest: int) -> None:
        """Drop seconds that have left the window."""
        while self.seconds and self.seconds[0][0] < oldest:
            self.total -= self.seconds.popleft()[1]

    def add(self, second: int) -> None:
        """Count a call."""
        if self.seconds and self.seconds[-1][0] == second:
            self.seconds[-1][1] += 1
        else:
            self.seconds.append([second, 1])
        self.total += 1


class LimitStep:
    """Admits a request, or says when the next one will be."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._windows: OrderedDict[tuple[str, str], _Window] = OrderedDict()

    def admit(self, trusted: Trusted, payer: str | None) -> Admitted:
        """Count the request against its agent, else its payer, else its address.

        Raises `RateLimitExceeded` with `retry_after_s` and the limit headers' values.
        """
        limit = trusted.matched.config.rate_limit
        if limit is None:
            return Admitted(trusted, ())
        client = caller_by(trusted.matched.incoming.client_address)
        left, reset_s = self.count(trusted.matched.config, trusted.trust.key or payer or client)
        if left < 0:
            raise RateLimitExceeded(
                f"At most {limit} requests a minute are taken from one agent here.",
                retry_after_s=max(1, reset_s),
                limit=limit,
                remaining=0,
                resetSeconds=reset_s,
            )
        return Admitted(trusted, limit_headers(limit, left, reset_s))

    def count(self, config: WrapperConfig, who: str) -> tuple[int, int]:
        """Count a request of a wrapper that has a limit: how many are left, and until when.

        Below zero: it is over the limit, and was not counted. Seconds until the oldest leaves.
        """
        limit = config.rate_limit or 0
        second = int(self._clock.monotonic_s())
        window = self._window((config.id, who))
        window.forget_before(second - WINDOW_S)
        left = limit - window.total - 1
        if left >= 0:
            window.add(second)
        return left, window.seconds[0][0] + WINDOW_S + 1 - second

    def _window(self, key: tuple[str, str]) -> _Window:
        window = self._windows.get(key)
        if window is None:
            window = self._windows[key] = _Window()
            if len(self._windows) > CALLERS_MAX:
                self._windows.popitem(last=False)
        else:
            self._windows.move_to_end(key)
        return window


def caller_by(address: str) -> str:
    """Whom a network address stands for; only one of IPv6 has to be looked at for that."""
    return caller_of(address) if ":" in address else address


def limit_lines(limit: int, remaining: int, reset_s: int) -> bytes:
    """The same as whole lines."""
    return b"ratelimit-limit: %d\r\nratelimit-remaining: %d\r\nratelimit-reset: %d\r\n" % (
        limit,
        remaining,
        reset_s,
    )


def limit_headers(limit: int, remaining: int, reset_s: int) -> tuple[tuple[bytes, bytes], ...]:
    """Source: draft-ietf-httpapi-ratelimit-headers-07, the three headers clients read."""
    return (
        (b"ratelimit-limit", b"%d" % limit),
        (b"ratelimit-remaining", b"%d" % remaining),
        (b"ratelimit-reset", b"%d" % reset_s),
    )
