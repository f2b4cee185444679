"""The demo's own chain keeps time, though it mines for transactions only."""

import time
from typing import Any

import pytest

from assay_demo.chain.node import Chain


def ask(chain: Chain, method: str, *params: Any) -> Any:
    answer = chain.answer({"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)})
    return answer["result"]


def test_a_block_named_after_an_idle_hour_is_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """A payment signed now was "not valid yet" at the last block, and the demo's payer refused."""
    chain = Chain()
    later = int(time.time()) + 3600
    monkeypatch.setattr("assay_demo.chain.node.time.time", lambda: later)
    number, whole = ask(chain, "eth_blockNumber"), False
    assert int(ask(chain, "eth_getBlockByNumber", number, whole)["timestamp"], 16) >= later - 1
    assert ask(chain, "eth_blockNumber") == number  # one block a second at the most
