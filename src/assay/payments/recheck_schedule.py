"""When the chain is asked again what became of a payment. Pure.

Waits grow, so that a payment nobody can decide costs a handful of questions an hour; they are kept
with the payment, so that every process and every start goes on from them. Source: ADR 0018.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

FIRST_S: Final = 2.0
FACTOR: Final = 7.0
MOST_S: Final = 600.0
"""Waits between looks that were answered: 2, 14 and 98 seconds, then ten minutes."""

MISSED_FIRST_S: Final = 5.0
MISSED_FACTOR: Final = 2.0
MISSED_MOST_S: Final = 60.0
"""Waits while no node answers: 5, 10, 20 and 40 seconds, then a minute."""

ANSWERS_MAX: Final = 5
AT_END: Final = 2
"""Answers about a payment that nodes give at most while they can decide it: of these the last are
kept for its end, when two have to agree. Each endpoint beyond two adds one."""

LATE_S: Final = 15.0
"""After the end of an authorisation: by then a block is younger than it, on chains that stand."""

_GROWS_MAX = 16


@dataclass(frozen=True, slots=True)
class Look:
    """The next look at the chain for a payment."""

    at: datetime | None = None
    """Not before this moment; None: at once."""
    questions: int = 0
    """Answers of nodes that decided nothing; one question is for many at once."""
    misses: int = 0
    """Looks in a row that no node answered."""
    is_used: bool = False
    """The payment is used, by what was shown or claimed, though not yet whether it has paid: from
    now on its looks alone ask the chain."""

    def is_due(self, now: datetime) -> bool:
        """Whether the chain may be asked now."""
        return self.at is None or self.at <= now

    def due(self, at: datetime | None, answers: int = 0) -> "Look":
        """The one at another moment, after so many answers more that decided nothing."""
        return replace(self, at=at, questions=self.questions + answers, misses=0)

    def sent(self, now: datetime) -> "Look":
        """The one after something new went out: its answer may be another one soon."""
        return replace(self, at=now + timedelta(seconds=FIRST_S))

    def has_left(self, answers: int) -> bool:
        """Whether so many answers more leave what is kept for the payment's end."""
        return self.questions + answers + AT_END <= ANSWERS_MAX

    def answered(self, now: datetime, expires_at: datetime, answers: int = 1) -> "Look":
        """The one after answers that decided nothing, in time for the payment's own end.

        `answers`: of how many nodes; 0 where one cannot say, and has to be asked again before.
        """
        wait_s = _grown(FIRST_S, FACTOR, self.questions, MOST_S)
        at, end = now + timedelta(seconds=wait_s), expires_at + timedelta(seconds=LATE_S)
        after = self.due(at, max(answers, 1))
        is_spent = answers > 0 and not after.has_left(answers)
        return replace(after, at=end) if now < end and (is_spent or end < at) else after

    def missed(self, now: datetime) -> "Look":
        """The one after a question that no node answered."""
        wait_s = _grown(MISSED_FIRST_S, MISSED_FACTOR, self.misses, MISSED_MOST_S)
        return replace(self, at=now + timedelta(seconds=wait_s), misses=self.misses + 1)


AT_ONCE: Final = Look()
"""The look of a payment that the chain was not asked about yet."""


def _grown(first_s: float, factor: float, steps: int, most_s: float) -> float:
    return min(first_s * factor ** min(steps, _GROWS_MAX), most_s)
