"""A request with a payment, what a payment protocol is, and what payments need of the outside.

A request with a payment: what it buys, whose it is, and the entry that claims it. Pure.

What was bought is known by wrapper, method, path, query and body. Our own public address is no part
of it: it may change, and two processes may be reached at two, while a payment is under way.

A settled x402 authorisation is calldata: to show it proves nothing. Its buyer comes from
the network address that paid, or sends the token of the 402 that was paid (version 2 clients echo
it, and it never gets to the chain), or proves by a session that it is the payer.

Upstreams know paid calls by one key for a payment's run of a request, however often. The row of a
payment keeps a secret of its own, which no other request that it is sent with changes, nor a change
of the service's secrets; each request's key is made of it.

What payments need of the outside, and what a payment protocol is.
"""

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hmac import compare_digest
from typing import ClassVar, TypeAlias
from typing import Protocol as Port
from uuid import UUID

from assay.common.clock import Clock
from assay.common.http_heads import HeaderPairs
from assay.common.ids import new_id
from assay.common.json import JsonObject, JsonValue, is_object
from assay.common.keyring import MacKeys
from assay.payments.gas import GasBudget
from assay.payments.model import (
    LedgerEntry,
    Payment,
    PaymentNetwork,
    PaymentRequirements,
    PaymentSighting,
    PaymentState,
    ProtocolName,
    Quote,
)
from assay.payments.outcomes import PaymentOutcome, Rejected, Settled, SettlementAttempt

_SLASH = re.compile(r"%2[fF]")
_LABEL = b"assay.request.2\0"


@dataclass(frozen=True, slots=True)
class PresentedPayment:
    """A payment as its sender words it, taken apart but believed in nothing."""

    protocol: ProtocolName
    network: str
    """Id of the network it says it is made on."""
    amount: int
    pay_to: str
    """In lower case."""
    expires_s: float
    """Seconds since 1970 after which it cannot be spent."""
    digest: str
    """As in `Payment`."""
    token: str
    """As in `Payment`."""
    parsed: object
    """What its own protocol made of it."""

    def pays(self, quote: Quote) -> bool:
        """Whether it says that it pays exactly what is asked for, where it is asked for."""
        asked = (quote.network.id, quote.amount, quote.pay_to)
        return (self.network, self.amount, self.pay_to) == asked


async def _any_size(_size: int) -> None:
    """Room for whatever comes."""


@dataclass(frozen=True)  # without slots, for `common.dataclass_copy.changed`
class PaidRequest:
    """The request a payment is attached to."""

    method: str
    url: str
    headers: HeaderPairs
    body: bytes
    caller: str = ""
    """The network address it came from, or that address's network."""
    speaker: str | None = None
    """The address whose session it carries."""
    make_room: Callable[[int], Awaitable[None]] = _any_size
    """Waits until an answer of so many bytes may be held in memory. Raises `Unavailable`."""
    target: str = ""
    """Path and query as they were sent, below our public address; `url` is that address and it."""
    presented: PresentedPayment | None = None
    """The payment, where it has been taken apart already."""


def request_digest(wrapper_id: str, request: PaidRequest) -> str:
    """SHA-256 over what is bought."""
    return _digest(_LABEL, wrapper_id, request.method, request.target, body=request.body)


def is_same_request(entry: LedgerEntry, request: PaidRequest) -> bool:
    """Whether the entry's payment was claimed for this request, whatever our address was then.

    Older entries named the public address, and the path as it was forwarded: they are known again
    as long as that address is still ours.
    """
    if entry.request_digest == request_digest(entry.wrapper_id, request):
        return True
    path, mark, query = request.url.partition("?")
    urls = (request.url, _SLASH.sub("/", path) + mark + query)
    said = (entry.wrapper_id, request.method)
    return entry.request_digest in {_digest(b"", *said, url, body=request.body) for url in urls}


def _digest(label: bytes, *said: str, body: bytes) -> str:
    head = b"\0".join(part.encode("utf-8", "surrogateescape") for part in said)
    whole = label + head + b"\0" + hashlib.sha256(body).digest()
    return hashlib.sha256(whole).hexdigest()


