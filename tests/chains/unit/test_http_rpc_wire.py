# ruff: noqa: E501 - tables, several to a line

import json

import pytest

from assay.chains.evm.rpc_wire import (
    VALUES_MAX,
    MalformedRpcAnswer,
    NodeError,
    RpcResult,
    answer_of,
    answers_of,
    bytes_of,
    decode,
    quantity_of,
    revert_of,
)
from assay.chains.rpc import Reverted

DATA = "0x7e273289" + "00" * 31 + "07"
BYTES = bytes.fromhex(DATA[2:])


@pytest.mark.parametrize(
    ("code", "message", "data"),
    [
        (3, "execution reverted", DATA),  # geth, reth, erigon
        (-32000, "execution reverted", DATA),
        (-32015, "VM execution error.", f"Reverted {DATA}"),  # OpenEthereum
        (-32603, "Error: VM Exception", {"message": "x", "txHash": None, "data": DATA}),  # hardhat
        (-32000, "VM Exception", {"hash": None, "programCounter": 1, "result": DATA}),  # ganache
        (-32603, "Internal JSON-RPC error.", {"code": 3, "data": {"data": DATA}}),
        (-32005, "anything", DATA),
    ],
)
def test_a_revert_is_known_by_its_data_wherever_it_is(
    code: int, message: str, data: object
) -> None:
    assert revert_of(NodeError(code, message, data)) == Reverted(BYTES, message)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "message", "data"),
    [
        (3, "", None),
        (3, "execution reverted", "not hex"),
        (-32000, "execution reverted", None),
        (-32000, "VM Exception while processing transaction: revert", None),
        (-32603, "execution reverted: index out of bounds", "0x"),
        (-32015, "Transaction reverted", {"unrelated": 1}),
        (-32000, "invalid opcode: INVALID", None),
        (-32000, "stack underflow (0 <=> 1)", None),
    ],
)
def test_a_revert_is_known_by_its_code_or_words_alone(
    code: int, message: str, data: object
) -> None:
    assert revert_of(NodeError(code, message, data)) == Reverted(b"", message)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("code", "message", "data"),
    [
        (-32005, "daily request count exceeded", {"see": "https://example.com", "rate": {}}),
        (-32603, "Internal error", None),
        (-32000, "header not found", None),
        (-32601, "the method does not exist", None),
        (-32000, "out of gas", None),
        (429, "Too many requests", "0x"),
    ],
)
def test_a_nodes_own_trouble_is_not_a_revert(code: int, message: str, data: object) -> None:
    assert revert_of(NodeError(code, message, data)) is None  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"<html>", b'{"id":1,"result":NaN}', b"[" * 100_000, b"\xff", b"1" * 5000],
    ids=lambda body: ascii(body[:20]),
)
def test_what_is_not_json_is_malformed(body: bytes) -> None:
    with pytest.raises(MalformedRpcAnswer):
        decode(body)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32-be"])
def test_depth_hides_behind_no_encoding(encoding: str) -> None:
    """In UTF-16 the character U+2200 has the byte of a quote: what follows looked like a text."""
    deep = '{"id":1,"\u2200":' + "[" * 200 + "]" * 200 + "}"
    with pytest.raises(MalformedRpcAnswer):
        decode(deep.encode(encoding))


@pytest.mark.parametrize(
    "reply",
    [
        None, 7, [], "x", {}, {"result": "0x1"}, {"id": 2, "result": "0x1"}, {"id": "1", "result": "0x1"},
        {"id": None, "result": "0x1"}, {"id": {}, "result": "0x1"}, {"id": [], "result": "0x1"}, {"id": 1.0, "result": "0x1"}, {"id": True, "result": "0x1"}, {"id": 1}, {"id": 1, "error": "no"},
        {"id": 1, "error": {}}, {"id": 1, "error": {"code": "3", "message": "x"}}, {"id": 1, "error": {"code": 3}},
    ],
    ids=json.dumps,
)  # fmt: skip
def test_an_answer_of_another_shape_or_id_is_malformed(reply: object) -> None:
    with pytest.raises(MalformedRpcAnswer):
        answer_of(reply, 1)  # type: ignore[arg-type]


def test_an_answer_is_a_result_or_an_error() -> None:
    assert answer_of({"id": 1, "result": None}, 1) == RpcResult(None)
    assert answer_of({"id": 1, "result": "0x", "error": None}, 1) == RpcResult("0x")
    error = {"code": -1, "message": "m" * 1000}
    assert answer_of({"id": 1, "error": error}, 1) == NodeError(-1, "m" * 500, None)


def test_a_batch_is_put_back_into_order() -> None:
    reply = [{"id": 3, "result": "c"}, {"id": 1, "result": "a"}, {"id": 2, "result": "b"}]
    assert answers_of(reply, [1, 2, 3]) == [RpcResult("a"), RpcResult("b"), RpcResult("c")]


@pytest.mark.parametrize(
    "reply",
    [
        [],
        [{"id": 1, "result": "a"}],
        [{"id": 1, "result": "a"}, {"id": 1, "result": "a"}],
        [{"id": 1, "result": "a"}, {"id": 2, "result": "b"}, {"id": 2, "result": "c"}],
        [{"id": 1, "result": "a"}, {"id": 9, "result": "b"}],
        [{"id": 1, "result": "a"}, "x"],
    ],
    ids=json.dumps,
)
def test_a_batch_that_does_not_answer_each_once_is_malformed(reply: list[object]) -> None:
    with pytest.raises(MalformedRpcAnswer):
        answers_of(reply, [1, 2])  # type: ignore[arg-type]


@pytest.mark.parametrize("value", ["", "0x", "1", 1, None, "0x1g", "-0x1", "0x" + "1" * 17, " 0x1"])
def test_what_is_not_a_quantity_is_malformed(value: object) -> None:
    with pytest.raises(MalformedRpcAnswer):
        quantity_of(RpcResult(value))  # type: ignore[arg-type]


def test_a_quantity_is_read() -> None:
    assert quantity_of(RpcResult("0xFf")) == 255


@pytest.mark.parametrize("value", [None, 1, "", "00", "0x0", "0xzz", {"a": "0x"}, "0x00 "])
def test_what_is_not_hex_data_is_malformed(value: object) -> None:
    with pytest.raises(MalformedRpcAnswer):
        bytes_of(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 300 + b"]" * 300,
        b'{"a":' * 300 + b"1" + b"}" * 300,
        b"[" + b"9" * 5_000 + b"]",
        b"[" + b"[]," * VALUES_MAX + b"[]]",
        b"[NaN]",
        b'["\\ud800"]',
        b"[",
    ],
)
def test_a_reply_that_is_too_deep_or_no_json_is_malformed(body: bytes) -> None:
    """Of half a character nothing can be stored or logged."""
    with pytest.raises(MalformedRpcAnswer):
        decode(body)
