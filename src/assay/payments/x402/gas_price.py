"""What gas costs now, what one settlement may offer for it, and what our key has to pay it with."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import Rpc
from assay.common.cache import Cache
from assay.common.clock import Clock
from assay.common.json import JsonValue
from assay.common.numbers import NotANumber, hex_number
from assay.payments.gas import KeyNonces, KeyState
from assay.payments.gas_rules import NO_FEE, FeePerGas, GasRules, fee_per_gas
from assay.payments.model import LedgerEntry

GAS_PRICE_MAX: Final = 10**12
"""Most that a node may say a gas costs, in wei: a thousand gwei, which no network we settle on has
come near. What is offered is taken, so a node that lies could spend our key's money."""

GAS_OF_NOTHING: Final = 21_000
"""Of a transaction that does nothing. Source: Yellow Paper, appendix G."""

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
        self.rules = rules
        self._clock = clock
        self._states: Cache[KeyState | ChainUnavailable] = Cache(
            clock, lambda found: KNOWN_S if isinstance(found, KeyState) else FAILED_S
        )
        self._sent: dict[str, int] = {}
        """The highest nonce that was sent, by network."""

    async def state(self, network: str) -> KeyState:
        found = await self._states.get(network, lambda: self._ask(self._networks[network]))
        if isinstance(found, ChainUnavailable):
            raise found
        return found

    def note_sent(self, network: str, nonce: int) -> None:
        """Note that a node has taken a transaction with that nonce."""
        self._sent[network] = max(nonce, self._sent.get(network, -1))

    async def nonces(self, network: str) -> KeyNonces:
        asked = [("eth_getTransactionCount", (self.address, tag)) for tag in ("latest", "pending")]
        counts = await self._rpc.request_all(self._networks[network], asked)
        try:
            mined, following = (hex_number(one, 64) for one in counts)
        except NotANumber:
            raise ChainUnavailable("The chain gave no number.") from None
        gap = self._sent.get(network, -1) + 1 - max(mined, following)
        return KeyNonces(max(0, following - mined), max(0, gap))

    async def price(self, network: str) -> int:
        """Wei for a unit of gas. Raises `ChainUnavailable`."""
        return (await self.state(network)).gas_price

    def fees(self, entry: LedgerEntry, price: int, at_least: FeePerGas = NO_FEE) -> FeePerGas:
        """What settling an entry offers at a price of gas: never more than it may cost.

        Raises `FeeAboveCap` when that is less than the price, or than `at_least`, which a
        replacement has to offer.
        """
        return _fees(price, self.rules.cap_per_gas(entry.network, entry.amount), at_least)

    def fees_of_nothing(self, network: str, price: int, at_least: FeePerGas) -> FeePerGas:
        """The same for a transaction that does nothing: it may cost what the cheapest call may."""
        return _fees(price, self.rules.cap_wei(network, 0) // GAS_OF_NOTHING, at_least)

    async def _ask(self, network: Network) -> KeyState | ChainUnavailable:
        read_at = self._clock.now()
        asked = (("eth_gasPrice", ()), ("eth_getBalance", (self.address, "latest")))
        try:
            price, balance = await self._rpc.request_all(network, asked)
            return _state(price, balance, read_at)
        except ChainUnavailable as error:
            return error


def _fees(price: int, cap: int, at_least: FeePerGas) -> FeePerGas:
    fee = fee_per_gas(price, cap, at_least)
    if fee.most < max(price, at_least.most) or fee.priority < at_least.priority:
        detail = f"{max(price, at_least.most)} wei per gas are needed, {cap} allowed"
        raise FeeAboveCap("Settling would cost more than it may.", detail=detail)
    return fee


def _state(price: JsonValue, balance: JsonValue, read_at: datetime) -> KeyState:
    try:
        return KeyState(believable(hex_number(price, 64)), hex_number(balance, 256), read_at)
    except NotANumber:
        detail = ascii((price, balance))[:200]
        raise ChainUnavailable("The chain gave no number.", detail=detail) from None


def believable(price: int) -> int:
    """A price of gas. Raises `ChainUnavailable` for one that cannot be."""
    if price > GAS_PRICE_MAX:
        raise ChainUnavailable("The chain's gas price cannot be.", detail=f"{price} wei")
    return price
