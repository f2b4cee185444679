"""Fair turns at a chain's nodes: a flood from one caller does not block others."""

from contextlib import AbstractAsyncContextManager
from typing import Final

from assay.common.costs import current_bearer
from assay.common.fair_queue import FairQueue

CONTRACTS_MAX: Final = 512
CONTRACTS_PER_CALLER: Final = 64
"""Waiting calls of contracts that callers name: in all, and of one operator or address."""

READS_MAX: Final = 10_000
"""Waiting exchanges with one endpoint; one caller may hold all of them while nobody else asks."""


class CallerTurns:
    """Allows a few exchanges at a time; the parties that bear the costs take turns.

    Parties without quotas (Pro operators, administrators, the service itself) have three turns of
    four.
    """

    def __init__(self, at_once: int, waiting_max: int, per_caller: int, what: str) -> None:
        """Create it; `what` names the waiting calls in refusals."""
        self._queue = FairQueue(at_once, waiting_max, per_caller, what)

    def one(self) -> AbstractAsyncContextManager[None]:
        """Hold a slot. Raises `TooMany` and `Unavailable` like `FairQueue.slot`."""
        bearer = current_bearer()
        return self._queue.slot(bearer.name, is_known=not bearer.is_limited)


def contract_turns(at_once: int) -> CallerTurns:
    """Return turns for contracts that callers name."""
    return CallerTurns(at_once, CONTRACTS_MAX, CONTRACTS_PER_CALLER, "calls of contracts")


def read_turns(at_once: int) -> CallerTurns:
    """Return turns for exchanges with one endpoint."""
    return CallerTurns(at_once, READS_MAX, READS_MAX, "reads of a chain")
