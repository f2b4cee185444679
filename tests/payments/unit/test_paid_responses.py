"""What a payment bought is read as it was written, by this version and by 0.1."""

import base64
import json

from hypothesis import given
from hypothesis import strategies as st

from assay.payments.model import StoredResponse
from assay.payments.store import packed, unpacked

_NAMES = st.binary(min_size=1).filter(lambda name: b":" not in name)
_HEADERS = st.lists(st.tuples(_NAMES, st.binary()), max_size=5)


@given(_HEADERS, st.binary(), st.sampled_from(["", "192.0.2.7"]))
def test_what_was_written_is_read(
    headers: list[tuple[bytes, bytes]], body: bytes, caller: str
) -> None:
    stored = StoredResponse(203, tuple(headers), body, caller, receipt="{}")
    assert unpacked(packed("p", 1, stored)) == stored


@given(_HEADERS)
def test_what_0_1_wrote_is_read(headers: list[tuple[bytes, bytes]]) -> None:
    pairs = [*headers, (b":caller", b"192.0.2.7")]
    text = json.dumps([[base64.b64encode(part).decode() for part in pair] for pair in pairs])
    row = {"status": 200, "headers": text, "body": b"x", "receipt": ""}
    assert unpacked(row) == StoredResponse(200, tuple(headers), b"x", "192.0.2.7")
