"""The payment networks, as they are configured, as the RPC layer knows them, and what they show.

That is what wallets hold, and what a payment moved.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from assay.app.naming import naming
from assay.chains.evm.abi import address_word
from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import Rpc
from assay.common.json import JsonValue, is_array, is_object
from assay.common.numbers import NotANumber, hex_number
from assay.payments.model import PaymentNetwork
from assay.payments.networks import payment_networks
from assay.payments.x402.eip3009 import balance_of, gas_spent
from assay.payments.x402.transaction_sender import GAS_MAX
from assay.settings import Settings

NO_REGISTRY = "0x" + "00" * 20


def payment_rows(settings: Settings) -> Mapping[str, PaymentNetwork]:
    """The payment networks with the configured endpoints; raises `ValueError`."""
    with naming("ASSAY_PAYMENT_RPC or ASSAY_CONFIRMATIONS"):
        return payment_networks(settings.payment_rpc, settings.confirmations)


def payment_chains(networks: Mapping[str, PaymentNetwork]) -> Mapping[str, Network]:
    """The payment networks as the RPC layer knows chains, by their ids."""
    return {network.id: chain_of(network) for network in networks.values()}


def chain_of(network: PaymentNetwork) -> Network:
    """A payment network as the RPC layer knows chains."""
    return Network(
        slug=network.id,
        name=network.id,
        chain_id=network.chain_id,
        testnet=network.testnet,
        identity_registry=NO_REGISTRY,
        reputation_registry=NO_REGISTRY,
        rpc_urls=network.rpc_urls,
        source=network.source,
        multicall3=network.protocol == "x402",
    )


TRANSFERRED = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
"""keccak256 of `Transfer(address,address,uint256)`. Source: ERC-20."""


@dataclass(frozen=True, slots=True)
class TransactionTransfer:
    """What a transaction moved, in base units of the dollar, and what its sender paid, in wei."""

    amount: int
    block: int
    fee_wei: int


class Wallets:
    """Asks the chain of one payment network. Every method raises `ChainUnavailable`."""

    def __init__(self, rpc: Rpc, network: PaymentNetwork) -> None:
        self._rpc = rpc
        self._asset = network.asset.address
        self._chain: Network = payment_chains({network.id: network})[network.id]

    async def gas_wei(self, owner: str) -> int:
        """What a wallet has of the network's own coin."""
        return _number(await self._ask("eth_getBalance", owner, "latest"))

    async def dollars(self, owner: str) -> int:
        """What a wallet has of the network's dollar, in base units."""
        call: JsonValue = {"to": self._asset, "data": "0x" + balance_of(owner).hex()}
        return _number(await self._ask("eth_call", call, "latest"))

    async def settlement_wei(self) -> int:
        """What nodes want to see in the settling wallet for one settlement, at the price of now."""
        price = _number(await self._ask("eth_gasPrice"))
        return GAS_MAX * (2 * price + price // 10 + 1)

    async def moved(self, transaction: str, payer: str, pay_to: str) -> TransactionTransfer | None:
        """What a transaction moved from a payer to a payee; None: it failed, or is not there."""
        receipt = await self._ask("eth_getTransactionReceipt", transaction)
        if not is_object(receipt) or receipt.get("status") != "0x1":
            return None
        topics = [TRANSFERRED, *("0x" + address_word(one).hex() for one in (payer, pay_to))]
        fee_wei = gas_spent(receipt)
        if fee_wei is None:
            raise ChainUnavailable("The chain does not say what the transaction has cost.")
        return TransactionTransfer(
            amount=sum(self._amounts(receipt.get("logs"), topics)),
            block=_number(receipt.get("blockNumber")),
            fee_wei=fee_wei,
        )

    def _amounts(self, logs: JsonValue, topics: list[str]) -> Iterator[int]:
        for log in logs if is_array(logs) else ():
            if not is_object(log) or str(log.get("address")).lower() != self._asset:
                continue
            found = log.get("topics")
            if is_array(found) and [str(topic).lower() for topic in found] == topics:
                yield _number(log.get("data"))

    async def _ask(self, method: str, *params: JsonValue) -> JsonValue:
        return await self._rpc.request(self._chain, method, params)


def _number(value: JsonValue) -> int:
    try:
        return hex_number(value, 256)
    except NotANumber:
        raise ChainUnavailable("The chain gave no number.", detail=ascii(value)[:100]) from None
