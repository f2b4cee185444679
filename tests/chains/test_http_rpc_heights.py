"""One node's word about the height of a chain never disqualifies another node."""

from dataclasses import dataclass

import pytest

from assay.chains.evm.rpc_endpoint import HEAD_FORGOTTEN_S, STALE_BLOCKS_MAX, RpcLimits
from assay.chains.evm.rpc_network import JsonRpc
from assay.common.circuit_breaker import OPEN_S_MAX
from tests.support.ethereum_node import HEAD, NOW_S, Node, Reply, changing
from tests.support.raw_server import Request, plain
from tests.support.rpc_bench import THREE, Bench, expected, unavailable

BOASTS = [HEAD + STALE_BLOCKS_MAX + 1, HEAD + 1000, HEAD * 1000, 2**40, 2**60, 2**64 - 1]


@dataclass
class Boaster:
    """A node that tells of a height it does not have, and then fails."""

    node: Node

    def fail(self) -> None:
        self.node.respond = lambda _request, _body: plain(b"", "503 Busy")


@pytest.mark.parametrize("height", BOASTS)
@pytest.mark.parametrize("honest", [1, 2])
async def test_a_node_that_boasted_before_it_failed_makes_nobody_look_stale(
    bench: Bench, height: int, honest: int
) -> None:
    boaster = Boaster(Node(head=height))
    network = await bench.network(boaster.node, *[Node() for _ in range(honest)])
    await bench.rpc.call(network, THREE)
    boaster.fail()
    for _ in range(5):
        assert [r.data for r in await bench.rpc.call(network, THREE)] == expected()
        assert [r.data for r in await bench.rpc.call_newest(network, THREE)] == expected()
        assert await bench.rpc.request(network, "eth_getLogs", [{}]) == []
        bench.clock.move(10)


@pytest.mark.parametrize("height", BOASTS)
async def test_a_node_whose_block_cannot_be_called_at_makes_nobody_look_stale(
    bench: Bench, height: int
) -> None:
    boaster = Node(head=height, sees=HEAD)
    network = await bench.network(boaster, Node())
    for _ in range(5):
        assert [r.data for r in await bench.rpc.call(network, THREE)] == expected()


async def test_a_node_that_boasts_now_and_then_is_passed_over_itself(bench: Bench) -> None:
    """It contradicts itself: what it said before, or what any chain can do in the time."""
    boaster, honest = Node(), Node()
    network = await bench.network(boaster, honest)
    await bench.rpc.call(network, THREE)
    boaster.head = 2**60
    boaster.answer = lambda request, reply: (
        {**reply, "result": None} if request["method"] == "eth_getBlockByNumber" else None
    )
    assert [r.data for r in await bench.rpc.call(network, THREE)] == expected()
    assert "multicall(3)" in honest.calls


SHOWN: dict[str, Reply | None] = {
    "none": None,
    "another": {"number": hex(HEAD), "timestamp": hex(NOW_S)},
    "an old one": {"number": hex(2**40), "timestamp": hex(NOW_S - 3600)},
    "one of tomorrow": {"number": hex(2**40), "timestamp": hex(NOW_S + 86_400)},
    "one without a time": {"number": hex(2**40)},
    "one of words": {"number": "latest", "timestamp": "now"},
    "one of floats": {"number": 2.0**40, "timestamp": 1.5},
    "one below zero": {"number": "-0x5", "timestamp": hex(NOW_S)},
    "one of endless digits": {"number": "0x" + "f" * 70_000, "timestamp": hex(NOW_S)},
}


@pytest.mark.parametrize("shown", SHOWN)
async def test_a_height_far_above_the_others_has_to_be_shown(bench: Bench, shown: str) -> None:
    boaster, honest = changing("eth_getBlockByNumber", result=SHOWN[shown]), Node()
    boaster.respond = lambda _request, _body: plain(b"", "503 Busy")
    network = await bench.network(boaster, honest)
    await bench.rpc.call(network, THREE)
    boaster.head, boaster.respond = 2**40, lambda _request, _body: None
    assert [r.data for r in await bench.rpc.call(network, THREE)] == expected()
    assert len([c for c in honest.calls if c == "multicall(3)"]) == 2


async def test_a_node_that_lags_is_passed_over_by_the_age_of_its_own_block(bench: Bench) -> None:
    fresh, lagging = Node(), Node(head=HEAD - STALE_BLOCKS_MAX - 1)
    network = await bench.network(fresh, lagging)
    await bench.rpc.call(network, THREE)
    Boaster(fresh).fail()
    await unavailable(bench, network)
    assert "multicall(3)" not in lagging.calls


async def test_a_lagging_node_does_not_demote_the_honest_ones(bench: Bench) -> None:
    lagging, fresh = Node(head=HEAD - 1000), Node()
    network = await bench.network(lagging, fresh)
    await bench.rpc.call(network, THREE)
    Boaster(lagging).fail()
    for _ in range(3):
        assert [r.data for r in await bench.rpc.call(network, THREE)] == expected()


async def test_a_chain_that_goes_on_shows_no_blocks(bench: Bench) -> None:
    first, second = Node(), Node()
    network = await bench.network(first, second)
    for _ in range(5):
        await bench.rpc.call(network, THREE)
        bench.clock.move(10)
        first.head += 30
    assert "eth_getBlockByNumber" not in first.calls


async def test_an_honest_node_is_not_asked_for_its_block_at_every_call(bench: Bench) -> None:
    boaster, honest = Node(head=2**40), Node()
    network = await bench.network(boaster, honest)
    await bench.rpc.call(network, THREE)
    Boaster(boaster).fail()
    for _ in range(10):
        await bench.rpc.call(network, THREE)
    assert honest.calls.count("eth_getBlockByNumber") == 1


async def test_a_node_that_boasted_once_is_asked_again_in_the_end(bench: Bench) -> None:
    boaster = Node(head=2**60)
    network = await bench.network(boaster)
    await bench.rpc.call(network, THREE)
    boaster.head = HEAD
    await unavailable(bench, network)
    bench.clock.move(HEAD_FORGOTTEN_S + OPEN_S_MAX)
    assert [r.data for r in await bench.rpc.call(network, THREE)] == expected()


async def test_a_node_that_is_always_just_in_time_leaves_time_for_the_next(bench: Bench) -> None:
    """Each exchange has its limit, and together they once took what all the nodes have."""
    limits = RpcLimits(endpoint_s=4.0, total_s=9.0)

    def slow(request: Request, _: bytes) -> bytes | None:
        bench.clock.move(3.9)
        return b"" if b"eth_call" in request.body else None

    network = await bench.network(Node(respond=slow), Node())
    rpc = JsonRpc(bench.clock, limits)
    bench.stack.push_async_callback(rpc.aclose)
    assert [r.data for r in await rpc.call(network, THREE)] == expected()
