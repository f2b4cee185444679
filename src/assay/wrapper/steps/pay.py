"""The wrapper's price: what a call costs, and holding the payment for it."""

from collections.abc import Mapping

from assay.payments.model import (
    Held,
    Payment,
    PaymentNetwork,
    PaymentRequired,
    Quote,
    Replay,
)
from assay.payments.ports import PaidRequest
from assay.payments.till import Till
from assay.wrapper.model import (
    Admitted,
    Free,
    Incoming,
    Known,
    Matched,
    Paid,
    UpstreamFailed,
)
from assay.wrapper.payment_limits import PaymentLimits


class PayStep:
    """Quotes, and holds payments until the upstream has answered."""

    def __init__(
        self,
        till: Till,
        networks: Mapping[str, PaymentNetwork],
        address: str,
        payout: str | None,
        payees: frozenset[str] = frozenset(),
    ) -> None:
        self._till = till
        self._networks = networks
        self._address = address
        self._payout = payout
        self._payees = payees

    def quote(self, matched: Matched) -> Quote | None:
        """What the call costs; None when it is free.

        Raises `UpstreamFailed` for a config that nobody could be paid for.
        """
        config = matched.config
        if config.price == 0:
            return None
        pay_to = config.payout_address or self._payout
        if pay_to is None:
            raise UpstreamFailed("This wrapper has no receiving wallet.", detail=config.id)
        pay_to = pay_to.lower()
        path = f"/wrap/{config.operator_id}{matched.incoming.path}"
        return Quote(
            wrapper_id=config.id,
            operator_id=config.operator_id,
            url=self._address + path,
            method=matched.incoming.method,
            path=path,
            query=matched.incoming.query or "",
            description=config.description,
            network=self._networks[config.network],
            amount=config.price,
            pay_to=pay_to,
            work_s=config.timeout_ms / 1000,
            settles_first=config.settle == "before",
            fee_rate=config.fee_rate if pay_to in self._payees else None,
        )

    def is_attached(self, quote: Quote, incoming: Incoming) -> bool:
        """Whether a payment is attached, good or bad."""
        return self._till.is_attached(quote, incoming.headers)

    def binds_body(self, quote: Quote) -> bool:
        """Whether the call's body is part of what is asked to be paid for."""
        return self._till.binds_body(quote)

    async def require(self, quote: Quote) -> None:
        """Raises `PaymentRequired`, saying how to pay."""
        raise await self._till.demand(quote)

    async def read(self, quote: Quote, request: PaidRequest, limits: PaymentLimits) -> Payment:
        """The attached payment, its payer established. Raises as `Till.read` and `limits`."""
        try:
            payment = await self._till.read(quote, request)
        except PaymentRequired:
            await limits.refused()
            raise
        await limits.signed(payment.payer)
        return payment

    async def bought(self, payment: Payment, request: PaidRequest) -> Replay | None:
        """What a spent payment has bought already. Raises as `Till.bought`."""
        return await self._till.bought(payment, request)

    async def hold(
        self, admitted: Admitted, payment: Payment, request: PaidRequest
    ) -> Paid | Replay:
        """The request with its payment claimed and verified, or what it bought before."""
        trust = admitted.trusted.trust
        agent_id = trust.agent_id if isinstance(trust, Known) else ""
        held = await self._till.hold(payment, request, agent_id)
        if isinstance(held, Replay):
            return held
        if held.quote.settles_first and not held.entry.has_paid:
            held = Held(await self._till.settle(held, None), held.quote)
        return Paid(admitted, held, request.body)

    @staticmethod
    def free(admitted: Admitted) -> Paid:
        """The request of a wrapper that costs nothing."""
        return Paid(admitted, Free())