ECHOED = "token"
"""Member of an x402 version 2 requirement's `extra`."""

_MARKS = "buyer"
_TOKEN_CHARS = range(16, 129)


def token_of(accepted: JsonObject | None) -> str:
    """The token a client echoes, as the ledger keeps it: hashed, or empty for none."""
    extra = accepted.get("extra") if accepted is not None else None
    given = extra.get(ECHOED) if is_object(extra) else None
    if not isinstance(given, str) or len(given) not in _TOKEN_CHARS:
        return ""
    return hashlib.sha256(given.encode("utf-8", "surrogatepass")).hexdigest()


def marked(credential: JsonObject, token: str, caller: str) -> JsonObject:
    """The credential, with what its buyer is known by."""
    marks: dict[str, JsonValue] = {"caller": caller, "token": token}
    return {**credential, _MARKS: marks}


def unmarked(credential: JsonObject) -> JsonObject:
    """The credential as its payer signed it: nobody else is told of the buyer."""
    return {name: value for name, value in credential.items() if name != _MARKS}


def is_buyer(entry: LedgerEntry, token: str, request: PaidRequest) -> bool:
    """Whether the request is of whom the payment was claimed for."""
    marks = entry.credential.get(_MARKS)
    if request.speaker == entry.payer:
        return True
    if not is_object(marks):
        return False
    came_from_there = request.caller != "" and marks.get("caller") == request.caller
    given = str(marks.get("token")).encode("utf-8", "replace")
    # In constant time: a holder of the token needs nothing else.
    is_known = compare_digest(given, token.encode("utf-8", "replace"))
    return came_from_there or (token != "" and is_known)


def payment_secret(keys: MacKeys, payment: Payment) -> str:
    """Of a payment's identity alone; nobody without the keys can tell it."""
    network = payment.quote.network
    said = (network.id, network.asset.address, payment.payer, payment.nonce)
    return keys.mac("\0".join(said).encode("utf-8", "surrogateescape"))[:16].hex()


def carried_secret(known: LedgerEntry, fresh: LedgerEntry) -> str:
    """That of a new claim on an entry nobody works on: its upstream may have run already."""
    is_same = known.request_digest == fresh.request_digest
    kept = known.idempotency_key
    return kept if kept and (is_same or not _is_older(kept)) else fresh.idempotency_key


def upstream_key(entry: LedgerEntry) -> str:
    """A UUID, which every upstream with such keys takes; empty for rows older than the keys."""
    secret = entry.idempotency_key
    if not secret or _is_older(secret):
        return secret
    said = f"assay.upstream-key {secret} {entry.request_digest}"
    return str(UUID(bytes=hashlib.sha256(said.encode()).digest()[:16], version=4))


def _is_older(secret: str) -> bool:
    """Whether it is the key itself, of one request: so earlier versions have written it."""
    return "-" in secret


def fresh_entry(
    payment: Payment, request: PaidRequest, keys: MacKeys, now: datetime, *, publishes: bool
) -> LedgerEntry:
    """The claim of a payment for a request, with a lease that is over.

    `keys` make what its upstream knows it by; `publishes`, whether settling shows its credential.
    """
    quote = payment.quote
    credential = payment.credential
    if publishes:
        credential = marked(credential, payment.token, request.caller)
    return LedgerEntry(
        id=new_id(),
        protocol=quote.network.protocol,
        network=quote.network.id,
        asset=quote.network.asset.address,
        payer=payment.payer,
        nonce=payment.nonce,
        digest=payment.digest,
        amount=quote.amount,
        pay_to=quote.pay_to,
        operator_id=quote.operator_id,
        wrapper_id=quote.wrapper_id,
        request_digest=request_digest(quote.wrapper_id, request),
        state=PaymentState.CLAIMED,
        attempt=SettlementAttempt(""),
        reason="",
        credential=credential,
        version=payment.version,
        identifier=payment.identifier,
        fees=payment.fees,
        fee_rate=quote.fee_rate,
        direct_fee=quote.direct_fee,
        expires_at=payment.expires_at,
        lease_until=now,
        created_at=now,
        updated_at=now,
        wrapper_revision=quote.revision,
        idempotency_key=payment_secret(keys, payment),
    )


