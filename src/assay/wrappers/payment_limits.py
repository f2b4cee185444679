"""What payments of wrapper calls are counted against."""

from typing import Final


class PaymentLimits:
    """What the payment of a call is counted against; here nothing. Every method may be `TooMany`.

    A payment is counted by how far it is proven, so that payments which anybody can make up use up
    nothing of payers at the same address.
    """

    async def refused(self) -> None:
        """Count a payment that is not its payer's, or not for this call."""

    async def signed(self, payer: str) -> None:
        """Count a payment that its payer has signed; they may not have the money."""
        del payer

    async def verified(self, payer: str) -> None:
        """Count a payment that is claimed for this call and holds."""
        del payer


NO_PAYMENT_LIMITS: Final = PaymentLimits()
