"""A chain with one token and any number of nodes on loopback, each honest or lying in its own way.

A transaction is taken by its nonce, once; of two of one nonce the one that is mined first stays.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import rlp
from eth_account import Account

from assay.common.addresses import keccak256
from tests.support.fakes.clock import FrozenClock
from tests.support.raw_server import Request, plain, serving

Answer = dict[str, Any]
_TRANSFERRED = "0x" + keccak256(b"Transfer(address,address,uint256)").hex()
_NOW_S = int(FrozenClock().now().timestamp())


def raised(message: str) -> Answer:
    return {"error": {"code": -32000, "message": message}}


@dataclass
class TokenChain:
    """The truth. `is_mining`: every transaction at once, or when `mine` is called."""

    chain_id: int
    token: str
    balances: dict[str, int] = field(default_factory=dict)
    nonces: dict[str, int] = field(default_factory=dict)
    pool: dict[tuple[str, int], str] = field(default_factory=dict)
    receipts: dict[str, Answer] = field(default_factory=dict)
    height: int = 100
    is_mining: bool = True
    reverts: bool = False
    gas_price: int = 10**9
    ether: int = 10**18

    def take(self, raw: str) -> Answer:
        made = _decoded(raw)
        sender, nonce, fee = made["sender"], made["nonce"], made["fee"]
        if nonce < self.nonces.get(sender, 0):
            return raised("nonce too low")
        known = self.pool.get((sender, nonce))
        if known is not None and known != raw and fee * 8 < _decoded(known)["fee"] * 9:
            return raised("replacement transaction underpriced")
        if known == raw:
            return raised("already known")
        self.pool[sender, nonce] = raw
        if self.is_mining:
            self.mine()
        return {"result": made["hash"]}

    def mine(self) -> None:
        """Every transaction whose turn it is and whose price will do."""
        moved = True
        while moved:
            moved = False
            for (sender, nonce), raw in sorted(self.pool.items()):
                made = _decoded(raw)
                if nonce == self.nonces.get(sender, 0) and made["fee"] >= self.gas_price:
                    del self.pool[sender, nonce]
                    self.nonces[sender] = nonce + 1
                    self._execute(made)
                    moved = True

    def reorganise(self) -> None:
        """Take back every transaction: none of them is in a block or waits for one."""
        for receipt in self.receipts.values():
            for log in receipt["logs"]:
                sender, recipient = ("0x" + topic[-40:] for topic in log["topics"][1:])
                amount = int(log["data"], 16)
                self.balances[sender] += amount
                self.balances[recipient] -= amount
        self.receipts.clear()
        self.nonces.clear()
        self.pool.clear()

    def transfers_to(self, recipient: str) -> int:
        """How many transfers arrived there."""
        return sum(
            log["topics"][2].endswith(recipient[2:])
            for receipt in self.receipts.values()
            for log in receipt["logs"]
        )

    def pay(self, sender: str, recipient: str, amount: int, transaction: str) -> None:
        """A transfer by somebody else's transaction."""
        self._move(transaction, sender, recipient, amount)

    def _execute(self, made: Answer) -> None:
        data = made["data"]
        assert (made["to"], data[:4]) == (self.token, keccak256(b"transfer(address,uint256)")[:4])
        recipient, amount = "0x" + data[16:36].hex(), int.from_bytes(data[36:68])
        if self.reverts or self.balances.get(made["sender"], 0) < amount:
            self.receipts[made["hash"]] = _receipt(made["hash"], "0x0", [], self.height)
            return
        self._move(made["hash"], made["sender"], recipient, amount)

    def _move(self, transaction: str, sender: str, recipient: str, amount: int) -> None:
        self.balances[sender] = self.balances.get(sender, 0) - amount
        self.balances[recipient] = self.balances.get(recipient, 0) + amount
        parties = ("0x" + one[2:].rjust(64, "0") for one in (sender, recipient))
        log = {
            "address": self.token,
            "topics": [_TRANSFERRED, *parties],
            "data": f"0x{amount:064x}",
        }
        self.receipts[transaction] = _receipt(transaction, "0x1", [log], self.height)


@dataclass
class TokenNode:
    """One node's view. `lie` answers in its place, or None; it may ask `honest` first."""

    chain: TokenChain
    lie: Callable[[str, list[Any], Callable[[], Answer]], Answer | None] = lambda *_: None
    asked: list[str] = field(default_factory=list)
    url: str = ""

    def handle(self, request: Answer) -> Answer:
        method, params = request["method"], request.get("params") or []
        self.asked.append(method)
        answer = self.lie(method, params, lambda: self._honest(method, params))
        return {
            "jsonrpc": "2.0",
            "id": request["id"],
            **(self._honest(method, params) if answer is None else answer),
        }

    def _honest(self, method: str, params: list[Any]) -> Answer:
        chain = self.chain
        block = {"number": hex(chain.height), "timestamp": hex(_NOW_S)}
        known: dict[str, Callable[[], Answer]] = {
            "eth_chainId": lambda: {"result": hex(chain.chain_id)},
            "eth_blockNumber": lambda: {"result": hex(chain.height)},
            "eth_getBlockByNumber": lambda: {"result": block},
            "eth_gasPrice": lambda: {"result": hex(chain.gas_price)},
            "eth_estimateGas": lambda: _estimate(chain),
            "eth_getBalance": lambda: {"result": hex(chain.ether)},
            "eth_call": lambda: {
                "result": f"0x{chain.balances.get('0x' + params[0]['data'][-40:], 0):064x}"
            },
            "eth_getTransactionCount": lambda: {
                "result": hex(chain.nonces.get(params[0].lower(), 0))
            },
            "eth_sendRawTransaction": lambda: chain.take(params[0]),
            "eth_getTransactionReceipt": lambda: {"result": chain.receipts.get(params[0])},
        }
        return known.get(method, lambda: raised(f"the method {method} does not exist"))()


def _estimate(chain: TokenChain) -> Answer:
    return raised("execution reverted") if chain.reverts else {"result": hex(50_000)}


@asynccontextmanager
async def running(*nodes: TokenNode) -> AsyncIterator[None]:
    """Serve the nodes on loopback until the end of the block."""
    if not nodes:
        yield
        return
    node, *others = nodes

    async def respond(request: Request, writer: asyncio.StreamWriter) -> None:
        asked = json.loads(request.body)
        answer = [*map(node.handle, asked)] if isinstance(asked, list) else node.handle(asked)
        writer.write(plain(json.dumps(answer).encode()))
        await writer.drain()

    async with serving(respond) as server:
        node.url = server.url()
        async with running(*others):
            yield


def _receipt(transaction: str, status: str, logs: list[Answer], height: int) -> Answer:
    return {
        "transactionHash": transaction,
        "status": status,
        "logs": logs,
        "blockNumber": hex(height),
    }


def _decoded(raw: str) -> Answer:
    fields: Any = rlp.decode(bytes.fromhex(raw[4:]))
    return {
        "sender": Account.recover_transaction(raw).lower(),
        "nonce": int.from_bytes(fields[1]),
        "fee": int.from_bytes(fields[3]),
        "to": "0x" + bytes(fields[5]).hex(),
        "data": bytes(fields[7]),
        "hash": "0x" + keccak256(bytes.fromhex(raw[2:])).hex(),
    }
