"""A circuit breaker: skips an endpoint for a while after it failed several times in a row."""

from assay.common.clock import Clock

FAILURES_MAX = 3
"""Failures in a row that open the breaker."""

OPEN_S = 1.0
OPEN_S_MAX = 30.0
"""First and longest pause; it doubles with every trial that fails.
Source: evm-nodes.md#client-rules (a dead endpoint is skipped for 30 s)."""


class Breaker:
    """Closed, or open for a time; then allows single trials, a pause apart, until one succeeds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures = 0
        self._pause_s = OPEN_S
        self._open_until = 0.0

    @property
    def is_open(self) -> bool:
        """Return whether it failed too often in a row and has not succeeded since."""
        return self._failures >= FAILURES_MAX

    def lets_through(self) -> bool:
        """Return whether a call may be made now. While open, True reserves the one trial."""
        if self._failures < FAILURES_MAX:
            return True
        now = self._clock.monotonic_s()
        if now < self._open_until:
            return False
        # Reserved by time and not by a flag: a cancelled trial must not keep it open for ever.
        self._open_until = now + self._pause_s
        return True

    def succeeded(self) -> None:
        """Record a success: close the breaker."""
        self._failures = 0
        self._pause_s = OPEN_S

    def failed(self) -> None:
        """Record a failure: the third in a row opens it, a failed trial doubles the pause."""
        if self._failures >= FAILURES_MAX:
            self._pause_s = min(self._pause_s * 2, OPEN_S_MAX)
        self._failures += 1
        self._open_until = self._clock.monotonic_s() + self._pause_s

    def trip(self) -> None:
        """Open the breaker at once, for a fault that will not end by itself soon."""
        self._failures = FAILURES_MAX
        self._pause_s = OPEN_S_MAX
        self._open_until = self._clock.monotonic_s() + self._pause_s
