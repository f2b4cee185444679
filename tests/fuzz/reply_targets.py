"""Replies of providers that are asked about an agent or a payment, and documents about control."""

import asyncio
from collections.abc import AsyncIterator
from functools import cache
from typing import Any

import httpx2

from assay.common.errors import Unavailable
from assay.common.json import is_nested_beyond, is_object
from assay.control.statements_in_documents import (
    BYTES_MAX,
    DEPTH_MAX,
    INTERFACES_MAX,
    RECORD_AGENT,
    interfaces_of,
    is_openapi,
    lists_path,
    read_document,
    read_json,
    read_records,
    subject_key,
)
from assay.evaluation.blobs import IpfsSnapshotBlobs, cid_v1_raw
from assay.payments.model import Payment, PaymentRefused, PaymentSighting, PaymentsUnavailable
from assay.payments.outcomes import Rejected, Undecided
from assay.payments.x402.facilitator import RemoteFacilitator, networks_listed
from assay.payments.x402.facilitator_access import FacilitatorEndpoint
from assay.personhood.model import PersonhoodProof, PersonhoodUnavailable, ProofInvalid
from assay.personhood.verifier import CloudVerifier
from assay.probing.judge import WORDS_MAX, read_answer
from tests.fuzz.payment_targets import NETWORKS, quote
from tests.fuzz.target import Target, pieces, text
from tests.payments.ledger.test_ledger_store import entry
from tests.support.fakes.clock import FrozenClock

loop = cache(asyncio.new_event_loop)
"""Made when it is first needed: a process that was forked needs its own."""
CLOCK = FrozenClock()
STATUSES = (200, 400, 404, 429, 500, 204)
BLOCK = b"sealed"


def control_document(data: bytes) -> None:
    """A document is read within its bounds, and names agents in one spelling."""
    value = read_json(data)
    if value is None:
        return
    assert len(data) <= BYTES_MAX
    assert not is_nested_beyond(data, DEPTH_MAX)
    for name in read_document(value).agents:
        assert "/" in subject_key(name)
    is_openapi(value)
    lists_path(value, "/x")
    if is_object(value):
        assert len(interfaces_of(value)) <= INTERFACES_MAX + 1


def control_records(data: bytes) -> None:
    """What TXT records name, whatever their order."""
    records = text(data).split("\n")
    found = read_records(records)
    assert found == read_records(reversed(records))
    assert len(found.agents) <= sum(RECORD_AGENT in one for one in records)


def judges_answer(data: bytes) -> None:
    """A yes or a no, and a few words that can be printed."""
    found = read_answer(text(data))
    if found is not None:
        verdict, words = found
        assert verdict in {"yes", "no"}
        assert len(words) <= WORDS_MAX
        words.encode()


async def _stream(body: bytes) -> AsyncIterator[bytes]:
    yield body


def _answering(data: bytes) -> httpx2.AsyncClient:
    """A client whose every request is answered with a status and these bytes."""
    chosen, body = pieces(data)
    status = STATUSES[chosen % len(STATUSES)]
    return httpx2.AsyncClient(
        transport=httpx2.MockTransport(lambda _: httpx2.Response(status, content=_stream(body))),
        trust_env=False,
    )


class Chain:
    """Has the balance, and shows that nothing has moved."""

    async def balance(self, *_: object) -> int:
        return 10**9

    async def outcome(self, _: object) -> Rejected:
        return Rejected("unseen")


NETWORK = "eip155:84532"
PAYER = "0x" + "ab" * 20
PAYMENT = Payment(
    quote=quote(NETWORK),
    payer=PAYER,
    nonce="0x1",
    digest="d",
    expires_at=CLOCK.now(),
    credential={},
)


def facilitator_reply(data: bytes) -> None:
    """Whatever it says, the chain decides: no reply of its own makes a payment settled."""
    loop().run_until_complete(_facilitator_reply(data))


async def _facilitator_reply(data: bytes) -> None:
    chain: Any = Chain()
    remote = RemoteFacilitator(
        [FacilitatorEndpoint("https://f.example")], NETWORKS, chain, CLOCK, 20.0
    )
    remote._client = _answering(data)

    async def note(_: object) -> None:
        """Nothing is kept."""

    outcome = await remote.settle(entry(network=NETWORK, pay_to=PAYER), note)
    assert isinstance(outcome, Rejected | Undecided)
    assert await remote.verify(PAYMENT, PaymentSighting()) == 10**9


def facilitator_supported(data: bytes) -> bool:
    """What it lists is of our networks, or it does not say."""
    listed = networks_listed(data, NETWORKS)
    assert listed is None or listed <= NETWORKS.keys()
    return listed is not None


def personhood_reply(data: bytes) -> None:
    """Only what says that it succeeded, or that the human is known, is a proof."""
    loop().run_until_complete(_personhood_reply(data))


async def _personhood_reply(data: bytes) -> None:
    verifier = CloudVerifier("https://w.example", "app", "action")
    verifier._client = _answering(data)
    level = await verifier.verify(PersonhoodProof(1, 2, (3,) * 8, "signal", "orb"))
    assert level == "orb"
    assert b"success" in data or b"\\u" in data or b"max_verifications_reached" in data


class Box:
    """Seals to the same bytes always, so that their name is known."""

    def seal(self, *_: object) -> bytes:
        return BLOCK

    def open(self, block: bytes, _: object) -> bytes:
        return block


def ipfs_reply(data: bytes) -> None:
    """A node names the block as it is named, and gives back that block or nothing."""
    loop().run_until_complete(_ipfs_reply(data))


async def _ipfs_reply(data: bytes) -> None:
    box: Any = Box()
    blobs = IpfsSnapshotBlobs("https://i.example", box)
    blobs._http = _answering(data)
    uri = f"ipfs://{cid_v1_raw(BLOCK)}"
    try:
        assert await blobs.load(uri) in {None, BLOCK}
    except ValueError:
        assert data[1:] != BLOCK
    assert await blobs.store(b"snapshot") == uri


TARGETS = (
    Target("control_document", control_document),
    Target("control_records", control_records, (), 2048),
    Target("judges_answer", judges_answer),
    Target("facilitator_reply", facilitator_reply, (PaymentsUnavailable, PaymentRefused)),
    Target("facilitator_supported", facilitator_supported),
    Target("personhood_reply", personhood_reply, (PersonhoodUnavailable, ProofInvalid)),
    Target("ipfs_reply", ipfs_reply, (Unavailable,)),
)
