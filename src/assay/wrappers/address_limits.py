"""Limits of payments from an address whose calls have used up the limit of wrappers.

Anybody can make up a payment, or sign one without having the money. Each kind has a limit of its
own, so that strangers at an address leave its payers theirs. Source: conventions.md#open-endpoints.
"""

from typing import Final

from typing_extensions import override

from assay.common.cache import BoundedMap
from assay.common.clock import Clock
from assay.common.quota_lease import QuotaLease
from assay.http1.callers import payer_at
from assay.server.rate_limits import caller_of, rate_limit
from assay.server.request_context import RequestContext
from assay.wrappers.payment_limits import PaymentLimits
from assay.wrappers.unread_answers import UnreadAnswers

PAYERS_MAX: Final = 100_000
"""Payers remembered to have paid."""


class PayerLimits:
    """Counts payments: of an address by what they prove, and verified ones by their payer."""

    def __init__(
        self,
        unread: UnreadAnswers,
        clock: Clock,
        quota_lease: QuotaLease | None,
        *,
        per_minute: int,
        keyed_per_minute: int,
    ) -> None:
        self._unread = unread
        # Sized as an operator's: it bounds how many signatures one address can have checked.
        self.read = rate_limit("wrapper read", keyed_per_minute, clock, quota_lease)
        self.refused = rate_limit("wrapper refused", per_minute, clock, quota_lease)
        self.signed = rate_limit("wrapper payments", per_minute, clock, quota_lease)
        self.payers = rate_limit("wrapper payers", per_minute, clock, quota_lease)
        self.have_paid: BoundedMap[str, bool] = BoundedMap(PAYERS_MAX)

    def within(self, exchange: RequestContext) -> PaymentLimits:
        """For a call within the limit of its address: only its payer is looked at."""
        return _Within(self, exchange)

    async def beyond(self, exchange: RequestContext) -> PaymentLimits:
        """For a call with a payment beyond the limit of its address. Raises `TooMany`."""
        await self.read.require(caller_of(exchange.client_address))
        return _Beyond(self, exchange)

    def recognise(self, payer: str, exchange: RequestContext) -> None:
        """The call is its payer's from now on. Raises `UpstreamUnread`."""
        self.have_paid.put(payer, value=True)
        exchange.wrapper_caller = payer_at(payer, exchange.client_address)
        self._unread.require(exchange.wrapper_caller)


class _Within(PaymentLimits):
    def __init__(self, limits: PayerLimits, exchange: RequestContext) -> None:
        self._limits = limits
        self._exchange = exchange

    @override
    async def verified(self, payer: str) -> None:
        self._limits.recognise(payer, self._exchange)


class _Beyond(PaymentLimits):
    def __init__(self, limits: PayerLimits, exchange: RequestContext) -> None:
        self._limits = limits
        self._exchange = exchange
        self._caller = caller_of(exchange.client_address)

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
        self._limits.signed.give_back(self._caller)
        await self._limits.payers.require(payer)
        self._limits.recognise(payer, self._exchange)
