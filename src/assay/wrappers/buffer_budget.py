"""Memory for what paid calls hold back, so that its sum is bounded (decision 0008)."""

from dataclasses import dataclass
from typing import Final

from assay.common.memory_budget import MemoryBudget, Reservation

WAIT_S: Final = 10.0
"""How long an answer's room is waited for, before anything is paid for or asked of the upstream."""

WRAPPERS_MAX: Final = 10_000
"""Wrappers whose answers' size is remembered; beyond, all are forgotten and learnt again."""


@dataclass(frozen=True, slots=True)
class Shares:
    """What one paid call holds; of three rooms, so that none of them waits for another."""

    request: Reservation
    answer: Reservation
    replay: Reservation

    def close(self) -> None:
        """Nothing is held any more."""
        for share in (self.request, self.answer, self.replay):
            share.close()


class BufferBudget:
    """Bodies of requests as they come, answers that are not paid for yet, and bought ones.

    An upstream that has run has run, so there is room for its answer before it is asked: as much
    as the wrapper's last answers took. What turns out larger is squeezed in, and the next one waits
    for more. Who fetches what he bought before takes no room from those who buy.
    """

    def __init__(self, bytes_max: int) -> None:
        """At most so many of each kind, and as many again of answers larger than expected."""
        self._requests, self._replays = MemoryBudget(bytes_max), MemoryBudget(bytes_max)
        self._answers = MemoryBudget(bytes_max, WAIT_S)
        self._sizes: dict[str, int] = {}

    def shares(self, caller: str) -> Shares:
        """Those of one call."""
        rooms = (self._requests, self._answers, self._replays)
        return Shares(*(Reservation(room, caller) for room in rooms))

    def expected(self, wrapper_id: str) -> int:
        """Bytes of the wrapper's next answer: as its largest, which is forgotten by eighths."""
        return self._sizes.get(wrapper_id, 0)

    def learn(self, wrapper_id: str, size: int) -> None:
        """An answer was so large."""
        if len(self._sizes) >= WRAPPERS_MAX:
            self._sizes.clear()
        self._sizes[wrapper_id] = max(size, self.expected(wrapper_id) * 7 // 8)
