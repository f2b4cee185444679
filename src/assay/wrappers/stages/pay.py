"""The wrapper's price: what a call costs, and holding its payment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from assay.common.clock import Clock
from assay.http1.model import UpstreamFailed
from assay.payments.model import (
    LedgerEntry,
    Payment,
    PaymentNetwork,
    PaymentRequired,
    Quote,
    Replay,
)
from assay.payments.ports import PaidRequest, PresentedPayment
from assay.payments.sale_checks import PlatformWallets
from assay.payments.service import PaymentService
from assay.wrappers.model import (
    AdmittedAgent,
    Free,
    InboundRequest,
    PayableRequest,
    PaymentLimits,
    RateLimitedRequest,
    RoutedRequest,
    Trust,
    WrapperConfig,
)
from assay.wrappers.route_table import REMEMBERED_S
from assay.wrappers.store import SqlWrapperStore
from assay.wrappers.store_tiers import SqlTierStore
from assay.wrappers.tier_terms import FreeQuota, terms_for

QUOTE_S_MAX: Final = 3600.0
"""Longest lifetime of a quote: that of an MPP challenge, by its setting."""


@dataclass(frozen=True, slots=True)
class FreeCall:
    """A free call that was used; an empty agent is all that share one quota."""

    wrapper_id: str
    agent: str
    quota: FreeQuota
    at: datetime


class PayStage:
    """Quotes, and holds payments until the upstream has answered."""

    def __init__(  # noqa: PLR0913 - what quotes are made of
        self,
        payments: PaymentService,
        networks: Mapping[str, PaymentNetwork],
        address: str,
        platform: PlatformWallets,
        store: SqlWrapperStore,
        clock: Clock,
        *,
        tiers: SqlTierStore,
        is_listed: bool = False,
    ) -> None:
        """With `is_listed`, catalogues may list wrappers that have a description."""
        self._payments = payments
        self._networks = networks
        self._address = address
        self._platform = platform
        self._store = store
        self._tiers = tiers
        self._clock = clock
        self._is_listed = is_listed

    def quote(self, matched: RoutedRequest) -> Quote | None:
        """Return what the call costs; None if it is free.

        Raises `UpstreamFailed` for a config for which nobody could be paid.
        """
        config = matched.config
        if config.price == 0:
            return None
        pay_to = config.payout_address or self._platform.payout
        if pay_to is None:
            raise UpstreamFailed("This wrapper has no receiving wallet.", detail=config.id)
        terms = (config.network, config.price, pay_to.lower())
        return self._quote(config, matched.incoming, *terms)

    def quote_of(
        self, entry: LedgerEntry, config: WrapperConfig, incoming: InboundRequest
    ) -> Quote:
        """Return what a call cost whose payment has been claimed."""
        return self._quote(config, incoming, entry.network, entry.amount, entry.pay_to)

    async def on_earlier_terms(
        self, matched: RoutedRequest, presented: PresentedPayment
    ) -> tuple[RoutedRequest, Quote] | None:
        """Return the request on earlier terms of its wrapper, if its payer signed those.

        Terms are price, network, payee, when it settles and how long the upstream may take; all
        else is as it is now. They are accepted while a quote of them may be paid: no terms that
        were never in force, and none for longer.
        """
        config, now = matched.config, self._clock.now()
        for revision in await self._store.quoted(
            config.operator_id,
            config.id,
            presented.network,
            presented.amount,
            now - timedelta(seconds=QUOTE_S_MAX + REMEMBERED_S),
        ):
            terms = _on_terms(config, revision.config)
            if (terms.payout_address or self._platform.payout or "").lower() != presented.pay_to:
                continue
            there = RoutedRequest(matched.incoming, replace(matched.route, config=terms))
            quote = self.quote(there)
            if quote is None or not self._payments.is_payable(quote, presented):
                continue
            # Another process may have quoted them until it noticed the change.
            life = timedelta(seconds=self._payments.quote_life_s(quote) + REMEMBERED_S)
            if revision.until is None or now <= revision.until + life:
                return there, quote
        return None

    @staticmethod
    def for_tier(matched: RoutedRequest, known: AdmittedAgent | None) -> RoutedRequest:
        """Return the request at the price of a proven agent's tier; of nobody, unchanged."""
        config = matched.config
        terms = None if known is None else terms_for(config.pricing, known.tier)
        if terms is None:
            return matched
        config = replace(config, price=terms.price)
        return RoutedRequest(matched.incoming, replace(matched.route, config=config))

    async def quote_for(
        self, matched: RoutedRequest, known: AdmittedAgent | None, list_price: int
    ) -> Quote | None:
        """Return what the call costs this agent; None if it is free. Raises like `quote`.

        A price that only its tier has is recorded, and honoured for the life of the quote.
        """
        quote = self.quote(matched)
        if quote is not None and known is not None and quote.amount < list_price:
            of_it = (quote.wrapper_id, known.key, quote.revision, quote.amount)
            life_s = self._payments.quote_life_s(quote)
            await self._tiers.quote(*of_it, self._clock.now(), life_s)
        return quote

    async def on_tier_quotes(
        self,
        matched: RoutedRequest,
        known: AdmittedAgent | None,
        presented: Sequence[PresentedPayment],
    ) -> tuple[RoutedRequest, Quote] | None:
        """Return the request at a price that this very agent was quoted for its tier before.

        It is accepted for the life of the quote, whatever tier the agent has now.
        """
        config, now = matched.config, self._clock.now()
        if known is None:
            return None
        for one in presented:
            for number in await self._tiers.quoted(config.id, known.key, one.amount, now):
                revision = await self._store.revision(config.operator_id, config.id, number)
                if revision is None:
                    continue
                terms = replace(_on_terms(config, revision), price=one.amount)
                there = RoutedRequest(matched.incoming, replace(matched.route, config=terms))
                quote = self.quote(there)
                if quote is not None and self._payments.is_payable(quote, one):
                    return there, quote
        return None

    async def spend_free(self, config: WrapperConfig, trust: Trust) -> FreeCall | None:
        """Use a free call of the caller; None if there is none left.

        A proven agent of rung 1 or above has a quota of its own; all others share one.
        """
        quota, now = config.free_quota, self._clock.now()
        agent = trust.quota_key if isinstance(trust, AdmittedAgent) else ""
        if quota is None or not await self._tiers.spend(config.id, agent, quota, now):
            return None
        return FreeCall(config.id, agent, quota, now)

    async def give_back(self, call: FreeCall) -> None:
        """Give back a free call that was not forwarded."""
        await self._tiers.give_back(call.wrapper_id, call.agent, call.quota, call.at)

    def is_payable(self, quote: Quote, presented: PresentedPayment) -> bool:
        """Return whether a payment claims to pay the quote, and is valid for long enough."""
        return self._payments.is_payable(quote, presented)

    def is_any_attached(self, incoming: InboundRequest) -> bool:
        """Return whether a payment of any protocol is attached, valid or not."""
        return self._payments.is_any_attached(incoming.headers)

    def is_attached(self, quote: Quote, incoming: InboundRequest) -> bool:
        """Return whether a payment is attached, valid or not."""
        return self._payments.is_attached(quote, incoming.headers)

    def binds_body(self, quote: Quote) -> bool:
        """Return whether the call's body is part of what the payment is for."""
        return self._payments.binds_body(quote)

    async def read(self, quote: Quote, request: PaidRequest, limits: PaymentLimits) -> Payment:
        """Return the attached payment and its payer.

        Raises like `PaymentService.read` and `limits`.
        """
        try:
            payment = await self._payments.read(quote, request)
        except PaymentRequired:
            await limits.refused()
            raise
        await limits.signed(payment.payer)
        return payment

    async def hold(
        self, admitted: RateLimitedRequest, payment: Payment, request: PaidRequest
    ) -> PayableRequest | Replay:
        """Return the request with its payment claimed and verified, or what it bought before."""
        trust = admitted.trusted.trust
        agent_id = trust.agent_id if isinstance(trust, AdmittedAgent) else ""
        claimed = await self._payments.hold(payment, request, agent_id)
        if isinstance(claimed, Replay):
            return claimed
        if claimed.quote.settles_first and not claimed.entry.has_paid:
            claimed = replace(claimed, entry=await self._payments.settle(claimed, None), bearer="")
        return PayableRequest(admitted, claimed, request.body)

    @staticmethod
    def free(admitted: RateLimitedRequest) -> PayableRequest:
        """Return the request of a wrapper that costs nothing."""
        return PayableRequest(admitted, Free())

    def _quote(
        self,
        config: WrapperConfig,
        incoming: InboundRequest,
        network_id: str,
        amount: int,
        pay_to: str,
    ) -> Quote:
        path = f"/wrap/{config.operator_id}{incoming.path}"
        network, rate = self._networks[network_id], config.fee_rate
        direct_fee = self._platform.direct_fee(network, amount, pay_to, rate)
        is_collected = direct_fee is not None or pay_to in self._platform.payees
        return Quote(
            wrapper_id=config.id,
            operator_id=config.operator_id,
            url=self._address + path,
            method=incoming.method,
            path=path,
            query=incoming.query or "",
            description=config.description,
            network=network,
            amount=amount,
            pay_to=pay_to,
            work_s=config.timeout_ms / 1000,
            settles_first=config.settle == "before",
            fee_rate=rate if is_collected else None,
            direct_fee=direct_fee,
            revision=config.revision,
            route=config.path if self._is_listed and config.description else "",
        )


def _on_terms(config: WrapperConfig, terms: WrapperConfig) -> WrapperConfig:
    """Return the wrapper as it is, on the payment terms of a revision."""
    return replace(
        config,
        price=terms.price,
        protocol=terms.protocol,
        network=terms.network,
        payout_address=terms.payout_address,
        settle=terms.settle,
        timeout_ms=terms.timeout_ms,
    )
