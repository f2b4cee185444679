"""A loopback Solana node: JSON-RPC as the real one speaks it, over a real runtime.

registry = Registry(MAINNET)
agent = registry.agent(uri="https://agent.example/agent.json", feedback_count=42)
with node(registry) as rpc:
    rpc.fund(wallet)
    ...                                   # whatever speaks to rpc.url
    assert rpc.accepted[-1].given.args.score == 87
    rpc.faults.on(hang(), only="sendTransaction")
"""

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from solders.pubkey import Pubkey

from tests.support.raw_server import Request
from tests.support.solana import loopback
from tests.support.solana.loopback import Answer, Fault, Faults, as_json
from tests.support.solana.registry import Registry
from tests.support.solana.rpc_errors import (
    INVALID_REQUEST,
    PARSE_ERROR,
    PREFLIGHT_FAILURE,
    RpcError,
)
from tests.support.solana.rpc_methods import Methods
from tests.support.solana.runtime import Runtime, Sent

PLAIN = ("Content-Type: text/plain",)
BODY_BYTES_MAX = 50 * 1024
SOL = 1_000_000_000


def rpc_error(code: int, message: str, data: Any = None) -> Fault:
    """A JSON-RPC error in the place of whatever was asked for."""
    error = {"code": code, "message": message} | ({} if data is None else {"data": data})

    def pieces(request: Request, _answer: object) -> list[bytes]:
        asked: Any = json.loads(request.body)
        calls = cast("list[Any]", asked if isinstance(asked, list) else [asked])
        told = [{"jsonrpc": "2.0", "error": error, "id": call["id"]} for call in calls]
        return [as_json(told if isinstance(asked, list) else told[0]).last()]

    return pieces


def behind(slots: int = 157) -> Fault:
    """The node knows that it has fallen behind."""
    message = f"Node is behind by {slots} slots"
    return rpc_error(-32005, message, {"numSlotsBehind": slots})


def not_indexed(program: Pubkey) -> Fault:
    """A public node that does not serve getProgramAccounts of a program."""
    words = "excluded from account secondary indexes; this RPC method unavailable for key"
    return rpc_error(-32010, f"{program} {words}")


def preflight_refusal(err: Any) -> Fault:
    """`-32002` with any `data.err`, such as `"AccountInUse"`."""
    return rpc_error(PREFLIGHT_FAILURE, "Transaction simulation failed", {"err": err, "logs": []})


@dataclass(repr=False)
class Node:
    """The running node and what tests may look at or turn."""

    runtime: Runtime
    methods: Methods
    service: loopback.Service

    @property
    def url(self) -> str:
        return self.service.url

    @property
    def faults(self) -> Faults:
        """`only` is the name of a JSON-RPC method, or `batch`."""
        return self.service.faults

    @property
    def accepted(self) -> list[Sent]:
        """Every transaction the node took, in order."""
        return self.runtime.accepted

    def calls(self) -> list[tuple[str, list[Any]]]:
        """Methods and parameters of the requests so far, in order."""
        found: list[tuple[str, list[Any]]] = []
        for request in self.service.requests:
            body: Any = json.loads(request.body) if request.method == "POST" else []
            asked = cast("list[Any]", body if isinstance(body, list) else [body])
            found += [(one["method"], one.get("params") or []) for one in asked]
        return found

    def fund(self, to: Pubkey, lamports: int = SOL) -> None:
        self.runtime.fund(to, lamports)

    def balance(self, of: Pubkey) -> int:
        found = self.runtime.account(of)
        return found.lamports if found else 0

    def expire_blockhash(self) -> None:
        self.runtime.expire_blockhash()

    def forget_transactions(self, *, on: bool = True) -> None:
        """Accepts transactions and drops them, as a congested network does."""
        self.methods.drops = on


@contextmanager
def node(registry: Registry) -> Generator[Node]:
    runtime = Runtime(registry)
    methods = Methods(runtime)
    service = loopback.Service(lambda request: _answer(methods, request), _kind)
    with loopback.running(service):
        yield Node(runtime, methods, service)


def _kind(request: Request) -> str:
    try:
        asked: Any = json.loads(request.body)
    except ValueError:
        return request.target
    if isinstance(asked, list):
        return "batch"
    return str(cast("dict[str, Any]", asked).get("method") if isinstance(asked, dict) else asked)


def _answer(methods: Methods, request: Request) -> Answer:
    if request.method == "GET" and request.target == "/health":
        return Answer(200, b"ok", PLAIN)
    refusal = _refusal(request)
    if refusal is not None:
        return refusal
    try:
        asked = json.loads(request.body)
    except ValueError:
        error = {"code": PARSE_ERROR, "message": "Parse error"}
        return as_json({"jsonrpc": "2.0", "error": error, "id": None})
    if isinstance(asked, list):
        return as_json([_one(methods, one) for one in cast("list[Any]", asked)])
    return as_json(_one(methods, asked))


def _refusal(request: Request) -> Answer | None:
    """What the HTTP server of a node does not let through."""
    if request.method != "POST":
        told = b"Used HTTP Method is not allowed. POST or OPTIONS is required\n"
        return Answer(405, told, PLAIN)
    if not request.headers.get("content-type", "").startswith("application/json"):
        told = b"Supplied content type is not allowed. Content-Type: application/json is required\n"
        return Answer(415, told, PLAIN)
    if len(request.body) > BODY_BYTES_MAX:
        return Answer(413, b"request body too large\n", PLAIN)
    return None


def _one(methods: Methods, asked: Any) -> dict[str, Any]:
    if not isinstance(asked, dict) or cast("dict[str, Any]", asked).get("jsonrpc") != "2.0":
        error = {"code": INVALID_REQUEST, "message": "Invalid request"}
        return {"jsonrpc": "2.0", "error": error, "id": None}
    call = cast("dict[str, Any]", asked)
    reply: dict[str, Any] = {"jsonrpc": "2.0"}
    try:
        reply["result"] = methods.call(str(call.get("method")), call.get("params") or [])
    except RpcError as error:
        reply["error"] = error.body
    return reply | {"id": call.get("id")}
