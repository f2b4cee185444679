"""Payments: x402 headers of both versions, MPP credentials, Tempo transactions, offers."""

import asyncio
import base64
import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from assay.chains.model import ChainUnavailable, Network
from assay.common.json import canonical_bytes
from assay.net.egress.ports import EgressResponse
from assay.payments.model import PaymentRefused, PaymentsUnavailable, Quote
from assay.payments.mpp import tempo
from assay.payments.mpp.charges import TempoCharges
from assay.payments.mpp.library import LibraryLoader
from assay.payments.networks import ROWS
from assay.payments.ports import PaidRequest, ProtocolDependencies
from assay.payments.x402.codec import (
    MalformedPayment,
    authorization_of,
    credential_of,
    parse,
)
from assay.payments.x402.customer import payment_header, requirements, unsigned
from assay.payments.x402.eip3009 import Eip3009Signers
from assay.payments.x402.protocol import X402
from assay.probing import probe_client as paying
from tests.fuzz.target import Target, pieces
from tests.support.fakes.clock import FrozenClock

NETWORKS = {row.id: row for row in ROWS}
CLOCK = FrozenClock()
NOTHING: Any = None

loop = cache(asyncio.new_event_loop)
"""Made when it is first needed: a process that was forked needs its own."""


def quote(network: str) -> Quote:
    return Quote(
        wrapper_id="w",
        operator_id="op",
        url="https://assay.example/wrap/op/quote",
        method="GET",
        path="/wrap/op/quote",
        query="",
        description="",
        network=NETWORKS[network],
        amount=10_000,
        pay_to="0x" + "11" * 20,
        work_s=10.0,
        settles_first=False,
    )


def x402_header(data: bytes) -> None:
    """The bytes of the header, whichever version."""
    found = parse(data)
    assert authorization_of(credential_of(found.authorization)) == found.authorization
    canonical_bytes(credential_of(found.authorization))


def x402_payment(data: bytes) -> None:
    """JSON, in base64 as the header carries it, all the way to a payment that may be forwarded."""
    chosen, body = pieces(data)
    name = (b"x-payment", b"payment-signature")[chosen % 2]
    headers = ((name, base64.b64encode(body)),)
    request = PaidRequest("GET", "https://assay.example/wrap/op/quote", headers, b"")
    # Kept inputs are valid for longer than anybody may sign.
    needs = ProtocolDependencies(Eip3009Signers(), NOTHING, NOTHING, CLOCK, x402_clock_s=1e12)
    found = loop().run_until_complete(X402().read(request, quote("eip155:8453"), needs))
    assert found.credential["authorization"]["value"] == "10000"


class Offline:
    """A chain nobody answers for."""

    async def call_newest(self, *_: object) -> Any:
        raise ChainUnavailable("nobody answers")

    async def request(self, *_: object) -> Any:
        raise ChainUnavailable("nobody answers")


class Kept:
    """The library's replay markers, in memory, and forgotten at once."""

    async def get(self, _key: str) -> None:
        return None

    async def put(self, *_: object) -> None:
        return None

    async def take(self, _key: str) -> None:
        return None

    async def put_if_absent(self, *_: object) -> bool:
        return True


class Now:
    """The library has a clock of its own, and its challenges must not be old."""

    @staticmethod
    def now() -> datetime:
        return datetime.now(UTC)  # noqa: TID251 - the library's own

    @staticmethod
    def monotonic_s() -> float:
        return 0.0


@dataclass(frozen=True)
class Mpp:
    """Charges, the challenge they asked for, and how a credential is written."""

    charges: TempoCharges
    library: Any
    challenge: Any


