"""Watches the balance of the wallet that writes scores back, for metrics."""

import asyncio
from dataclasses import dataclass
from typing import Final

from assay.chains.model import ChainUnavailable, Network
from assay.common.clock import Clock
from assay.reputation.write_back import LAMPORTS_MIN, FeedbackPublisher

WAIT_S: Final = 2.0
"""Time limit of a reading."""


@dataclass(frozen=True, slots=True)
class WalletReading:
    """The last reading of the wallet."""

    lamports: int | None
    """None while it is unknown."""
    writes: int
    """The number of scores the balance pays for, each at its highest cost."""
    read_at_s: float
    """Monotonic seconds."""


class WalletWatch:
    """Keeps the last reading, so that a metrics scrape makes no chain call."""

    def __init__(self, write_back: FeedbackPublisher, network: Network, clock: Clock) -> None:
        self.network = network
        self.reading: WalletReading | None = None
        self._write_back = write_back
        self._clock = clock

    async def refresh(self) -> None:
        """Read the wallet and keep the result."""
        try:
            async with asyncio.timeout(WAIT_S):
                lamports = await self._write_back.balance(self.network)
        except (ChainUnavailable, TimeoutError):
            self.reading = WalletReading(None, 0, self._clock.monotonic_s())
            return
        spare = lamports - LAMPORTS_MIN
        writes = spare // self._write_back.fee + 1 if spare >= 0 else 0
        self.reading = WalletReading(lamports, writes, self._clock.monotonic_s())
