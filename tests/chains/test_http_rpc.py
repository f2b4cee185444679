"""Whatever the nodes do, the answer is right or there is none."""

# ruff: noqa: E501 - a table of lies, one to a line

from dataclasses import replace

import pytest

from assay.chains.rpc import ContractCall, Returned, Reverted
from tests.support.ethereum_node import (
    HEAD,
    REGISTRY,
    Node,
    Reply,
    changing,
    owner,
    owner_of,
    sending,
)
from tests.support.raw_server import Request, plain
from tests.support.rpc_bench import ONE, THREE, Bench, expected, unavailable


async def test_many_calls_are_one_multicall_at_one_block(bench: Bench) -> None:
    node = Node()
    results = await bench.rpc.call(await bench.network(node), THREE)
    assert [r.data for r in results] == expected()
    assert [type(r) for r in results] == [Returned, Reverted, Returned]
    assert node.calls == ["eth_chainId", "eth_blockNumber", "multicall(3)"]


async def test_no_calls_ask_nobody(bench: Bench) -> None:
    node = Node()
    assert await bench.rpc.call(await bench.network(node), []) == ()
    assert node.calls == []


async def test_a_single_call_needs_no_multicall(bench: Bench) -> None:
    node = Node()
    assert await bench.rpc.call(await bench.network(node), ONE) == [Returned(owner(7, HEAD))]
    assert node.calls[-1] == "eth_call"


async def test_where_multicall_has_no_code_batches_are_used_and_that_is_remembered(
    bench: Bench,
) -> None:
    node = Node(has_multicall=False)
    network = await bench.network(node)
    for _ in range(2):
        assert [r.data for r in await bench.rpc.call(network, THREE)] == expected()
    assert [c for c in node.calls if c == "batch(3)"] == ["batch(3)"] * 2
    assert node.calls.count("eth_call") == 1 + 3 + 3


async def test_a_network_without_multicall_is_never_asked_for_it(bench: Bench) -> None:
    node = Node()
    network = await bench.network(node, multicall=False)
    assert [r.data for r in await bench.rpc.call(network, THREE)] == expected()
    assert not [c for c in node.calls if c.startswith("multicall")]


async def test_where_batches_are_not_taken_calls_go_one_by_one(bench: Bench) -> None:
    node = Node(has_multicall=False, takes_batches=False)
    network = await bench.network(node)
    for _ in range(2):
        assert [r.data for r in await bench.rpc.call(network, THREE)] == expected()
    assert node.calls.count("batch(3)") == 1


@pytest.mark.parametrize("status", ["400 Bad Request", "404 Not Found", "413 Too Large"])
async def test_a_batch_refused_by_http_goes_one_by_one(bench: Bench, status: str) -> None:
    def respond(request: Request, _: bytes) -> bytes | None:
        return plain(b"<html>", status) if request.body.startswith(b"[") else None

    network = await bench.network(Node(respond=respond), multicall=False)
    assert [r.data for r in await bench.rpc.call(network, THREE)] == expected()


@pytest.mark.parametrize("multicall", [True, False])
async def test_more_calls_than_fit_one_chunk_are_at_the_same_block(
    bench: Bench,
    multicall: bool,  # noqa: FBT001 - a column of the table
) -> None:
    node = Node(tokens=1000)

    def mine(_: Reply, __: Reply) -> None:
        node.head += 1  # a block between any two requests

    node.answer = mine
    calls = [ContractCall(REGISTRY, owner_of(n)) for n in range(120)]
    results = await bench.rpc.call(await bench.network(node, multicall=multicall), calls)
    assert [r.data for r in results] == [owner(n, HEAD + 1) for n in range(120)]


async def test_an_aggregate_over_the_gas_cap_is_read_as_a_batch(bench: Bench) -> None:
    def answer(request: Reply, _: Reply) -> Reply | None:
        if "multicall" in node.calls[-1]:
            error = {"code": 3, "message": "execution reverted", "data": "0x"}
            return {"id": request["id"], "error": error}
        return None

    node = Node(answer=answer)
    assert [r.data for r in await bench.rpc.call(await bench.network(node), THREE)] == expected()


