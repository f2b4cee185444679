import pytest
from eth_abi import decode, encode
from hypothesis import given
from hypothesis import strategies as st

from assay.chains.evm.calls import AGGREGATE3, decode_aggregate3, encode_aggregate3
from assay.chains.evm.rpc_wire import MalformedRpcAnswer
from assay.chains.rpc import ContractCall, Returned, Reverted

ADDRESS = st.binary(min_size=20, max_size=20).map(lambda b: "0x" + b.hex())
CALLS = st.lists(st.builds(ContractCall, ADDRESS, st.binary(max_size=100)), max_size=6)
RESULTS = st.lists(st.tuples(st.booleans(), st.binary(max_size=100)), max_size=6)


@given(CALLS)
def test_the_encoding_is_that_of_the_reference_codec(calls: list[ContractCall]) -> None:
    tuples = [(call.to, True, call.data) for call in calls]
    assert encode_aggregate3(calls) == AGGREGATE3 + encode(["(address,bool,bytes)[]"], [tuples])


@given(RESULTS)
def test_what_the_reference_codec_encodes_is_decoded(results: list[tuple[bool, bytes]]) -> None:
    decoded = decode_aggregate3(encode(["(bool,bytes)[]"], [results]), len(results))
    assert [(isinstance(r, Returned), r.data) for r in decoded] == results


@given(RESULTS, st.integers(0, 8))
def test_another_number_of_results_is_malformed(
    results: list[tuple[bool, bytes]], count: int
) -> None:
    if count != len(results):
        with pytest.raises(MalformedRpcAnswer):
            decode_aggregate3(encode(["(bool,bytes)[]"], [results]), count)


@given(st.binary(max_size=400), st.integers(0, 5))
def test_any_bytes_are_decoded_or_malformed(data: bytes, count: int) -> None:
    try:
        decoded = decode_aggregate3(data, count)
    except MalformedRpcAnswer:
        return
    assert len(decoded) == count
    assert sum(len(r.data) for r in decoded) <= len(data)


@given(RESULTS.filter(bool), st.data())
def test_a_reply_cut_off_anywhere_is_malformed(
    results: list[tuple[bool, bytes]], data: st.DataObject
) -> None:
    whole = encode(["(bool,bytes)[]"], [results])
    content_end = len(whole) - (-len(results[-1][1]) % 32)
    cut = data.draw(st.integers(0, content_end - 1))
    with pytest.raises(MalformedRpcAnswer):
        decode_aggregate3(whole[:cut], len(results))


def test_the_same_bytes_named_many_times_are_malformed() -> None:
    """Fifty results that all point at one large piece would be fifty copies of it."""
    word = (32).to_bytes(32, "big")
    item = (1).to_bytes(32, "big") + (64).to_bytes(32, "big") + (5000).to_bytes(32, "big")
    heads = (50 * 32).to_bytes(32, "big") * 50
    data = word + (50).to_bytes(32, "big") + heads + item + b"x" * 5000
    with pytest.raises(MalformedRpcAnswer):
        decode_aggregate3(data, 50)


def test_the_reason_of_a_failed_call_is_read_for_the_logs() -> None:
    reason = bytes.fromhex("08c379a0") + encode(["string"], ["index out of bounds"])
    custom = bytes.fromhex("7e273289") + encode(["uint256"], [7])
    data = encode(["(bool,bytes)[]"], [[(False, reason), (False, custom), (False, b"")]])
    assert decode_aggregate3(data, 3) == [
        Reverted(reason, "execution reverted: index out of bounds"),
        Reverted(custom, "execution reverted"),
        Reverted(b"", "execution reverted"),
    ]
    assert decode(["(bool,bytes)[]"], data)[0][0][1] == reason
