"""What the wallet that writes scores back holds, as metrics tell it."""

import asyncio
from dataclasses import dataclass
from typing import Final

from assay.chains.model import ChainUnavailable, Network
from assay.common.clock import Clock
from assay.reputation.write_back import LAMPORTS_MIN, FeedbackPublisher

WAIT_S: Final = 2.0
"""How long a reading may take."""


@dataclass(frozen=True, slots=True)
class WalletReading:
    """The wallet, when it was looked at last."""

    lamports: int | None
    """None while nobody can say."""
    writes: int
    """Scores that this pays for, each at the most that it may cost."""
    read_at_s: float
    """Monotonic seconds."""


class WalletWatch:
    """Remembers the last reading: who scrapes asks no chain."""

    def __init__(self, write_back: FeedbackPublisher, network: Network, clock: Clock) -> None:
        self.network = network
        self.reading: WalletReading | None = None
        self._write_back = write_back
        self._clock = clock

    async def refresh(self) -> None:
        """Read what `reading` tells."""
        try:
            async with asyncio.timeout(WAIT_S):
                lamports = await self._write_back.balance(self.network)
        except (ChainUnavailable, TimeoutError):
            self.reading = WalletReading(None, 0, self._clock.monotonic_s())
            return
        spare = lamports - LAMPORTS_MIN
        writes = spare // self._write_back.fee + 1 if spare >= 0 else 0
        self.reading = WalletReading(lamports, writes, self._clock.monotonic_s())
