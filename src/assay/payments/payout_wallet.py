"""The wallet that sends payouts and refunds: plain ERC-20 transfers, with one nonce each.

A node may lie, drop a transaction or say that it failed. So every node of a network is asked by
itself. If there are two nodes, no transfer is paid by the word of one. No transfer has failed
before all nodes show it. A transfer that was signed once is never signed with another nonce. It
also reads receipts of many payments in one exchange (`payments.finality.Receipts`). Source: ERC-20;
EIP-1559; ADR 0021.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeVar

from assay.chains.evm.abi import AbiReader, BadAnswer, address_word, word
from assay.chains.evm.signing import EvmTransaction, TransactionSigner
from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import ContractCall, Returned, Rpc, RpcRefused
from assay.common.addresses import keccak256
from assay.common.clock import Clock
from assay.common.errors import InvalidRequest
from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.common.numbers import NotANumber, hex_number
from assay.payments.model import PaymentsUnavailable, WatchedPayment
from assay.payments.mpp import tempo
from assay.payments.statement import Draft, SignedTransfer, Transfer, TransferSighting
from assay.payments.x402 import eip3009
from assay.payments.x402.eip3009 import balance_of
from assay.payments.x402.transaction_sender import quantity


class ChainReceipts:
    """Receipts as the endpoints of `chains` show them; implements `payments.finality.Receipts`."""

    def __init__(self, rpc: Rpc, chains: Mapping[str, Network]) -> None:
        self._rpc = rpc
        self._chains = chains

    async def depths(self, network: str, watched: Sequence[WatchedPayment]) -> Sequence[int]:
        return await self._depths(self._chains[network], watched)

    async def agreed_depths(self, network: str, watched: Sequence[WatchedPayment]) -> Sequence[int]:
        chain, depths_of_nodes = self._chains[network], list[Sequence[int]]()
        urls, fault = dict.fromkeys(chain.rpc_urls), ChainUnavailable("No endpoint is configured.")
        for url in urls:
            try:
                depths_of_nodes.append(await self._depths(replace(chain, rpc_urls=(url,)), watched))
            except ChainUnavailable as error:
                fault = error
        if len(depths_of_nodes) < min(2, len(urls)):
            raise fault
        return [min(depths) for depths in zip(*depths_of_nodes, strict=True)]

    async def _depths(self, chain: Network, watched: Sequence[WatchedPayment]) -> Sequence[int]:
        named = [one for one in watched if one.transaction]
        if not named:
            return [0] * len(watched)
        asked = [("eth_getTransactionReceipt", (one.transaction,)) for one in named]
        # The height comes last, so that no receipt is of a block above it.
        *receipts, head = await self._rpc.request_all(chain, [*asked, ("eth_blockNumber", ())])
        height = _number_or_none(head)
        if height is None:
            raise ChainUnavailable(f"{chain.slug} cannot be read right now", detail="no height")
        depths = {
            one.id: _depth(receipt, one, height)
            for one, receipt in zip(named, receipts, strict=True)
        }
        return [depths.get(one.id, 0) for one in watched]


def _depth(receipt: JsonValue, one: WatchedPayment, height: int) -> int:
    reads = eip3009 if one.protocol == "x402" else tempo
    return _depth_of(receipt, height) if reads.pays(receipt, one) else 0


def _depth_of(receipt: JsonValue, height: int) -> int:
    """Return the depth of a transaction, its own block included; 0 if it is not mined."""
    block = _number_or_none(receipt.get("blockNumber")) if is_object(receipt) else None
    return 0 if block is None else max(height - block + 1, 0)


def _number_or_none(value: JsonValue) -> int | None:
    try:
        return hex_number(value, 64)
    except NotANumber:
        return None


GAS_MIN: Final = 100_000
GAS_MAX: Final = 500_000
"""Most gas that a transfer may burn: with less, as a node may say, it would fail. On Tempo the
first payment to an account creates its storage."""

FEE_MAX_WEI: Final = 10**16
"""Most that one transfer may cost, in the chain's smallest unit: a hundredth of an ether, or a cent
of Tempo's dollars. Nodes say what gas costs, and may lie."""

RAISE: Final = (9, 8)
"""What a transaction must offer to replace another one: an eighth more. Source: geth's tenth,
erigon's and reth's."""

STUCK_S: Final = 60.0
LOST_S: Final = 600.0
"""Seconds for which something else must have used a nonce before its transfer counts as failed:
nodes behind one address may know a nonce before its receipt."""

_TRANSFER: Final = keccak256(b"transfer(address,uint256)")[:4]
_TRANSFERRED: Final = "0x" + keccak256(b"Transfer(address,address,uint256)").hex()
_REVERTED: Final = "0x0"
_ETHER: Final = "eip155:"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _View:
    """One node's view: a receipt or None for each transaction, and its newest block."""

    receipts: Sequence[JsonValue]
    height: int


