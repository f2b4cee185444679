"""Limits of payments from an address whose calls have used up the limit of wrappers.

Anybody can make up a payment, or sign one without having the money. Each kind has a limit of its
own, so that strangers at an address leave its payers theirs. Source: decisions, section 7.
"""

from typing import Final

from typing_extensions import override

from assay.kit.cache import BoundedMap
from assay.web.limits import rate_limit
from assay.wiring import App
from assay.wrapper.payment_limits import PaymentLimits

PAYERS_MAX: Final = 100_000
"""Payers remembered to have paid."""


class PayerLimits:
    """Counts payments: of an address by what they prove, and verified ones by their payer."""

    def __init__(self, app: App) -> None:
        per_minute, clock, leases = app.settings.wrapper_per_minute, app.clock, app.leases
        # Sized as an operator's: it bounds how many signatures one address can have checked.
        self.read = rate_limit("wrapper read", app.settings.keyed_per_minute, clock, leases)
        self.refused = rate_limit("wrapper refused", per_minute, clock, leases)
        self.signed = rate_limit("wrapper payments", per_minute, clock, leases)
        self.payers = rate_limit("wrapper payers", per_minute, clock, leases)
        self.have_paid: BoundedMap[str, bool] = BoundedMap(PAYERS_MAX)
        self.within: Final[PaymentLimits] = _Within(self)
        """For calls within the limit of their address: only remembers who has paid."""

    async def beyond(self, caller: str) -> PaymentLimits:
        """For a call with a payment beyond the limit of its address. Raises `TooMany`."""
        await self.read.require(caller)
        return _Beyond(self, caller)


class _Within(PaymentLimits):
    def __init__(self, limits: PayerLimits) -> None:
        self._limits = limits

    @override
    async def verified(self, payer: str) -> None:
        self._limits.have_paid.put(payer, value=True)


class _Beyond(PaymentLimits):
    def __init__(self, limits: PayerLimits, caller: str) -> None:
        self._limits = limits
        self._caller = caller

    @override
    async def refused(self) -> None:
        await self._limits.refused.require(self._caller)

    @override
    async def signed(self, payer: str) -> None:
        if payer in self._limits.have_paid:  # others of the address use up nothing of theirs
            self._caller = f"{self._caller} {payer}"
        await self._limits.signed.require(self._caller)

    @override
    async def verified(self, payer: str) -> None:
        self._limits.have_paid.put(payer, value=True)
        self._limits.signed.give_back(self._caller)
        await self._limits.payers.require(payer)
