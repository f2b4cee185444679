"""What a seller should know of who settles, who is paid, and the fee.

The platform's fee of a sale: kept of what it is paid itself, or paid to it beside the seller.

A payment that goes to the seller's own wallet can carry a second transfer to the platform only
where its protocol has one: MPP's `splits`. Elsewhere nothing is collected (ADR 0021).

What the seller of a priced wrapper should know: sentences beside an answer that refuses nothing.

To add a warning, write a function of the form `Check`, and add it where `app.wrappers` makes
`SaleWarnings`. It is asked whenever a wrapper is made, changed or listed: what it reads from a
chain must be remembered, failures included.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from typing import Final, TypeAlias

from assay.common.numbers import DECIMALS
from assay.payments.gas import GAS_USUAL, WEI, GasRules
from assay.payments.model import DirectFee, PaymentNetwork
from assay.payments.settling_watch import (
    FacilitatorStatus,
    KeyStatus,
    SettlingWatch,
    is_above_cap,
    payable,
)

_SPLITS: Final = "mpp"
"""The protocol whose payer can pay several in one transaction."""


@dataclass(frozen=True, slots=True)
class PlatformWallets:
    """Addresses of those who run the service."""

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


@dataclass(frozen=True, slots=True)
class SaleTerms:
    """What a wrapper with a price sells: one call, for `amount` base units, paid to `pay_to`."""

    operator_id: str
    network: PaymentNetwork
    amount: int
    pay_to: str
    """In lower case."""
    fee_rate: Decimal = Decimal(0)
    """The account's, 0 to 1."""
    work_s: float = 0.0
    """How long the upstream may take."""
    settles_first: bool = False


Check: TypeAlias = Callable[[SaleTerms], Awaitable[str | None]]
"""A warning in one sentence, or None. Raises nothing: what cannot be known now is not warned of."""


class SaleWarnings:
    """Asks every check."""

    def __init__(self, checks: Sequence[Check] = ()) -> None:
        self._checks = checks

    async def of(self, sale: SaleTerms) -> list[str]:
        """The warnings of a sale, in the order of the checks."""
        [found] = await self.of_each([sale])
        return found

    async def of_each(self, sales: Sequence[SaleTerms]) -> list[list[str]]:
        """The same of several sales, in their order.

        Every network is asked first, and all of them at once: afterwards the checks remember.
        """
        one_of_each = {sale.network.id: sale for sale in sales}.values()
        async with asyncio.TaskGroup() as group:
            for sale, check in product(one_of_each, self._checks):
                group.create_task(_asked(check, sale))
        return [
            [said for check in self._checks if (said := await check(sale)) is not None]
            for sale in sales
        ]


async def _asked(check: Check, sale: SaleTerms) -> None:
    await check(sale)


LOW_PRICE: Final = Decimal("0.01")
"""USD: below it gas may cost more than the call, where the coin's worth is not known."""

_UNTIL: Final = "paid calls are answered with 503 until"


def settling_check(unsettled: Callable[[], Collection[str]]) -> Check:
    """Warns of networks on which nobody can settle payments now; by their ids, asked each time."""

    async def check(sale: SaleTerms) -> str | None:
        if sale.network.id not in unsettled():
            return None
        return (
            f"Nobody can settle payments on {sale.network.id} now: paid calls are answered with"
            " 503 until ASSAY_X402_PRIVATE_KEY or ASSAY_X402_FACILITATOR_URL is set."
        )

    return check


def seen_check(
    watch: SettlingWatch, rules: GasRules, unsettled: Callable[[], Collection[str]]
) -> Check:
    """Warns where settling would fail now: by what the service sees of who would do it.

    Says nothing of networks for which nothing is configured.
    """

    async def check(sale: SaleTerms) -> str | None:
        network = sale.network.id
        if network in unsettled():
            return None
        if sale.network.protocol == "x402":
            key = await watch.key(network)
            if key is not None:
                return _key_warning(key, rules.cap_per_gas(network, sale.amount))
            async with asyncio.TaskGroup() as group:
                asked = group.create_task(watch.facilitator())
                answers = await watch.answers(network)
            facilitator = asked.result()
            if facilitator is not None and (
                cost_text := _facilitator_warning(facilitator, network)
            ):
                return cost_text
        else:
            answers = await watch.answers(network)
        return None if answers else _no_node(network)

    return check


