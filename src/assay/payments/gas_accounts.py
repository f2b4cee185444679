"""Gas accounts: what an operator has left for settling, and an admin's credits."""

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Final

from assay.audit.service import TERMINAL, Actor, note
from assay.common.clock import Clock
from assay.common.errors import InvalidRequest
from assay.payments.gas import GasAccount, GasStore
from assay.payments.gas_rules import NANO, USD, GasRules

CREDIT_MAX: Final = Decimal(1_000_000)
"""Of USD or coins, at once: a thousand such credits fit into a balance."""
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class GasUsage:
    """An account's budget today. What is left is never below zero."""

    account: GasAccount
    free_left: int
    """Of the account's own free settlements."""
    shared_left: int | None
    """Of those of all self-registered accounts; None where this is none of them."""


class GasAccounts:
    """The gas accounts of operators."""

    def __init__(self, rules: GasRules, store: GasStore, clock: Clock) -> None:
        self._rules = rules
        self._store = store
        self._clock = clock

    async def usage(self, operator_id: str) -> GasUsage:
        """What an account may spend today."""
        account = await self._store.account(operator_id, self._today())
        shared = None
        if account.is_self_registered:
            shared = max(0, self._rules.free_shared - await self.shared_used())
        free = max(0, self._rules.free_per_account - account.free_used)
        return GasUsage(account, free, shared)

    async def shared_used(self) -> int:
        """Free settlements of all self-registered accounts today."""
        return await self._store.shared_used(self._today())

    async def credit_for_admin(
        self, operator_id: str, amount: Decimal, network: str | None, actor: Actor = TERMINAL
    ) -> tuple[str, Decimal]:
        """Add to what an account has prepaid; its currency, and what is there then.

        In USD, or in the coin of `network` if `ASSAY_GAS_USD` does not name it. Below zero it takes
        back. Raises `InvalidRequest`.
        """
        if network is not None and network not in self._rules.cap_coins:
            known = ", ".join(self._rules.cap_coins)
            raise InvalidRequest(f"The network must be one of {known}.")
        currency = USD if network is None else self._rules.currency(network)
        nano = amount * NANO if amount.is_finite() else Decimal("NaN")
        if not nano.is_finite() or nano != nano.to_integral_value() or abs(amount) > CREDIT_MAX:
            message = f"The amount must be up to {CREDIT_MAX}, with at most nine decimals."
            raise InvalidRequest(message)
        entry = note(
            *(self._clock, actor, "gas.credited", operator_id),
            amount=f"{amount:f}",
            currency=currency,
        )
        left = await self._store.credit_for_admin(operator_id, currency, int(nano), entry)
        return currency, Decimal(left) / NANO

    def _today(self) -> int:
        return int(self._clock.now().timestamp() // _DAY.total_seconds())
