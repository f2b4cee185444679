"""One count of what somebody costs over a sliding day, and the store that counts are kept in."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

DAY_S: Final = 86_400.0


class CostKey(NamedTuple):
    """What one count is of; `day` is a UTC calendar day, in days since 1970."""

    name: str
    cost: str
    day: int


class CostStore(Protocol):
    """Counts of all processes on one database."""

    async def add(self, counts: Mapping[CostKey, int]) -> Mapping[CostKey, int]:
        """Add to the counts in one transaction.

        Returns every count of the same bearers on those days and the days before them.
        """
        ...

    async def largest(self, days: Collection[int], limit: int) -> Mapping[CostKey, int]:
        """The largest counts of these days, at most so many in all, of each kind alike."""
        ...


@dataclass(slots=True)
class CostWindow:
    """What was counted in one UTC day and the one before."""

    day: int
    current: int = 0
    previous: int = 0
    unwritten: int = 0
    """What of `current` the store does not have yet."""
    unwritten_before: int = 0
    """The same of `previous`."""

    def at(self, now_s: float) -> float:
        """The sum over the last 24 hours, what was counted in the day before taken as even."""
        days = int(now_s // DAY_S) - self.day
        if days > 0:  # never back: a clock that was put back forgives nothing
            is_next = days == 1
            self.previous = self.current if is_next else 0
            self.unwritten_before = self.unwritten if is_next else 0
            self.current = self.unwritten = 0
            self.day += days
        return self.current + self.previous * min(1.0, 1 + self.day - now_s / DAY_S)

    def take(self) -> Iterator[tuple[int, int]]:
        """Days with what of them is to be written, which from now on counts as written."""
        if self.unwritten_before:
            yield self.day - 1, self.unwritten_before
        if self.unwritten:
            yield self.day, self.unwritten
        self.unwritten = self.unwritten_before = 0

    def give_back(self, day: int, count: int) -> None:
        """What was taken has not been written."""
        if day == self.day:
            self.unwritten += count
        elif day == self.day - 1:
            self.unwritten_before += count

    def learn(self, day: int, written: int) -> None:
        """Take a day's count from the store, which lacks what was counted since."""
        if day == self.day:
            self.current = written + self.unwritten
        elif day == self.day - 1:
            self.previous = written + self.unwritten_before

    def wait_s(self, now_s: float, quota: int) -> float:
        """Seconds until one more fits."""
        left_s = (self.day + 1) * DAY_S - now_s
        if self.current < quota:
            room = quota - 1 - self.current
            return left_s - DAY_S * room / max(1, self.previous)
        return left_s + DAY_S * (1 - (quota - 1) / max(1, self.current))
