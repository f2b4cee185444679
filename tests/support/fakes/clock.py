"""A clock that stands still until it is moved."""

from datetime import UTC, datetime, timedelta


class FrozenClock:
    def __init__(self, start: datetime = datetime(2026, 3, 1, 12, tzinfo=UTC)) -> None:
        self._now = start
        self._monotonic_s = 1000.0

    def now(self) -> datetime:
        return self._now

    def monotonic_s(self) -> float:
        return self._monotonic_s

    def move(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)
        self._monotonic_s += seconds

    def set(self, moment: datetime) -> None:
        self.move((moment - self._now).total_seconds())
