"""Why a payment header is refused: always in words its sender can act upon, never as a fault.

The header is a stock client's (tests/vectors), spoilt in one place each.
"""

import base64
import json
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.common.json import is_nested_beyond
from assay.payments.model import PaymentRefused
from assay.payments.networks import ROWS
from assay.payments.ports import Authorization, PaidRequest, ProtocolDependencies
from assay.payments.x402.codec import (
    DEPTH_MAX,
    HEADER_BYTES_MAX,
    Envelope,
    MalformedPayment,
    authorization_of,
    credential_of,
    encoded,
    parse,
)
from assay.payments.x402.eip3009 import Eip3009Signers
from assay.payments.x402.protocol import X402
from tests.payments.unit.test_x402_vectors import VECTORS, quote
from tests.support.fakes.clock import FrozenClock

GOOD: dict[int, dict[str, Any]] = {
    vector["version"]: json.loads(base64.b64decode(vector["header"]))
    for vector in VECTORS["payments"]
    if vector["network"] in {"base", "eip155:8453"}
}
ADDRESS = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"
UINT256 = 2**256


def sent(value: object) -> bytes:
    return base64.b64encode(json.dumps(value).encode())


def signed(**members: Any) -> dict[str, Any]:
    """Version 1, with members of its authorisation changed; `...` takes one out."""
    changed = {**GOOD[1]["payload"]["authorization"], **members}
    kept = {name: value for name, value in changed.items() if value is not ...}
    return {**GOOD[1], "payload": {**GOOD[1]["payload"], "authorization": kept}}


def text(**changes: tuple[str, str]) -> bytes:
    """Version 1 as text, with one piece of it replaced."""
    [(old, new)] = changes.values()
    plain = json.dumps(GOOD[1])
    assert old in plain
    return base64.b64encode(plain.replace(old, new, 1).encode())


def identified(identifier: object) -> dict[str, Any]:
    return {**GOOD[2], "extensions": {"payment-identifier": {"info": {"id": identifier}}}}


def without(name: str, version: int = 1) -> dict[str, Any]:
    return {key: value for key, value in GOOD[version].items() if key != name}


