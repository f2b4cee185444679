"""The x402 header, read strictly: what holds is taken apart, everything else is refused.

Shapes from the x402 specification, versions 1 and 2 (`exact` on EVM).
"""

import base64
import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.payments.model import PaymentRefused
from assay.payments.ports import Authorization
from assay.payments.x402.codec import (
    DEPTH_MAX,
    HEADER_BYTES_MAX,
    MalformedPayment,
    authorization_of,
    credential_digest,
    credential_of,
    parse,
    payment_header,
)

AUTHORIZATION = {
    "from": "0x857b06519E91e3A54538791bDbb0E22373e36b66",
    "to": "0x209693Bc6afc0C5328bA36FaF03C514EF312287C",
    "value": "10000",
    "validAfter": "1740672089",
    "validBefore": "1740672154",
    "nonce": "0xf3746613c2d920b5fdabc0856f2aeb2d4f88ee6037b8cc5d04a71a4462f13480",
}
PAYLOAD = {"signature": "0x" + "2d" * 64 + "1c", "authorization": AUTHORIZATION}
V1 = {"x402Version": 1, "scheme": "exact", "network": "base-sepolia", "payload": PAYLOAD}
V2 = {
    "x402Version": 2,
    "resource": {"url": "https://api.example.com/quote"},
    "accepted": {"scheme": "exact", "network": "eip155:84532", "amount": "10000"},
    "payload": PAYLOAD,
    "extensions": {"payment-identifier": {"info": {"id": "pay_7d5d747be160e280"}}},
}


def sent(value: object) -> bytes:
    return base64.b64encode(json.dumps(value).encode())


def changed(**members: Any) -> dict[str, Any]:
    return {**V1, "payload": {**PAYLOAD, "authorization": {**AUTHORIZATION, **members}}}


@pytest.mark.parametrize(
    ("payment", "version", "network", "identifier"),
    [(V1, 1, "base-sepolia", None), (V2, 2, "eip155:84532", "pay_7d5d747be160e280")],
)
def test_a_payment_of_either_version_is_taken_apart(
    payment: dict[str, Any], version: int, network: str, identifier: str | None
) -> None:
    found = parse(sent(payment))
    assert (found.version, found.scheme, found.network) == (version, "exact", network)
    assert found.identifier == identifier
    signed = found.authorization
    assert signed.payer == AUTHORIZATION["from"].lower()
    assert signed.to == AUTHORIZATION["to"].lower()
    assert (signed.value, signed.valid_after, signed.valid_before) == (
        10000,
        1740672089,
        1740672154,
    )


def test_a_stored_credential_is_the_same_authorisation() -> None:
    signed = parse(sent(V1)).authorization
    assert authorization_of(credential_of(signed)) == signed