@cache
def mpp() -> Mpp:
    """One engine, and a challenge that its credentials echo; made when first asked for."""
    row = replace(NETWORKS["tempo:42431"], rpc_urls=("http://127.0.0.1:9",))  # nobody listens
    chain = Network(
        slug="t",
        name="t",
        chain_id=row.chain_id,
        testnet=True,
        identity_registry="0x" + "00" * 20,
        reputation_registry="0x" + "00" * 20,
        rpc_urls=("http://127.0.0.1:9",),
        source="a test",
    )
    loader = LibraryLoader(
        {row.id: row}, Kept(), (Offline(), {row.id: chain}), secrets=("s" * 40,),
        realm="assay.example", timeout_s=1.0,
    )  # fmt: skip
    charges = TempoCharges(
        loader, {row.id: chain}, Offline(), Now(),
        challenge_ttl=timedelta(days=3650),
    )  # fmt: skip
    demand = loop().run_until_complete(charges.challenge(quote(row.id), "payment_required"))
    ((_, header),) = demand.headers
    from mpp import Challenge, Credential  # noqa: PLC0415 - most of a second

    asked = Challenge.from_www_authenticate(header.decode())
    return Mpp(charges, Credential, asked.to_echo())


def mpp_read(credential: str) -> None:
    """As a wrapper reads it."""
    charges = mpp().charges

    async def read() -> None:
        presented = await charges.present(credential)
        await charges.read(presented, quote("tempo:42431"))

    loop().run_until_complete(read())


def mpp_header(data: bytes) -> None:
    """The value of `Authorization`, as it comes."""
    value = "Payment " + data.decode("latin-1")
    if value.isascii():  # others are refused before
        mpp_read(value)


def mpp_payload(data: bytes) -> None:
    """Any JSON as the payload of a credential whose challenge is genuine."""
    try:
        payload: Any = json.loads(data)
        header = mpp().library(challenge=mpp().challenge, payload=payload).to_authorization()
    except (ValueError, RecursionError, TypeError, AttributeError):
        return  # the client's side could not write it
    mpp_read(header)


def tempo_transaction(data: bytes) -> None:
    """A payer's own transaction, whose fees are read."""
    said = tempo._said("0x" + data.hex())
    assert 0 <= said.most <= tempo.FEES_MAX


def offers(data: bytes) -> None:
    """A 402 of an agent, in either version."""
    chosen, body = pieces(data)
    headers = (("payment-required", base64.b64encode(body).decode()),) if chosen % 2 else ()
    reply = EgressResponse(status=402, headers=headers, body=body, truncated=False, elapsed_ms=1)
    found = paying.read(reply)
    if found is not None:
        canonical_bytes(paying.as_json(found))


def x402_demand(data: bytes) -> None:
    """The same, as it is read before it is paid: what is paid is what was read."""
    chosen, body = pieces(data)
    headers = (("payment-required", base64.b64encode(body).decode()),) if chosen % 2 else ()
    reply = EgressResponse(status=402, headers=headers, body=body, truncated=False, elapsed_ms=1)
    rows = [row for row in ROWS if row.protocol == "x402"]
    found = requirements(reply, rows)
    if not found:
        raise NothingToPay
    for one in found:
        signed = unsigned(one, PAYER, "0x" + "1" * 64, 10**9)
        (header,) = payment_header(one, replace(signed, signature="0x" + "2" * 130)).values()
        sent = parse(header.encode()).authorization
        assert (sent.to, sent.value, sent.payer) == (one.pay_to, one.amount, PAYER)


PAYER = "0x" + "ab" * 20


class NothingToPay(Exception):
    """Nothing in it can be paid."""


MPP_REFUSES = (PaymentRefused, PaymentsUnavailable)
"""Without a node nothing is accepted, and nobody is to be called while fuzzing."""

TARGETS = (
    Target("x402_header", x402_header, (MalformedPayment, PaymentRefused)),
    Target("x402_payment", x402_payment, (PaymentRefused,)),
    Target("mpp_header", mpp_header, MPP_REFUSES, accepts=False),
    Target("mpp_payload", mpp_payload, MPP_REFUSES, accepts=False),
    Target("tempo_transaction", tempo_transaction, (PaymentRefused,)),
    Target("offers", offers),
    Target("x402_demand", x402_demand, (NothingToPay,)),
)
