"""What callers cost the service over the last day, and how much they may.

A cost is counted for its bearer: the operator whose credential a request carries, else the network
of the caller's address. Whoever serves a request says once who bears it (`serve_for`); whatever is
done for it, however deep, counts there. What no request caused is counted for `SERVICE`.
"""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from math import ceil
from typing import ClassVar

from assay.kit.addresses import caller_of
from assay.kit.cache import BoundedMap
from assay.kit.clock import Clock
from assay.kit.errors import TooMany

DAY_S = 86_400.0

BEARERS_MAX = 50_000
"""Bearers remembered; the one that cost nothing for longest is forgotten first."""

SHOWN = 10


class Cost(StrEnum):
    """What is counted."""

    RPC_CALLS = "rpc_calls"
    """JSON-RPC requests to chain nodes."""
    EVALUATIONS = "evaluations"
    """Evaluations that ran."""
    UNPROVEN_EVALUATIONS = "unproven_evaluations"
    """Of these, such of a key agent's address that nobody has proven."""
    ROWS = "rows"
    """Rows added to the database."""
    ACCOUNT_CHANGES = "account_changes"
    """Changes of an account, its keys, wrappers and webhooks; each is a row of the audit trail."""
    DISK_BYTES = "disk_bytes"
    """Bytes of snapshots and evidence."""


class QuotaExceeded(TooMany):
    """The bearer's quota of a day is used up; `quota` names it."""

    code: ClassVar[str] = "quota_exceeded"


@dataclass(frozen=True, slots=True)
class Bearer:
    """Who bears a cost, and whether quotas hold for it."""

    name: str
    is_limited: bool = True


SERVICE = Bearer("service", is_limited=False)
"""Work that no request caused."""

_bearer: ContextVar[Callable[[], Bearer] | None] = ContextVar("assay_cost_bearer", default=None)


def serve_for(bearer: Callable[[], Bearer]) -> None:
    """From here on, in this context, costs are whose `bearer` says at that moment."""
    _bearer.set(bearer)


def address_bearer(client_address: str) -> Bearer:
    """The network of an address: an IPv4 address, an IPv6 network of 64 bits."""
    return Bearer(f"address {caller_of(client_address)}")


@dataclass(slots=True)
class _Window:
    """What was counted in this day and the one before, days counted from the first cost."""

    begun_s: float
    current: int = 0
    previous: int = 0

    def at(self, now_s: float) -> float:
        """The sum over the last 24 hours, what was counted in the day before taken as even."""
        days = int((now_s - self.begun_s) // DAY_S)
        if days:
            self.previous = self.current if days == 1 else 0
            self.current = 0
            self.begun_s += days * DAY_S
        return self.current + self.previous * (1 - (now_s - self.begun_s) / DAY_S)

    def wait_s(self, now_s: float, quota: int) -> float:
        """Seconds until one more fits."""
        left_s = self.begun_s + DAY_S - now_s
        if self.current < quota:
            room = quota - 1 - self.current
            return left_s - DAY_S * room / max(1, self.previous)
        return left_s + DAY_S * (1 - (quota - 1) / max(1, self.current))


class CostLedger:
    """Counts costs by bearer over a sliding day, in memory of a fixed size. One per process."""

    def __init__(
        self,
        clock: Clock,
        quotas: Mapping[Cost, int] | None = None,
        bearers_max: int = BEARERS_MAX,
    ) -> None:
        self.quotas = dict(quotas or {})
        self._clock = clock
        self._windows: BoundedMap[str, dict[Cost, _Window]] = BoundedMap(bearers_max)
        self._totals: dict[Cost, _Window] = {}

    def charge(self, cost: Cost, amount: int = 1, bearer: Bearer | None = None) -> None:
        """Count a cost; it has been incurred, so nothing is refused."""
        name = (bearer or _current()).name
        now_s = self._clock.monotonic_s()
        windows = self._windows.get(name) or {}
        self._windows.put(name, windows)
        for where in (windows, self._totals):
            window = where.setdefault(cost, _Window(now_s))
            window.at(now_s)
            window.current += amount

    def used(self, cost: Cost, bearer: Bearer | None = None) -> int:
        """What the bearer has cost in the last day."""
        windows = self._windows.get((bearer or _current()).name)
        window = windows.get(cost) if windows is not None else None
        return 0 if window is None else _whole(window.at(self._clock.monotonic_s()))

    def has_left(self, cost: Cost, bearer: Bearer | None = None) -> bool:
        """Whether the bearer's quota is not used up yet."""
        quota, bearer = self.quotas.get(cost), bearer or _current()
        return quota is None or not bearer.is_limited or self.used(cost, bearer) < quota

    def require(self, *costs: Cost) -> None:
        """Raises `QuotaExceeded` when one of the bearer's quotas is used up."""
        for cost in costs:
            if not self.has_left(cost):
                raise self._exceeded(cost, self.quotas[cost])

    def totals(self) -> Mapping[Cost, int]:
        """What everybody has cost in the last day."""
        now_s = self._clock.monotonic_s()
        found = self._totals
        return {cost: _whole(found[cost].at(now_s)) if cost in found else 0 for cost in Cost}

    def largest(self, cost: Cost) -> list[tuple[str, int]]:
        """The bearers that cost most, with what they cost."""
        now_s = self._clock.monotonic_s()
        rows = (
            (_whole(windows[cost].at(now_s)), name)
            for name, windows in self._windows.items()
            if cost in windows
        )
        return [(name, used) for used, name in sorted(rows, reverse=True)[:SHOWN]]

    def __len__(self) -> int:
        return len(self._windows)

    def _exceeded(self, cost: Cost, quota: int) -> QuotaExceeded:
        windows = self._windows.get(_current().name) or {}
        now_s = self._clock.monotonic_s()
        window = windows.get(cost) or _Window(now_s)
        what = cost.replace("_", " ")
        return QuotaExceeded(
            f"Your quota of {quota} {what} a day is used up.",
            retry_after_s=max(1, ceil(window.wait_s(now_s, quota))),
            quota=cost.value,
            limit=quota,
        )


def _current() -> Bearer:
    ask = _bearer.get()
    return SERVICE if ask is None else ask()


def _whole(used: float) -> int:
    return ceil(used - 1e-6)  # what fractions of a day cost in floats