class PayoutWallet:
    """Implements `payments.statement.TransferChain`."""

    def __init__(
        self,
        rpc: Rpc,
        networks: Mapping[str, Network],
        signer: TransactionSigner | None,
        clock: Clock,
        fee_max_wei: int = FEE_MAX_WEI,
    ) -> None:
        self._rpc = rpc
        self._fee_max_wei = fee_max_wei
        self._networks = networks
        self._signer = signer
        self._clock = clock
        self.wallet = None if signer is None else signer.address

    def calldata(self, transfer: Transfer) -> bytes:
        """Return the call of `transfer`. Source: ERC-20."""
        return _TRANSFER + address_word(transfer.recipient) + word(transfer.amount)

    async def draft(self, transfer: Transfer) -> Draft:
        signer, network = self._signer, self._networks[transfer.network]
        if signer is None:
            raise PaymentsUnavailable("This service has no wallet to pay from.", detail="no key")
        try:
            await self._require_balance(transfer)
            gas = await self._gas(transfer)
            fee, tip = await self._price(network, gas)
            await self._require_gas(transfer, network, fee * gas)
            counts = await self._counts(network, signer.address)
        except ChainUnavailable as error:
            raise _unavailable(error) from error
        known = [count for count in counts if count is not None]
        if not known:
            raise PaymentsUnavailable("No node says how many transactions the wallet has sent.")

        def sign(nonce: int) -> SignedTransfer:
            return self._signed(signer, transfer, nonce, gas, (fee, tip))

        # The lowest: a node that says too much would leave a gap, and nothing behind it is mined.
        return Draft(min(known), sign)

    async def send(self, transfer: Transfer, signed: SignedTransfer) -> str:
        network = self._networks[transfer.network]
        method = "eth_sendRawTransaction"
        answers = await self._of_each(
            network, lambda node: self._rpc.request(node, method, (signed.raw,))
        )
        problems = [one for one in answers if isinstance(one, ChainUnavailable)]
        return "; ".join(one.detail or one.message for one in problems)

    async def dearer(self, transfer: Transfer, signed: SignedTransfer) -> SignedTransfer | None:
        signer, nonce = self._signer, transfer.nonce
        if signer is None or nonce is None or signer.address != transfer.sender:
            return None
        if (self._clock.now() - transfer.updated_at).total_seconds() < STUCK_S:
            return None
        try:
            gas = await self._gas(transfer)
            fee, tip = await self._price(self._networks[transfer.network], gas)
        except (ChainUnavailable, PaymentsUnavailable, InvalidRequest):
            return None
        more, than = RAISE
        if fee * than < signed.fee * more:
            return None
        tip = max(tip, -(-signed.tip * more // than))
        return self._signed(signer, transfer, nonce, gas, (max(fee, tip), tip))

    async def found(self, transfer: Transfer, transactions: Sequence[str]) -> TransferSighting:
        network = self._networks[transfer.network]
        views = await self._of_each(network, partial(self._view, transactions))
        reported = [view for view in views if not isinstance(view, ChainUnavailable)]
        if len(reported) < min(2, len(views)):
            return TransferSighting()
        is_unanimous = len(reported) == len(views)
        for place, transaction in enumerate(transactions):
            receipts = [view.receipts[place] for view in reported]
            depth = min(_depth_of(view.receipts[place], view.height) for view in reported)
            if depth and all(transfers(one, transfer) for one in receipts):
                return TransferSighting(paid=transaction, depth=depth)
            if depth and is_unanimous and all(map(_is_reverted, receipts)):
                return TransferSighting(reverted=transaction, depth=depth)
        if transfer.nonce is None or not is_unanimous or any(any(one.receipts) for one in reported):
            return TransferSighting()
        counts = await self._counts(network, transfer.sender)
        known = [count for count in counts if count is not None]
        if len(known) < len(counts):
            return TransferSighting()
        is_late = (self._clock.now() - transfer.updated_at).total_seconds() > LOST_S
        is_lost = is_late and min(known) > transfer.nonce
        return TransferSighting(is_lost=is_lost, is_gone=max(known) <= transfer.nonce)

    async def _view(self, transactions: Sequence[str], node: Network) -> _View:
        """Return one node's view of transactions. Raises `ChainUnavailable`."""
        method = "eth_getTransactionReceipt"
        receipts = [await self._rpc.request(node, method, (one,)) for one in transactions]
        # The height comes last, so that no receipt is of a block above it.
        return _View(receipts, quantity(await self._rpc.request(node, "eth_blockNumber", ())))

    async def _counts(self, network: Network, wallet: str) -> Sequence[int | None]:
        """Return how many mined transactions of the wallet each node knows, or None."""
        method = "eth_getTransactionCount"
        answers = await self._of_each(
            network, lambda node: self._rpc.request(node, method, (wallet, "latest"))
        )
        return [
            None if isinstance(one, ChainUnavailable) else _number_or_none(one) for one in answers
        ]

    async def _require_gas(self, transfer: Transfer, network: Network, cost: int) -> None:
        """Require gas, if it is paid in a coin of its own. On Tempo it is paid in the asset."""
        if not network.slug.startswith(_ETHER):
            return
        params = (transfer.sender, "latest")
        answer = await self._rpc.request(network, "eth_getBalance", params)
        try:
            balance = hex_number(answer, 256)
        except NotANumber:
            balance = 0
        if balance < cost:
            message = f"The payout wallet {transfer.sender} has too little for gas"
            raise InvalidRequest(f"{message} on {transfer.network}: {balance} of {cost} wei.")

    async def _require_balance(self, transfer: Transfer) -> None:
        call = ContractCall(transfer.asset, balance_of(transfer.sender))
        (found,) = await self._rpc.call_newest(self._networks[transfer.network], (call,))
        try:
            balance = AbiReader(found.data).number(0) if isinstance(found, Returned) else 0
        except BadAnswer:
            balance = 0
        if balance < transfer.amount:
            short = (
                f"The payout wallet {transfer.sender} has {balance} base units of {transfer.asset}"
            )
            raise InvalidRequest(f"{short} on {transfer.network}: fewer than {transfer.amount}.")

    async def _gas(self, transfer: Transfer) -> int:
        """Return the gas that it burns, and a quarter more.

        Raises `InvalidRequest` if it would revert.
        """
        asked: JsonObject = {
            "from": transfer.sender,
            "to": transfer.asset,
            "data": "0x" + self.calldata(transfer).hex(),
        }
        network = self._networks[transfer.network]
        try:
            gas = quantity(await self._rpc.request(network, "eth_estimateGas", (asked,)))
        except RpcRefused as error:
            message = f"The asset's contract refuses this transfer: {error.rpc_message[:200]}"
            raise InvalidRequest(message) from error
        return min(max(gas * 5 // 4, GAS_MIN), GAS_MAX)

    async def _price(self, network: Network, gas: int) -> tuple[int, int]:
        """Return the highest fee per gas and its tip; twice the present price outlasts six blocks.

        Raises `PaymentsUnavailable` if it would cost more than a transfer may.
        """
        price = quantity(await self._rpc.request(network, "eth_gasPrice", ()))
        tip = max(1, price // 10)
        fee = 2 * price + tip
        if fee * gas > self._fee_max_wei:
            detail = f"{fee} wei a gas"
            raise PaymentsUnavailable("Gas costs too much for a transfer now.", detail=detail)
        return fee, tip

    def _signed(
        self,
        signer: TransactionSigner,
        transfer: Transfer,
        nonce: int,
        gas: int,
        prices: tuple[int, int],
    ) -> SignedTransfer:
        fee, tip = prices
        chain_id, data = self._networks[transfer.network].chain_id, self.calldata(transfer)
        made = EvmTransaction(chain_id, nonce, tip, fee, gas, transfer.asset, data)
        raw, transaction = signer.sign(made)
        return SignedTransfer(transaction, raw, fee, tip)

    async def _of_each(
        self, network: Network, ask: Callable[[Network], Awaitable[T]]
    ) -> list[T | ChainUnavailable]:
        """Return what each node answers by itself, in order, or why it does not."""

        async def answer(url: str) -> T | ChainUnavailable:
            try:
                return await ask(replace(network, rpc_urls=(url,)))
            except ChainUnavailable as error:
                return error

        async with asyncio.TaskGroup() as group:
            urls = dict.fromkeys(network.rpc_urls)
            tasks = [group.create_task(answer(url)) for url in urls]
        return [task.result() for task in tasks]


def transfers(receipt: JsonValue, transfer: Transfer) -> bool:
    """Return whether the transaction moved exactly this amount of the asset between the two."""
    if not is_object(receipt) or receipt.get("status") != "0x1":
        return False
    parties = (address_word(transfer.sender).hex(), address_word(transfer.recipient).hex())
    wanted = [_TRANSFERRED, *("0x" + one for one in parties)]
    logs = receipt.get("logs")
    return any(
        is_object(log)
        and str(log.get("address")).lower() == transfer.asset
        and _topics(log.get("topics")) == wanted
        and _number(log.get("data")) == transfer.amount
        for log in (logs if is_array(logs) else ())
    )


def _is_reverted(receipt: JsonValue) -> bool:
    return is_object(receipt) and receipt.get("status") == _REVERTED


def _topics(value: JsonValue) -> list[str]:
    return [str(topic).lower() for topic in value] if is_array(value) else []


def _number(value: JsonValue) -> int:
    try:
        return hex_number(value, 256)
    except NotANumber:
        return -1


def _unavailable(error: ChainUnavailable) -> PaymentsUnavailable:
    detail = error.detail or error.message
    return PaymentsUnavailable("The chain cannot be asked now.", detail=detail, retry_after_s=5)
