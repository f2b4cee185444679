"""MPP: the `Payment` HTTP authentication scheme, intent `charge`, method `tempo`.

The protocol's own library makes challenges and reads credentials. This module only finds them in a
request. Source: draft-httpauth-payment-01; mpp.md#challenge-and-credential.
"""

from collections.abc import Sequence
from typing import ClassVar, Final

from assay.common.http_heads import HeaderPairs
from assay.payments.model import (
    LedgerEntry,
    Payment,
    PaymentRefused,
    PaymentRequirements,
    PaymentSighting,
    ProtocolName,
    Quote,
)
from assay.payments.outcomes import PaymentOutcome
from assay.payments.ports import (
    Balances,
    Note,
    PaidRequest,
    PaymentProtocol,
    PresentedPayment,
    ProtocolDependencies,
)

HEADER_BYTES_MAX = 64 * 1024
"""Largest credential that is read. Source: mpp.md#credential."""

_SCHEME = b"payment "


class Mpp:
    """Reads one credential for each request, from `Authorization`."""

    name: ClassVar[ProtocolName] = "mpp"
    binds_body: ClassVar[bool] = True
    spends_gas: ClassVar[bool] = False  # the payer's own transaction is sent
    receipts_refusals: ClassVar[bool] = False  # only a 2xx has a receipt (draft, "Receipt")
    publishes: ClassVar[bool] = False  # the challenge it echoes stays between client and server

    async def demand(
        self, quote: Quote, needs: ProtocolDependencies, reason: str, transaction: str = ""
    ) -> PaymentRequirements:
        del transaction
        return await needs.charges.challenge(quote, reason)

    def is_attached(self, headers: HeaderPairs) -> bool:
        return bool(_credentials(headers))

    async def present(
        self, headers: HeaderPairs, needs: ProtocolDependencies
    ) -> PresentedPayment | None:
        try:
            return await needs.charges.present(_credential(headers))
        except PaymentRefused:
            return None

    def needed_s(self, quote: Quote, needs: ProtocolDependencies) -> float:
        return needs.charges.challenge_s(quote)[1]

    def is_good(self, entry: LedgerEntry, quote: Quote, needs: ProtocolDependencies) -> bool:
        return needs.charges.is_good(entry, quote)

    def quote_life_s(self, quote: Quote, needs: ProtocolDependencies) -> float:
        return needs.charges.challenge_s(quote)[0]

    async def read(
        self, request: PaidRequest, quote: Quote, needs: ProtocolDependencies
    ) -> Payment:
        presented = request.presented
        if presented is None:
            presented = await needs.charges.present(_credential(request.headers))
        return await needs.charges.read(presented, quote)

    async def verify(
        self, payment: Payment, needs: ProtocolDependencies, sighting: PaymentSighting
    ) -> Balances | None:
        # Its payer can send it at any time, but only for this challenge.
        sighting.was_unused = sighting.may_have_moved = True
        return await needs.charges.verify(payment)

    def work_s(self, payment: Payment, needs: ProtocolDependencies) -> float:
        return needs.charges.work_s(payment)

    async def settle(
        self, entry: LedgerEntry, note: Note, needs: ProtocolDependencies
    ) -> PaymentOutcome:
        return await needs.charges.settle(entry, note)

    async def outcome(self, entry: LedgerEntry, needs: ProtocolDependencies) -> PaymentOutcome:
        return await needs.charges.outcome(entry)

    async def outcomes(
        self,
        entries: Sequence[LedgerEntry],
        needs: ProtocolDependencies,
        *,
        every_node: bool = False,
    ) -> Sequence[PaymentOutcome]:
        return await needs.charges.outcomes(entries, every_node=every_node)

    async def resend(
        self, entry: LedgerEntry, note: Note, needs: ProtocolDependencies
    ) -> PaymentOutcome:
        return await needs.charges.resend(entry, note)

    def receipt(self, entry: LedgerEntry, needs: ProtocolDependencies) -> HeaderPairs:
        return ((b"payment-receipt", needs.charges.receipt(entry)),)

    def pending(self, entry: LedgerEntry) -> HeaderPairs:
        del entry
        return ()


def _credential(headers: HeaderPairs) -> str:
    """Return the one credential of a request. Raises `PaymentRefused`."""
    found = _credentials(headers)
    if len(found) != 1:
        raise PaymentRefused("malformed-credential", "One Payment credential is taken.")
    if len(found[0]) > HEADER_BYTES_MAX or not found[0].isascii():
        raise PaymentRefused("malformed-credential", "The Payment credential is malformed.")
    return found[0].decode("ascii")


def _credentials(headers: HeaderPairs) -> list[bytes]:
    return [
        value
        for name, value in headers
        if name == b"authorization" and value[: len(_SCHEME)].lower() == _SCHEME
    ]


PROTOCOL: Final[PaymentProtocol] = Mpp()
