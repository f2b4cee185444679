"""Event logs, from nodes that answer for few blocks at once, lie, or do not answer."""

import pytest

from assay.chains.evm.logs import read_logs
from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import RpcRefused
from assay.common.json import JsonObject, JsonValue, is_object
from tests.support.fakes.chain import NETWORK, FakeRpc
from tests.support.fakes.clock import FrozenClock

HEAD = 99_999
WORD = "0x" + "11" * 32


def log(block: int) -> JsonObject:
    return {"blockNumber": hex(block), "topics": [WORD], "data": "0x"}


class Node(FakeRpc):
    """Takes at most `blocks_max` blocks at once; an event every thousandth block."""

    blocks_max = 10**9
    windows: list[tuple[int, int]]
    told: JsonValue = None

    async def request(self, network: Network, method: str, params: object) -> JsonValue:
        del network
        assert method == "eth_getLogs"
        assert isinstance(params, list)
        query: JsonValue = params[0]
        assert is_object(query)
        start, end = int(str(query["fromBlock"]), 16), int(str(query["toBlock"]), 16)
        self.windows = [*getattr(self, "windows", []), (start, end)]
        if self.down:
            raise ChainUnavailable("down")
        if end - start + 1 > self.blocks_max:
            raise RpcRefused("no", rpc_code=-32614, rpc_message="block range too large")
        if self.told is not None:
            return self.told
        return [log(n) for n in range(start, end + 1) if n % 1000 == 0]


async def read(node: Node) -> tuple[list[int], int | None]:
    found = await read_logs(node, NETWORK, WORD[:42], [WORD], HEAD, FrozenClock(), 5.0)
    return sorted(one.block for one in found.found), found.since


@pytest.mark.parametrize("most", [10**9, 50_000, 10_000, 3_000, 100])
async def test_every_log_is_read_once_however_few_blocks_a_node_takes(most: int) -> None:
    node = Node()
    node.blocks_max = most
    assert await read(node) == (list(range(0, HEAD + 1, 1000)), 0)


async def test_one_question_is_enough_where_a_node_takes_it() -> None:
    node = Node()
    await read(node)
    assert node.windows == [(0, HEAD)]


async def test_a_node_that_is_down_or_takes_no_block_tells_nothing() -> None:
    down, none = Node(down=True), Node()
    none.blocks_max = 0
    assert await read(down) == ([], None)
    assert await read(none) == ([], None)


@pytest.mark.parametrize(
    "told",
    [
        "0x",
        [1],
        [log(HEAD + 1)],
        [{"blockNumber": "1", "topics": [], "data": "0x"}],
        [{"blockNumber": "0x1", "topics": [WORD] * 5, "data": "0x"}],
        [{"blockNumber": "0x1", "topics": "0x", "data": "0x"}],
        [{"blockNumber": "0x1", "topics": [WORD], "data": "0xzz"}],
    ],
)
async def test_logs_that_cannot_be_believed_are_not(told: JsonValue) -> None:
    node = Node()
    node.told = told
    assert await read(node) == ([], None)
