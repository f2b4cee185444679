"""Requests with a payment, the payment protocols, and what payments need from outside.

What was bought is identified by wrapper, method, path, query and body. Our own public address is
not part of it: it may change, and two processes may have two addresses, while a payment is under
way.

A settled x402 authorisation is calldata, so showing it proves nothing. Its buyer comes from the
network address that paid, or sends the token of the 402 that was paid (version 2 clients echo it,
and it never gets to the chain), or proves by a session to be the payer.

Upstreams identify a paid call by one key for a payment's run of a request. The row of a payment
keeps a secret of its own, which neither another request with the payment nor a change of the
service's secrets changes. Each request's key is derived from it.
"""

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hmac import compare_digest
from typing import ClassVar, Protocol, TypeAlias
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
    """A payment as its sender states it: parsed, but not verified."""

    protocol: ProtocolName
    network: str
    """Id of the network that it claims to be made on."""
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
    """The result of its own protocol's parser."""

    def pays(self, quote: Quote) -> bool:
        """Return whether it claims to pay exactly what is asked for, where it is asked for."""
        asked = (quote.network.id, quote.amount, quote.pay_to)
        return (self.network, self.amount, self.pay_to) == asked


async def _any_size(_size: int) -> None:
    """Accept an answer of any size."""


@dataclass(frozen=True)  # without slots, for `common.dataclass_copy.changed`
class PaidRequest:
    """The request that a payment is attached to."""

    method: str
    url: str
    headers: HeaderPairs
    body: bytes
    caller: str = ""
    """The network address that it came from, or that address's network."""
    speaker: str | None = None
    """The address whose session it carries."""
    make_room: Callable[[int], Awaitable[None]] = _any_size
    """Waits until an answer of so many bytes may be held in memory. Raises `Unavailable`."""
    target: str = ""
    """Path and query as they were sent, below our public address; `url` has both."""
    presented: PresentedPayment | None = None
    """The payment, if it has been parsed already."""


def request_digest(wrapper_id: str, request: PaidRequest) -> str:
    """Return the SHA-256 over what is bought."""
    return _digest(_LABEL, wrapper_id, request.method, request.target, body=request.body)


def is_same_request(entry: LedgerEntry, request: PaidRequest) -> bool:
    """Return whether the entry's payment was claimed for this request at any address of ours.

    Older entries named the public address and the forwarded path. They match as long as that
    address is ours.
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
    """Return the token that a client echoes, hashed as the ledger keeps it; empty for none."""
    extra = accepted.get("extra") if accepted is not None else None
    given = extra.get(ECHOED) if is_object(extra) else None
    if not isinstance(given, str) or len(given) not in _TOKEN_CHARS:
        return ""
    return hashlib.sha256(given.encode("utf-8", "surrogatepass")).hexdigest()


def marked(credential: JsonObject, token: str, caller: str) -> JsonObject:
    """Return the credential with the marks that identify its buyer."""
    marks: dict[str, JsonValue] = {"caller": caller, "token": token}
    return {**credential, _MARKS: marks}


def unmarked(credential: JsonObject) -> JsonObject:
    """Return the credential as its payer signed it, without marks of the buyer."""
    return {name: value for name, value in credential.items() if name != _MARKS}


def is_buyer(entry: LedgerEntry, token: str, request: PaidRequest) -> bool:
    """Return whether the request comes from the buyer that the payment was claimed for."""
    marks = entry.credential.get(_MARKS)
    if request.speaker == entry.payer:
        return True
    if not is_object(marks):
        return False
    came_from_there = request.caller != "" and marks.get("caller") == request.caller
    given = str(marks.get("token")).encode("utf-8", "replace")
    # In constant time, because a holder of the token needs nothing else.
    is_known = compare_digest(given, token.encode("utf-8", "replace"))
    return came_from_there or (token != "" and is_known)


def payment_secret(keys: MacKeys, payment: Payment) -> str:
    """Return a secret of a payment's identity; nobody without the keys can compute it."""
    network = payment.quote.network
    said = (network.id, network.asset.address, payment.payer, payment.nonce)
    return keys.mac("\0".join(said).encode("utf-8", "surrogateescape"))[:16].hex()