Note: TypeAlias = Callable[[SettlementAttempt], Awaitable[None]]
"""Writes an attempt down, durably, before it is sent."""

Balances: TypeAlias = Mapping[str, int]
"""Base units by token: of the network's asset, and of the token of the payment's fees."""


@dataclass(frozen=True, slots=True)
class Authorization:
    """An EIP-3009 `TransferWithAuthorization`; hex in lower case, times in seconds."""

    payer: str
    to: str
    value: int
    valid_after: int
    valid_before: int
    nonce: str
    signature: str


class AuthorizationSigners(Port):
    """EIP-712 signatures over EIP-3009 authorisations."""

    def signer(self, authorization: Authorization, network: PaymentNetwork) -> str | None:
        """The lower-case address that signed for the network's own asset, or None."""
        ...


class Settler(Port):
    """Settles payments, and says what became of them."""

    async def settle(self, entry: LedgerEntry, note: Note) -> PaymentOutcome:
        """Settle and wait for the outcome; every attempt is handed to `note` before it is sent."""
        ...

    async def outcome(self, entry: LedgerEntry) -> PaymentOutcome:
        """What became of a settlement, from the chain alone; nothing is sent."""
        ...

    async def outcomes(
        self, entries: Sequence[LedgerEntry], *, every_node: bool = False
    ) -> Sequence[PaymentOutcome]:
        """As `PaymentProtocol.outcomes`."""
        ...

    async def resend(self, entry: LedgerEntry, note: Note) -> PaymentOutcome:
        """Send again what was signed before, or what has to replace it; waits for no block."""
        ...


class Facilitator(Settler, Port):
    """Our own engine for EIP-3009 authorisations, or a service. Raises `PaymentsUnavailable`."""

    async def verify(self, payment: Payment, sighting: PaymentSighting) -> int:
        """The payer's balance, once everything says the transfer would go through now.

        Raises `PaymentRefused`; `sighting` is told what the chain has shown, either way.
        """
        ...

    async def balance(self, payment: Payment, sighting: PaymentSighting) -> int:
        """What the payer has of the asset, in base units, by the chain alone. Raises as `verify`.

        Refused when it is less than the amount, or the authorisation is used.
        """
        ...


class MppCharges(Settler, Port):
    """The `charge` intent of the Payment authentication scheme on Tempo, by its own library."""

    async def challenge(self, quote: Quote, problem: str) -> PaymentRequirements:
        """A fresh challenge bound to wrapper, method and path."""
        ...

    def challenge_s(self, quote: Quote) -> tuple[float, float]:
        """Seconds a challenge may be paid, and must still be good to be forwarded for."""
        ...

    def is_good(self, entry: LedgerEntry, quote: Quote) -> bool:
        """As `PaymentProtocol.is_good`."""
        ...

    async def present(self, credential: str) -> PresentedPayment:
        """An `Authorization: Payment` value, taken apart. Raises `PaymentRefused`."""
        ...

    async def read(self, presented: PresentedPayment, quote: Quote) -> Payment:
        """The validated payment; nothing is consumed. Raises as `PaymentProtocol.read`."""
        ...

    async def verify(self, payment: Payment) -> Balances | None:
        """The payer's balances; None when the transfer has happened already."""
        ...

    def work_s(self, payment: Payment) -> float:
        """As `PaymentProtocol.work_s`."""
        ...

    def receipt(self, entry: LedgerEntry) -> bytes:
        """The value of `Payment-Receipt` for a settled entry."""
        ...


@dataclass(frozen=True, slots=True)
class ProtocolDependencies:
    """What a protocol works with."""

    signers: AuthorizationSigners
    facilitator: Facilitator
    charges: MppCharges
    clock: Clock
    x402_clock_s: float = 300.0  # an authorisation's validity beyond what was asked for
    gas: GasBudget | None = None
    """Who pays for settling with a key of ours; None where none of ours settles."""

    def ended(self, entry: LedgerEntry, found: Settled | Rejected) -> SettlementAttempt:
        """The entry's attempt with what it has cost, where that is known."""
        spent = None if self.gas is None else self.gas.spent(entry, found.gas_wei)
        return replace(entry.attempt, spent=spent)


