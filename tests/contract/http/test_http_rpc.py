"""Whatever the nodes do, the answer is right or there is none."""

# ruff: noqa: E501 - a table of lies, one to a line

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

import pytest

from assay.chains.model import ChainUnavailable, Network
from assay.chains.ports import Call, Returned, Reverted, RpcRefused
from assay.infra.http.rpc import HEAD_FORGOTTEN_S, LAG_BLOCKS, STALE_BLOCKS_MAX, JsonRpc
from assay.infra.http.rpc_endpoint import RpcLimits
from tests.fakes.clock import FrozenClock
from tests.services.ethereum_node import (
    CHAIN_ID,
    HEAD,
    REGISTRY,
    Node,
    Reply,
    owner,
    owner_of,
    refusal,
    running,
)
from tests.services.raw_server import Request, plain

QUICK = RpcLimits(endpoint_s=0.5, total_s=2.0, reply_bytes_max=100_000)
ONE = [Call(REGISTRY, owner_of(7))]
THREE = [Call(REGISTRY, owner_of(n)) for n in (1, 999, 2)]


def expected(block: int = HEAD) -> list[bytes]:
    return [owner(1, block), refusal(999), owner(2, block)]


@dataclass
class Bench:
    """Nodes on loopback, and the client under test over them."""

    stack: AsyncExitStack
    clock: FrozenClock
    rpc: JsonRpc

    async def network(self, *nodes: Node, multicall: bool = True) -> Network:
        urls = [(await self.stack.enter_async_context(running(n))).url("/key123") for n in nodes]
        return Network(
            slug="local",
            name="Local",
            chain_id=CHAIN_ID,
            testnet=True,
            identity_registry=REGISTRY,
            reputation_registry=REGISTRY,
            rpc_urls=tuple(urls),
            source="a test",
            multicall3=multicall,
        )


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    clock = FrozenClock()
    async with AsyncExitStack() as stack:
        rpc = JsonRpc(clock, QUICK)
        stack.push_async_callback(rpc.aclose)
        yield Bench(stack, clock, rpc)


async def unavailable(bench: Bench, network: Network) -> ChainUnavailable:
    with pytest.raises(ChainUnavailable) as raised:
        await bench.rpc.call(network, THREE)
    return raised.value


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
    calls = [Call(REGISTRY, owner_of(n)) for n in range(120)]
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


def hex_of(data: bytes) -> str:
    return "0x" + data.hex()


