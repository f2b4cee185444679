"""What facilitators are shown: static headers, or a CDP token for one request alone."""

import base64
import json
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from assay.payments.x402.facilitator_access import CDP_TTL_S, CdpCredentials, endpoints_of
from tests.support.fakes.clock import FrozenClock

URL = "https://facilitator.example/platform/v2/x402"
OTHER = "https://other.example"
CLOCK = FrozenClock()
ED25519 = Ed25519PrivateKey.generate()
P256 = ec.generate_private_key(ec.SECP256R1())
SECRET = base64.b64encode(
    ED25519.private_bytes_raw() + ED25519.public_key().public_bytes_raw()
).decode()


def pem(key: Any) -> str:
    encoding, form = Encoding.PEM, PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(encoding, form, NoEncryption()).decode()


@pytest.mark.parametrize(
    ("secret", "key", "algorithm"),
    [
        (SECRET, ED25519, "EdDSA"),
        (pem(P256), P256, "ES256"),
        (pem(P256).replace("\n", "\\n"), P256, "ES256"),
    ],
    ids=["Ed25519", "PEM", "PEM on one line"],
)
def test_a_cdp_token_is_for_one_request_and_two_minutes(
    secret: str, key: Any, algorithm: str
) -> None:
    text = json.dumps({URL: {"cdp_key_id": "key-1", "cdp_key_secret": secret}})
    first, second = endpoints_of([URL, OTHER], text, CLOCK)
    sent = first.authorize("POST", f"{URL}/settle")["authorization"]
    assert second.authorize("POST", f"{OTHER}/settle") == {}
    token = sent.removeprefix("Bearer ")
    claims = jwt.decode(
        token, key.public_key(), algorithms=[algorithm], options={"verify_exp": False}
    )
    now = int(CLOCK.now().timestamp())
    assert claims == {
        "iss": "cdp",
        "sub": "key-1",
        "uris": ["POST facilitator.example/platform/v2/x402/settle"],
        "iat": now,
        "nbf": now,
        "exp": now + CDP_TTL_S,
    }
    header = jwt.get_unverified_header(token)
    assert (header["kid"], header["typ"]) == ("key-1", "JWT")
    again = first.authorize("POST", f"{URL}/settle")["authorization"].removeprefix("Bearer ")
    assert jwt.get_unverified_header(again)["nonce"] != header["nonce"]


def test_static_headers_go_to_their_facilitator_alone() -> None:
    text = json.dumps({URL + "/": {"headers": {"Authorization": "Bearer x", "x-key": "1"}}})
    first, second = endpoints_of([URL, OTHER], text, CLOCK)
    assert first.authorize("GET", URL) == {"authorization": "Bearer x", "x-key": "1"}
    assert second.authorize("GET", OTHER) == {}
    assert [one.url for one in endpoints_of([URL], None, CLOCK)] == [URL]


HIDDEN = "hidden-secret"


@pytest.mark.parametrize(
    "given",
    [
        "not JSON",
        "[]",
        {OTHER: {"headers": {"authorization": HIDDEN}}},
        {URL: HIDDEN},
        {URL: {}},
        {URL: {"headers": {"authorization": HIDDEN}, "cdp_key_id": "x"}},
        {URL: {"headers": {"authorization": HIDDEN + "\r\nx: y"}}},
        {URL: {"headers": {"bad name": HIDDEN}}},
        {URL: {"headers": {"Host": HIDDEN}}},
        {URL: {"headers": {"x-number": 1}}},
        {URL: {"headers": {f"x-{n}": HIDDEN for n in range(11)}}},
        {URL: {"cdp_key_id": "x"}},
        {URL: {"cdp_key_id": "x", "cdp_key_secret": HIDDEN}},
        {URL: {"cdp_key_id": "x", "cdp_key_secret": base64.b64encode(b"x" * 64).decode()}},
        {URL: {"cdp_key_id": "x", "cdp_key_secret": pem(ec.generate_private_key(ec.SECP384R1()))}},
        {URL: {"cdp_key_id": "x", "cdp_key_secret": f"-----BEGIN {HIDDEN}"}},
        {URL: {"cdp_key_id": "x", "cdp_key_secret": SECRET, "more": 1}},
    ],
)
def test_what_cannot_be_used_is_refused_and_never_quoted(given: Any) -> None:
    text = given if isinstance(given, str) else json.dumps(given)
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - its text is what is checked
        endpoints_of([URL], text, CLOCK)
    assert HIDDEN not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "is_safe"),
    [
        ("http://facilitator.example", False),
        ("http://10.0.0.1:4021", False),
        ("http://127.0.0.1:4021", True),
        ("http://localhost:4021", True),
        ("http://[::1]:4021", True),
    ],
)
def test_no_credential_travels_in_clear_text(url: str, *, is_safe: bool) -> None:
    text = json.dumps({url: {"headers": {"authorization": HIDDEN}}})
    if is_safe:
        assert endpoints_of([url], text, CLOCK)
        return
    with pytest.raises(ValueError, match="https"):
        endpoints_of([url], text, CLOCK)


def test_the_password_of_an_address_is_not_signed() -> None:
    made = CdpCredentials("k", SECRET, CLOCK)
    sent = made.headers("GET", "https://user:password@f.example:8443/supported")["authorization"]
    options: Any = {"verify_signature": False}
    claims = jwt.decode(sent.removeprefix("Bearer "), options=options)
    assert claims["uris"] == ["GET f.example:8443/supported"]