REFUSED: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "not JSON"),
    "a space before it": (b" " + sent(GOOD[1]), "not base64"),
    "a line's end after it": (sent(GOOD[1]) + b"\n", "not base64"),
    "without its padding": (base64.b64encode(b'{"a":1}').rstrip(b"="), "not base64"),
    "with the other alphabet": (base64.urlsafe_b64encode(b'{"a":"\xc3\xbf\xc3\xbe"}'), ""),
    "bytes above ASCII": (b"\xff\xfe", "not base64"),
    "one byte too many": (b"A" * (HEADER_BYTES_MAX + 1), "more than 16384 bytes"),
    "UTF-16": (base64.b64encode(json.dumps(GOOD[1]).encode("utf-16")), "not JSON"),
    "UTF-16 without its mark": (
        base64.b64encode(json.dumps(GOOD[1]).encode("utf-16-le")),
        "not JSON",
    ),
    "UTF-32": (base64.b64encode(json.dumps(GOOD[1]).encode("utf-32")), "not JSON"),
    "a byte order mark": (base64.b64encode(json.dumps(GOOD[1]).encode("utf-8-sig")), "not JSON"),
    "a surrogate in UTF-8": (base64.b64encode(b'{"a":"\xed\xa0\x80"}'), "not JSON"),
    "an overlong slash": (base64.b64encode(b'{"a":"\xc0\xaf"}'), "not JSON"),
    "two documents": (base64.b64encode(b"{}{}"), "not JSON"),
    "a comma at the end": (base64.b64encode(b'{"x402Version":1,}'), "not JSON"),
    "a comment": (base64.b64encode(b'{} // "x402Version":1'), "not JSON"),
    "Infinity": (base64.b64encode(b'{"x402Version":Infinity}'), "not JSON"),
    "a number of 5000 digits": (text(n=('"x402Version": 1', '"x402Version": ' + "1" * 5000)), ""),
    "an exponent without end": (text(n=('"x402Version": 1', '"x402Version": 1e999999')), "1 or 2"),
    "null": (sent(None), "not a JSON object"),
    "a number": (sent(1), "not a JSON object"),
    "a name twice, deep inside": (text(n=('"value"', '"value":"1","value"')), "not JSON"),
    "a name twice, once escaped": (text(n=('"value"', '"\\u0076alue":"1","value"')), "not JSON"),
    "version 0": (sent({**GOOD[1], "x402Version": 0}), "1 or 2"),
    "version -1": (sent({**GOOD[1], "x402Version": -1}), "1 or 2"),
    "version 1.0": (sent({**GOOD[1], "x402Version": 1.0}), "1 or 2"),
    "version true": (sent({**GOOD[1], "x402Version": True}), "1 or 2"),
    "version null": (sent({**GOOD[1], "x402Version": None}), "1 or 2"),
    "version of another spelling": (sent({**without("x402Version"), "X402Version": 1}), "1 or 2"),
    "version 2 shaped like version 1": (sent({**GOOD[1], "x402Version": 2}), "accepted is not"),
    "version 1 shaped like version 2": (sent({**GOOD[2], "x402Version": 1}), "scheme is not"),
    "accepted as a list": (sent({**GOOD[2], "accepted": [GOOD[2]["accepted"]]}), "accepted is not"),
    "accepted without network": (
        sent({**GOOD[2], "accepted": {"scheme": "exact"}}),
        "network is not",
    ),
    "scheme true": (sent({**GOOD[1], "scheme": True}), "scheme is not a string"),
    "network as a list": (sent({**GOOD[1], "network": ["base"]}), "network is not a string"),
    "payload as a text": (
        sent({**GOOD[1], "payload": json.dumps(GOOD[1]["payload"])}),
        "payload is not",
    ),
    "authorization as a list": (
        sent({**GOOD[1], "payload": {"authorization": []}}),
        "authorization is not",
    ),
    "no signature": (
        sent({**GOOD[1], "payload": {"authorization": signed()["payload"]["authorization"]}}),
        "signature is not a string",
    ),
    "a member in capitals": (sent(signed(nonce=..., NONCE="0x" + "1" * 64)), "nonce is not"),
    "0X before an address": (sent(signed(to="0X" + ADDRESS[2:])), "to is not of its form"),
    "an address of 41 digits": (sent(signed(to=ADDRESS + "0")), "to is not of its form"),
    "an address and a line's end": (sent(signed(to=ADDRESS + "\n")), "to is not of its form"),
    "an address with wide digits": (sent(signed(to="0x" + "\uff11" * 40)), "to is not of its form"),
    "a Cyrillic letter in an address": (
        sent(signed(to=ADDRESS[:-1] + "\u0441")),
        "to is not of its form",
    ),
    "an address as a number": (sent(signed(**{"from": int(ADDRESS, 16)})), "from is not a string"),
    "a nonce of 33 bytes": (sent(signed(nonce="0x" + "ab" * 33)), "nonce is not of its form"),
    "an empty value": (sent(signed(value="")), "value is not of its form"),
    "a value with a space": (sent(signed(value=" 10000")), "value is not of its form"),
    "a value with an underscore": (sent(signed(value="10_000")), "value is not of its form"),
    "a value in wide digits": (sent(signed(value="\uff11" * 5)), "value is not of its form"),
    "a value of superscripts": (sent(signed(value="\u00b2")), "value is not of its form"),
    "a value true": (sent(signed(value=True)), "value is not a string"),
    "a value null": (sent(signed(value=None)), "value is not a string"),
    "minus zero": (sent(signed(value="-0")), "value is not of its form"),
    "a value of 5000 digits": (sent(signed(value="9" * 5000)), "value is not of its form"),
    **{
        f"{name} of {label}": (sent(signed(**{name: str(number)})), f"{name} is not of its form")
        for name in ("value", "validAfter", "validBefore")
        for label, number in (("2^256", UINT256), ("78 nines", 10**78 - 1))
    },
    **{
        f"{name} missing": (sent(signed(**{name: ...})), f"{name} is not a string")
        for name in ("from", "to", "value", "validAfter", "validBefore", "nonce")
    },
    **{
        f"identifier {given!r}"[:40]: (sent(identified(given)), "payment-identifier")
        for given in ("", "a" * 15, "a" * 129, "a" * 15 + "\n", "a" * 15 + "\u00e9", 7, True, ["a"])
    },
}


