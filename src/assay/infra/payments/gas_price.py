"""What gas costs now, what one settlement may offer for it, and what our key has to pay it with."""

from collections.abc import Mapping
from typing import Final

from assay.chains.model import ChainUnavailable, Network
from assay.chains.ports import Rpc
from assay.kit.cache import Cache
from assay.kit.clock import Clock
from assay.kit.json import JsonValue
from assay.kit.numbers import NotANumber, hex_number
from assay.payments.gas import KeyState
from assay.payments.gas_rules import NO_FEE, FeePerGas, GasRules, fee_per_gas
from assay.payments.model import Entry

GAS_PRICE_MAX: Final = 10**12
"""Most that a node may say a gas costs, in wei: a thousand gwei, which no network we settle on has
come near. What is offered is taken, so a node that lies could spend our key's money."""

KNOWN_S: Final = 5.0
"""How long an answer is believed."""
FAILED_S: Final = 1.0
"""How long a failure is: nobody who waits for a node makes it busier."""


class FeeAboveCap(ChainUnavailable):
    """A replacement would have to offer more than its settlement may cost."""


class GasPrices:
    """Implements `payments.gas.SettlingKey`: one exchange every few seconds while payments come."""

    def __init__(
        self,
        rpc: Rpc,
        networks: Mapping[str, Network],
        address: str,
        rules: GasRules,
        clock: Clock,
    ) -> None:
        self.address = address
        self._rpc = rpc
        self._networks = networks
        self._rules = rules
        self._states: Cache[KeyState | ChainUnavailable] = Cache(
            clock, lambda found: KNOWN_S if isinstance(found, KeyState) else FAILED_S
        )

    async def state(self, network: str) -> KeyState:
        found = await self._states.get(network, lambda: self._ask(self._networks[network]))
        if isinstance(found, ChainUnavailable):
            raise found
        return found

    async def price(self, network: str) -> int:
        """Wei for a unit of gas. Raises `ChainUnavailable`."""
        return (await self.state(network)).gas_price

    def fees(self, entry: Entry, price: int, at_least: FeePerGas = NO_FEE) -> FeePerGas:
        """What settling an entry offers at a price of gas: never more than it may cost.

        Raises `FeeAboveCap` when that is less than `at_least`, which a replacement has to offer.
        """
        cap = self._rules.cap_per_gas(entry.network, entry.amount)
        fee = fee_per_gas(price, cap, at_least)
        if fee.most < at_least.most or fee.priority < at_least.priority:
            detail = f"{at_least.most} wei per gas are needed, {cap} allowed"
            raise FeeAboveCap("Settling would cost more than it may.", detail=detail)
        return fee

    async def _ask(self, network: Network) -> KeyState | ChainUnavailable:
        asked = (("eth_gasPrice", ()), ("eth_getBalance", (self.address, "latest")))
        try:
            price, balance = await self._rpc.request_all(network, asked)
            return _state(price, balance)
        except ChainUnavailable as error:
            return error


def _state(price: JsonValue, balance: JsonValue) -> KeyState:
    try:
        return KeyState(believable(hex_number(price, 64)), hex_number(balance, 256))
    except NotANumber:
        detail = ascii((price, balance))[:200]
        raise ChainUnavailable("The chain gave no number.", detail=detail) from None


def believable(price: int) -> int:
    """A price of gas. Raises `ChainUnavailable` for one that cannot be."""
    if price > GAS_PRICE_MAX:
        raise ChainUnavailable("The chain's gas price cannot be.", detail=f"{price} wei")
    return price