def mangling(change: str) -> Node:
    """A node whose reply bodies are damaged on the way."""

    def respond(_: Request, body: bytes) -> bytes:
        match change:
            case "half the JSON":
                content = body.partition(b"\r\n\r\n")[2]
                return plain(content[: len(content) // 2])
            case "cut off":
                return body[:-5]
            case "400":
                return body.replace(b"200 OK", b"400 Bad Request")
            case _:
                return body.replace(b'"id": ', b'"id": 9')

    return Node(respond=respond)


TOO_LONG = plain(b'{"jsonrpc":"2.0","id":1,"result":"0x' + b"00" * 100_000 + b'"}')
LIES = {
    "wrong chain id": lambda: Node(chain_id=1),
    "half the JSON": lambda: mangling("half the JSON"),
    "cut off": lambda: mangling("cut off"),
    "wrong id": lambda: mangling("wrong id"),
    "no id": lambda: changing("eth_call", id=...),
    "null id": lambda: changing("eth_call", id=None),
    "object id": lambda: changing("eth_call", id={}),
    "list id": lambda: changing("eth_call", id=[]),
    "null result": lambda: changing("eth_call", result=None),
    "no result": lambda: changing("eth_call", result=...),
    "number for bytes": lambda: changing("eth_call", result=7),
    "odd hex": lambda: changing("eth_call", result="0x123"),
    "short aggregate": lambda: changing("eth_call", result="0x" + "00" * 64),
    "noise aggregate": lambda: changing("eth_call", result="0x" + "ff" * 320),
    "block of words": lambda: changing("eth_blockNumber", result="latest"),
    "block null": lambda: changing("eth_blockNumber", result=None),
    "429": lambda: sending(plain(b"{}", "429 Too Many Requests")),
    "500": lambda: sending(plain(b"{}", "500 Oops")),
    "503": lambda: sending(plain(b"", "503 Busy")),
    "redirect": lambda: sending(plain(b"", "302 Found", "Location: http://127.0.0.1:1/")),
    "forbidden": lambda: sending(plain(b"<html>pay</html>", "403 Forbidden")),
    "hang": lambda: sending(30.0),
    "close": lambda: sending(b""),
    "not HTTP": lambda: sending(b"SSH-2.0-x\r\n"),
    "not JSON": lambda: sending(plain(b"<html>")),
    "empty": lambda: sending(plain(b"")),
    "too long": lambda: sending(TOO_LONG),
    "a result under 400": lambda: mangling("400"),
    "limit exceeded": lambda: changing("eth_call", result=..., error={"code": -32005, "message": "slow down"}),
    "internal error": lambda: changing("eth_call", result=..., error={"code": -32603, "message": "oops"}),
    "error of words": lambda: changing("eth_call", result=..., error="no"),
    "no chain id": lambda: changing("eth_chainId", result=..., error={"code": -32601, "message": "no"}),
}  # fmt: skip


@pytest.mark.parametrize("lie", LIES)
async def test_a_node_that_lies_or_fails_is_passed_over(bench: Bench, lie: str) -> None:
    honest = Node()
    network = await bench.network(LIES[lie](), honest)
    assert [r.data for r in await bench.rpc.call(network, THREE)] == expected()
    assert "multicall(3)" in honest.calls


@pytest.mark.parametrize("lie", LIES)
async def test_a_lie_is_never_an_answer(bench: Bench, lie: str) -> None:
    error = await unavailable(bench, await bench.network(LIES[lie](), LIES[lie]()))
    assert error.message.startswith("Local ")
    assert "key123" not in f"{error.detail}"
    assert "127.0.0.1" not in error.message


@pytest.mark.parametrize("lie", ["hang", "503", "wrong chain id"])
async def test_a_request_fails_over_like_a_call(bench: Bench, lie: str) -> None:
    network = await bench.network(LIES[lie](), Node())
    assert await bench.rpc.request(network, "eth_getLogs", [{}]) == []


async def test_a_connection_refused_is_passed_over(bench: Bench) -> None:
    network = await bench.network(Node())
    dead = replace(network, rpc_urls=("http://127.0.0.1:1/", *network.rpc_urls))
    assert [r.data for r in await bench.rpc.call(dead, THREE)] == expected()


async def test_without_endpoints_the_chain_is_unavailable(bench: Bench) -> None:
    assert (await unavailable(bench, await bench.network())).retry_after_s is not None