@pytest.mark.parametrize("fault", REFUSED)
def test_what_is_no_payment_is_refused_with_its_reason(fault: str) -> None:
    header, reason = REFUSED[fault]
    with pytest.raises((MalformedPayment, PaymentRefused)) as refused:
        parse(header)
    assert reason in str(refused.value)
    assert len(str(refused.value)) < 200  # nothing of what was sent is said back at length


@pytest.mark.parametrize("fault", REFUSED)
async def test_a_refusal_is_one_of_the_protocols_own_words(fault: str) -> None:
    request = PaidRequest("GET", "", [(b"x-payment", REFUSED[fault][0])], b"")
    nothing: Any = None
    needs = ProtocolDependencies(Eip3009Signers(), nothing, nothing, FrozenClock())
    with pytest.raises(PaymentRefused) as refused:
        await X402().read(request, quote("eip155:8453"), needs)
    assert refused.value.reason in {"invalid_payload", "invalid_x402_version"}
    assert refused.value.message.endswith(".")


TAKEN: dict[str, dict[str, Any]] = {
    "members nobody knows": {**signed(more="x"), "more": {"deep": [1, None]}},
    "an address in capitals": signed(to="0x" + ADDRESS[2:].upper()),
    "the largest number": signed(value=str(UINT256 - 1), validBefore=str(UINT256 - 1)),
    "nothing at all to pay": signed(value="0"),
    "an extension nobody knows": {**GOOD[2], "extensions": {"else": {"info": {"id": 1}}}},
    "extensions that are none": {**GOOD[2], "extensions": []},
    "an identifier that is null": identified(None),
}


@pytest.mark.parametrize("name", TAKEN)
def test_what_other_clients_may_send_is_taken(name: str) -> None:
    found = parse(sent(TAKEN[name]))
    assert found.authorization.to == ADDRESS.lower()
    assert found.identifier is None


def test_members_nobody_knows_are_not_stored() -> None:
    stored = credential_of(parse(sent(TAKEN["members nobody knows"])).authorization)
    assert "more" not in json.dumps(stored)


def test_a_payment_of_any_capitals_is_one_payment() -> None:
    """Else its nonce could be spent once for every spelling."""
    plain = parse(sent(GOOD[1]))
    loud = json.loads(json.dumps(GOOD[1]).upper().replace("0X", "0x"))
    again = {
        name: loud["PAYLOAD"]["AUTHORIZATION"][name.upper()]
        for name in GOOD[1]["payload"]["authorization"]
    }
    signature = loud["PAYLOAD"]["SIGNATURE"]
    payload = {"signature": signature, "authorization": again}
    assert parse(sent({**GOOD[1], "payload": payload})) == plain


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-32-be"])
def test_depth_hides_behind_no_encoding(encoding: str) -> None:
    """In UTF-16 the character U+2200 has the byte of a quote: what follows looked like a text."""
    deep = '{"x402Version":1,"\u2200":' + "[" * 200 + "]" * 200 + "}"
    with pytest.raises(MalformedPayment, match=r"nested too deeply|not JSON"):
        parse(base64.b64encode(deep.encode(encoding)))