def carried_secret(known: LedgerEntry, fresh: LedgerEntry) -> str:
    """Return the secret for a new claim on a free entry: its upstream may have run already."""
    is_same = known.request_digest == fresh.request_digest
    kept = known.idempotency_key
    return kept if kept and (is_same or not _is_older(kept)) else fresh.idempotency_key


def upstream_key(entry: LedgerEntry) -> str:
    """Return a UUID, which every upstream with such keys accepts; empty without a secret."""
    secret = entry.idempotency_key
    if not secret or _is_older(secret):
        return secret
    said = f"assay.upstream-key {secret} {entry.request_digest}"
    return str(UUID(bytes=hashlib.sha256(said.encode()).digest()[:16], version=4))


def _is_older(secret: str) -> bool:
    """Return whether it is the key of one request itself, as earlier versions stored it."""
    return "-" in secret


def fresh_entry(
    payment: Payment, request: PaidRequest, keys: MacKeys, now: datetime, *, publishes: bool
) -> LedgerEntry:
    """Return the claim of a payment for a request, with a lease that is over.

    `keys` derive the upstream's key; `publishes` says whether settling shows its credential.
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
"""Stores an attempt durably before it is sent."""

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


class AuthorizationSigners(Protocol):
    """EIP-712 signatures over EIP-3009 authorisations."""

    def signer(self, authorization: Authorization, network: PaymentNetwork) -> str | None:
        """Return the lower-case address that signed for the network's own asset, or None."""
        ...


class Settler(Protocol):
    """Settles payments, and finds their outcomes."""

    async def settle(self, entry: LedgerEntry, note: Note) -> PaymentOutcome:
        """Settle and wait for the outcome; give every attempt to `note` before sending it."""
        ...

    async def outcome(self, entry: LedgerEntry) -> PaymentOutcome:
        """Return a settlement's outcome from the chain alone; send nothing."""
        ...

    async def outcomes(
        self, entries: Sequence[LedgerEntry], *, every_node: bool = False
    ) -> Sequence[PaymentOutcome]:
        """Do what `PaymentProtocol.outcomes` does."""
        ...

    async def resend(self, entry: LedgerEntry, note: Note) -> PaymentOutcome:
        """Send again what was signed before, or its replacement; wait for no block."""
        ...


class Facilitator(Settler, Protocol):
    """Our own engine for EIP-3009 authorisations, or a service. Raises `PaymentsUnavailable`."""

    async def verify(self, payment: Payment, sighting: PaymentSighting) -> int:
        """Return the payer's balance if everything says that the transfer would succeed now.

        Raises `PaymentRefused`. `sighting` records what the chain has shown, either way.
        """
        ...

    async def balance(self, payment: Payment, sighting: PaymentSighting) -> int:
        """Return the payer's balance in base units, by the chain alone. Raises like `verify`.

        Refuses the payment if the balance is less than the amount, or the authorisation is used.
        """
        ...


class MppCharges(Settler, Protocol):
    """The `charge` intent of the Payment authentication scheme on Tempo, by its own library."""

    async def challenge(self, quote: Quote, problem: str) -> PaymentRequirements:
        """Return a new challenge that is bound to wrapper, method and path."""
        ...

    def challenge_s(self, quote: Quote) -> tuple[float, float]:
        """Return for how long a challenge may be paid, and must be valid to be forwarded (s)."""
        ...

    def is_good(self, entry: LedgerEntry, quote: Quote) -> bool:
        """Return whether `PaymentProtocol.is_good` holds."""
        ...

    async def present(self, credential: str) -> PresentedPayment:
        """Return an `Authorization: Payment` value, parsed. Raises `PaymentRefused`."""
        ...

    async def read(self, presented: PresentedPayment, quote: Quote) -> Payment:
        """Return the validated payment; consume nothing. Raises like `PaymentProtocol.read`."""
        ...

    async def verify(self, payment: Payment) -> Balances | None:
        """Return the payer's balances; None if the transfer has happened already."""
        ...

    def work_s(self, payment: Payment) -> float:
        """Do what `PaymentProtocol.work_s` does."""
        ...

    def receipt(self, entry: LedgerEntry) -> bytes:
        """Return the value of `Payment-Receipt` for a settled entry."""
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
    """Who pays for settling with our key; None if none of our keys settles."""

    def ended(self, entry: LedgerEntry, found: Settled | Rejected) -> SettlementAttempt:
        """Returns the entry's attempt with its cost, if that is known."""
        spent = None if self.gas is None else self.gas.spent(entry, found.gas_wei)
        return replace(entry.attempt, spent=spent)


