"""What one turn of the event loop has to send, sent at its end, all at once."""

import asyncio
from typing import Protocol


class Sender(Protocol):
    """Somebody with something to send."""

    def send(self) -> None:
        """Write it. Harmless where there is nothing, or nobody to write to, any more."""
        ...


class WriteCoalescer:
    """Lets everybody send at the end of the turn, in the order in which they asked.

    A peer that was sent a single packet has read it, and sleeps, before the next one comes: each
    then costs an interrupt of another processor, more than a write itself does. Of a burst only
    the first packet wakes anybody.
    """

    def __init__(self) -> None:
        self._waiting: list[Sender] = []

    def add(self, sender: Sender) -> None:
        """Let it send when this turn's events have been handled."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._send)
        self._waiting.append(sender)

    def _send(self) -> None:
        waiting, self._waiting = iter(self._waiting), []
        try:
            for sender in waiting:
                sender.send()
        finally:  # one that raises does not keep the others
            for sender in waiting:
                self.add(sender)
