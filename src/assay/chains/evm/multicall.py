"""Encodes and decodes `aggregate3` of Multicall3: many calls in one.

By hand because it is one fixed shape, because importing a general codec costs 146 ms, and because a
general one lets a hostile reply name the same bytes many times over.
"""

from collections.abc import Sequence

from assay.chains.evm.rpc_wire import MalformedRpcAnswer
from assay.chains.rpc import ContractCall, Returned, Reverted

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