class PaymentProtocol(Protocol):
    """A folder of `payments`: how one protocol asks, reads, settles and confirms."""

    name: ClassVar[ProtocolName]
    binds_body: ClassVar[bool]
    """Whether a challenge is valid for one body only: then the body is read before the 402."""
    publishes: ClassVar[bool]
    """Whether settling publishes the credential: from then on anybody can send it."""
    spends_gas: ClassVar[bool]
    """Whether settling is a transaction of ours, if our key settles."""
    receipts_refusals: ClassVar[bool]
    """Whether an answer that serves nothing may carry a receipt of the payment."""

    async def demand(
        self, quote: Quote, needs: ProtocolDependencies, reason: str, transaction: str = ""
    ) -> PaymentRequirements:
        """Return how to pay; `reason` is the protocol's word for what was wrong before."""
        ...

    def is_attached(self, headers: HeaderPairs) -> bool:
        """Return whether a payment of this protocol is attached, valid or not."""
        ...

    async def present(
        self, headers: HeaderPairs, needs: ProtocolDependencies
    ) -> PresentedPayment | None:
        """Return the attached payment, parsed; None if there is none that can be."""
        ...

    def needed_s(self, quote: Quote, needs: ProtocolDependencies) -> float:
        """Return how long a payment that arrives now must still be valid, in seconds."""
        ...

    def is_good(self, entry: LedgerEntry, quote: Quote, needs: ProtocolDependencies) -> bool:
        """Return whether a claimed payment that comes again now would be valid for long enough."""
        ...

    def quote_life_s(self, quote: Quote, needs: ProtocolDependencies) -> float:
        """Return how long a quote may be paid after it was asked for, in seconds."""
        ...

    async def read(
        self, request: PaidRequest, quote: Quote, needs: ProtocolDependencies
    ) -> Payment:
        """Return the attached payment with its payer established; consume nothing.

        Raises `PaymentRefused` for anything that does not pay for `quote`, and
        `PaymentsUnavailable`.
        """
        ...

    async def verify(
        self, payment: Payment, needs: ProtocolDependencies, sighting: PaymentSighting
    ) -> Balances | None:
        """Return the payer's balances if they must cover every payment in flight, else None.

        Raises `PaymentRefused` and `PaymentsUnavailable`. `sighting` records what was shown.
        """
        ...

    def work_s(self, payment: Payment, needs: ProtocolDependencies) -> float:
        """Return how long its upstream may take now that it is verified, in seconds."""
        ...

    async def settle(
        self, entry: LedgerEntry, note: Note, needs: ProtocolDependencies
    ) -> PaymentOutcome:
        """Settle and wait for the outcome; give every attempt to `note` before sending it."""
        ...

    async def outcome(self, entry: LedgerEntry, needs: ProtocolDependencies) -> PaymentOutcome:
        """Return a settlement's outcome from the chain alone; send nothing."""
        ...

    async def outcomes(
        self,
        entries: Sequence[LedgerEntry],
        needs: ProtocolDependencies,
        *,
        every_node: bool = False,
    ) -> Sequence[PaymentOutcome]:
        """Return outcomes of one network's settlements by its nodes. Raises `Unavailable`.

        A refusal, and with `every_node` also "unused", needs all nodes that answer, and at least
        two if there are two.
        """
        ...

    async def resend(
        self, entry: LedgerEntry, note: Note, needs: ProtocolDependencies
    ) -> PaymentOutcome:
        """Send again what was signed before, or its replacement; wait for no block."""
        ...

    def receipt(self, entry: LedgerEntry, needs: ProtocolDependencies) -> HeaderPairs:
        """Return the headers that confirm the payment."""
        ...

    def pending(self, entry: LedgerEntry) -> HeaderPairs:
        """Return the headers of an answer with an unknown outcome."""
        ...
