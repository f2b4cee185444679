"""Contract calls at one endpoint and one block: by Multicall3, else a batch, else one by one.

Encodes and decodes `aggregate3` of Multicall3: many calls in one.

By hand because it is one fixed shape, because importing a general codec costs 146 ms, and because a
general one lets a hostile reply name the same bytes many times over.
"""

import asyncio
from collections.abc import Sequence
from typing import Literal

from assay.chains.evm.rpc_endpoint import (
    FAIL_OVER_CODES,
    LIMIT_EXCEEDED,
    Asked,
    EndpointFault,
    RpcEndpoint,
)
from assay.chains.evm.rpc_wire import (
    MalformedRpcAnswer,
    NodeError,
    RpcResponse,
    bytes_of,
    quantity_of,
    revert_of,
)
from assay.chains.rpc import ContractCall, Returned, Reverted
from assay.common.json import JsonObject

MULTICALL3 = "0xca11bde05977b3631167028862be2a173976ca11"
"""The same address on every chain that has it. Source: github.com/mds1/multicall3, README."""

AGGREGATE3 = bytes.fromhex("82ad56cb")
"""`aggregate3((address,bool,bytes)[])` returns `((bool,bytes)[])`. Source: Multicall3.sol."""

_WORD = 32
_ERROR_STRING = bytes.fromhex("08c379a0")
"""Selector of `Error(string)`. Source: Solidity, control structures (revert)."""