def _key_warning(key: KeyStatus, cap_per_gas: int) -> str | None:
    network, state = key.network, key.state
    if state is None:
        return _no_node(network)
    if is_above_cap(state, cap_per_gas):
        return (
            f"Gas on {network} costs more now than this price allows: {_UNTIL} it is cheaper."
            " Set a higher price, or ask the operator of this service for a higher ASSAY_GAS_CAP."
        )
    if payable(state, cap_per_gas):
        return None
    balance = Decimal(state.balance).scaleb(-18)
    return (
        f"The settling key {key.address} holds {balance.normalize():f} coins on {network}, too"
        f" little to pay for one settlement: {_UNTIL} it is sent coins of that network for gas."
    )


def _facilitator_warning(found: FacilitatorStatus, network: str) -> str | None:
    if found.problem:
        return (
            "The facilitator that settles payments for this service does not answer now:"
            f" {_UNTIL} it does. The operator of this service can set another in"
            " ASSAY_X402_FACILITATOR_URL."
        )
    if found.networks is None or network in found.networks:
        return None
    listed = ", ".join(sorted(found.networks)) or "none that this service knows"
    return (
        f"The facilitator that settles payments for this service does not list {network}: paid"
        f" calls may not be settled. Sell on a network that it lists: {listed}."
    )


def _no_node(network: str) -> str:
    return (
        f"No node of {network} answers this service now, so nobody can settle payments there:"
        f" {_UNTIL} one does. The operator of this service can set others in ASSAY_PAYMENT_RPC."
    )


def gas_price_check(watch: SettlingWatch, rules: GasRules) -> Check:
    """Warns of a price that does not pay for what settling costs now, or may not."""

    async def check(sale: SaleTerms) -> str | None:
        network = sale.network
        key = await watch.key(network.id) if network.protocol == "x402" else None
        if key is None or key.state is None:
            return None
        cost = Decimal(GAS_USUAL * (key.state.gas_price + key.state.gas_price // 10)) / WEI
        price, worth = Decimal(sale.amount).scaleb(-DECIMALS), rules.usd.get(network.id)
        if worth is None:
            is_low = price < LOW_PRICE
            cost_text = (
                f"about {cost:.9f} of the network's coin, whose worth is not configured here"
            )
        else:
            is_low = price < cost * worth
            cost_text = f"about {cost * worth:.6f} USD"
        if not is_low:
            return None
        return (
            f"Settling a payment costs {cost_text} in gas now, and the price is {price:f} USD. This"
            f" service bears it {rules.free_per_account} times a day; beyond that your calls"
            " need prepaid gas."
        )

    return check


def payee_check(payees: Collection[str]) -> Check:
    """Warns where the platform is paid; by the lower-case addresses of its wallets."""

    async def check(sale: SaleTerms) -> str | None:
        if sale.pay_to not in payees:
            return None
        fee = f", less its fee of {_percent(sale)}" if sale.fee_rate else ""
        return (
            f"Buyers pay the wallet of this service, {sale.pay_to}, which owes it to you{fee}:"
            " GET /operator/statement says how much."
        )

    return check


def brief_check(least_s: float) -> Check:
    """Warns where a payment over MPP may leave the upstream less than its time: `least_s`."""

    async def check(sale: SaleTerms) -> str | None:
        if sale.network.protocol != "mpp" or sale.settles_first or sale.work_s <= least_s:
            return None
        return (
            f"A payment over MPP may leave your upstream only {least_s:g} of its {sale.work_s:g}"
            " seconds (timeoutMs), for clients sign transactions that are valid briefly. What takes"
            ' longer is answered with 502 and not charged: sell with settle: "before", or set a'
            " timeoutMs that is enough for your upstream and not above that."
        )

    return check


def fee_check(platform: PlatformWallets) -> Check:
    """Says whether the account's fee is paid beside the seller, where he alone is paid else."""

    async def check(sale: SaleTerms) -> str | None:
        if sale.pay_to in platform.payees or not sale.fee_rate:
            return None
        fee = platform.direct_fee(sale.network, sale.amount, sale.pay_to, sale.fee_rate)
        if fee is not None:
            taken = Decimal(fee.amount).scaleb(-DECIMALS)
            return (
                f"Of each payment {taken:f} USD, the fee of {_percent(sale)} of your account, go to"
                f" this service's wallet {fee.payee} in the same transaction; the rest is yours."
            )
        return (
            f"The fee of {_percent(sale)} of your account is not collected for this wrapper:"
            " buyers pay your own wallet directly."
        )

    return check


def _percent(sale: SaleTerms) -> str:
    return f"{(sale.fee_rate * 100).normalize():f} %"
