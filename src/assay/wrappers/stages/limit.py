"""The wrapper's rate limit: a sliding window of 60 seconds, per wrapper and agent."""

from collections import OrderedDict, deque
from dataclasses import dataclass, field

from typing_extensions import override

from assay.common.addresses import caller_of
from assay.common.clock import Clock
from assay.common.quota_lease import QuotaLease, Remaining
from assay.wrappers.model import (
    AuthorizedRequest,
    RateLimitedRequest,
    RateLimitExceeded,
    WrapperConfig,
)

WINDOW_S = 60
CALLERS_MAX = 200_000
"""Callers that are remembered; the one unseen for longest is forgotten first."""


@dataclass(slots=True)
class _Window:
    """Calls of each second, oldest first. A second counts until all of it is 60 seconds old."""

    seconds: deque[list[int]] = field(default_factory=deque[list[int]])
    total: int = 0

    def forget_before(self, oldest: int) -> None:
        """Drop seconds that have left the window."""
        while self.seconds and self.seconds[0][0] < oldest:
            self.total -= self.seconds.popleft()[1]


class LimitStage:
    """Admits a request, or says when the next one will be admitted."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._windows: OrderedDict[tuple[str, str], _Window] = OrderedDict()

    async def admit(self, trusted: AuthorizedRequest, payer: str | None) -> RateLimitedRequest:
        """Count the request for its agent, else its payer, else its address.

        Raises `RateLimitExceeded` with `retry_after_s` and the limit headers' values.
        """
        limit = trusted.matched.config.rate_limit
        if limit is None:
            return RateLimitedRequest(trusted, ())
        client = caller_by(trusted.matched.incoming.client_address)
        who = trusted.trust.limit_key or payer or client
        left, reset_s = await self._counted(trusted.matched.config, who)
        if left < 0:
            raise RateLimitExceeded(
                f"At most {limit} requests a minute are taken from one agent here.",
                retry_after_s=max(1, reset_s),
                limit=limit,
                remaining=0,
                resetSeconds=reset_s,
            )
        return RateLimitedRequest(trusted, limit_headers(limit, left, reset_s))

    def count(self, config: WrapperConfig, who: str) -> tuple[int, int]:
        """Count a request of a limited wrapper; return how many are left, and the seconds.

        Below zero, it is over the limit and was not counted. The seconds are those until the oldest
        leaves.
        """
        limit = config.rate_limit or 0
        second = int(self._clock.monotonic_s())
        window = self._window((config.id, who))
        seconds = window.seconds
        if seconds and seconds[0][0] < second - WINDOW_S:
            window.forget_before(second - WINDOW_S)
        left = limit - window.total - 1
        if left >= 0:
            if seconds and seconds[-1][0] == second:
                seconds[-1][1] += 1
            else:
                seconds.append([second, 1])
            window.total += 1
        return left, seconds[0][0] + WINDOW_S + 1 - second

    async def _counted(self, config: WrapperConfig, who: str) -> tuple[int, int]:
        return self.count(config, who)

    def _window(self, key: tuple[str, str]) -> _Window:
        window = self._windows.get(key)
        if window is None:
            window = self._windows[key] = _Window()
            if len(self._windows) > CALLERS_MAX:
                self._windows.popitem(last=False)
        else:
            self._windows.move_to_end(key)
        return window


class SharedLimitStage(LimitStage):
    """The same limit, shared with other processes (ADR 0012).

    What this process admits is counted here as well. If the shared count is lost, each process
    continues with what it knows, and never admits more than the limit by itself.
    """

    def __init__(self, clock: Clock, quota_lease: QuotaLease) -> None:
        super().__init__(clock)
        self._quota_lease = quota_lease

    @override
    def count(self, config: WrapperConfig, who: str) -> tuple[int, int]:
        """Count a request by a held lease.

        Below zero, it is over the limit or there is no unit left; `admit` finds out which.
        """
        quota_lease = self._quota_lease
        if quota_lease.is_local:
            return super().count(config, who)
        room = quota_lease.spend(_key(config, who))
        if room is None:
            return -1, 0
        return self._counted_here_too(config, who, room)

    @override
    async def _counted(self, config: WrapperConfig, who: str) -> tuple[int, int]:
        room = await self._quota_lease.take(_key(config, who), config.rate_limit or 0)
        if room is None:
            return super().count(config, who)
        if room[0] < 0:
            return -1, max(room[1], self._full_for_s(config, who))
        return self._counted_here_too(config, who, room)

    def _counted_here_too(
        self, config: WrapperConfig, who: str, room: Remaining
    ) -> tuple[int, int]:
        left, reset_s = super().count(config, who)
        if left < 0:  # the shared count has lost what this process admitted
            self._quota_lease.release(_key(config, who))
            return left, reset_s
        return min(left, room[0]), room[1]

    def _full_for_s(self, config: WrapperConfig, who: str) -> int:
        """Return the seconds until this process may admit another; 0 if it may now."""
        window = self._windows.get((config.id, who))
        if window is None:
            return 0
        second = int(self._clock.monotonic_s())
        window.forget_before(second - WINDOW_S)
        if window.total < (config.rate_limit or 0):
            return 0
        return window.seconds[0][0] + WINDOW_S + 1 - second


def _key(config: WrapperConfig, who: str) -> str:
    return f"wrapper {config.id} {who}"


def caller_by(address: str) -> str:
    """Return whom a network address stands for; only an IPv6 address needs a look-up."""
    return caller_of(address) if ":" in address else address


def limit_lines(limit: int, remaining: int, reset_s: int) -> bytes:
    """Return the limit headers as whole lines."""
    return b"ratelimit-limit: %d\r\nratelimit-remaining: %d\r\nratelimit-reset: %d\r\n" % (
        limit,
        remaining,
        reset_s,
    )


def limit_headers(limit: int, remaining: int, reset_s: int) -> tuple[tuple[bytes, bytes], ...]:
    """Return the three headers that clients read (draft-ietf-httpapi-ratelimit-headers-07)."""
    return (
        (b"ratelimit-limit", b"%d" % limit),
        (b"ratelimit-remaining", b"%d" % remaining),
        (b"ratelimit-reset", b"%d" % reset_s),
    )
