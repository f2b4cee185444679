"""Time as a dependency: pure rules never read it, and everything else asks a `Clock`."""

import time
from datetime import UTC, datetime
from functools import partial
from typing import Final, Protocol


class Clock(Protocol):
    """Wall-clock time for records, monotonic time for measurements."""

    def now(self) -> datetime:
        """Return the current time as an aware UTC time."""
        ...

    def monotonic_s(self) -> float:
        """Return seconds on a clock that never goes back; only differences have a meaning."""
        ...


class SystemClock:
    """The machine's own clocks.

    `now` and `monotonic_s` are the library functions themselves, because a request reads the time a
    dozen times.
    """

    now = staticmethod(partial(datetime.now, UTC))  # noqa: TID251 - the one place that may
    monotonic_s = staticmethod(time.monotonic)


def iso(moment: datetime) -> str:
    """Return ISO 8601 in UTC with milliseconds and `Z`.

    Source: conventions.md#time-money-and-ids.
    """
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_iso(text: str) -> datetime:
    """Parse what `iso` writes; raises `ValueError` if it is not ISO 8601 with an offset."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        message = "a time without an offset"
        raise ValueError(message)
    return moment.astimezone(UTC)


DAY_US: Final = 86_400_000_000
"""Microseconds of a UTC day. Days are numbered from 1970-01-01."""
