"""Turns at calling contracts that callers name: a flood of one keeps nobody else from its proof."""

from contextlib import AbstractAsyncContextManager
from typing import Final

from assay.kit.costs import current_bearer
from assay.kit.fair_queue import FairQueue

WAITING_MAX: Final = 512
WAITING_PER_CALLER: Final = 64
"""Calls that wait, in all and of one operator or address."""


class UntrustedTurns:
    """A few calls at a time; whoever bears their costs takes turns."""

    def __init__(self, at_once: int) -> None:
        self._queue = FairQueue(at_once, WAITING_MAX, WAITING_PER_CALLER, "calls of contracts")

    def one(self) -> AbstractAsyncContextManager[None]:
        """Hold a place. Raises `TooMany` and `Unavailable` as `FairQueue.slot`."""
        return self._queue.slot(current_bearer().name, is_known=False)
