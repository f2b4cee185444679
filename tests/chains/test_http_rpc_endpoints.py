"""Reverts, stale and failing endpoints: who is asked, who is believed, who is left alone."""

import asyncio
import time
from dataclasses import replace

import pytest

from assay.chains.evm.rpc_endpoint import STALE_BLOCKS_MAX
from assay.chains.evm.rpc_network import LAG_BLOCKS
from assay.chains.model import ChainUnavailable
from assay.chains.rpc import ContractCall, Returned, Reverted, RpcRefused
from tests.support.ethereum_node import (
    HEAD,
    REGISTRY,
    Node,
    Reply,
    changing,
    owner,
    owner_of,
    refusal,
    sending,
)
from tests.support.raw_server import Request, plain
from tests.support.rpc_bench import ONE, QUICK, THREE, Bench, expected, unavailable


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
    [alone] = await bench.rpc.call(network, [ContractCall(REGISTRY, owner_of(999))])
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


@pytest.mark.parametrize("change", [{"id": 1}, {"id": None}, {"id": "x"}, {"result": ...}])
async def test_a_batch_that_answers_something_else_is_passed_over(
    bench: Bench, change: Reply
) -> None:
    network = await bench.network(changing("eth_call", **change), Node(), multicall=False)
    assert [r.data for r in await bench.rpc.call(network, THREE)] == expected()