class PaymentProtocol(Port):
    """A folder of `payments`: how one protocol asks, reads, settles and thanks."""

    name: ClassVar[ProtocolName]
    binds_body: ClassVar[bool]
    """Whether a demand holds for one body only: then the body is read before the 402."""
    publishes: ClassVar[bool]
    """Whether settling shows the credential to the world: from then on anybody can send it."""
    spends_gas: ClassVar[bool]
    """Whether settling is a transaction of ours, where a key of ours settles."""
    receipts_refusals: ClassVar[bool]
    """Whether an answer that serves nothing may carry a receipt of what was paid for it."""

    async def demand(
        self, quote: Quote, needs: ProtocolDependencies, reason: str, transaction: str = ""
    ) -> PaymentRequirements:
        """How to pay; `reason` is the protocol's word for what was wrong with the last try."""
        ...

    def is_attached(self, headers: HeaderPairs) -> bool:
        """Whether a payment of this protocol is attached, good or bad."""
        ...

    async def present(
        self, headers: HeaderPairs, needs: ProtocolDependencies
    ) -> PresentedPayment | None:
        """The attached payment, taken apart; None without one that can be."""
        ...

    def needed_s(self, quote: Quote, needs: ProtocolDependencies) -> float:
        """How long a payment that arrives now must still be good, in seconds."""
        ...

    def is_good(self, entry: LedgerEntry, quote: Quote, needs: ProtocolDependencies) -> bool:
        """Whether a claimed payment that comes again now would be good for long enough."""
        ...

    def quote_life_s(self, quote: Quote, needs: ProtocolDependencies) -> float:
        """How long after it was asked for a quote may be paid, in seconds."""
        ...

    async def read(
        self, request: PaidRequest, quote: Quote, needs: ProtocolDependencies
    ) -> Payment:
        """The attached payment, its payer established; nothing is consumed.

        Raises `PaymentRefused` for anything that does not pay for `quote`, `PaymentsUnavailable`.
        """
        ...

    async def verify(
        self, payment: Payment, needs: ProtocolDependencies, sighting: PaymentSighting
    ) -> Balances | None:
        """The payer's balances where they must cover every payment in flight, else None.

        Raises `PaymentRefused` and `PaymentsUnavailable`; `sighting` is told what was shown.
        """
        ...

    def work_s(self, payment: Payment, needs: ProtocolDependencies) -> float:
        """How long its upstream may take, in seconds, now that it is verified."""
        ...

    async def settle(
        self, entry: LedgerEntry, note: Note, needs: ProtocolDependencies
    ) -> PaymentOutcome:
        """Settle and wait for the outcome; every attempt is handed to `note` before it is sent."""
        ...

    async def outcome(self, entry: LedgerEntry, needs: ProtocolDependencies) -> PaymentOutcome:
        """What became of a settlement, from the chain alone; nothing is sent."""
        ...

    async def outcomes(
        self,
        entries: Sequence[LedgerEntry],
        needs: ProtocolDependencies,
        *,
        every_node: bool = False,
    ) -> Sequence[PaymentOutcome]:
        """What became of settlements of one network, by its nodes. Raises `Unavailable`.

        Refused, with `every_node` unused, is what all say that answer, two of two at least.
        """
        ...

    async def resend(
        self, entry: LedgerEntry, note: Note, needs: ProtocolDependencies
    ) -> PaymentOutcome:
        """Send again what was signed before, or what has to replace it; waits for no block."""
        ...

    def receipt(self, entry: LedgerEntry, needs: ProtocolDependencies) -> HeaderPairs:
        """The headers that say it was paid."""
        ...

    def pending(self, entry: LedgerEntry) -> HeaderPairs:
        """The headers of an answer that cannot say yet."""
        ...
