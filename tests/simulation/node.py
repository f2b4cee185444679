"""A node over the model of a chain: honest, or wrong in the ways that were met.

It may be some blocks behind, have no receipt yet, tell a nonce of another time or a price of
nothing, lose a transaction that it took, or take one and say that it has not.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from assay.chains.rpc import Returned, Reverted
from assay.common.json import JsonObject, JsonValue
from tests.simulation.chain import (
    ASSET,
    STATE,
    TRANSFER,
    Chain,
    Pending,
    Refused,
    State,
    read_transfer,
)


class Node:
    """Answers JSON-RPC methods; one that it does not have, and what it will not do, is `Refused`.

    `lies` says whether the next answer to a method is a wrong one, `behind` how many blocks the
    next one does not know of yet; `arrived` is told of every transaction that reaches it.
    """

    def __init__(self, chain: Chain, read: Callable[[str], Pending], random: Random) -> None:
        self.chain = chain
        self._read = read
        self._random = random
        self.lies: Callable[[str], bool] = lambda _method: False
        self.behind: Callable[[], int] = lambda: 0
        self.url = ""
        """Which of the network's nodes answers now."""
        self.honest_url = ""
        """The one that does not contradict itself at the moment: its calls and logs are of the
        height of its receipts."""
        self.blind_url = "none"
        """The one that shows no transfer: no receipt, no log, and nothing is used."""
        self.arrived: Callable[[str], None] = lambda _raw: None

    def call(self, calls: Sequence[bytes]) -> list[Returned | Reverted]:
        """Contract calls, all of them at one block."""
        state = self.chain.state_behind(self._behind_in_calls())
        return [self._one_call(data, state) for data in calls]

    def answer(self, method: str, params: Sequence[JsonValue]) -> JsonValue:
        answer = getattr(self, f"_{method}", None)
        if answer is None:
            raise Refused(f"the method {method} does not exist")
        return answer(*params)

    def call_at(self, calls: Sequence[bytes], block: int) -> list[Returned | Reverted]:
        """At one block, where it has seen that."""
        behind = self.chain.head.number - block
        if behind < self._behind_in_calls():
            raise Refused("header not found")
        state = self.chain.state_behind(behind)
        return [self._one_call(data, state) for data in calls]

    def _behind_in_calls(self) -> int:
        behind = self.behind()
        return 0 if self.url == self.honest_url else behind

    def _one_call(self, data: bytes, state: State) -> Returned | Reverted:
        if data[:4] == TRANSFER:
            moves = self.chain.would_move(read_transfer(data), state, self.chain.head.time_s)
            return Returned(b"") if moves else Reverted(b"", "execution reverted")
        payer = "0x" + data[16:36].hex()
        if data[:4] == STATE:
            is_seen = self.url != self.blind_url
            is_used = is_seen and (payer, "0x" + data[36:68].hex()) in state.used
            return Returned(int(is_used).to_bytes(32))
        return Returned(state.balances.get(payer, 0).to_bytes(32))

    def _eth_chainId(self) -> JsonValue:
        return hex(84532)

    def _eth_blockNumber(self) -> JsonValue:
        blocks = self.chain.blocks
        return hex(blocks[max(0, len(blocks) - 1 - self._behind_in_calls())].number)

    def _eth_gasPrice(self) -> JsonValue:
        price = self.chain.base_fee
        if self.lies("eth_gasPrice"):
            price = self._random.choice((0, price // 10, price * 10**5))
        return hex(price)

    def _eth_getBalance(self, owner: str, _block: JsonValue) -> JsonValue:
        return hex(max(0, self.chain.state_behind(self.behind()).coins.get(owner, 0)))

    def _eth_getTransactionCount(self, owner: str, block: JsonValue) -> JsonValue:
        behind = self.behind()
        nonce = self.chain.state_behind(behind).nonces.get(owner, 0)
        if block == "pending" and not behind:
            nonce = self.chain.pending_nonce(owner)
        if self.lies("eth_getTransactionCount"):
            nonce = max(0, nonce + self._random.choice((-1, -1, 1, 3)))
        return hex(nonce)

    def _eth_sendRawTransaction(self, raw: str) -> JsonValue:
        self.arrived(raw)
        sent = self._read(raw)
        if self.lies("eth_sendRawTransaction"):
            if self._random.random() < 0.5:
                return sent.hash  # and nobody ever sees it again
            self.chain.submit(sent)
            raise Refused("internal error")
        self.chain.submit(sent)
        return sent.hash

    def _eth_getTransactionReceipt(self, transaction: str) -> JsonValue:
        if self.url == self.honest_url:
            return self.chain.receipt(transaction)
        if self.url == self.blind_url or self.lies("eth_getTransactionReceipt"):
            return None
        return self.chain.receipt(transaction, self.behind())

    def _eth_getTransactionByHash(self, transaction: str) -> JsonValue:
        receipt = self.chain.receipt(transaction, self.behind())
        if receipt is not None:
            return {"hash": transaction, "blockNumber": receipt["blockNumber"]}
        if any(sent.hash == transaction for sent in self.chain.pool.values()):
            return {"hash": transaction, "blockNumber": None}
        return None

    def _eth_getBlockByNumber(self, which: str, _full: JsonValue) -> JsonValue:
        blocks = self.chain.blocks
        place = len(blocks) - 1 - self._behind_in_calls()
        if which.startswith("0x"):
            place = int(which, 16) - blocks[0].number
        if which.startswith("0x") and not 0 <= place < len(blocks):
            return None
        block = blocks[max(0, place)]
        return {
            "number": hex(block.number),
            "hash": block.hash,
            "timestamp": hex(int(block.time_s)),
            "baseFeePerGas": hex(block.base_fee),
        }

    def _eth_getLogs(self, asked: JsonObject) -> JsonValue:
        blocks = self.chain.blocks
        start = blocks[0].number
        first = _number(asked.get("fromBlock"), start)
        last = _number(asked.get("toBlock"), blocks[-1].number)
        some = blocks[max(0, first - start) : max(0, last - start + 1)]
        if self.url == self.blind_url:
            return []
        if self.lies("eth_getLogs") and self.url != self.honest_url:
            return []
        receipts: list[Any] = [one for block in some for one in block.receipts.values()]
        logs = [log for receipt in receipts for log in receipt["logs"]]
        return [log for log in logs if _is_asked(log, asked)]


def _number(value: JsonValue, latest: int) -> int:
    return int(value, 16) if isinstance(value, str) and value.startswith("0x") else latest


def _is_asked(log: JsonObject, asked: JsonObject) -> bool:
    wanted: Any = asked.get("topics", [])
    topics: Any = log["topics"]
    if asked.get("address", ASSET) != ASSET or len(wanted) > len(topics):
        return False
    return all(
        one is None or topic == one or (isinstance(one, list | tuple) and topic in one)
        for one, topic in zip(wanted, topics, strict=False)
    )
