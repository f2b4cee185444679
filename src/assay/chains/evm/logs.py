"""Reads event logs from nodes that limit the number of blocks in one request."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass

from assay.chains.evm.abi import BadAnswer
from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import Rpc, RpcRefused
from assay.common.clock import Clock
from assay.common.json import JsonValue, is_array, is_object
from assay.common.numbers import NotANumber, hex_number

WINDOW = 10_000
"""Blocks per request after a request for all was refused. Source: evm-nodes.md#log-ranges (public
nodes accept 100 to 50,000)."""

AT_ONCE = 4
LOGS_MAX = 20_000
_HEX = re.compile(r"0x[0-9a-fA-F]*")
_TOPICS_MAX = 4


@dataclass(frozen=True, slots=True)
class EventLog:
    """An event: its block, its topics as 32-byte words, its data."""

    block: int
    topics: tuple[bytes, ...]
    data: bytes


@dataclass(frozen=True, slots=True)
class Logs:
    """The logs read; they are complete from block `since` on, None if nothing could be read."""

    found: tuple[EventLog, ...]
    since: int | None


async def read_logs(  # noqa: PLR0913, PLR0917 - what is asked for, and how far
    rpc: Rpc,
    network: Network,
    address: str,
    topics: Sequence[JsonValue],
    head: int,
    clock: Clock,
    budget_s: float,
    oldest: int = 0,
) -> Logs:
    """Read logs from block `head` backwards to `oldest`, as far as `budget_s` allows.

    Never raises for a node's fault: unreadable ranges are missing.
    """
    ends_s = clock.monotonic_s() + budget_s
    found: list[EventLog] = []
    since: int | None = None
    size, upto = max(1, head - oldest + 1), head
    while upto >= oldest and len(found) < LOGS_MAX and (left_s := ends_s - clock.monotonic_s()) > 0:
        windows = [
            (max(oldest, end - size + 1), end)
            for end in range(upto, max(oldest - 1, upto - size * AT_ONCE), -size)
        ]
        try:
            async with asyncio.timeout(left_s):
                found += await _wave(rpc, network, address, topics, windows)
        except RpcRefused:
            if size == 1:
                break
            size = min(WINDOW, size // 2)
            continue
        except (ChainUnavailable, BadAnswer, TimeoutError):
            break
        since = windows[-1][0]
        upto = since - 1
    return Logs(tuple(found), since)


async def _wave(
    rpc: Rpc,
    network: Network,
    address: str,
    topics: Sequence[JsonValue],
    windows: Sequence[tuple[int, int]],
) -> list[EventLog]:
    """Read several windows concurrently."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(_window(rpc, network, address, topics, start, end))
                for start, end in windows
            ]
    except ExceptionGroup as faults:
        raise faults.exceptions[0] from faults
    return [log for task in tasks for log in task.result()]


async def _window(
    rpc: Rpc, network: Network, address: str, topics: Sequence[JsonValue], start: int, end: int
) -> list[EventLog]:
    query: JsonValue = {
        "address": address,
        "topics": list(topics),
        "fromBlock": hex(start),
        "toBlock": hex(end),
    }
    answer = await rpc.request(network, "eth_getLogs", [query])
    if not is_array(answer):
        raise BadAnswer("eth_getLogs answered no list")
    logs = [_log(row) for row in answer]
    if any(not start <= log.block <= end for log in logs):
        raise BadAnswer("a log of a block that was not asked for")
    return logs


def _log(row: JsonValue) -> EventLog:
    if not is_object(row):
        raise BadAnswer("a log that is no object")
    topics = row.get("topics")
    if not is_array(topics) or len(topics) > _TOPICS_MAX:
        raise BadAnswer("a log without topics")
    words = tuple(hex_bytes(topic) for topic in topics)
    try:
        block = hex_number(row.get("blockNumber"), 64)
    except NotANumber:
        raise BadAnswer("a log without its block") from None
    return EventLog(block, words, hex_bytes(row.get("data")))


def hex_bytes(value: JsonValue) -> bytes:
    """Decode `0x` and hex digits, even an odd number of them. Raises `BadAnswer`."""
    if not isinstance(value, str) or not _HEX.fullmatch(value):  # `fromhex` skips white space.
        raise BadAnswer("no hexadecimal value")
    digits = value[2:]
    return bytes.fromhex("0" * (len(digits) % 2) + digits)
