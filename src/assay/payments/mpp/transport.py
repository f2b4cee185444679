"""Lets the MPP library ask nodes through our own endpoints, by their rules and in their order.

The library knows one address for each network. Here that address only names the network. Questions
go to every endpoint of that network, with the same fail-over, batches and bounds as for x402.
"""

import json
from collections.abc import Mapping

import httpx
from typing_extensions import override

from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import Rpc, RpcRefused
from assay.common.json import JsonValue, is_array, is_object

SYNC_MS = 3000
"""Longest time that a node may hold back its answer to a transaction until it is mined. It is less
than one exchange may take, so a slow block is no fault of the node. Blocks come twice a second."""

_SYNC = "eth_sendRawTransactionSync"


def address_of(network: str) -> str:
    """Return the address by which the library names a network; it is never resolved."""
    return f"http://rpc.invalid/{network}"


class RpcTransport(httpx.AsyncBaseTransport):
    """JSON-RPC over HTTP, answered by `Rpc`.

    If no endpoint answers, the library sees a lost connection, and treats the outcome as unknown.
    """

    def __init__(self, rpc: Rpc, chains: Mapping[str, Network]) -> None:
        self._rpc = rpc
        self._chains = {httpx.URL(address_of(name)).path: chains[name] for name in chains}

    @override
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer one JSON-RPC request as a node does. Raises `httpx.ReadError`."""
        asked: JsonValue = json.loads(await request.aread())
        chain = self._chains.get(request.url.path)
        if chain is None or not is_object(asked):
            raise httpx.ReadError("there is no such network", request=request)
        params = asked.get("params")
        method, given = str(asked.get("method")), list(params) if is_array(params) else []
        if method == _SYNC:
            given = [*given[:1], SYNC_MS]
        said: dict[str, JsonValue] = {"jsonrpc": "2.0", "id": asked.get("id")}
        try:
            said["result"] = await self._rpc.request(chain, method, given)
        except RpcRefused as error:
            said["error"] = {"code": error.rpc_code, "message": error.rpc_message}
        except ChainUnavailable as error:
            raise httpx.ReadError(error.detail or error.message, request=request) from error
        return httpx.Response(200, json=said, request=request)
