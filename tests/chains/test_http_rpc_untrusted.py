"""A contract that a caller names costs itself, and neither the node nor anybody who reads it."""

import asyncio
from contextlib import AsyncExitStack, suppress
from typing import Any

import pytest

from assay.chains.evm.rpc_network import JsonRpc
from assay.chains.model import ChainUnavailable
from assay.chains.rpc import ContractCall, Returned, Reverted
from assay.common.circuit_breaker import FAILURES_MAX
from assay.common.costs import Bearer, Cost, CostLedger, serve_for
from assay.common.errors import TooMany
from tests.support.ethereum_node import REGISTRY, Node, Reply, owner_of, refusal
from tests.support.fakes.clock import FrozenClock
from tests.support.raw_server import Request, plain
from tests.support.rpc_bench import ONE, QUICK, THREE, Bench, expected, unavailable

BURNER = "0x" + "bb" * 20
GAS = 3_000_000


def burning(reply: float | bytes = 30.0) -> Node:
    """A node that answers nothing, or an error of its own, whenever the contract is called."""

    def respond(request: Request, _body: bytes) -> float | bytes | None:
        return reply if BURNER.encode() in request.body else None

    return Node(respond=respond)


async def burn(bench: Bench, network: Any) -> Returned | Reverted:
    return await bench.rpc.call_untrusted(network, ContractCall(BURNER, b"\x16\x26\xba\x7e"), GAS)


@pytest.mark.parametrize("reply", [30.0, b"", plain(b"", "503 Busy"), plain(b"", "504 Timeout")])
async def test_a_contract_that_burns_gas_opens_no_breaker_of_the_node(
    bench: Bench, reply: float | bytes
) -> None:
    network = await bench.network(burning(reply))
    for _ in range(FAILURES_MAX + 2):
        assert isinstance(await burn(bench, network), Reverted)
        assert [r.data for r in await bench.rpc.call(network, THREE)] == expected()


@pytest.mark.slow
async def test_a_node_that_does_one_thing_at_a_time_is_not_blamed_for_a_contract(
    bench: Bench,
) -> None:
    """While the contract burns its gas such a node does not even tell its height."""
    node = burning()
    is_stuck = False

    def respond(request: Request, _body: bytes) -> float | None:
        nonlocal is_stuck
        is_stuck = is_stuck or BURNER.encode() in request.body
        return 30.0 if is_stuck else None

    node.respond = respond
    network = await bench.network(node)
    for _ in range(FAILURES_MAX + 2):
        with suppress(ChainUnavailable):
            await burn(bench, network)
        is_stuck = False
    assert [r.data for r in await bench.rpc.call(network, THREE)] == expected()


async def test_reads_that_wait_for_a_contract_to_end_are_not_held_against_the_node(
    bench: Bench,
) -> None:
    begun = asyncio.Event()

    def respond(request: Request, _body: bytes) -> float | None:
        if BURNER.encode() in request.body:
            begun.set()
        return 30.0 if begun.is_set() else None

    network = await bench.network(Node(respond=respond))
    await bench.rpc.call(network, ONE)
    burnt = asyncio.get_running_loop().create_task(burn(bench, network))
    await begun.wait()
    async with asyncio.TaskGroup() as group:
        for _ in range(FAILURES_MAX):
            group.create_task(unavailable(bench, network))
    with suppress(ChainUnavailable):
        await burnt
    begun.clear()
    assert [r.data for r in await bench.rpc.call(network, THREE)] == expected()


async def test_a_contract_that_never_answers_is_left_alone_by_itself(bench: Bench) -> None:
    node = burning(b"")
    network = await bench.network(node)
    for _ in range(FAILURES_MAX):
        await burn(bench, network)
    asked = len(node.calls)
    assert isinstance(await burn(bench, network), Reverted)
    assert len(node.calls) == asked
    other = await bench.rpc.call_untrusted(network, ONE[0], GAS)
    assert isinstance(other, Returned)
    bench.clock.move(60)
    await burn(bench, network)
    assert len(node.calls) > asked


async def test_only_the_first_node_is_burnt(bench: Bench) -> None:
    second = burning()
    network = await bench.network(burning(), second)
    assert isinstance(await burn(bench, network), Reverted)
    assert second.calls == []