REFUSED: dict[str, Callable[[], bytes]] = {
    "not base64": lambda: b"%%%",
    "base64 in lines": lambda: base64.encodebytes(json.dumps(V1).encode()),
    "not JSON": lambda: base64.b64encode(b"{"),
    "not UTF-8": lambda: base64.b64encode(b'{"a": "\xff"}'),
    "a list": lambda: sent([V1]),
    "a text": lambda: sent("x"),
    "no number": lambda: base64.b64encode(json.dumps(V1).replace('"10000"', "NaN").encode()),
    "too large": lambda: sent({**V1, "x": "y" * HEADER_BYTES_MAX}),
    "too deep": lambda: base64.b64encode(b"[" * (DEPTH_MAX + 1)),
    "far too deep": lambda: base64.b64encode(b"[" * 10_000),
    "a name twice": lambda: base64.b64encode(json.dumps(V1)[:-1].encode() + b', "scheme": "x"}'),
    "no version": lambda: sent({k: v for k, v in V1.items() if k != "x402Version"}),
    "version 3": lambda: sent({**V1, "x402Version": 3}),
    "version true": lambda: sent({**V1, "x402Version": True}),
    "version as a text": lambda: sent({**V1, "x402Version": "1"}),
    "version as a list": lambda: sent({**V1, "x402Version": [1]}),
    "version as an object": lambda: sent({**V1, "x402Version": {}}),
    "no scheme": lambda: sent({k: v for k, v in V1.items() if k != "scheme"}),
    "network as a number": lambda: sent({**V1, "network": 84532}),
    "version 2 without what was accepted": lambda: sent({**V2, "accepted": None}),
    "no payload": lambda: sent({**V1, "payload": None}),
    "no authorisation": lambda: sent({**V1, "payload": {"signature": PAYLOAD["signature"]}}),
    "a short signature": lambda: sent({**V1, "payload": {**PAYLOAD, "signature": "0x12"}}),
    "a long signature": lambda: sent({**V1, "payload": {**PAYLOAD, "signature": "0x" + "1" * 132}}),
    "value as a number": lambda: sent(changed(value=10000)),
    "a negative value": lambda: sent(changed(value="-1")),
    "a value with a plus": lambda: sent(changed(value="+1")),
    "a value in hex": lambda: sent(changed(value="0x10")),
    "a value with zeros before it": lambda: sent(changed(value="010000")),
    "a value with a point": lambda: sent(changed(value="10000.0")),
    "a value with an exponent": lambda: sent(changed(value="1e4")),
    "a value in other digits": lambda: sent(changed(value="\u0661\u0660")),
    "a value with a line's end": lambda: sent(changed(value="10000\n")),
    "a value of 79 digits": lambda: sent(changed(value="1" * 79)),
    "a short address": lambda: sent(changed(to="0x12")),
    "an address without 0x": lambda: sent(changed(to="20" * 20)),
    "a nonce of 31 bytes": lambda: sent(changed(nonce="0x" + "ab" * 31)),
    "no nonce": lambda: sent(changed(nonce=None)),
    "an identifier too short": lambda: sent(
        {**V2, "extensions": {"payment-identifier": {"info": {"id": "x"}}}}
    ),
}


@pytest.mark.parametrize("fault", REFUSED)
def test_what_is_no_payment_is_refused(fault: str) -> None:
    with pytest.raises((MalformedPayment, PaymentRefused)):
        parse(REFUSED[fault]())


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(header: bytes) -> None:
    with pytest.raises((MalformedPayment, PaymentRefused)):
        parse(header)


@given(
    st.sampled_from(["x402Version", "scheme", "network", "payload", "accepted", "resource"]),
    json_values,
    st.sampled_from([V1, V2]),
)
def test_any_value_in_any_place_is_read_or_refused(
    name: str, value: object, payment: dict[str, Any]
) -> None:
    with suppress(MalformedPayment, PaymentRefused):
        parse(sent({**payment, name: value}))


@given(st.sampled_from(sorted(AUTHORIZATION)), json_values)
def test_any_value_in_the_authorisation_is_read_or_refused(name: str, value: object) -> None:
    with suppress(MalformedPayment, PaymentRefused):
        parse(sent(changed(**{name: value})))


def test_of_two_versions_the_newer_counts_and_two_of_one_are_none() -> None:
    assert payment_header([(b"x-payment", b"1"), (b"payment-signature", b"2")]) == b"2"
    assert payment_header([(b"x-payment", b"1")]) == b"1"
    for headers in ([], [(b"x-payment", b"1"), (b"x-payment", b"1")]):
        with pytest.raises(MalformedPayment):
            payment_header(headers)


@given(st.integers(0, 2**256 - 1), st.integers(0, 2**256 - 1))
def test_the_digest_of_a_credential_is_that_of_its_sorted_json(value: int, after: int) -> None:
    """It is in rows of the ledger for ever."""
    signed = Authorization(
        *("0x" + "ab" * 20, "0x" + "cd" * 20, value, after, value, "0x" + "ef" * 32),
        signature="0x" + "12" * 65,
    )
    text = json.dumps(credential_of(signed), sort_keys=True, separators=(",", ":"))
    assert credential_digest(signed) == hashlib.sha256(text.encode("ascii")).hexdigest()
