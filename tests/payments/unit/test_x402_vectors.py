"""Golden vectors of x402: what we ask is what the standard asks; what stock clients send is read.

The vectors are documents of the specification, and payments of the reference library.
"""

import base64
import hashlib
import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from x402.http.utils import decode_payment_required_header, decode_payment_response_header
from x402.schemas.v1 import PaymentRequiredV1

from assay.common.http_heads import HeaderPairs
from assay.common.json import JsonValue, canonical_bytes
from assay.payments.model import LedgerEntry, PaymentRefused, PaymentSighting, PaymentState, Quote
from assay.payments.networks import ROWS
from assay.payments.outcomes import SettlementAttempt
from assay.payments.ports import Authorization, PaidRequest, ProtocolDependencies
from assay.payments.x402.codec import (
    authorization_of,
    credential_digest,
    credential_of,
    parse,
    payment_header,
    timeout_s,
)
from assay.payments.x402.eip3009 import Eip3009Signers
from assay.payments.x402.protocol import X402
from tests.support.fakes.clock import FrozenClock

VECTORS = json.loads((Path(__file__).parents[2] / "vectors" / "x402.json").read_text("utf-8"))
NETWORKS = {row.id: row for row in ROWS}
SHORT = {row.id: row.short_name for row in ROWS if row.protocol == "x402"}
TIMES_OUT = datetime.fromtimestamp(VECTORS["valid_before_s"], UTC)


def named(vector: dict[str, Any]) -> str:
    return str(vector.get("name") or vector["network"])


def quote(network: str) -> Quote:
    given = VECTORS["quote"]
    return Quote(
        wrapper_id="w",
        operator_id="op1",
        url=given["url"],
        method="GET",
        path="/wrap/op1/quote",
        query="",
        description=given["description"],
        network=NETWORKS[network],
        amount=given["amount"],
        pay_to=given["pay_to"].lower(),
        work_s=given["work_s"],
        settles_first=False,
    )


def needs(left_s: float = 60) -> ProtocolDependencies:
    """What reading takes, with so much time left to the vectors' payments."""
    clock = FrozenClock(TIMES_OUT - timedelta(seconds=left_s))
    nothing: Any = None
    return ProtocolDependencies(Eip3009Signers(), nothing, nothing, clock)


