"""What many ask at once goes out together, and each has its own answer whatever the others have."""

import asyncio
import json

import pytest

from assay.chains.evm.rpc_endpoint import BATCH_MAX, STALE_BLOCKS_MAX
from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import ContractCall, Returned, Reverted, RpcRefused
from assay.common.circuit_breaker import FAILURES_MAX
from assay.common.json import is_object
from tests.support.ethereum_node import HEAD, REGISTRY, Node, Reply, owner, owner_of
from tests.support.raw_server import Request, plain
from tests.support.rpc_bench import ONE, THREE, Bench, expected

RECEIPT = "eth_getTransactionReceipt"


def receipts(request: Reply, reply: Reply) -> Reply | None:
    """Each transaction's receipt names it; `bad` is refused."""
    if request["method"] != RECEIPT:
        return None
    asked = request["params"][0]
    error = {"code": -32000, "message": "nonce too low"}
    receipt = {"status": "0x1", "transactionHash": asked, "logs": []}
    told = {"error": error} if asked == "bad" else {"result": receipt}
    return {"jsonrpc": "2.0", "id": reply["id"], **told}


def named(receipt: object) -> object:
    return receipt["transactionHash"] if is_object(receipt) else receipt


async def ask(bench: Bench, network: Network, asked: str) -> object:
    try:
        return named(await bench.rpc.request(network, RECEIPT, (asked,)))
    except ChainUnavailable as error:
        return error


async def ask_all(bench: Bench, network: Network, *asked: str) -> list[object]:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask(bench, network, one)) for one in asked]
    return [task.result() for task in tasks]


async def test_what_is_asked_at_once_is_one_batch(bench: Bench) -> None:
    node = Node(answer=receipts)
    network = await bench.network(node)
    await ask(bench, network, "first")  # its chain is known now
    asked = [f"{n}" for n in range(20)]
    assert await ask_all(bench, network, *asked) == asked
    assert node.calls.count("batch(20)") == 1


async def test_one_alone_is_no_batch(bench: Bench) -> None:
    node = Node(answer=receipts)
    network = await bench.network(node)
    assert await ask(bench, network, "a") == "a"
    assert await ask(bench, network, "b") == "b"
    assert not [call for call in node.calls if call.startswith("batch")]


async def test_no_batch_is_larger_than_the_most_nodes_take(bench: Bench) -> None:
    node = Node(answer=receipts)
    network = await bench.network(node)
    await ask(bench, network, "first")
    asked = [f"{n}" for n in range(BATCH_MAX * 2 + 1)]
    assert await ask_all(bench, network, *asked) == asked
    assert node.calls.count(f"batch({BATCH_MAX})") == 2


async def test_a_refused_member_is_refused_and_the_others_are_answered(bench: Bench) -> None:
    network = await bench.network(Node(answer=receipts))
    await ask(bench, network, "first")
    one, bad, two = await ask_all(bench, network, "one", "bad", "two")
    assert (one, two) == ("one", "two")
    assert isinstance(bad, RpcRefused)
    assert bad.rpc_message == "nonce too low"


async def test_a_member_that_one_node_refuses_another_may_answer(bench: Bench) -> None:
    refuses, takes = Node(answer=receipts), Node()
    taken = {"status": "0x1", "transactionHash": "BAD", "logs": []}
    takes.answer = lambda request, reply: (
        {"jsonrpc": "2.0", "id": reply["id"], "result": taken}
        if request["method"] == RECEIPT
        else None
    )
    network = await bench.network(refuses, takes)
    assert await ask_all(bench, network, "one", "bad") == ["one", "BAD"]


async def test_a_node_that_takes_no_batches_is_asked_one_by_one(bench: Bench) -> None:
    node = Node(answer=receipts, takes_batches=False)
    network = await bench.network(node)
    await ask(bench, network, "first")
    asked = [f"{n}" for n in range(8)]
    tried: list[int] = []
    for _ in range(6):
        assert await ask_all(bench, network, *asked) == asked
        tried.append(len([call for call in node.calls if call.startswith("batch")]))
    assert tried[0] == 1
    assert tried[-2] == tried[-1] <= 7  # 8, twice 4, four times 2; and never again


async def test_a_batch_that_is_too_large_is_halved_until_it_is_taken(bench: Bench) -> None:
    def respond(request: Request, _: bytes) -> bytes | None:
        asked = json.loads(request.body)
        too_large = isinstance(asked, list) and len(asked) > 5
        return plain(b'{"error": {"code": -32600, "message": "too many"}}') if too_large else None

    node = Node(answer=receipts, respond=respond)
    network = await bench.network(node)
    await ask(bench, network, "first")
    asked = [f"{n}" for n in range(16)]
    for _ in range(4):
        assert await ask_all(bench, network, *asked) == asked
    assert node.calls[-20:].count("batch(4)") == 4


