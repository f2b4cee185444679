"""What is kept of an MPP credential: one form of what it says, whatever its sender's spelling."""

import base64
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpp import ChallengeEcho, Credential

from assay.payments.model import PaymentRefused
from assay.payments.mpp.charges import (
    KEPT_BYTES_MAX,
    authorization_of,
    kept_credential,
    meta_of,
    read_credential,
)
from assay.payments.mpp.library import Library
from tests.payments.unit.test_x402_vectors import quote

LIBRARY: Any = Library(None, None, Credential, {})  # type: ignore[arg-type] - what reads headers
ECHO = ChallengeEcho("an-id", "assay.example", "tempo", "charge", "e30", "2026-01-01T00:00:00Z")
PAYLOAD = {"type": "transaction", "signature": "0x76"}
SAID: dict[str, Any] = {
    "challenge": {
        "id": "an-id",
        "realm": "assay.example",
        "method": "tempo",
        "intent": "charge",
        "request": "e30",
        "expires": "2026-01-01T00:00:00Z",
    },
    "payload": PAYLOAD,
    "source": "did:pkh:eip155:42431:0x" + "5e" * 20,
}
_LEAF = st.one_of(
    st.none(), st.booleans(), st.text(max_size=20), st.integers(-(2**53) + 1, 2**53 - 1)
)
_JSON = st.recursive(_LEAF, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))


def header(said: dict[str, Any], indent: int | None = None) -> str:
    text = json.dumps(said, indent=indent).encode()
    return "Payment " + base64.urlsafe_b64encode(text).rstrip(b"=").decode()


def kept_of(value: str) -> Any:
    return kept_credential(read_credential(LIBRARY, value)[0])


def test_of_a_credential_nothing_is_kept_that_its_sender_pads_it_with() -> None:
    padded = {**SAID, "x": "y" * 20_000}
    padded["challenge"] = {**SAID["challenge"], "description": "d" * 9_000, "z": "w" * 9_000}
    assert len(header(padded)) > 3 * KEPT_BYTES_MAX
    spelled = ("PAYMENT   " + header(SAID, indent=40).partition(" ")[2] + "==", header(padded))
    assert kept_of(header(SAID)) == SAID
    assert [kept_of(one) for one in spelled] == [SAID, SAID]


def test_what_is_kept_takes_no_more_than_its_bound() -> None:
    def sized(extra: int) -> str:
        return header({**SAID, "payload": {**PAYLOAD, "x": "y" * extra}})

    rest = KEPT_BYTES_MAX - len(json.dumps(kept_of(sized(0)), separators=(",", ":")))
    assert kept_of(sized(rest))["payload"]["x"] == "y" * rest
    with pytest.raises(PaymentRefused, match="too large"):
        kept_of(sized(rest + 1))


@pytest.mark.slow
@given(payload=st.dictionaries(st.text(max_size=9), _JSON, max_size=5))
def test_what_is_submitted_says_what_was_read(payload: dict[str, Any]) -> None:
    credential = Credential(ECHO, payload | PAYLOAD, "did:key:z")
    value = credential.to_authorization()
    stored = json.loads(json.dumps(kept_of(value)))
    assert authorization_of(stored) == value
    assert Credential.from_authorization(authorization_of(stored)) == credential


def test_rows_that_keep_the_header_itself_stay_readable() -> None:
    older = {"authorization": header(SAID, indent=2), "payload": PAYLOAD}
    assert authorization_of(older) == older["authorization"]


def test_a_challenge_names_a_path_of_any_length_in_few_bytes() -> None:
    """Else the credential for a long path would not fit, and a pushed transfer would be lost."""
    asked = quote("tempo:42431")
    paths = ["/short", "/" + "a" * 40_000, "/" + "a" * 39_999 + "b"]
    named = [meta_of(replace(asked, path=path))["path"] for path in paths]
    assert named[0] == "/short"
    assert len(set(named)) == len(paths)
    assert max(map(len, named)) <= 1024
