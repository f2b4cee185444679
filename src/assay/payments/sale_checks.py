"""What a seller should know of who settles a wrapper's payments, who is paid, and the fee."""

from collections.abc import Callable, Collection

from assay.payments.warnings import Check, Sale


def settling_check(unsettled: Callable[[], Collection[str]]) -> Check:
    """Warns of networks on which nobody can settle payments now; by their ids, asked each time."""

    async def check(sale: Sale) -> str | None:
        if sale.network.id not in unsettled():
            return None
        return (
            f"Nobody can settle payments on {sale.network.id} now: paid calls are answered with"
            " 503 until ASSAY_X402_PRIVATE_KEY or ASSAY_X402_FACILITATOR_URL is set."
        )

    return check


def payee_check(payees: Collection[str]) -> Check:
    """Warns where the platform is paid; by the lower-case addresses of its wallets."""

    async def check(sale: Sale) -> str | None:
        if sale.pay_to not in payees:
            return None
        fee = f", less its fee of {_percent(sale)}" if sale.fee_rate else ""
        return (
            f"Buyers pay the wallet of this service, {sale.pay_to}, which owes it to you{fee}:"
            " GET /operator/statement says how much."
        )

    return check


def fee_check(payees: Collection[str]) -> Check:
    """Says where the account's fee is not collected: nothing passes through the platform."""

    async def check(sale: Sale) -> str | None:
        if sale.pay_to in payees or not sale.fee_rate:
            return None
        return (
            f"The fee of {_percent(sale)} of your account is not collected for this wrapper:"
            " buyers pay your own wallet directly."
        )

    return check


def _percent(sale: Sale) -> str:
    return f"{(sale.fee_rate * 100).normalize():f} %"
