"""A loopback JSON-RPC node over a tiny contract, honest or lying in one way at a time."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from eth_abi import decode, encode

from assay.chains.evm.calls import AGGREGATE3, MULTICALL3
from tests.support.fakes.clock import FrozenClock
from tests.support.raw_server import RawServer, Request, plain, serving

CHAIN_ID = 31337
REGISTRY = "0x" + "a0" * 20
OWNER_OF, NOBODY = b"\x63\x52\x21\x1e", bytes.fromhex("7e273289")
HEAD = 5000
SLOT_S = 12
NOW_S = int(FrozenClock().now().timestamp())
"""When block `HEAD` was made, and those above it."""

Reply = dict[str, Any]


def owner_of(token: int) -> bytes:
    """Call data of `ownerOf(token)`."""
    return OWNER_OF + token.to_bytes(32, "big")


def owner(token: int, block: int) -> bytes:
    """What the contract returns: it depends on the block, so that mixed blocks show."""
    return (token * 10_000 + block).to_bytes(32, "big")


def refusal(token: int) -> bytes:
    """Revert data of `ERC721NonexistentToken(token)`."""
    return NOBODY + token.to_bytes(32, "big")


class Revert(Exception):
    """The contract refuses with these bytes."""


@dataclass
class Node:
    """Behaviour of one node; a test overrides what it lies about."""

    chain_id: int = CHAIN_ID
    head: int = HEAD
    sees: int | None = None
    """The block the node behind the balancer has really seen."""
    has_multicall: bool = True
    takes_batches: bool = True
    tokens: int = 100
    revert_error: Callable[[bytes], Reply] = lambda data: {
        "code": 3,
        "message": "execution reverted",
        "data": "0x" + data.hex(),
    }
    answer: Callable[[Reply, Reply], Reply | None] = lambda _request, _reply: None
    """Changes one answer on its way out; None leaves it."""
    respond: Callable[[Request, bytes], bytes | float | None] = lambda _request, _body: None
    """Changes the HTTP reply: other bytes, or seconds of silence."""
    delay_s: float = 0.0
    """How long every answer takes."""
    calls: list[str] = field(default_factory=list)
    """Methods, `batch(n)` for batches, `multicall(n)` for aggregates, in order."""

    def handle(self, request: Reply) -> Reply:
        reply = {"jsonrpc": "2.0", "id": request["id"], **self._result(request)}
        changed = self.answer(request, reply)
        return reply if changed is None else changed

    def _result(self, request: Reply) -> Reply:
        method, params = request["method"], request["params"]
        self.calls.append(method)
        match method:
            case "eth_chainId":
                return {"result": hex(self.chain_id)}
            case "eth_blockNumber":
                return {"result": hex(self.head)}
            case "eth_call":
                return self._eth_call(params[0]["to"], bytes.fromhex(params[0]["data"][2:]), params)
            case "eth_getBlockByNumber":
                made_s = NOW_S - SLOT_S * max(0, HEAD - self.head)
                return {"result": {"number": hex(self.head), "timestamp": hex(made_s)}}
            case "eth_getLogs":
                return {"result": []}
            case _:
                return {"error": {"code": -32601, "message": f"the method {method} does not exist"}}

    def _eth_call(self, to: str, data: bytes, params: list[Any]) -> Reply:
        block = self.head if params[1] == "latest" else int(params[1], 16)
        if block > (self.head if self.sees is None else self.sees):
            return {"error": {"code": -32000, "message": "header not found"}}
        try:
            return {"result": "0x" + self._execute(to, data, block).hex()}
        except Revert as revert:
            return {"error": self.revert_error(revert.args[0])}

    def _execute(self, to: str, data: bytes, block: int) -> bytes:
        if to == MULTICALL3 and self.has_multicall:
            return self._aggregate(data, block)
        if to != REGISTRY:
            return b""
        token = int.from_bytes(data[4:36], "big")
        if token >= self.tokens:
            raise Revert(refusal(token))
        return owner(token, block)

    def _aggregate(self, data: bytes, block: int) -> bytes:
        assert data[:4] == AGGREGATE3
        [calls] = decode(["(address,bool,bytes)[]"], data[4:])
        self.calls[-1] = f"multicall({len(calls)})"
        results: list[tuple[bool, bytes]] = []
        for to, _, inner in calls:
            try:
                results.append((True, self._execute(to, inner, block)))
            except Revert as revert:
                results.append((False, revert.args[0]))
        return encode(["(bool,bytes)[]"], [results])


def changing(method: str, **change: object) -> Node:
    """A node whose answers to `method` have other members."""

    def answer(request: Reply, reply: Reply) -> Reply | None:
        if request["method"] != method:
            return None
        changed = {**reply, **change}
        return {k: v for k, v in changed.items() if v is not ...}

    return Node(answer=answer)


def sending(reply: bytes | float) -> Node:
    return Node(respond=lambda _request, _body: reply)


@asynccontextmanager
async def running(node: Node) -> AsyncIterator[RawServer]:
    """Serve `node` on loopback until the end of the block."""

    async def respond(request: Request, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(node.delay_s)
        sent: bytes | float | None = plain(_body(node, request), "200 OK")
        changed = node.respond(request, sent)
        sent = sent if changed is None else changed
        if isinstance(sent, bytes):
            writer.write(sent)
            await writer.drain()
            if changed is not None:
                writer.close()
        else:
            await asyncio.sleep(sent)

    async with serving(respond) as server:
        yield server


def _body(node: Node, request: Request) -> bytes:
    asked = json.loads(request.body)
    if not isinstance(asked, list):
        return json.dumps(node.handle(asked)).encode()
    node.calls.append(f"batch({len(asked)})")
    if not node.takes_batches:
        error = {"code": -32600, "message": "batches are not supported"}
        return json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
    return json.dumps([node.handle(one) for one in reversed(asked)]).encode()