def encode_aggregate3(calls: Sequence[ContractCall]) -> bytes:
    """Return call data that makes every call; none can fail the others (allowFailure)."""
    heads, tails, offset = b"", b"", _WORD * len(calls)
    for call in calls:
        tail = (
            bytes.fromhex(call.to[2:]).rjust(_WORD, b"\0")
            + _word(1)
            + _word(3 * _WORD)
            + _word(len(call.data))
            + call.data.ljust(-(-len(call.data) // _WORD) * _WORD, b"\0")
        )
        heads += _word(offset)
        tails += tail
        offset += len(tail)
    return AGGREGATE3 + _word(_WORD) + _word(len(calls)) + heads + tails


def decode_aggregate3(data: bytes, count: int) -> list[Returned | Reverted]:
    """Return the `count` results. Raises `MalformedRpcAnswer` for any other shape.

    Every length is checked against the data, and all results together may not exceed the size of
    the reply: nothing is copied that was not sent.
    """
    array = _number(data, 0)
    if _number(data, array) != count:
        raise MalformedRpcAnswer("aggregate3 returned another number of results")
    base = array + _WORD
    results: list[Returned | Reverted] = []
    budget = len(data)
    for index in range(count):
        item = base + _number(data, base + index * _WORD)
        success, start = _number(data, item), item + _number(data, item + _WORD)
        length = _number(data, start)
        budget -= length
        content = data[start + _WORD : start + _WORD + length]
        if success > 1 or budget < 0 or len(content) != length:
            raise MalformedRpcAnswer("aggregate3 returned a broken result")
        results.append(Returned(content) if success else Reverted(content, _reason(content)))
    return results


def _word(number: int) -> bytes:
    return number.to_bytes(_WORD, "big")


def _number(data: bytes, at: int) -> int:
    word = data[at : at + _WORD]
    if len(word) != _WORD:
        raise MalformedRpcAnswer("aggregate3 returned less than it says")
    return int.from_bytes(word, "big")


def _reason(content: bytes) -> str:
    """Return the text of `Error(string)`, for logs; other data stays bytes."""
    length = int.from_bytes(content[36:68], "big")
    if not content.startswith(_ERROR_STRING) or length > len(content):
        return "execution reverted"
    text = content[68 : 68 + length].decode("utf-8", "replace")
    return f"execution reverted: {text}"


CALLS_PER_CHUNK = 50
"""Small enough for the batch limits of public nodes and the gas cap of one `eth_call`."""

CallOutcome = Returned | Reverted


class BlockUnknown(EndpointFault):
    """The endpoint's node does not have the block that another node there reported."""


async def read_at(
    endpoint: RpcEndpoint,
    calls: Sequence[ContractCall],
    block: int,
    deadline_s: float,
    *,
    multicall: bool,
) -> list[CallOutcome]:
    """Make every call at `block` and return the results in order. Raises `EndpointFault`."""
    if len(calls) == 1:
        return [await _read_one(endpoint, calls[0], block, deadline_s)]
    results: list[CallOutcome] = []
    for start in range(0, len(calls), CALLS_PER_CHUNK):
        chunk = calls[start : start + CALLS_PER_CHUNK]
        results += await _read_chunk(endpoint, chunk, block, deadline_s, multicall=multicall)
    return results


async def read_newest(
    endpoint: RpcEndpoint, calls: Sequence[ContractCall], deadline_s: float, *, multicall: bool
) -> tuple[int, list[CallOutcome]]:
    """Return the endpoint's newest block, and every call's result at it. Raises `EndpointFault`.

    All in one exchange; without Multicall3 a new block may appear between two calls.
    """
    wanted = calls
    is_one = multicall and endpoint.has_multicall and len(calls) > 1
    if is_one:
        wanted = [ContractCall(MULTICALL3, encode_aggregate3(calls))]
    number, *answers = await endpoint.ask_in_step(
        ("eth_blockNumber", ()),
        *(_eth_call(call, "latest") for call in wanted),
        deadline_s=deadline_s,
    )
    try:
        head = quantity_of(number)
        outcomes = [_outcome(answer) for answer in answers]
        if not is_one:
            return head, outcomes
        if isinstance(outcomes[0], Returned) and outcomes[0].data:
            return head, decode_aggregate3(outcomes[0].data, len(calls))
    except MalformedRpcAnswer as error:
        raise EndpointFault(str(error)) from error
    if isinstance(outcomes[0], Returned):
        endpoint.has_multicall = False  # An address without code returns nothing.
    return await read_newest(endpoint, calls, deadline_s, multicall=False)


async def ask_all(
    endpoint: RpcEndpoint, asked: Sequence[Asked], deadline_s: float
) -> list[RpcResponse]:
    """Send requests of any kind, batched if possible; return answers in order.

    Raises `EndpointFault`.
    """
    answers: list[RpcResponse] = []
    for start in range(0, len(asked), CALLS_PER_CHUNK):
        chunk = asked[start : start + CALLS_PER_CHUNK]
        found = await endpoint.ask_batch(chunk, deadline_s) if endpoint.takes_batches else None
        answers += found or [await endpoint.ask(one, deadline_s) for one in chunk]
    return answers


async def _read_chunk(
    endpoint: RpcEndpoint,
    calls: Sequence[ContractCall],
    block: int,
    deadline_s: float,
    *,
    multicall: bool,
) -> list[CallOutcome]:
    found: list[CallOutcome] | None = None
    if multicall and endpoint.has_multicall:
        found = await _read_multicall(endpoint, calls, block, deadline_s)
    if found is None and endpoint.takes_batches:
        asked = [_eth_call(call, block) for call in calls]
        answers = await endpoint.ask_batch(asked, deadline_s)
        found = None if answers is None else [_outcome(answer) for answer in answers]
    return await _read_singly(endpoint, calls, block, deadline_s) if found is None else found


async def _read_multicall(
    endpoint: RpcEndpoint, calls: Sequence[ContractCall], block: int, deadline_s: float
) -> list[CallOutcome] | None:
    """Read by Multicall3; None if that is not possible at this endpoint."""
    aggregate = ContractCall(MULTICALL3, encode_aggregate3(calls))
    outcome = await _read_one(endpoint, aggregate, block, deadline_s)
    if isinstance(outcome, Reverted):
        # Every call may fail by itself, so this error is about the gas of all together.
        return None
    if not outcome.data:
        endpoint.has_multicall = False  # An address without code returns nothing.
        return None
    try:
        return decode_aggregate3(outcome.data, len(calls))
    except MalformedRpcAnswer as error:
        raise EndpointFault(str(error)) from error


async def _read_singly(
    endpoint: RpcEndpoint, calls: Sequence[ContractCall], block: int, deadline_s: float
) -> list[CallOutcome]:
    """Read each call in its own request, as many at once as the endpoint's slots allow."""
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(_outcome_or_fault(endpoint, call, block, deadline_s))
            for call in calls
        ]
    results: list[CallOutcome] = []
    for task in tasks:
        result = task.result()
        if isinstance(result, EndpointFault):
            raise result
        results.append(result)
    return results


async def _outcome_or_fault(
    endpoint: RpcEndpoint, call: ContractCall, block: int, deadline_s: float
) -> CallOutcome | EndpointFault:
    """Return the fault as a value: a task group would wrap it, and hide which it was."""
    try:
        return await _read_one(endpoint, call, block, deadline_s)
    except EndpointFault as fault:
        return fault


async def _read_one(
    endpoint: RpcEndpoint, call: ContractCall, block: int, deadline_s: float
) -> CallOutcome:
    return _outcome(await endpoint.ask(_eth_call(call, block), deadline_s))


async def read_capped(
    endpoint: RpcEndpoint, call: ContractCall, block: int, deadline_s: float, gas: int
) -> CallOutcome:
    """Make one call at `block` with at most `gas`. Raises `EndpointFault`.

    A node's error about this very call (out of gas, a time limit of its own) is `Reverted`.
    """
    answer = await endpoint.ask(_eth_call(call, block, gas), deadline_s)
    try:
        return _outcome(answer)
    except BlockUnknown:
        raise
    except EndpointFault as fault:
        if fault.refusal is None or fault.refusal.code == LIMIT_EXCEEDED:
            raise
        return Reverted(b"", fault.refusal.message)


def _eth_call(call: ContractCall, block: int | Literal["latest"], gas: int | None = None) -> Asked:
    at = block if isinstance(block, str) else hex(block)
    asked: JsonObject = {"to": call.to, "data": "0x" + call.data.hex()}
    return "eth_call", (asked if gas is None else {**asked, "gas": hex(gas)}, at)


def _outcome(answer: RpcResponse) -> CallOutcome:
    if not isinstance(answer, NodeError):
        try:
            return Returned(bytes_of(answer.value))
        except MalformedRpcAnswer as error:
            raise EndpointFault(str(error)) from error
    detail = f"{answer.code} {answer.message}"
    if answer.says_block_is_unknown:
        raise BlockUnknown(detail, refusal=answer)
    revert = revert_of(answer)
    if revert is None:
        raise EndpointFault(detail, blame=answer.code in FAIL_OVER_CODES, refusal=answer)
    return revert