SPELLINGS = {
    "string": lambda data: {"code": 3, "message": "execution reverted", "data": hex_of(data)},
    "object": lambda data: {"code": -32603, "message": "x", "data": {"data": hex_of(data)}},
    "message": lambda _: {"code": -32000, "message": "execution reverted"},
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("multicall", [True, False])
async def test_a_revert_is_an_answer_and_nobody_else_is_asked(
    bench: Bench,
    spelling: str,
    multicall: bool,  # noqa: FBT001 - a column of the table
) -> None:
    first, second = Node(revert_error=SPELLINGS[spelling]), Node(tokens=10_000)
    network = await bench.network(first, second, multicall=multicall)
    [alone] = await bench.rpc.call(network, [Call(REGISTRY, owner_of(999))])
    assert isinstance(alone, Reverted)
    assert alone.data == (b"" if spelling == "message" else refusal(999))
    _, among, _ = await bench.rpc.call(network, THREE)
    assert isinstance(among, Reverted)
    assert second.calls == []


async def test_a_reverting_request_is_refused_without_asking_others(bench: Bench) -> None:
    second = Node(tokens=10_000)
    network = await bench.network(Node(), second)
    params = [{"to": REGISTRY, "data": hex_of(owner_of(999))}, "latest"]
    with pytest.raises(RpcRefused) as raised:
        await bench.rpc.request(network, "eth_call", params)
    assert raised.value.rpc_code == 3
    assert second.calls == []


async def test_a_refused_request_tells_the_nodes_own_error(bench: Bench) -> None:
    wide = {"code": -32005, "message": "query returned more than 10000 results"}
    nodes = [changing("eth_getLogs", result=..., error=wide) for _ in range(2)]
    network = await bench.network(*nodes)
    for _ in range(5):  # shrinking windows must not open the breaker
        with pytest.raises(RpcRefused) as raised:
            await bench.rpc.request(network, "eth_getLogs", [{}])
        assert (raised.value.rpc_code, raised.value.rpc_message) == (-32005, wide["message"])
        assert "10000" in f"{raised.value.detail}"
        assert "10000" not in raised.value.message
    assert [r.data for r in await bench.rpc.call(network, THREE)] == expected()


async def test_one_node_that_accepts_a_request_is_enough(bench: Bench) -> None:
    network = await bench.network(
        changing("eth_getLogs", result=..., error={"code": -32602, "message": "too wide"}), Node()
    )
    assert await bench.rpc.request(network, "eth_getLogs", [{}]) == []


async def test_a_stale_endpoint_is_passed_over(bench: Bench) -> None:
    first, second = Node(), Node()
    network = await bench.network(first, second)
    await bench.rpc.call(network, THREE)
    first.head = second.head = HEAD + 1000
    await bench.rpc.call(network, THREE)
    first.head = HEAD + 1000 - STALE_BLOCKS_MAX - 1
    assert [r.data for r in await bench.rpc.call(network, THREE)] == expected(HEAD + 1000)
    second.head = first.head
    await unavailable(bench, network)


async def test_a_head_a_little_behind_is_no_lie(bench: Bench) -> None:
    node = Node()
    network = await bench.network(node)
    await bench.rpc.call(network, THREE)
    node.head = HEAD - STALE_BLOCKS_MAX
    assert [r.data for r in await bench.rpc.call(network, THREE)] == expected(node.head)


async def test_a_stale_endpoint_serves_no_requests_either(bench: Bench) -> None:
    stale, fresh = Node(head=HEAD - 1000), Node()
    network = await bench.network(fresh, stale)
    await bench.rpc.call(network, THREE)
    fresh.respond = lambda _request, _body: plain(b"", "503 Busy")
    with pytest.raises(ChainUnavailable):
        await bench.rpc.request(network, "eth_getLogs", [{}])


async def test_an_absurd_height_is_forgotten_in_the_end(bench: Bench) -> None:
    boasting, honest = Node(head=2**60), Node()
    network = await bench.network(boasting, honest)
    await bench.rpc.call(network, THREE)
    boasting.respond = lambda _request, _body: plain(b"", "503 Busy")
    await unavailable(bench, network)
    bench.clock.move(HEAD_FORGOTTEN_S + 1)
    assert [r.data for r in await bench.rpc.call(network, THREE)] == expected()


async def test_a_node_behind_its_balancer_is_read_a_little_deeper(bench: Bench) -> None:
    for multicall in (True, False):
        lagging = Node(sees=HEAD - 3)
        network = await bench.network(lagging, multicall=multicall)
        results = await bench.rpc.call(network, THREE)
        assert [r.data for r in results] == expected(HEAD - LAG_BLOCKS)


async def test_a_node_far_behind_its_balancer_is_passed_over(bench: Bench) -> None:
    network = await bench.network(Node(sees=HEAD - 50), Node())
    assert [r.data for r in await bench.rpc.call(network, THREE)] == expected()


async def test_the_chain_id_is_asked_again_from_time_to_time(bench: Bench) -> None:
    node = Node()
    network = await bench.network(node)
    await bench.rpc.call(network, THREE)
    await bench.rpc.call(network, THREE)
    assert node.calls.count("eth_chainId") == 1
    node.chain_id = 1
    bench.clock.move(QUICK.verify_every_s)
    await unavailable(bench, network)


async def test_an_endpoint_of_the_wrong_chain_is_left_alone_at_once(bench: Bench) -> None:
    wrong = Node(chain_id=1)
    network = await bench.network(wrong, Node())
    for _ in range(3):
        await bench.rpc.call(network, THREE)
    assert wrong.calls == ["eth_chainId"]


async def test_a_failing_endpoint_is_left_alone_and_tried_again_later(bench: Bench) -> None:
    busy, honest = sending(plain(b"", "503 Busy")), Node()
    asked = 0

    def count(_: Request, __: bytes) -> bytes:
        nonlocal asked
        asked += 1
        return plain(b"", "503 Busy")

    busy.respond = count
    network = await bench.network(busy, honest)
    for _ in range(10):
        await bench.rpc.call(network, THREE)
    assert asked == 3
    bench.clock.move(1.0)
    busy.respond = lambda _request, _body: None
    before = len(honest.calls)
    await bench.rpc.call(network, THREE)
    assert len(honest.calls) == before


async def test_when_every_endpoint_is_left_alone_nobody_waits(bench: Bench) -> None:
    network = await bench.network(sending(30.0))
    for _ in range(3):
        await unavailable(bench, network)
    started = time.monotonic()
    await unavailable(bench, network)
    assert time.monotonic() - started < 0.1


async def test_hanging_endpoints_cost_their_own_time_only(bench: Bench) -> None:
    network = await bench.network(sending(30.0), sending(30.0), Node())
    started = time.monotonic()
    assert [r.data for r in await bench.rpc.call(network, THREE)] == expected()
    assert time.monotonic() - started < 2.0


async def test_a_crowd_shares_one_endpoint_within_its_slots(bench: Bench) -> None:
    node = Node()
    network = await bench.network(node)
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(bench.rpc.call(network, THREE)) for _ in range(100)]
    assert all([r.data for r in task.result()] == expected() for task in tasks)


