"""The hash of Ethereum is that of the reference implementation."""

import eth_utils
from hypothesis import example, given
from hypothesis import strategies as st

from assay.common.addresses import keccak256


@example(b"")
@given(st.binary(max_size=400))
def test_the_hash_is_that_of_eth_utils(data: bytes) -> None:
    assert keccak256(data) == eth_utils.keccak(data)