async def test_a_member_that_is_called_off_holds_up_nobody(bench: Bench) -> None:
    node = Node(answer=receipts)
    network = await bench.network(node)
    await ask(bench, network, "first")
    async with asyncio.TaskGroup() as group:
        stays = group.create_task(ask(bench, network, "stays"))
        gone = group.create_task(ask(bench, network, "gone"))
        await asyncio.sleep(0)
        gone.cancel()
    assert stays.result() == "stays"
    assert gone.cancelled()


async def test_an_exchange_that_fails_for_many_counts_once_against_the_node(bench: Bench) -> None:
    """Else one broken connection under load would shut the chain out for a while."""
    broken = True

    def respond(_: Request, __: bytes) -> bytes | None:
        return plain(b"", "502 Bad Gateway") if broken else None

    node = Node(answer=receipts)
    network = await bench.network(node)
    await ask(bench, network, "first")
    node.respond = respond
    asked = [f"{n}" for n in range(FAILURES_MAX * 2)]
    assert all(isinstance(one, ChainUnavailable) for one in await ask_all(bench, network, *asked))
    broken = False
    assert await ask(bench, network, "after") == "after"


async def test_a_node_that_answers_only_some_of_a_batch_is_not_believed(bench: Bench) -> None:
    def respond(request: Request, body: bytes) -> bytes | None:
        if not request.body.startswith(b"["):
            return None
        answers = json.loads(body.partition(b"\r\n\r\n")[2])
        return plain(json.dumps(answers[:-1]).encode())

    lies, honest = Node(answer=receipts, respond=respond), Node(answer=receipts)
    network = await bench.network(lies, honest)
    await ask(bench, network, "first")
    assert await ask_all(bench, network, "one", "two") == ["one", "two"]
    assert RECEIPT in honest.calls


@pytest.mark.parametrize("multicall", [True, False])
async def test_calls_at_the_newest_block_are_one_exchange(
    bench: Bench,
    multicall: bool,  # noqa: FBT001 - a column of the table
) -> None:
    node = Node()
    network = await bench.network(node, multicall=multicall)
    found = await bench.rpc.call_newest(network, THREE)
    assert [r.data for r in found] == expected()
    assert [type(r) for r in found] == [Returned, Reverted, Returned]
    count = 2 if multicall else 4
    assert [c for c in node.calls if c.startswith("batch")] == [f"batch({count})"]


async def test_newest_is_the_block_of_now_and_not_the_one_before(bench: Bench) -> None:
    node = Node()
    network = await bench.network(node)
    await bench.rpc.call_newest(network, ONE)
    node.head += 1
    assert await bench.rpc.call_newest(network, ONE) == [Returned(owner(7, HEAD + 1))]


async def test_without_multicalls_code_the_calls_go_in_one_batch_and_that_is_remembered(
    bench: Bench,
) -> None:
    node = Node(has_multicall=False)
    network = await bench.network(node)
    for _ in range(2):
        assert [r.data for r in await bench.rpc.call_newest(network, THREE)] == expected()
    assert [c for c in node.calls if c.startswith("batch")] == ["batch(2)", "batch(4)", "batch(4)"]


async def test_a_stale_node_does_not_say_what_is_newest(bench: Bench) -> None:
    first, second = Node(head=HEAD + 1000), Node(head=HEAD + 1000)
    network = await bench.network(first, second)
    await bench.rpc.call_newest(network, ONE)
    first.head = HEAD + 1000 - STALE_BLOCKS_MAX - 1
    assert await bench.rpc.call_newest(network, ONE) == [Returned(owner(7, HEAD + 1000))]
    second.head = first.head
    with pytest.raises(ChainUnavailable):
        await bench.rpc.call_newest(network, ONE)


async def test_calls_and_receipts_of_one_moment_share_their_batch(bench: Bench) -> None:
    node = Node(answer=receipts)
    network = await bench.network(node)
    await ask(bench, network, "first")
    async with asyncio.TaskGroup() as group:
        calls = [
            group.create_task(bench.rpc.call_newest(network, [ContractCall(REGISTRY, owner_of(n))]))
            for n in (1, 2)
        ]
        receipt = group.create_task(ask(bench, network, "r"))
    assert [call.result()[0] for call in calls] == [Returned(owner(n, HEAD)) for n in (1, 2)]
    assert receipt.result() == "r"
    assert "batch(5)" in node.calls


@pytest.mark.parametrize("given", [{}, [], [[]], {"a": 1}, 1.5, "x"], ids=str)
async def test_an_id_of_any_shape_in_a_batch_is_passed_over(bench: Bench, given: object) -> None:
    """An object or a list cannot be a key: the reply broke off the search for another node."""

    def answer(request: Reply, reply: Reply) -> Reply | None:
        return {**reply, "id": given} if request["method"] in {RECEIPT, "eth_call"} else None

    honest = Node(answer=receipts)
    network = await bench.network(Node(answer=answer), honest, multicall=False)
    found = await bench.rpc.call_newest(network, THREE)
    assert [one.data for one in found] == [owner(1, HEAD), found[1].data, owner(2, HEAD)]
    told = await bench.rpc.request_all(network, [(RECEIPT, ("a",)), (RECEIPT, ("b",))])
    assert [named(one) for one in told] == ["a", "b"]