async def test_a_rate_limited_batch_is_not_taken_for_an_unknown_one(bench: Bench) -> None:
    node = Node()
    limited = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":"slow down"}}'
    node.respond = lambda request, _: plain(limited) if request.body.startswith(b"[") else None
    network = await bench.network(node, multicall=False)
    await unavailable(bench, network)
    node.respond = lambda _request, _body: None
    assert [r.data for r in await bench.rpc.call(network, THREE)] == expected()
    assert "batch(3)" in node.calls[-4]


async def test_the_environments_proxies_are_ignored_by_rpc(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert await bench.rpc.call(await bench.network(Node()), ONE) == [Returned(owner(7, HEAD))]


@pytest.mark.parametrize(
    "error", [{"code": -32005, "message": "slow"}, {"code": -32000, "message": "?"}]
)
async def test_calls_one_by_one_are_all_right_or_none_is(bench: Bench, error: Reply) -> None:
    def answer(request: Reply, reply: Reply) -> Reply | None:
        last = request["method"] == "eth_call" and hex_of(owner_of(2)) in str(request)
        return {"id": reply["id"], "error": error} if last else None

    limited, honest = Node(takes_batches=False, answer=answer), Node()
    network = await bench.network(limited, honest, multicall=False)
    assert [r.data for r in await bench.rpc.call(network, THREE)] == expected()
    assert "batch(3)" in honest.calls


async def test_the_total_time_bounds_every_endpoint_together(bench: Bench) -> None:
    def slow(_: Request, __: bytes) -> bytes:
        bench.clock.move(QUICK.total_s + 1)
        return plain(b"", "503 Busy")

    never = Node()
    error = await unavailable(bench, await bench.network(Node(respond=slow), never))
    assert "no time left" in f"{error.detail}"
    assert never.calls == []


async def test_an_address_that_is_none_is_passed_over(bench: Bench) -> None:
    network = await bench.network(Node())
    odd = replace(network, rpc_urls=("http://[::1", "nonsense", "", *network.rpc_urls))
    assert [r.data for r in await bench.rpc.call(odd, THREE)] == expected()
