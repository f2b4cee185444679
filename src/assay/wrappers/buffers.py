"""The memory for bodies that paid calls hold back (ADR 0008)."""

from dataclasses import dataclass
from typing import Final

from assay.common.memory_budget import MemoryBudget, Reservation

WAIT_S: Final = 10.0
"""Longest wait for an answer's memory, before anything is paid for or asked of the upstream."""

WRAPPERS_MAX: Final = 10_000
"""Wrappers whose answer size is remembered; beyond that, all are forgotten and learnt again."""


@dataclass(frozen=True, slots=True)
class Shares:
    """Memory that one paid call holds, in three budgets, so that none of them waits for another."""

    request: Reservation
    answer: Reservation
    replay: Reservation

    def close(self) -> None:
        """Release everything."""
        for share in (self.request, self.answer, self.replay):
            share.close()


class BufferBudget:
    """Memory for request bodies, for answers that are not paid for yet, and for bought ones.

    An upstream that has run cannot be undone. So there must be memory for its answer before it is
    asked: as much as the wrapper's last answers took. A larger answer overcommits the budget, and
    the next one waits for more. A caller that fetches what they bought before takes no memory from
    buyers.
    """

    def __init__(self, bytes_max: int) -> None:
        """Create it with this bound for each kind, and as much again for larger answers."""
        self._requests, self._replays = MemoryBudget(bytes_max), MemoryBudget(bytes_max)
        self._answers = MemoryBudget(bytes_max, WAIT_S)
        self._sizes: dict[str, int] = {}

    def shares(self, caller: str) -> Shares:
        """Return the memory of one call."""
        rooms = (self._requests, self._answers, self._replays)
        return Shares(*(Reservation(room, caller) for room in rooms))

    def expected(self, wrapper_id: str) -> int:
        """Return the expected bytes of the wrapper's next answer.

        It is the size of its largest one, which is forgotten by eighths.
        """
        return self._sizes.get(wrapper_id, 0)

    def learn(self, wrapper_id: str, size: int) -> None:
        """Record the size of an answer."""
        if len(self._sizes) >= WRAPPERS_MAX:
            self._sizes.clear()
        self._sizes[wrapper_id] = max(size, self.expected(wrapper_id) * 7 // 8)
