"""A count of lent units that several processes share: what it is asked, and what it answers.

A unit is counted from when it is lent until 60 seconds after the last moment it could have been
spent, so that all processes together never admit more than the limit in any window of 60 seconds,
whatever is lost on the way. Source: ADR 0012.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

LEASE_S = 1.0
"""How long a slice may be spent, from before it was asked for."""

COUNTED_S = 61
"""Whole seconds a unit counts after the one it was lent in: the window of 60, and the lease."""


@dataclass(frozen=True, slots=True)
class WindowRequest:
    """What a process asks of one key's count."""

    key: str
    limit: int
    need: int
    """Requests that wait for a unit: they get theirs while there are any."""
    want: int
    """Units asked for in all; what exceeds `need` is lent sparingly, for others may want some."""
    back_second: int = 0
    back_units: int = 0
    """Units lent in that second that were not spent, and now never will be."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What the count answers."""

    units: int
    """At most what was wanted; 0 when none are left."""
    left: int
    """Of the limit, after this grant: what nobody holds or has spent."""
    second: int
    """The store's own second the units are counted under."""
    reset_s: float
    """Seconds until the oldest counted unit leaves the window."""


class SharedWindow(Protocol):
    """Counts of units lent, by key and second, on one clock for all who ask."""

    async def ask(self, asks: Sequence[WindowRequest]) -> Sequence[Grant]:
        """One answer to each, in order; each is one atomic step.

        Raises `Unavailable` well within `LEASE_S`. Nothing is ever sent twice: what was given
        back twice would be lent twice.
        """
        ...

    async def check(self) -> None:
        """Raises `Unavailable` unless units can be lent."""
        ...
