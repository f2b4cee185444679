"""x402, versions 1 and 2 at once, scheme `exact` over EIP-3009: matching, settling, receipts.

Source: x402 specification v1 and v2, `schemes/exact/scheme_exact_evm.md`; x402.md#documents.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import ClassVar, Final

from assay.common.http_heads import HeaderPairs
from assay.common.json import JsonObject, JsonValue
from assay.payments.model import (
    LedgerEntry,
    Payment,
    PaymentNetwork,
    PaymentRefused,
    PaymentRequirements,
    PaymentSighting,
    ProtocolName,
    Quote,
)
from assay.payments.networks import ROWS
from assay.payments.outcomes import PaymentOutcome
from assay.payments.ports import (
    Authorization,
    Balances,
    Note,
    PaidRequest,
    PaymentProtocol,
    PresentedPayment,
    ProtocolDependencies,
    token_of,
)
from assay.payments.x402.codec import (
    V1,
    V2,
    Envelope,
    MalformedPayment,
    credential_digest,
    credential_of,
    encoded,
    needed_s,
    parse,
    payment_header,
    required_v2,
    requirement_v1,
    timeout_s,
)

LEAST_S: Final = 10.0
"""Seconds that must be left beyond the upstream's own when it is asked, of `SETTLE_S`: five for
being late, and five for settling."""


_NETWORKS: Final = {
    spelling: row.id
    for row in ROWS
    if row.protocol == "x402"
    for spelling in (row.id, row.short_name)
}


class X402:
    """Both versions; the JSON decides the version, whichever header it came in."""

    name: ClassVar[ProtocolName] = "x402"
    binds_body: ClassVar[bool] = False  # the signed data has no place for it
    spends_gas: ClassVar[bool] = True
    receipts_refusals: ClassVar[bool] = True  # a failed answer says that its money was taken
    publishes: ClassVar[bool] = True  # the authorisation is the settling transaction's calldata

    async def demand(
        self, quote: Quote, needs: ProtocolDependencies, reason: str, transaction: str = ""
    ) -> PaymentRequirements:
        del needs
        network = quote.network
        refusal = {
            "success": False,
            "errorReason": reason,
            "transaction": transaction,
            "network": network.short_name,
        }
        return PaymentRequirements(
            headers=(
                (b"payment-required", encoded(required_v2(quote, reason))),
                # On a 402 this has the type of a failed settlement, as in the standard, and the
                # interface requires it (interface.md#x402-payment-required).
                (b"x-payment-response", encoded(refusal)),
            ),
            extras={"x402Version": 1, "reason": reason, "accepts": [requirement_v1(quote)]},
        )

    def is_attached(self, headers: HeaderPairs) -> bool:
        return any(name in {V1, V2} for name, _ in headers)

    async def present(
        self, headers: HeaderPairs, needs: ProtocolDependencies
    ) -> PresentedPayment | None:
        del needs
        try:
            return _presented(headers)
        except (MalformedPayment, PaymentRefused):
            return None

    def needed_s(self, quote: Quote, needs: ProtocolDependencies) -> float:
        del needs
        return needed_s(quote)

    def is_good(self, entry: LedgerEntry, quote: Quote, needs: ProtocolDependencies) -> bool:
        return (entry.expires_at - needs.clock.now()).total_seconds() >= needed_s(quote)

    def quote_life_s(self, quote: Quote, needs: ProtocolDependencies) -> float:
        del needs
        return timeout_s(quote)

    async def read(
        self, request: PaidRequest, quote: Quote, needs: ProtocolDependencies
    ) -> Payment:
        try:
            presented = request.presented or _presented(request.headers)
        except MalformedPayment as error:
            raise PaymentRefused("invalid_payload", f"The payment is malformed: {error}.") from None
        envelope = presented.parsed
        if not isinstance(envelope, Envelope):
            raise TypeError("a payment of another protocol")
        _match(envelope, quote)
        signed = envelope.authorization
        _match_authorization(signed, quote)
        if needs.signers.signer(signed, quote.network) != signed.payer:
            raise PaymentRefused(
                "invalid_exact_evm_payload_signature",
                "The signature is not the payer's over this authorisation.",
            )
        _match_time(signed, quote, needs, presented.digest)
        return Payment(
            quote=quote,
            payer=signed.payer,
            nonce=signed.nonce,
            digest=presented.digest,
            expires_at=datetime.fromtimestamp(min(signed.valid_before, 253402300799), UTC),
            credential=credential_of(signed),
            version=envelope.version,
            identifier=envelope.identifier,
            token=presented.token,
            extensions=envelope.extensions,
        )

    async def verify(
        self, payment: Payment, needs: ProtocolDependencies, sighting: PaymentSighting
    ) -> Balances | None:
        quote = payment.quote
        work_s = 0.0 if quote.settles_first else quote.work_s
        left_s = (payment.expires_at - needs.clock.now()).total_seconds()
        if left_s < work_s + LEAST_S:  # it may have waited since it was read
            message = "The authorisation ends before it could be settled."
            raise PaymentRefused("invalid_exact_evm_payload_authorization_valid_before", message)
        asset = quote.network.asset.address
        return {asset: await needs.facilitator.verify(payment, sighting)}

    def work_s(self, payment: Payment, needs: ProtocolDependencies) -> float:
        del needs  # `LEAST_S` has what is left beyond that
        return payment.quote.work_s

    async def settle(
        self, entry: LedgerEntry, note: Note, needs: ProtocolDependencies
    ) -> PaymentOutcome:
        return await needs.facilitator.settle(entry, note)

    async def outcome(self, entry: LedgerEntry, needs: ProtocolDependencies) -> PaymentOutcome:
        return await needs.facilitator.outcome(entry)

    async def outcomes(
        self,
        entries: Sequence[LedgerEntry],
        needs: ProtocolDependencies,
        *,
        every_node: bool = False,
    ) -> Sequence[PaymentOutcome]:
        return await needs.facilitator.outcomes(entries, every_node=every_node)

    async def resend(
        self, entry: LedgerEntry, note: Note, needs: ProtocolDependencies
    ) -> PaymentOutcome:
        return await needs.facilitator.resend(entry, note)

    def receipt(self, entry: LedgerEntry, needs: ProtocolDependencies) -> HeaderPairs:
        del needs
        paid = {"success": True, "transaction": entry.attempt.transaction, "payer": entry.payer}
        return _answers(entry, paid)

    def pending(self, entry: LedgerEntry) -> HeaderPairs:
        waiting = {
            "success": False,
            "errorReason": "settlement_pending",
            "transaction": entry.attempt.transaction,
            "payer": entry.payer,
        }
        return _answers(entry, waiting)


def _answers(entry: LedgerEntry, said: JsonObject) -> HeaderPairs:
    """Return both receipts; each spells the network as its reader does."""
    shown = old = encoded({**said, "network": entry.network})
    if entry.version == 1:
        short = next((row.short_name for row in ROWS if row.id == entry.network), entry.network)
        old = encoded({**said, "network": short})
    return ((b"payment-response", shown), (b"x-payment-response", old))


def _presented(headers: HeaderPairs) -> PresentedPayment:
    """Return the parsed payment.

    Raises `MalformedPayment`, and `PaymentRefused` for an unknown version.
    """
    envelope = parse(payment_header(headers))
    signed = envelope.authorization
    return PresentedPayment(
        protocol="x402",
        network=_NETWORKS.get(envelope.network, ""),
        amount=signed.value,
        pay_to=signed.to,
        expires_s=float(signed.valid_before),
        digest=credential_digest(signed),
        token=token_of(envelope.accepted),
        parsed=envelope,
    )


def _match(envelope: Envelope, quote: Quote) -> None:
    """Compare everything with our own quote; what the payment echoes must agree with it."""
    network = quote.network
    if envelope.scheme != "exact":
        raise PaymentRefused("unsupported_scheme", "Only the scheme exact is taken.")
    if envelope.network not in _spellings(network, envelope.version):
        raise PaymentRefused("invalid_network", f"This wrapper is paid on {network.id}.")
    if envelope.accepted is not None and not _accepts(envelope.accepted, quote):
        raise PaymentRefused(
            "invalid_payment_requirements", "The accepted requirement is not the one asked for."
        )
    if envelope.resource is not None and not _is_ours(envelope.resource.get("url"), quote):
        raise PaymentRefused("invalid_payment_requirements", "The payment names another resource.")


def _is_ours(url: JsonValue, quote: Quote) -> bool:
    """Return whether it is the wrapper's address, at any public address of ours."""
    if not isinstance(url, str):
        return False
    return url == quote.url or url.partition("://")[2].endswith(quote.path)


