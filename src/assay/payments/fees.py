"""The platform's fee of a sale: kept of what it is paid itself, or paid to it beside the seller.

A payment that goes to the seller's own wallet can carry a second transfer to the platform only
where its protocol has one: MPP's `splits`. Elsewhere nothing is collected (ADR 0021).
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from assay.payments.model import DirectFee, PaymentNetwork

_SPLITS: Final = "mpp"
"""The protocol whose payer can pay several in one transaction."""


@dataclass(frozen=True, slots=True)
class PlatformWallets:
    """Addresses of whoever runs the service."""

    payout: str | None
    """Paid where a wrapper names nobody."""
    payees: frozenset[str] = frozenset()
    """Every one that was or is paid, in lower case: what they receive is owed to sellers."""
    fee_payee: str | None = None
    """Paid the fee beside a seller, in lower case; None where fees are not collected so."""

    def direct_fee(
        self, network: PaymentNetwork, amount: int, pay_to: str, rate: Decimal
    ) -> DirectFee | None:
        """What the payer of `amount` to `pay_to` pays the platform of it: `rate`, rounded down.

        None where the platform is the payee, and where it would be nothing or everything.
        """
        payee, is_ours = self.fee_payee, pay_to == self.fee_payee or pay_to in self.payees
        if network.protocol != _SPLITS or payee is None or is_ours or not rate:
            return None
        top, bottom = rate.as_integer_ratio()
        fee = amount * top // bottom
        return DirectFee(payee, fee) if 0 < fee < amount else None
