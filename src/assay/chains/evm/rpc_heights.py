"""Decides which block numbers of an endpoint are trusted.

A number alone proves nothing, and one node's number does not disprove another's. A node that falls
behind its own number is stale. If two nodes contradict each other, or a number rose faster than any
chain does, the node that is about to be asked has to show its newest block, and our own clock
decides whether that is recent: an endpoint that exaggerates makes no other look stale.
"""

from collections.abc import Sequence

from assay.chains.evm.rpc_endpoint import EndpointFault, RpcEndpoint
from assay.chains.evm.rpc_shapes import is_shaped
from assay.chains.evm.rpc_wire import NodeError
from assay.common.json import JsonObject, is_object
from assay.common.numbers import hex_number

STALE_BLOCKS_MAX = 128
"""How far an endpoint may be behind the highest block seen: the states a full node keeps, 25
minutes on Ethereum, half a minute on the fastest chains. Source: geth, `--history.state`."""

HEAD_FORGOTTEN_S = 900.0
"""How long a height is compared with others."""

BLOCKS_PER_S_MAX = 100
"""More than any chain produces; the fastest produce one in 10 milliseconds."""

BLOCK_AGE_MAX_S = 120.0
"""Largest difference between the newest block's time and ours, where that decides: ten slots of
Ethereum, some of which stay empty."""

SHOWN_S = 60.0
"""How long a shown block vouches for those that follow it."""

_NEWEST = ("eth_getBlockByNumber", ("latest", False))


async def believe_height(
    endpoint: RpcEndpoint, block: int, others: Sequence[RpcEndpoint], deadline_s: float
) -> None:
    """Record the height an endpoint reports. Raises `EndpointFault` if it is not credible."""
    now = endpoint.clock.monotonic_s()
    own = _recent(endpoint, now)
    if own is not None and block < own[0] - STALE_BLOCKS_MAX:
        raise EndpointFault(f"block {block} is stale: it told of {own[0]} before")
    known = [head for one in others if (head := _recent(one, now)) is not None]
    known += [] if own is None else [own]
    if any(_contradict(block, seen, now - at) for seen, at in known) and not _was_shown(
        endpoint, block, now
    ):
        await _require_new(endpoint, block, deadline_s)
        endpoint.shown = (block, now)
    endpoint.head = (block, now)


def _recent(endpoint: RpcEndpoint, now: float) -> tuple[int, float] | None:
    head = endpoint.head
    return head if head is not None and now - head[1] <= HEAD_FORGOTTEN_S else None


def _contradict(block: int, seen: int, age_s: float) -> bool:
    """Return whether both cannot be heights of one chain, `seen` being `age_s` older."""
    return not -STALE_BLOCKS_MAX <= block - seen <= STALE_BLOCKS_MAX + age_s * BLOCKS_PER_S_MAX


def _was_shown(endpoint: RpcEndpoint, block: int, now: float) -> bool:
    if endpoint.shown is None:
        return False
    seen, at = endpoint.shown
    return now - at <= SHOWN_S and not _contradict(block, seen, now - at)


async def _require_new(endpoint: RpcEndpoint, block: int, deadline_s: float) -> None:
    """Raise `EndpointFault` unless its newest block is near that number and recent."""
    answer = await endpoint.ask(_NEWEST, deadline_s)
    shown: JsonObject = {}
    if not isinstance(answer, NodeError) and is_shaped(*_NEWEST, answer.value):
        shown = answer.value if is_object(answer.value) else {}
    if not shown:
        raise EndpointFault(f"it tells of block {block}, and does not show it")
    number = hex_number(shown.get("number"), 64)
    if abs(number - block) > STALE_BLOCKS_MAX:
        raise EndpointFault(f"it tells of block {block}, and shows {number}")
    made_s = hex_number(shown.get("timestamp"), 64)
    if abs(endpoint.clock.now().timestamp() - made_s) > BLOCK_AGE_MAX_S:
        raise EndpointFault(f"block {block} is stale: it was made at {made_s}")
