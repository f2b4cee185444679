"""What a settlement may offer for gas and may cost: arithmetic over what the operator decided."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Final, NamedTuple

from assay.common.money import DECIMALS

GAS_MAX: Final = 200_000
"""Most gas a transfer may burn; Circle's takes less than half. Source: facts, payments 6, row 27.
Every bound on what a settlement costs is for so much."""

USD: Final = "usd"
WEI: Final = 10**18
NANO: Final = 10**9
"""Balances are counted in billionths of their currency: of a coin, gwei."""

GAS_USUAL: Final = 65_000
"""What a transfer of Circle's dollar takes. Source: findings/money.md, D1: 62,432."""


class FeePerGas(NamedTuple):
    """Wei per gas: what is offered beyond the base fee, and the most in all (EIP-1559)."""

    priority: int
    most: int


NO_FEE: Final = FeePerGas(0, 0)


def fee_per_gas(price: int, cap: int, at_least: FeePerGas = NO_FEE) -> FeePerGas:
    """Twice the price of now, which outlasts six full blocks (EIP-1559), and never above `cap`.

    `at_least` is what a replacement has to offer; beyond the cap it is not reached.
    """
    tip = max(1, min(price, price // 10 + 1))
    most = min(max(price * 2 + tip, at_least.most), cap)
    return FeePerGas(min(max(tip, at_least.priority), most), most)


@dataclass(frozen=True, slots=True)
class GasRules:
    """What the operator of the service has decided."""

    free_per_account: int
    """Settlements a UTC day, of each account."""
    free_shared: int
    """The same of all self-registered accounts together."""
    usd: Mapping[str, Decimal]
    """What a coin is worth, by network; a network that is not there is counted in its coin."""
    cap_of_price: Decimal
    """The most that a settlement may cost: this part of its price, where the coin's worth is known,
    and never less than `cap_coins`."""
    cap_coins: Mapping[str, Decimal]
    """In coins, by network."""

    def cap_wei(self, network: str, amount: int) -> int:
        """The most that settling `amount` base units may cost, in wei."""
        cap = self.cap_coins[network]
        if worth := self.usd.get(network):
            price = Decimal(amount).scaleb(-DECIMALS)
            cap = max(cap, price * self.cap_of_price / worth)
        return int(cap * WEI)

    def cap_per_gas(self, network: str, amount: int) -> int:
        """The same for one unit of gas."""
        return self.cap_wei(network, amount) // GAS_MAX

    def currency(self, network: str) -> str:
        """What gas of a network is counted in."""
        return USD if network in self.usd else network

    def nano(self, network: str, wei: int) -> int:
        """Wei in billionths of the currency, rounded up."""
        cost = Decimal(wei) * self.usd.get(network, Decimal(1)) * NANO / WEI
        return int(cost.to_integral_value(ROUND_CEILING))
