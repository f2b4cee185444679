"""A local EVM chain on loopback: py-evm in this process, JSON-RPC in front of it.

    python -m assay_demo.chain.node [--port N] [--chain-id N] [--dollar ADDRESS]

`--dollar` puts a test dollar at an address, where clients expect the real
one. Every transaction is mined at once. Prints one line of JSON with its `url` when it answers.
"""

import argparse
import ast
import json
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

import uvicorn
from eth_tester import EthereumTester, PyEVMBackend
from eth_tester.exceptions import BlockNotFound, TransactionFailed
from eth_utils import to_checksum_address

from assay_demo import lifeline
from assay_demo.chain.accounts import ACCOUNTS, FIRST_REVIEWER
from assay_demo.chain.registries import ARTIFACTS

CHAIN_ID = 31337
"""What local development chains are called everywhere."""

PAST = 120
"""Transactions the reviewers' accounts begin with: people with a past, not made for a review."""

CALL_GAS = 29_000_000
_GAS_PRICE = 10**9
_BALANCE = 10**24


_TIMED = frozenset({"eth_blockNumber", "eth_call", "eth_estimateGas", "eth_sendRawTransaction"})
"""What may ask a contract what time it is, and how one asks for the block to call it at."""


class RpcError(Exception):
    """A JSON-RPC error answer."""

    def __init__(self, code: int, message: str, data: str | None = None) -> None:
        super().__init__(message)
        self.body: dict[str, Any] = {"code": code, "message": message}
        if data is not None:
            self.body["data"] = data


