"""Whatever stands in a payment header is a 402, never a fault: both protocols, through the wrapper.

Generated: the parts of a real challenge, with anything JSON can say in the place of its members.
"""

import asyncio
import base64
import json
import string
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from mpp import Challenge, Credential

from tests.support.live_service import TestService, start_test_service

SELLER = "0x" + "5e" * 20
NOBODY = "http://127.0.0.1:9"
"""A chain node that is not there: whoever gets as far as asking it is answered 503."""

ADDRESS = "0x857b06519e91e3a54538791bdbb0e22373e36b66"
SIGNED = {
    "from": ADDRESS,
    "to": SELLER,
    "value": "10000",
    "validAfter": "0",
    "validBefore": "99999999999",
    "nonce": "0x" + "f3" * 32,
}
X402 = {
    "x402Version": 1,
    "scheme": "exact",
    "network": "base-sepolia",
    "payload": {"signature": "0x" + "2d" * 64 + "1c", "authorization": SIGNED},
}

_NUMBERS = st.one_of(
    st.integers(),
    st.sampled_from([2**53, 2**64, 2**256, -(2**256), 10**4000]),
    st.floats(),  # infinities and not-a-number too, as Python's JSON spells them
)
_TEXTS = st.one_of(st.text(max_size=30), st.sampled_from(["", "\ud800", "\0", "0x", "9" * 400]))
_JSON: Any = st.recursive(
    st.one_of(st.none(), st.booleans(), _NUMBERS, _TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(_TEXTS, inner, max_size=4)
    ),
    max_leaves=12,
)
_SOON = settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])


class Seller:
    """A service with one wrapper for each protocol."""

    def __init__(self, runner: asyncio.Runner, service: TestService, owner: str) -> None:
        self._runner, self.service, self._owner = runner, service, owner
        asked = self.get("mpp", {})
        self.challenge = Challenge.from_www_authenticate(asked.headers["www-authenticate"])

    def get(self, protocol: str, headers: dict[str, str]) -> httpx2.Response:
        url = f"/wrap/{self._owner}/{protocol}"
        return self._runner.run(self.service.http.get(url, headers=headers))


@pytest.fixture(scope="module")
def seller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seller]:
    folder = tmp_path_factory.mktemp("seller")
    with asyncio.Runner() as runner:
        opened = start_test_service(folder, payment_rpc={"tempo:42431": [NOBODY]})
        service = runner.run(opened.__aenter__())
        try:
            yield Seller(runner, service, runner.run(_wrapped(service)))
        finally:
            runner.run(opened.__aexit__(None, None, None))


async def _wrapped(service: TestService) -> str:
    await service.operator()
    token = await service.token()
    for protocol, network in (("mpp", "tempo:42431"), ("x402", "eip155:84532")):
        body = {
            "path": f"/{protocol}",
            "pricePerCall": 0.01,
            "targetUrl": "http://127.0.0.1:20009",
            "paymentProtocol": protocol,
            "paymentNetwork": network,
            "payoutAddress": SELLER,
        }
        made = await service.http.post("/operator/endpoints", json=body, headers=token)
        assert made.status_code == 200, made.text
    me = await service.http.get("/operator/me", headers=token)
    return str(me.json()["operator"]["id"])


def _credential(text: str) -> str:
    data = text.encode("utf-8", "surrogatepass")
    return "Payment " + base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _is_refused(answer: httpx2.Response) -> None:
    assert answer.status_code in {400, 402, 503}, answer.text
    assert answer.json()["code"] != "internal_error"


def _echo(seller: Seller) -> dict[str, Any]:
    """The challenge as a credential repeats it, in the library's own spelling."""
    whole = Credential(seller.challenge.to_echo(), {}).to_authorization().partition(" ")[2]
    return json.loads(base64.urlsafe_b64decode(whole + "=="))["challenge"]


@given(payload=st.dictionaries(st.sampled_from(["type", "hash", "signature", "x"]), _JSON))
@example(payload={"type": 2**256})
@example(payload={"type": float("inf")})
@example(payload={"type": "transaction", "signature": "0x76", "x": float("nan")})
@_SOON
def test_no_payload_of_an_mpp_credential_is_a_fault(
    seller: Seller, payload: dict[str, Any]
) -> None:
    said = {"challenge": _echo(seller), "payload": payload, "source": f"did:pkh:x:{ADDRESS}"}
    _is_refused(seller.get("mpp", {"authorization": _credential(json.dumps(said))}))


@given(
    member=st.sampled_from(
        ["id", "realm", "method", "intent", "request", "expires", "digest", "opaque", "x"]
    ),
    value=_JSON,
)
@_SOON
def test_no_challenge_of_an_mpp_credential_is_a_fault(
    seller: Seller, member: str, value: object
) -> None:
    said = {
        "challenge": {**_echo(seller), member: value},
        "payload": {"type": "transaction", "signature": "0x76"},
    }
    _is_refused(seller.get("mpp", {"authorization": _credential(json.dumps(said))}))


@given(text=st.one_of(_JSON.map(json.dumps), st.text(max_size=80)))
@example(text="[" * 24_000)
@example(text='{"payload":' * 4_000 + "1" + "}" * 4_000)
@example(text='{"payload": 1e999999}')
@_SOON
def test_no_text_in_a_payment_header_is_a_fault(seller: Seller, text: str) -> None:
    data = base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()
    _is_refused(seller.get("mpp", {"authorization": _credential(text)}))
    _is_refused(seller.get("x402", {"x-payment": data}))


@given(
    member=st.sampled_from(["signature", "value", "validAfter", "validBefore", "nonce", "from"]),
    value=_JSON,
    version=st.one_of(st.sampled_from([1, 2]), _JSON),
)
@example(member="validBefore", value="9" * 77, version=1)
@_SOON
def test_no_member_of_an_x402_payment_is_a_fault(
    seller: Seller, member: str, value: object, version: object
) -> None:
    signed = {**SIGNED, member: value}
    payload = {"signature": "0x" + "2d" * 64 + "1c", "authorization": signed}
    if member == "signature":
        payload["signature"] = value  # type: ignore[assignment] - that is what is tried
    said = {**X402, "x402Version": version, "payload": payload, "accepted": payload}
    data = base64.b64encode(json.dumps(said).encode()).decode()
    _is_refused(seller.get("x402", {"x-payment": data}))


@given(raw=st.text(alphabet=string.printable.strip() + " ", max_size=200))
@_SOON
def test_no_printable_payment_header_is_a_fault(seller: Seller, raw: str) -> None:
    _is_refused(seller.get("mpp", {"authorization": "Payment " + raw}))
    _is_refused(seller.get("x402", {"x-payment": raw}))