@given(st.integers(1, 40), st.sampled_from(["[]", "{}"]))
def test_exactly_the_stated_depth_is_taken(depth: int, kind: str) -> None:
    inside = kind[0] if kind == "[]" else '{"a":'
    nested = inside * (depth - 1) + "[]" + kind[1] * (depth - 1)
    document = json.dumps(GOOD[1])[:-1] + f', "more": {nested}}}'
    assert is_nested_beyond(document.encode(), DEPTH_MAX) == (depth + 1 > DEPTH_MAX)
    with suppress(MalformedPayment):
        parse(base64.b64encode(document.encode()))
        assert depth + 1 <= DEPTH_MAX


numbers = st.integers(0, UINT256 - 1)


def hexed(size: int) -> st.SearchStrategy[str]:
    return st.binary(min_size=size, max_size=size).map(lambda raw: "0x" + raw.hex())


authorizations = st.builds(
    Authorization, hexed(20), hexed(20), numbers, numbers, numbers, hexed(32), hexed(65)
)


@given(authorizations, st.sampled_from([1, 2]), st.text(max_size=20), st.text(max_size=20))
def test_what_is_encoded_is_read_back(
    one: Authorization, version: int, scheme: str, network: str
) -> None:
    payload = credential_of(one)
    head = {"scheme": scheme, "network": network}
    document = (
        {"x402Version": 1, **head, "payload": payload}
        if version == 1
        else {"x402Version": 2, "accepted": head, "payload": payload}
    )
    found = parse(encoded(document))
    accepted = None if version == 1 else head
    assert found == Envelope(version, scheme, network, accepted, None, one, None, {})
    assert authorization_of(json.loads(json.dumps(payload))) == one


@given(authorizations)
def test_whatever_is_read_can_be_judged(one: Authorization) -> None:
    """No number the codec lets through is too large for the signature's words."""
    assert Eip3009Signers().signer(one, ROWS[0]) != ""


@given(authorizations, st.sampled_from([f.name for f in fields(Authorization)]))
def test_every_member_of_an_authorisation_is_part_of_what_is_stored(
    one: Authorization, name: str
) -> None:
    value = getattr(one, name)
    other = value ^ 1 if isinstance(value, int) else "0x" + "0" * (len(value) - 3) + "1"
    changed = replace(one, **{name: other})
    assert (credential_of(one) == credential_of(changed)) == (value == other)


def spoilt(header: bytes, place: int, byte: int) -> bytes:
    place %= len(header)
    return header[:place] + bytes([byte]) + header[place + 1 :]


HEADERS = [vector["header"].encode() for vector in VECTORS["payments"]]


@given(st.sampled_from(HEADERS), st.integers(0, 5000), st.integers(0, 255))
def test_a_header_with_one_byte_changed_is_read_or_refused(
    header: bytes, place: int, byte: int
) -> None:
    with suppress(MalformedPayment, PaymentRefused):
        parse(spoilt(header, place, byte))


@given(st.sampled_from(HEADERS), st.integers(0, 5000), st.integers(0, 255))
def test_a_document_with_one_byte_changed_is_read_or_refused(
    header: bytes, place: int, byte: int
) -> None:
    with suppress(MalformedPayment, PaymentRefused):
        parse(base64.b64encode(spoilt(base64.b64decode(header), place, byte)))


@given(st.sampled_from(HEADERS), st.integers(0, 5000))
def test_a_header_cut_short_is_refused(header: bytes, length: int) -> None:
    with pytest.raises((MalformedPayment, PaymentRefused)):
        parse(header[: length % len(header)])


@given(st.text(), st.sampled_from(["utf-8", "utf-16", "utf-32", "utf-7"]))
def test_any_text_in_any_encoding_is_refused(given_text: str, encoding: str) -> None:
    raw = given_text.encode(encoding, "replace")
    with pytest.raises((MalformedPayment, PaymentRefused)):
        parse(base64.b64encode(raw))
