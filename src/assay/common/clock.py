"""Time as a dependency: rules never read it, everything else asks a `Clock`."""

import time
from datetime import UTC, datetime
from functools import partial
from typing import Final, Protocol


class Clock(Protocol):
    """Wall time for what is written down, monotonic time for what is measured."""

    def now(self) -> datetime:
        """The aware UTC time."""
        ...

    def monotonic_s(self) -> float:
        """Seconds on a clock that never goes back; only differences mean anything."""
        ...


class SystemClock:
    """The machine's own clocks.

    They are asked a dozen times a request, so nothing stands between: `now` and `monotonic_s` are
    the functions themselves.
    """

    now = staticmethod(partial(datetime.now, UTC))  # noqa: TID251 - the one place that may
    monotonic_s = staticmethod(time.monotonic)


def iso(moment: datetime) -> str:
    """ISO 8601 in UTC with milliseconds and `Z`. Source: decisions, section 13."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_iso(text: str) -> datetime:
    """The inverse of `iso`; raises `ValueError` for what is not ISO 8601 with offset."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        message = "a time without an offset"
        raise ValueError(message)
    return moment.astimezone(UTC)


DAY_US: Final = 86_400_000_000
"""A UTC day. Days are numbered from 1970-01-01."""
