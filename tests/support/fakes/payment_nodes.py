"""Nodes of a chain where authorisations are used and cancelled, each with a view of its own."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from assay.chains.evm.abi import address_word, word
from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import ContractCall, Returned, Reverted, RpcRefused
from assay.payments.model import LedgerEntry
from assay.payments.x402.eip3009 import CANCELLED, TRANSFERRED, USED, key_topics, state_of

BLOCK_S = 2
BURNT_WEI = 62_432 * 10**9
"""What each mined transaction has cost."""

_COST = {"gasUsed": hex(62_432), "effectiveGasPrice": hex(10**9)}


@dataclass
class Used:
    """How an authorisation was used up: by a transfer to somebody, or cancelled."""

    entry: LedgerEntry
    transaction: str
    block: int
    pay_to: str | None

    @property
    def log(self) -> dict[str, Any]:
        kind = CANCELLED if self.pay_to is None else USED
        topics = [kind, *key_topics(self.entry)]
        where = {"address": self.entry.asset, "transactionHash": self.transaction}
        return {**where, "topics": topics, "data": "0x", "blockNumber": hex(self.block)}

    @property
    def receipt(self) -> dict[str, Any]:
        logs = [self.log]
        if self.pay_to is not None:
            payer = self.log["topics"][1]
            topics = [TRANSFERRED, payer, "0x" + address_word(self.pay_to).hex()]
            amount = "0x" + word(self.entry.amount).hex()
            logs.append({"address": self.entry.asset, "topics": topics, "data": amount})
        where = {"transactionHash": self.transaction, "blockNumber": hex(self.block)}
        return {"status": "0x1", **where, **_COST, "logs": logs}


@dataclass
class Node:
    """What one node says."""

    born_s: int
    """When block 0 was made; one follows every two seconds."""
    head: int = 100_000
    used: list[Used] = field(default_factory=list[Used])
    reverted: set[str] = field(default_factory=set[str])
    counts: tuple[int, int] = (0, 0)
    """Nonces of our key that are mined, and with those that wait."""
    base_fee: int = 10**9
    gas_price: int = 10**9
    taken: list[str] = field(default_factory=list[str])
    """Raw transactions it was sent."""
    refuses: set[str] = field(default_factory=set[str])
    """Methods it will not answer."""
    blocks_max: int = 10_000
    """Of one search of its logs."""
    is_down: bool = False
    asked: list[str] = field(default_factory=list[str])
    """Methods in their order; a batch is many, a Multicall3 is one."""
    tried: int = 0
    """Exchanges with it, answered or not."""

    def use(self, entry: LedgerEntry, pay_to: str | None, block: int | None = None) -> str:
        transaction = f"0x{int(entry.nonce, 16) + 2**200:064x}"
        block = self.head if block is None else block
        self.used.append(Used(entry, transaction, block, pay_to))
        return transaction

    def answer(self, method: str, params: Sequence[Any]) -> Any:  # noqa: PLR0911 - a table
        self.asked.append(method)
        if method in self.refuses or (method == "eth_getLogs" and self._is_wide(params[0])):
            raise RpcRefused("refused", rpc_code=-32005, rpc_message="query timeout exceeded")
        match method:
            case "eth_getBlockByNumber":
                number = self.head if params[0] == "latest" else int(params[0], 16)
                time_s = self.born_s + number * BLOCK_S
                fee = hex(self.base_fee)
                return {"number": hex(number), "timestamp": hex(time_s), "baseFeePerGas": fee}
            case "eth_getLogs":
                return [one.log for one in self.used if _matches(one, params[0])]
            case "eth_getTransactionReceipt":
                if params[0] in self.reverted:
                    where = {"transactionHash": params[0], "blockNumber": hex(self.head)}
                    return {"status": "0x0", **where, **_COST, "logs": []}
                found = (one.receipt for one in self.used if one.transaction == params[0])
                return next(found, None)
            case "eth_getTransactionCount":
                return hex(self.counts[params[1] == "pending"])
            case "eth_getBalance" | "eth_gasPrice" | "eth_blockNumber":
                numbers = {"eth_gasPrice": self.gas_price, "eth_blockNumber": self.head}
                return hex(numbers.get(method, 10**24))
            case _:
                assert method == "eth_sendRawTransaction", method
                self.taken.append(params[0])
                return "0x" + "11" * 32

    def _is_wide(self, asked: dict[str, Any]) -> bool:
        blocks = int(asked["toBlock"], 16) - int(asked["fromBlock"], 16) + 1
        return blocks > self.blocks_max

    def is_used(self, data: bytes, block: int) -> bool:
        found = (one for one in self.used if one.block <= block)
        return any(state_of(one.entry.payer, one.entry.nonce) == data for one in found)


@dataclass
class Nodes:
    """Implements `chains.rpc.Rpc` over nodes by their addresses, the first that answers."""

    by_url: dict[str, Node]

    async def request(self, network: Network, method: str, params: Sequence[Any]) -> Any:
        return self._node(network).answer(method, params)

    async def request_all(
        self, network: Network, requests: Sequence[tuple[str, Sequence[Any]]]
    ) -> list[Any]:
        node = self._node(network)
        return [_or_none(node, *asked) for asked in requests]

    async def call_at(
        self, network: Network, calls: Sequence[ContractCall], block: int
    ) -> list[Returned | Reverted]:
        node = self._node(network)
        node.asked.append("eth_call")
        if block > node.head:
            raise RpcRefused("refused", rpc_code=-32000, rpc_message="header not found")
        return [Returned(word(node.is_used(call.data, block))) for call in calls]

    def _node(self, network: Network) -> Node:
        for url in network.rpc_urls:
            node = self.by_url[url]
            node.tried += 1
            if not node.is_down:
                return node
        raise ChainUnavailable("it cannot be read right now", detail="down")


def _or_none(node: Node, method: str, params: Sequence[Any]) -> Any:
    try:
        return node.answer(method, params)
    except RpcRefused:
        return None


def _matches(one: Used, asked: dict[str, Any]) -> bool:
    inside = int(asked["fromBlock"], 16) <= one.block <= int(asked["toBlock"], 16)
    return inside and all(
        topic in (wanted if isinstance(wanted, list) else [wanted])
        for topic, wanted in zip(one.log["topics"], asked["topics"], strict=True)
    )
