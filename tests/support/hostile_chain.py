"""A chain on loopback that can do what real ones do at their worst: a JSON-RPC server over the
simulation's model, with real signatures.

Blocks are made when `mine` is called, or after every transaction (`mines_at_once`). Faults are set
on the running server, by method, and last until they are taken away:

    chain.wrong["eth_gasPrice"] = lambda _params, _honest: hex(10**15)
    with chain.failing("eth_getTransactionReceipt", status=429): ...
    chain.model.reorganise(depth=10, kept=0.0)
"""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

from eth_account import Account
from eth_account.typed_transactions import TypedTransaction
from hexbytes import HexBytes

from assay.chains.rpc import Reverted
from assay.common.addresses import keccak256
from assay.payments.ports import Authorization
from assay.payments.x402.eip3009 import Eip3009Signers
from tests.simulation.chain import ASSET, NETWORK, Action, Chain, Pending, Refused, read_transfer
from tests.simulation.node import Node
from tests.support.quiet_server import QuietHandler, serving

Wrong = Callable[[list[Any], Any], Any]
"""A method's answer from its parameters and the honest answer."""

_SIGNERS = Eip3009Signers()


@dataclass
class HostileChain:
    """The running server. `lock` is held while the model is read or changed."""

    model: Chain
    url: str = ""
    mines_at_once: bool = True
    wrong: dict[str, Wrong] = field(default_factory=dict[str, Wrong])
    status: dict[str, int] = field(default_factory=dict[str, int])
    """Answered with that HTTP status instead, nothing is done."""
    breaks_after: set[str] = field(default_factory=set[str])
    """Done, and then answered with a 500."""
    ids: Callable[[Any], Any] = lambda asked: asked
    """The `id` of an answer, from that of its request."""
    asked: Counter[str] = field(default_factory=Counter[str])
    lock: Any = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        self._node = Node(self.model, _read, Random(0))

    @contextmanager
    def failing(self, *methods: str, status: int = 500) -> Iterator[None]:
        """Those methods are answered with an HTTP status until the end of the block."""
        self.status |= dict.fromkeys(methods, status)
        try:
            yield
        finally:
            for method in methods:
                self.status.pop(method, None)

    def balance(self, owner: str) -> int:
        with self.lock:
            return self.model.state.balances.get(owner.lower(), 0)

    def mint(self, to: str, amount: int) -> None:
        with self.lock:
            self.model.fund(to.lower(), amount)

    def act(self, sender: str, action: Action) -> None:
        """A transaction of somebody whose key we do not need, in the next block."""
        with self.lock:
            self.model.submit_plain(sender.lower(), action)
            if self.mines_at_once:
                self.model.mine()

    def handle(self, request: Any) -> tuple[int, Any]:
        """Status and body of the answer to one request or a batch of them."""
        ones = request if isinstance(request, list) else [request]
        with self.lock:
            for one in ones:
                self.asked[one["method"]] += 1
                if one["method"] in self.status:
                    return self.status[one["method"]], {}
            answers = [self._one(one) for one in ones]
        if any(one["method"] in self.breaks_after for one in ones):
            return 500, {}
        return 200, answers if isinstance(request, list) else answers[0]

    def _one(self, one: Any) -> dict[str, Any]:
        reply = {"jsonrpc": "2.0", "id": self.ids(one["id"])}
        method, params = one["method"], list(one.get("params") or [])
        try:
            honest = self._call(params[0]) if method == "eth_call" else self._do(method, params)
        except Refused as refused:
            code = 3 if method == "eth_call" else -32000
            return {**reply, "error": {"code": code, "message": str(refused)}}
        wrong = self.wrong.get(method)
        return {**reply, "result": honest if wrong is None else wrong(params, honest)}

    def _do(self, method: str, params: list[Any]) -> Any:
        done = self._node.answer(method, params)
        if method == "eth_sendRawTransaction" and self.mines_at_once:
            self.model.mine()
        return done

    def _call(self, call: Any) -> str:
        if str(call["to"]).lower() != ASSET:
            return "0x"  # nothing else has code here
        (found,) = self._node.call([bytes.fromhex(str(call["data"])[2:])])
        if isinstance(found, Reverted):
            raise Refused("execution reverted")
        return "0x" + found.data.hex()


def _is_signed(signed: Authorization) -> bool:
    return _SIGNERS.signer(signed, NETWORK) == signed.payer


def _read(raw: str) -> Pending:
    """A raw EIP-1559 transaction, as a node reads it."""
    content = HexBytes(raw)
    fields = TypedTransaction.from_bytes(content).as_dict()
    data = bytes(HexBytes(fields["data"]))
    return Pending(
        hash="0x" + keccak256(bytes(content)).hex(),
        sender=Account.recover_transaction(content).lower(),
        nonce=int(fields["nonce"]),
        fee=int(fields["maxFeePerGas"]),
        tip=int(fields["maxPriorityFeePerGas"]),
        gas=int(fields["gas"]),
        action=read_transfer(data) if data else None,
    )


@contextmanager
def hostile_chain(*gas_for: str) -> Iterator[HostileChain]:
    """The server, until the end of the block; those addresses have coins for gas."""
    model = Chain(Random(0), time.time)
    model.is_signed = _is_signed
    for owner in gas_for:
        model.fund_gas(owner.lower(), 10**18)
    chain = HostileChain(model)

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            status, body = chain.handle(asked)
            answer = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    with serving(Handler) as chain.url:
        yield chain
