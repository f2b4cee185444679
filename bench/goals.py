"""The goals of the wrapper's speed, held against what `bench/wrapper.py` has measured.

A goal whose proxies did not run is not judged: it is absent, not met.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol


class Measured(Protocol):
    """One proxy with one file."""

    @property
    def file(self) -> str: ...
    @property
    def proxy(self) -> str: ...
    @property
    def requests_s(self) -> float: ...
    @property
    def cpu_us(self) -> float: ...


@dataclass(frozen=True)
class Verdict:
    """A goal, whether it is met, and the figures that say so."""

    goal: str
    is_met: bool
    figures: str


@dataclass(frozen=True)
class AtMost:
    """Processor time a request of one proxy, in times that of another."""

    file: str
    proxy: str
    times: float
    other: str

    def judge(self, rows: Sequence[Measured]) -> Verdict | None:
        """None where one of both did not run."""
        cpu = {(row.file, row.proxy): row.cpu_us for row in rows}
        mine, theirs = cpu.get((self.file, self.proxy)), cpu.get((self.file, self.other))
        if mine is None or theirs is None:
            return None
        ratio = mine / theirs
        return Verdict(
            f"{self.file}: CPU at most {self.times:g} x {self.other}",
            ratio <= self.times,
            f"{ratio:.2f} x ({mine:.1f} us against {theirs:.1f} us)",
        )


@dataclass(frozen=True)
class AtLeast:
    """Requests a second of one proxy."""

    file: str
    proxy: str
    requests_s: float

    def judge(self, rows: Sequence[Measured]) -> Verdict | None:
        """None where it did not run."""
        for row in rows:
            if (row.file, row.proxy) == (self.file, self.proxy):
                return Verdict(
                    f"{self.file}: {self.proxy}, at least {self.requests_s:g} requests/s",
                    row.requests_s >= self.requests_s,
                    f"{row.requests_s:.0f} requests/s",
                )
        return None


Goal = AtMost | AtLeast


def judged(goals: Iterable[Goal], rows: Sequence[Measured]) -> list[Verdict]:
    """A verdict for each goal that can be judged."""
    found = (goal.judge(rows) for goal in goals)
    return [verdict for verdict in found if verdict is not None]


def print_verdicts(verdicts: Sequence[Verdict], write: Callable[[str], object] = print) -> None:
    """For people: one line a goal."""
    for verdict in verdicts:
        write(f"{'met' if verdict.is_met else 'NOT MET':8} {verdict.goal:48} {verdict.figures}")