async def test_the_call_carries_its_gas_cap(bench: Bench) -> None:
    seen: list[Any] = []

    def answer(request: Reply, _reply: Reply) -> None:
        if request["method"] == "eth_call":
            seen.append(request["params"][0]["gas"])

    network = await bench.network(Node(answer=answer))
    call = ContractCall(REGISTRY, owner_of(999))
    assert await bench.rpc.call_untrusted(network, call, GAS) == Reverted(
        refusal(999), "execution reverted"
    )
    assert seen == [hex(GAS)]


async def test_a_node_that_is_really_down_is_passed_over_and_blamed(bench: Bench) -> None:
    down = Node(respond=lambda _request, _body: plain(b"", "503 Busy"))
    second = Node()
    network = await bench.network(down, second)
    for _ in range(FAILURES_MAX + 1):
        assert isinstance(await bench.rpc.call_untrusted(network, ONE[0], GAS), Returned)
    assert not down.calls or second.calls


@pytest.mark.parametrize(
    "error",
    [{"code": -32000, "message": "out of gas"}, {"code": -32603, "message": "execution timeout"}],
)
async def test_an_error_about_the_call_is_the_contracts_own(bench: Bench, error: Reply) -> None:
    def answer(request: Reply, reply: Reply) -> Reply | None:
        if request["method"] != "eth_call" or request["params"][0]["to"] != BURNER:
            return None
        return {"jsonrpc": "2.0", "id": reply["id"], "error": error}

    network = await bench.network(Node(answer=answer))
    for _ in range(FAILURES_MAX + 1):
        assert isinstance(await burn(bench, network), Reverted)
    assert [r.data for r in await bench.rpc.call(network, THREE)] == expected()


async def test_many_burning_contracts_leave_room_for_other_reads(bench: Bench) -> None:
    network = await bench.network(burning(1.0))
    await bench.rpc.call(network, ONE)
    async with asyncio.TaskGroup() as group:
        burnt = [group.create_task(burn(bench, network)) for _ in range(30)]
        await asyncio.sleep(0)
        found = await bench.rpc.call(network, THREE)
        assert [r.data for r in found] == expected()
        assert not all(task.done() for task in burnt)
        for task in burnt:
            task.cancel()


async def test_one_callers_slow_contracts_hold_up_nobody_elses(bench: Bench) -> None:
    """First come, first served, sixty of them took all the time that anybody else's had."""
    network = await bench.network(burning(0.3))
    await bench.rpc.call(network, ONE)
    async with asyncio.TaskGroup() as group:
        serve_for(lambda: Bearer("address 192.0.2.1"))
        flood = [group.create_task(burn(bench, network)) for _ in range(60)]
        await asyncio.sleep(0)
        serve_for(lambda: Bearer("address 203.0.113.9"))
        assert isinstance(await bench.rpc.call_untrusted(network, ONE[0], GAS), Returned)
        assert not all(task.done() for task in flood)
        for task in flood:
            task.cancel()


async def test_a_caller_has_few_calls_of_contracts_waiting(bench: Bench) -> None:
    network = await bench.network(burning(0.3))
    async with asyncio.TaskGroup() as group:
        flood = [group.create_task(_refused(bench, network)) for _ in range(200)]
        await asyncio.sleep(0.2)
        for task in flood:
            task.cancel()
    assert sum(task.done() and not task.cancelled() for task in flood) >= 200 - 4 - 64


async def _refused(bench: Bench, network: Any) -> None:
    with pytest.raises(TooMany, match="contracts"):
        await burn(bench, network)


async def test_every_request_is_counted_for_whoever_caused_it() -> None:
    clock = FrozenClock()
    costs = CostLedger(clock)
    async with AsyncExitStack() as stack:
        rpc = JsonRpc(clock, QUICK, costs)
        stack.push_async_callback(rpc.aclose)
        counted = Bench(stack, clock, rpc)
        network = await counted.network(Node(), multicall=False)
        serve_for(lambda: Bearer("operator 1"))
        await rpc.call(network, THREE)  # chain id, height, and a batch of three
        serve_for(lambda: Bearer("address 192.0.2.1"))
        await rpc.call(network, ONE)  # height, and one
    assert costs.used(Cost.RPC_CALLS, Bearer("operator 1")) == 5
    assert costs.used(Cost.RPC_CALLS, Bearer("address 192.0.2.1")) == 2
