"""Bounds the cost of writing scores to Solana: a daily budget, and the wallet's balance."""

from datetime import timedelta
from typing import Final

from assay.chains.model import ChainUnavailable, Network
from assay.common.cache import Cache
from assay.common.clock import Clock
from assay.common.costs import Bearer
from assay.db.daily_budgets import DailyBudgets
from assay.registries.ports import ChainWriter
from assay.reputation.write_back import LAMPORTS_MIN

BALANCE_KNOWN_S: Final = 60.0
ALL: Final = "solana writes"
PART: Final = 10
"""One Free operator or address may cause at most this fraction of all writes."""

_DAY: Final = timedelta(days=1)


class SolanaFees:
    """Implements `reputation.write_back.WriteFees`, exactly across processes and restarts."""

    def __init__(
        self, writer: ChainWriter, budgets: DailyBudgets, per_day: int, clock: Clock
    ) -> None:
        self._writer = writer
        self._budgets = budgets
        self._per_day = per_day
        self._clock = clock
        self._balances: Cache[int] = Cache(clock, BALANCE_KNOWN_S, 4)

    async def take(self, network: Network, bearer: Bearer) -> str | None:
        try:
            balance = await self._balances.get(network.slug, lambda: self._writer.balance(network))
        except ChainUnavailable as error:
            return error.detail or error.message
        if balance < LAMPORTS_MIN:
            return f"the writing wallet holds {balance} lamports"
        day = int(self._clock.now().timestamp() // _DAY.total_seconds())
        limits = [(ALL, self._per_day)]
        if bearer.is_limited:
            limits.append((f"{ALL} of {bearer.name}", max(1, self._per_day // PART)))
        spent = await self._budgets.take_all(limits, day)
        return None if spent is None else f"today's budget is used up: {spent}"
