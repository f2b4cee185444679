"""The MPP library asks through our endpoints: what they answer, refuse, or do not answer."""

from collections.abc import Sequence
from typing import Any

import httpx
import pytest

from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import RpcRefused
from assay.payments.mpp.tempo import FEE_MANAGER
from assay.payments.mpp.transport import SYNC_MS, RpcTransport, address_of

CHAINS = {
    name: Network(
        slug=name,
        name=name,
        chain_id=number,
        testnet=True,
        identity_registry=FEE_MANAGER,
        reputation_registry=FEE_MANAGER,
        rpc_urls=("http://one", "http://two"),
        source="a test",
    )
    for name, number in (("tempo:4217", 4217), ("tempo:42431", 42431))
}


class Answering:
    """Endpoints that give one answer, or fail in one way."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str, Sequence[Any]]] = []

    async def request(self, network: Network, method: str, params: Sequence[Any]) -> Any:
        self.asked.append((network.slug, method, params))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def post(rpc: Answering, network: str, method: str, *params: Any) -> Any:
    transport = RpcTransport(rpc, CHAINS)  # type: ignore[arg-type] - of `Rpc` one method is used
    async with httpx.AsyncClient(transport=transport) as client:
        asked = {"jsonrpc": "2.0", "id": 7, "method": method, "params": list(params)}
        answer = await client.post(address_of(network), json=asked)
    assert answer.status_code == 200
    return answer.json()


async def test_what_is_asked_goes_to_the_endpoints_of_its_network() -> None:
    rpc = Answering("0x1")
    assert await post(rpc, "tempo:42431", "eth_chainId") == {
        "jsonrpc": "2.0",
        "id": 7,
        "result": "0x1",
    }
    assert rpc.asked == [("tempo:42431", "eth_chainId", [])]


async def test_a_node_that_waits_for_the_block_must_answer_within_one_exchange() -> None:
    """Or a slow block would count as a fault of the node."""
    rpc = Answering({"status": "0x1"})
    await post(rpc, "tempo:4217", "eth_sendRawTransactionSync", "0x76", 13_333)
    assert rpc.asked == [("tempo:4217", "eth_sendRawTransactionSync", ["0x76", SYNC_MS])]


async def test_a_refusal_is_told_in_the_nodes_words() -> None:
    rpc = Answering(RpcRefused("no", rpc_code=-32000, rpc_message="already known"))
    told = await post(rpc, "tempo:4217", "eth_sendRawTransactionSync", "0x76")
    assert told["error"] == {"code": -32000, "message": "already known"}


async def test_no_answer_is_a_lost_connection_so_that_the_outcome_is_unknown() -> None:
    with pytest.raises(httpx.ReadError):
        await post(Answering(ChainUnavailable("down")), "tempo:4217", "eth_chainId")


async def test_an_address_of_no_network_reaches_nobody() -> None:
    rpc = Answering("0x1")
    with pytest.raises(httpx.ReadError):
        await post(rpc, "tempo:1", "eth_chainId")
    assert not rpc.asked