def _spellings(network: PaymentNetwork, version: int) -> set[str]:
    """Return the network's spellings: version 2 has only CAIP-2, version 1 clients use either."""
    return {network.id, network.short_name} if version == 1 else {network.id}


def _accepts(accepted: JsonObject, quote: Quote) -> bool:
    asset, pay_to = accepted.get("asset"), accepted.get("payTo")
    return (
        isinstance(asset, str)
        and isinstance(pay_to, str)
        and asset.lower() == quote.network.asset.address
        and pay_to.lower() == quote.pay_to
        and accepted.get("amount") == str(quote.amount)
    )


def _match_authorization(signed: Authorization, quote: Quote) -> None:
    if signed.to != quote.pay_to:
        raise PaymentRefused(
            "invalid_exact_evm_payload_recipient_mismatch", "The payment goes to somebody else."
        )
    if signed.payer == signed.to:
        raise PaymentRefused(
            "invalid_exact_evm_payload_recipient_mismatch", "The payer is the payee."
        )
    if signed.value != quote.amount:
        raise PaymentRefused(
            "invalid_exact_evm_payload_authorization_value_mismatch",
            f"The price is {quote.amount} base units, no more and no less.",
        )


def _match_time(
    signed: Authorization, quote: Quote, needs: ProtocolDependencies, digest: str
) -> None:
    now_s = needs.clock.now().timestamp()
    if signed.valid_after > now_s:
        raise PaymentRefused(
            "invalid_exact_evm_payload_authorization_valid_after",
            "The authorisation is not valid yet.",
        )
    problem = ""
    if signed.valid_before < now_s + needed_s(quote):
        problem = f"The authorisation must be valid for {needed_s(quote)} more seconds."
    if signed.valid_before > now_s + timeout_s(quote) + needs.x402_clock_s:
        problem = f"The authorisation must end within {timeout_s(quote)} seconds."
    if problem:
        raise PaymentRefused(
            "invalid_exact_evm_payload_authorization_valid_before",
            problem,
            digest=digest,
        )


PROTOCOL: Final[PaymentProtocol] = X402()