def same_hex(value: JsonValue) -> JsonValue:
    """With addresses in lower case: theirs are checksummed, ours are not, and both are right."""
    if isinstance(value, dict):
        return {name: same_hex(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [same_hex(inner) for inner in value]
    return value.lower() if isinstance(value, str) and value.startswith("0x") else value


def decoded(headers: HeaderPairs, name: bytes) -> Any:
    [value] = [value for found, value in headers if found == name]
    return json.loads(base64.b64decode(value, validate=True))


@pytest.mark.parametrize("vector", VECTORS["required"], ids=named)
async def test_what_is_asked_is_the_standards_document(vector: dict[str, Any]) -> None:
    demand = await X402().demand(quote(vector["network"]), needs(), "payment_required")
    asked = decoded(demand.headers, b"payment-required")
    assert len(asked["accepts"][0]["extra"].pop("token")) == 22  # ours, as `extra` may hold
    assert same_hex(asked) == same_hex(vector["body_v2"])
    assert same_hex(demand.extras["accepts"]) == same_hex(vector["body_v1"]["accepts"])
    assert demand.extras["x402Version"] == 1


@pytest.mark.parametrize("vector", VECTORS["required"], ids=named)
async def test_the_reference_library_reads_what_is_asked(vector: dict[str, Any]) -> None:
    demand = await X402().demand(quote(vector["network"]), needs(), "payment_required")
    [ours] = [value for name, value in demand.headers if name == b"payment-required"]
    theirs = decode_payment_required_header(vector["header_v2"])
    found = decode_payment_required_header(ours.decode())
    assert found.accepts[0].extra.pop("token")
    assert same_hex(found.model_dump()) == same_hex(theirs.model_dump())
    body = {**demand.extras, "error": "This call has to be paid for."}
    [accept] = PaymentRequiredV1.model_validate(body).accepts
    assert accept.network == SHORT[vector["network"]]


async def test_every_402_has_a_token_of_its_own_and_version_1_none() -> None:
    """Who echoes it is the buyer, so that no two callers may be told the same."""
    tokens: set[str] = set()
    for _ in range(100):
        demand = await X402().demand(quote("eip155:8453"), needs(), "payment_required")
        token = decoded(demand.headers, b"payment-required")["accepts"][0]["extra"]["token"]
        assert token not in json.dumps(demand.extras)
        tokens.add(token)
    assert len(tokens) == 100


async def test_what_is_asked_holds_no_null_anywhere() -> None:
    """One `null` and a stock client of version 1 refuses the whole answer."""
    demand = await X402().demand(quote("eip155:8453"), needs(), "payment_required")
    for text in (json.dumps(demand.extras), *(base64.b64decode(v) for _, v in demand.headers)):
        assert "null" not in str(text)


@pytest.mark.parametrize("vector", VECTORS["payments"], ids=named)
def test_a_stock_clients_header_is_taken_apart(vector: dict[str, Any]) -> None:
    envelope = parse(vector["header"].encode())
    signed, given = envelope.authorization, vector["authorization"]
    assert (envelope.version, envelope.scheme) == (vector["version"], "exact")
    assert envelope.network == vector["network"]
    assert (signed.payer, signed.to) == (given["from"].lower(), given["to"].lower())
    times = (int(given["validAfter"]), int(given["validBefore"]))
    assert (signed.value, signed.valid_after, signed.valid_before) == (10000, *times)
    assert (signed.nonce, signed.signature) == (given["nonce"], vector["signature"])


def network_of(vector: dict[str, Any]) -> str:
    return next(n for n in SHORT if vector["network"] in {n, SHORT[n]})


@pytest.mark.parametrize("vector", VECTORS["payments"], ids=named)
@pytest.mark.parametrize("header", [b"x-payment", b"payment-signature"])
async def test_a_stock_clients_payment_pays_in_either_header(
    vector: dict[str, Any], header: bytes
) -> None:
    request = PaidRequest(
        "GET", VECTORS["quote"]["url"], [(header, vector["header"].encode())], b""
    )
    payment = await X402().read(request, quote(network_of(vector)), needs())
    assert payment.payer == VECTORS["payer"].lower()
    assert payment.version == vector["version"]
    assert payment.expires_at == TIMES_OUT


@pytest.mark.parametrize("vector", VECTORS["payments"], ids=named)
async def test_a_payment_for_one_network_pays_on_no_other(vector: dict[str, Any]) -> None:
    request = PaidRequest("GET", "", [(b"x-payment", vector["header"].encode())], b"")
    [other] = [network for network in SHORT if network != network_of(vector)]
    with pytest.raises(PaymentRefused) as refused:
        await X402().read(request, quote(other), needs())
    assert refused.value.reason == "invalid_network"


@pytest.mark.parametrize("vector", VECTORS["payments"], ids=named)
async def test_a_payment_too_near_its_end_is_refused_and_known_again(
    vector: dict[str, Any],
) -> None:
    """Known again: who paid in time and comes back late still gets what was bought."""
    request = PaidRequest("GET", "", [(b"x-payment", vector["header"].encode())], b"")
    wanted = quote(network_of(vector))
    paid = await X402().read(request, wanted, needs(left_s=15))
    with pytest.raises(PaymentRefused) as refused:
        await X402().read(request, wanted, needs(left_s=14.9))
    assert refused.value.reason == "invalid_exact_evm_payload_authorization_valid_before"
    assert refused.value.digest == paid.digest


@pytest.mark.parametrize("vector", VECTORS["payments"], ids=named)
@pytest.mark.parametrize("clock_s", [0.0, 300.0])
async def test_a_payment_that_is_valid_for_too_long_is_refused_and_known_again(
    vector: dict[str, Any], clock_s: float
) -> None:
    """Stock clients sign `maxTimeoutSeconds` by their own clock; a year is nobody's."""
    request = PaidRequest("GET", "", [(b"x-payment", vector["header"].encode())], b"")
    wanted = quote(network_of(vector))
    most_s = timeout_s(wanted) + clock_s
    paid = await X402().read(request, wanted, replace(needs(most_s), x402_clock_s=clock_s))
    for longer_s in (most_s + 0.1, most_s + 30):
        with pytest.raises(PaymentRefused) as refused:
            await X402().read(request, wanted, replace(needs(longer_s), x402_clock_s=clock_s))
        assert refused.value.reason == "invalid_exact_evm_payload_authorization_valid_before"
        assert str(timeout_s(wanted)) in refused.value.message
        assert refused.value.digest == paid.digest


@dataclass
class Rich:
    """A facilitator that finds a balance."""

    asked: int = 0

    async def verify(self, *_: object) -> int:
        self.asked += 1
        return 10**6


@pytest.mark.parametrize(("work_s", "first"), [(0.0, False), (4.5, False), (4.5, True)])
async def test_what_waited_too_long_is_refused_before_the_upstream_is_asked(
    work_s: float, *, first: bool
) -> None:
    vector = VECTORS["payments"][0]
    request = PaidRequest("GET", "", [(b"x-payment", vector["header"].encode())], b"")
    wanted = replace(quote(network_of(vector)), work_s=work_s, settles_first=first)
    paid = await X402().read(request, wanted, needs())
    least_s = 10 if first else 10 + work_s
    facilitator = Rich()
    late = replace(needs(least_s - 0.1), facilitator=facilitator)
    with pytest.raises(PaymentRefused) as refused:
        await X402().verify(paid, late, PaymentSighting())
    assert refused.value.reason == "invalid_exact_evm_payload_authorization_valid_before"
    assert facilitator.asked == 0
    in_time = replace(needs(least_s), facilitator=facilitator)
    assert await X402().verify(paid, in_time, PaymentSighting()) == {
        wanted.network.asset.address: 10**6
    }


def entry(vector: dict[str, Any]) -> LedgerEntry:
    now = FrozenClock().now()
    return LedgerEntry(
        id="1",
        protocol="x402",
        network=vector["network"],
        asset=NETWORKS[vector["network"]].asset.address,
        payer=vector["said"]["payer"],
        nonce="0x1",
        digest="",
        amount=10000,
        pay_to="",
        operator_id="",
        wrapper_id="",
        request_digest="",
        state=PaymentState(vector["state"]),
        attempt=SettlementAttempt(vector["said"]["transaction"]),
        reason="",
        credential={},
        version=vector["version"],
        identifier=None,
        expires_at=now,
        lease_until=now,
        created_at=now,
        updated_at=now,
    )


@pytest.mark.parametrize("vector", VECTORS["receipts"], ids=named)
def test_a_receipt_is_the_standards_document_in_both_spellings(vector: dict[str, Any]) -> None:
    one = entry(vector)
    headers = X402().receipt(one, needs()) if one.has_paid else X402().pending(one)
    assert decoded(headers, b"x-payment-response") == vector["said"]
    assert decoded(headers, b"payment-response") == {**vector["said"], "network": one.network}
    for _, value in headers:
        read = decode_payment_response_header(value.decode())
        assert (read.success, read.transaction) == (one.has_paid, one.attempt.transaction)


async def test_a_refusal_is_a_settlement_that_failed() -> None:
    demand = await X402().demand(quote("eip155:8453"), needs(), "insufficient_funds")
    assert decoded(demand.headers, b"x-payment-response") == VECTORS["refusal"]
    assert decoded(demand.headers, b"payment-required")["error"] == "insufficient_funds"


def test_the_newer_header_wins_whichever_comes_first() -> None:
    both = [(b"x-payment", b"1"), (b"payment-signature", b"2")]
    assert payment_header(both) == payment_header(both[::-1]) == b"2"


@given(
    st.builds(
        Authorization,
        payer=st.from_regex(r"0x[0-9a-f]{40}", fullmatch=True),
        to=st.from_regex(r"0x[0-9a-f]{40}", fullmatch=True),
        value=st.integers(0, 2**256 - 1),
        valid_after=st.integers(0, 2**256 - 1),
        valid_before=st.integers(0, 2**256 - 1),
        nonce=st.from_regex(r"0x[0-9a-f]{64}", fullmatch=True),
        signature=st.from_regex(r"0x([0-9a-f]{2}){65,70}", fullmatch=True),
    )
)
def test_a_credential_is_known_by_its_canonical_form_and_read_back(signed: Authorization) -> None:
    kept = credential_of(signed)
    assert credential_digest(signed) == hashlib.sha256(canonical_bytes(kept)).hexdigest()
    assert authorization_of(json.loads(json.dumps(kept))) == signed