class Chain:
    """The chain and the JSON-RPC methods over it."""

    def __init__(self, chain_id: int = CHAIN_ID, dollar: str | None = None) -> None:
        state: dict[bytes, Any] = {
            bytes.fromhex(account.address[2:]): {
                "balance": _BALANCE,
                "nonce": PAST if number >= FIRST_REVIEWER else 0,
                "code": b"",
                "storage": {},
            }
            for number, account in enumerate(ACCOUNTS)
        }
        if dollar is not None:
            code = bytes.fromhex(ARTIFACTS["TestUSD"]["runtime"].removeprefix("0x"))
            state[bytes.fromhex(dollar[2:])] = {
                "balance": 0,
                "nonce": 1,
                "code": code,
                "storage": {},
            }
        self._tester = EthereumTester(PyEVMBackend(genesis_state=state))
        self._tester.backend.chain.chain_id = chain_id
        self._receipts: dict[str, dict[str, Any]] = {}
        self._methods: Mapping[str, Callable[..., Any]] = {
            "eth_chainId": lambda: hex(chain_id),
            "net_version": lambda: str(chain_id),
            "web3_clientVersion": lambda: "assay-demo-chain/py-evm",
            "eth_blockNumber": lambda: hex(self._head()),
            "eth_gasPrice": lambda: hex(_GAS_PRICE),
            "eth_maxPriorityFeePerGas": lambda: hex(0),
            "eth_call": self._call,
            "eth_estimateGas": self._estimate,
            "eth_getCode": lambda a, b="latest": _hex(
                self._tester.get_code(_address(a), _block(b))
            ),
            "eth_getBalance": lambda a, b="latest": hex(
                self._tester.get_balance(_address(a), _block(b))
            ),
            "eth_getTransactionCount": lambda a, b="latest": hex(
                self._tester.get_nonce(_address(a), _block(b))
            ),
            "eth_sendRawTransaction": self._send,
            "eth_getTransactionReceipt": lambda sent: self._receipts.get(sent.lower()),
            "eth_getBlockByNumber": self._get_block,
            "eth_getLogs": self._logs,
            "anvil_mine": lambda n="0x1": self._tester.mine_blocks(int(n, 16)) and None,
        }

    def answer(self, request: Any) -> Any:
        """The answer to one JSON-RPC request or to a batch of them."""
        if isinstance(request, list):
            return [self.answer(one) for one in request]
        if not isinstance(request, dict) or "method" not in request:
            error = {"code": -32600, "message": "invalid request"}
            return {"jsonrpc": "2.0", "id": None, "error": error}
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": request.get("id")}
        try:
            return answer | {"result": self._run(request["method"], request.get("params") or [])}
        except RpcError as error:
            return answer | {"error": error.body}

    def _run(self, method: str, params: list[Any]) -> Any:
        work = self._methods.get(method)
        if work is None:
            raise RpcError(-32601, f"the method {method} does not exist")
        if method in _TIMED:
            self._keep_time()
        try:
            return work(*params)
        except TransactionFailed as error:
            raise _reverted(error) from error
        except BlockNotFound as error:
            raise RpcError(-32001, "unknown block") from error
        except RpcError:
            raise
        except Exception as error:
            raise RpcError(-32602, f"invalid params: {error}"[:300]) from error

    def _keep_time(self) -> None:
        """Blocks here are mined for transactions only; without this an idle chain's clock stops."""
        now = int(time.time())
        if now > self._tester.get_block_by_number("pending")["timestamp"]:
            self._tester.time_travel(now)

    def _head(self) -> int:
        return self._tester.get_block_by_number("latest")["number"]

    def _call(self, call: Mapping[str, str], block: str = "latest", *_: Any) -> str:
        return _hex(self._tester.call(_transaction(call), _block(block)))

    def _estimate(self, call: Mapping[str, str], block: str = "latest") -> str:
        return hex(self._tester.estimate_gas(_transaction(call), _block(block)) * 5 // 4)

    def _send(self, raw: str) -> str:
        sent = self._tester.send_raw_transaction(raw)
        # Kept: the tester would walk back block by block to each receipt and log.
        receipt = self._tester.get_transaction_receipt(sent)
        shown = {_camel(key): _hex(value) for key, value in receipt.items() if key != "logs"}
        self._receipts[sent] = shown | {"logs": [_log(log) for log in receipt["logs"]]}
        return _hex(sent)

    def _get_block(self, block: str, _full: bool = False) -> Any:  # noqa: FBT001, FBT002 - JSON-RPC's
        found = self._tester.get_block_by_number(_block(block))
        names = ("number", "hash", "parent_hash", "timestamp", "gas_limit", "gas_used")
        shown = {_camel(name): _hex(found[name]) for name in names}
        return shown | {
            "baseFeePerGas": hex(found.get("base_fee_per_gas") or 0),
            "transactions": _hex(found["transactions"]),
        }

    def _logs(self, query: Mapping[str, Any]) -> Any:
        known = {"earliest": 0, "latest": self._head()}
        asked = query.get("fromBlock", "earliest"), query.get("toBlock", "latest")
        first, last = (known.get(block, block) for block in map(_block, asked))
        if last > known["latest"]:
            raise RpcError(-32001, "unknown block")
        address, topics = (query.get("address") or "").lower(), query.get("topics") or []
        logs = (log for receipt in self._receipts.values() for log in receipt["logs"])
        near = (log for log in logs if first <= int(log["blockNumber"], 16) <= last)
        own = (log for log in near if log["address"].lower() == (address or log["address"].lower()))
        return [log for log in own if _has_topics(log["topics"], topics)]


def _has_topics(topics: Sequence[str], wanted: Sequence[str | Sequence[str] | None]) -> bool:
    """Whether a log has them: each a topic, one of several, or any where it is null."""
    if len(topics) < len(wanted):
        return False
    return all(
        one is None
        or topic.lower() in [o.lower() for o in ([one] if isinstance(one, str) else one)]
        for topic, one in zip(topics, wanted, strict=False)
    )


async def _read(receive: Callable[[], Any]) -> bytes:
    body = b""
    while True:
        message = await receive()
        body += message.get("body", b"")
        if not message.get("more_body"):
            return body


def application(chain: Chain) -> Callable[..., Any]:
    """The chain as an ASGI application: POST anything anywhere."""

    async def app(scope: Mapping[str, Any], receive: Callable[[], Any], send: Any) -> None:
        if scope["type"] != "http":
            return
        try:
            answer = chain.answer(json.loads(await _read(receive)))
        except ValueError:
            error = {"code": -32700, "message": "parse error"}
            answer = {"jsonrpc": "2.0", "id": None, "error": error}
        body = json.dumps(answer).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    return app


def _transaction(call: Mapping[str, str]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "from": to_checksum_address(call.get("from") or ACCOUNTS[0].address),
        "data": call.get("data") or call.get("input") or "0x",
        "gas": int(call["gas"], 16) if "gas" in call else CALL_GAS,
        "value": int(call.get("value") or "0x0", 16),
    }
    if call.get("to"):
        made["to"] = to_checksum_address(call["to"])
    return made


def _reverted(error: TransactionFailed) -> RpcError:
    """As geth says it: code 3, the revert data as hex."""
    return RpcError(3, "execution reverted", "0x" + _revert_data(error).hex())


def _revert_data(error: TransactionFailed) -> bytes:
    """The bytes a contract reverted with: eth-tester hands on their repr, or the decoded reason."""
    said: Any = error.args[0] if error.args else b""
    for _ in range(3):
        if isinstance(said, Exception):
            said = said.args[0] if said.args else b""
        if isinstance(said, str) and said[:2] in {"b'", 'b"', '"b', "'b"}:
            said = ast.literal_eval(said)
    if isinstance(said, bytes):
        return said
    text = str(said).encode()
    head = (32).to_bytes(32, "big") + len(text).to_bytes(32, "big")
    return bytes.fromhex("08c379a0") + head + text + b"\0" * (-len(text) % 32)


def _address(text: str) -> str:
    return to_checksum_address(text)


def _block(block: Any) -> Any:
    if isinstance(block, str) and block.startswith("0x"):
        return int(block, 16)
    return "latest" if block == "pending" else block


def _hex(value: Any) -> Any:
    """Numbers and bytes as JSON-RPC writes them, inside lists too."""
    if isinstance(value, bytes):
        return "0x" + value.hex()
    if isinstance(value, list | tuple):
        return [_hex(one) for one in value]
    if isinstance(value, bool) or not isinstance(value, int):
        return value
    return hex(value)


def _log(log: Mapping[str, Any]) -> dict[str, Any]:
    shown = {_camel(key): _hex(value) for key, value in log.items()}
    return shown | {"removed": False}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _work_pairings_out_once() -> None:
    """The library works a pairing out in seconds: who asks again gets what is known by then."""
    pairing: Any = import_module("eth.precompiles.ecpairing")
    known = lru_cache(256)(pairing._ecpairing)  # noqa: SLF001 - nothing else of it is one function
    pairing._ecpairing = lambda data: known(bytes(data))  # noqa: SLF001 - see above


def main() -> None:
    """Serve until ended."""
    lifeline.hold()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--chain-id", type=int, default=CHAIN_ID)
    parser.add_argument("--dollar")
    options = parser.parse_args()
    _work_pairings_out_once()
    chain = Chain(options.chain_id, options.dollar)
    with socket.create_server(("127.0.0.1", options.port)) as door:
        door.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        url = f"http://127.0.0.1:{door.getsockname()[1]}"
        print(json.dumps({"url": url}), flush=True)
        config = uvicorn.Config(
            application(chain), log_level="error", access_log=False, lifespan="off"
        )
        uvicorn.Server(config).run(sockets=[door])


if __name__ == "__main__":
    main()
