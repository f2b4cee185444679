"""The hash that is kept of a payer's transaction is that of what the library broadcasts."""

from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.common.addresses import keccak256
from assay.payments.mpp.tempo import attempt_of

library: Any = import_module("mpp.methods.tempo.intents")
rlp: Any = import_module("rlp")
BODY = [b"\x01"] * 13
ACCOUNT = b"\x55" * 20
PLAIN = b"\x11" * 64


def raw_of(signature: bytes, body: list[bytes] = BODY) -> str:
    return "0x76" + rlp.encode([*body, signature]).hex()


@pytest.mark.parametrize("before", [b"", b"\x03" + ACCOUNT, b"\x04" + ACCOUNT])
@pytest.mark.parametrize("given_id", [0, 1, 27, 28])
def test_recovery_ids_of_both_kinds_are_one_transaction(before: bytes, given_id: int) -> None:
    told = attempt_of(raw_of(before + PLAIN + bytes([given_id])))
    as_mined = raw_of(before + PLAIN + bytes([given_id % 27 + 27]))
    assert told.raw == as_mined
    assert told.transaction == "0x" + keccak256(bytes.fromhex(as_mined[2:])).hex()


def joined(keys: list[bytes], middle: bytes, last: bytes) -> bytes:
    return b"".join(keys) + middle + last


signatures = st.builds(
    joined,
    st.lists(st.sampled_from([b"\x03" + ACCOUNT, b"\x04" + ACCOUNT]), max_size=3),
    st.binary(max_size=70) | st.binary(min_size=64, max_size=64),
    st.sampled_from([b"", b"\x00", b"\x01", b"\x1b", b"\x1c", b"\x02"]),
)


@given(signatures, st.integers(11, 15))
def test_it_is_what_the_library_broadcasts(signature: bytes, size: int) -> None:
    raw = raw_of(signature, [b"\x01"] * size)
    assert attempt_of(raw).raw == library._canonical_raw_transaction(raw)


@given(st.binary(max_size=100))
def test_whatever_it_is_given_it_says_what_the_library_says(transaction: bytes) -> None:
    for raw in ("0x" + transaction.hex(), "0x76" + transaction.hex()):
        assert attempt_of(raw).raw == library._canonical_raw_transaction(raw)
