"""Nonces of our key that are spent on nothing, so that what waits behind them is mined.

The payment that signed a transaction may have ended, or may not offer more for it; every later
transaction of the key waits for its nonce all the same. Source: EIP-1559; ADR 0018.
"""

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from assay.chains.evm.transactions import EvmTransaction, TransactionSigner
from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import Rpc
from assay.payments.gas_rules import NO_FEE, FeePerGas
from assay.payments.x402.gas_price import GAS_OF_NOTHING, FeeAboveCap, GasPrices
from assay.payments.x402.offered_fees import replacing

STUCK_S: Final = 10
"""How long the lowest nonce may wait while blocks are made, by their times: longer than a payment
takes to offer more for its own, and than three blocks of any network we settle on."""


@dataclass(frozen=True, slots=True)
class KeyNow:
    """Our key's nonces, and the newest block."""

    used: int
    """Mined."""
    next: int
    """The first behind those that wait."""
    base_fee: int
    time_s: int


@dataclass(slots=True)
class StuckNonces:
    """Those of one key on one network. At most one is spent each `STUCK_S`."""

    rpc: Rpc
    network: Network
    signer: TransactionSigner
    prices: GasPrices
    _lowest: int = -1
    _since_s: int = 0
    _offered: FeePerGas = field(default=NO_FEE)
    """What was offered for it before."""

    async def spend(self, nonce: int, fees: FeePerGas) -> None:
        """Send a transaction that does nothing; one that a node will not have is left."""
        raw, _ = self.signer.sign(self._nothing(nonce, fees))
        with suppress(ChainUnavailable):
            await self.rpc.request(self.network, "eth_sendRawTransaction", (raw,))

    async def free(self, now: KeyNow) -> None:
        """Spend the lowest nonce that is not mined where it has not moved for `STUCK_S`.

        Raises `ChainUnavailable`.
        """
        if now.used >= now.next or now.used != self._lowest:
            self._lowest, self._since_s, self._offered = now.used, now.time_s, NO_FEE
            return
        if now.time_s - self._since_s < STUCK_S:
            return
        price = max(await self.prices.price(self.network.slug), now.base_fee)
        # Each time more than the last: nobody knows what is offered by the one that is stuck.
        try:
            fees = self.prices.fees_of_nothing(self.network.slug, price, replacing(self._offered))
        except FeeAboveCap:
            return  # until gas costs less
        self._since_s, self._offered = now.time_s, fees
        await self.spend(now.used, fees)

    def _nothing(self, nonce: int, fees: FeePerGas) -> EvmTransaction:
        to, chain_id = self.signer.address, self.network.chain_id
        return EvmTransaction(chain_id, nonce, fees.priority, fees.most, GAS_OF_NOTHING, to, b"")
