"""What is asked, what is paid, the states of a payment and the moves between them. Pure.

What is asked, what is paid, what a claim finds, and when a payment is watched.

Amounts are integers in the asset's base units; every asset here has six decimals, so that a base
unit is a micro-dollar (conventions.md#time-money-and-ids).
Source: interface.md#wrapper-configuration, #wrappers; conventions.md#wrapper.

The states of a payment and the moves between them: one table that the ledger keeps to.

`docs/payments.md` says when each is made. A move to the same state writes something else down: a
lease, an attempt, a reason.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from assay.common.errors import Conflict, ServiceError, Unavailable
from assay.common.json import JsonObject, JsonValue
from assay.payments.outcomes import AT_ONCE, NO_GAS, Gas, Look, SettlementAttempt

ProtocolName: TypeAlias = Literal["x402", "mpp"]
"""Source: interface.md#enumerated-values."""


@dataclass(frozen=True, slots=True)
class PaymentAsset:
    """A stablecoin. `eip712_name` and `eip712_version` are its signing domain, where it has one."""

    address: str
    eip712_name: str = ""
    eip712_version: str = ""


@dataclass(frozen=True, slots=True)
class PaymentNetwork:
    """A chain payments are taken on. `id` is how configs name it (interface.md#enumerated-values).

    A payment has settled in `confirmations` blocks, its own counted; it is final in `final_blocks`.
    """

    id: str
    protocol: ProtocolName
    chain_id: int
    asset: PaymentAsset
    rpc_urls: tuple[str, ...]
    testnet: bool
    source: str
    short_name: str = ""
    """What people call it; of the x402 ones, how version 1 spells it."""
    confirmations: int = 1
    final_blocks: int = 1

    def is_final(self, depth: int) -> bool:
        """Whether what stands in so many blocks is looked at no more."""
        return depth >= max(self.final_blocks, self.confirmations)


@dataclass(frozen=True, slots=True)
class DirectFee:
    """The part of a price that its payer sends to the platform, in the seller's transaction."""

    payee: str
    """In lower case; never the seller."""
    amount: int


@dataclass(frozen=True)  # without slots, for `common.dataclass_copy.changed`
class Quote:
    """What one call of a wrapper costs, to whom, and what exactly is bought."""

    wrapper_id: str
    operator_id: str
    url: str
    """Public address of the wrapper's route, from our own configuration, never the Host header."""
    method: str
    path: str
    """Path of the request below our own address, without its query."""
    query: str
    """What follows the question mark; empty without one."""
    description: str
    network: PaymentNetwork
    amount: int
    pay_to: str
    work_s: float
    """How long the upstream may take: an authorisation must outlive it."""
    settles_first: bool
    fee_rate: Decimal | None = None
    """What the platform takes, 0 to 1; None where it is not collected."""
    direct_fee: DirectFee | None = None
    """What it is paid beside the seller; None where it keeps its fee, or takes none."""
    body: bytes = field(default=b"", repr=False)
    """What was sent with the request, where the protocol binds a demand to it."""
    revision: int = 1
    """Of the wrapper that serves the call."""


@dataclass(frozen=True, slots=True)
class Fees:
    """The most that settling takes from the payer besides the amount, in base units of a token.

    Empty where settling costs him nothing, or has cost him already.
    """

    token: str = ""
    most: int = 0


@dataclass(frozen=True, slots=True)
class Payment:
    """A payment as attached: well formed, for this quote, and its payer established.

    `nonce` is what makes it unique on its network: the authorisation's nonce, or the challenge's
    id, however the challenge is answered.
    """

    quote: Quote
    payer: str
    nonce: str
    digest: str
    """SHA-256 of the credential itself: only who holds it may fetch what it bought."""
    expires_at: datetime
    """After this it can no longer be spent."""
    credential: JsonObject
    """What settling takes; stored, never shown or logged."""
    paid_by: str = ""
    """The transaction that has paid already, where the payer sent it himself."""
    version: int = 0
    identifier: str | None = None
    """x402's optional payment-identifier."""
    fees: Fees = Fees()
    token: str = ""
    """What its sender knows of our 402 and no chain shows, hashed; empty where there is none."""


class PaymentState(StrEnum):
    """What has become of a payment; `transitions` has every legal move.

    claimed -> settling -> settled -> delivered; a claim ends as `released` when nobody was served
    and nothing moved, as `failed` when settling was refused for good. `pending` is settling whose
    outcome is not known yet, `reversed` settled or delivered whose transfer is gone for good.
    """

    CLAIMED = "claimed"
    SETTLING = "settling"
    PENDING = "pending"
    SETTLED = "settled"
    DELIVERED = "delivered"
    RELEASED = "released"
    FAILED = "failed"
    REVERSED = "reversed"


@dataclass(frozen=True)  # without slots, for `common.dataclass_copy.changed`
class LedgerEntry:
    """A row of the ledger."""

    id: str
    protocol: ProtocolName
    network: str
    asset: str
    payer: str
    nonce: str
    digest: str
    amount: int
    pay_to: str
    operator_id: str
    wrapper_id: str
    request_digest: str
    """SHA-256 over what was bought: wrapper, method, path, query and body."""
    state: PaymentState
    attempt: SettlementAttempt
    reason: str
    credential: JsonObject
    version: int
    identifier: str | None
    expires_at: datetime
    lease_until: datetime
    """Until when the process that works on it may be believed alive."""
    created_at: datetime
    updated_at: datetime
    moves: int = 0
    """How often it changed: what a change is made from."""
    agent_id: str = ""
    """Whom analytics count it for; empty: the payer."""
    settled_at: datetime | None = None
    """When the money arrived: revenue is of that day."""
    fees: Fees = Fees()
    """What must be left for them until it has."""
    gas: Gas = NO_GAS
    look: Look = AT_ONCE
    """When the chain is asked next what became of it.

    Of a released entry: before anything is said of it. Without a moment, nobody else can have
    submitted what was claimed."""
    fee_rate: Decimal | None = None
    """As the quote had it."""
    direct_fee: DirectFee | None = None
    """As the quote had it: without both transfers, nothing is paid."""
    wrapper_revision: int = 1
    """The wrapper as it was when the payment was claimed: what is finished, is finished there."""
    idempotency_key: str = ""
    """What the key is made of that the upstream knows the call by, see `upstream_keys`; empty in
    rows older than the key."""

    @property
    def has_paid(self) -> bool:
        """Whether the money has arrived."""
        return self.state in {PaymentState.SETTLED, PaymentState.DELIVERED}


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """What a payment bought, kept to be handed out again."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    caller: str = ""
    """Whom it was handed to."""


@dataclass(frozen=True, slots=True)
class ClaimedPayment:
    """A claimed payment: serve, then settle; or release it."""

    entry: LedgerEntry
    quote: Quote
    bearer: str = ""
    """Whom its row and its answer are counted for if it moves nothing; empty: it has paid."""
    is_new: bool = True
    """Whether its row is; one that was claimed before has been counted."""


@dataclass(frozen=True, slots=True)
class Replay:
    """The payment was spent on this very request: here is what it bought."""

    entry: LedgerEntry
    stored: StoredResponse


@dataclass(frozen=True, slots=True)
class PaymentRequirements:
    """A 402 answer: the protocol's headers and the members it adds to the error body."""

    headers: tuple[tuple[bytes, bytes], ...]
    extras: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    media_type: bytes = b"application/json"


class PaymentRefused(Exception):
    """The attached payment does not pay for this; `reason` is a word of its protocol.

    `message` is public: one sentence. `transaction` names a settlement that failed, if any;
    `digest` the credential, when all that is wrong with it is that its time has passed.
    """

    def __init__(
        self, reason: str, message: str, transaction: str = "", *, digest: str = ""
    ) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message
        self.transaction = transaction
        self.digest = digest


class PaymentRequired(ServiceError):
    """402 (interface.md#wrapper-errors): how to pay stands in `demand`."""

    code = "payment_required"

    def __init__(self, message: str, demand: PaymentRequirements) -> None:
        super().__init__(message)
        self.extras = dict(demand.extras)
        self.demand = demand


class IdentifierReused(Conflict):
    """A payment-identifier stands for one payment: it is no bearer token for another."""

    code = "conflict"


class SettlementPending(Unavailable):
    """A payment whose outcome is not known yet: never a 402, or it would be paid twice."""

    code = "settlement_pending"


class PaymentsUnavailable(Unavailable):
    """Nobody can say yet whether it pays: nothing is forwarded, nobody is charged."""

    code = "payments_unavailable"


CUT_SHORT: Final = "cut_short"
"""Why a payment was released whose end left the upstream less than its time."""


@dataclass(frozen=True, slots=True)
class InFlightAmount:
    """What a payer's other payments in flight may take, in base units."""

    amount: int = 0
    """Of the entry's asset, fees in it included."""
    fees: int = 0
    """Of the token of the entry's fees, where that is another one."""
    sent: int = 0
    """How many of them may have left the balance already."""
    mark: int = 0
    """Another one when they are other payments, or have moved: equal sums may be of others."""


@dataclass(frozen=True, slots=True)
class PaymentClaim:
    """What a claim found: the entry, whether it is ours to work on now, and what is in flight."""

    entry: LedgerEntry
    is_ours: bool
    committed: InFlightAmount
    failures: int
    """Settlements of this payer that failed, and calls that were `CUT_SHORT`, in the last hour."""


@dataclass(frozen=True, slots=True)
class Due:
    """Which unfinished entries are asked for: nobody's second comes before anybody's first."""

    network: str
    free_at: datetime
    """Their lease ended before that moment."""
    look_at: datetime | None
    """Their next look is not after that moment; None: whenever it is."""
    at_most: int
    of_payer: int
    """How many of one payer at most."""


@dataclass(slots=True)
class PaymentSighting:
    """What the chain has shown of a claimed payment; written by what verifies it."""

    was_unused: bool = False
    """It was unused after it had come here: a transfer made since pays for what was claimed.

    One that was used before proves nothing: anybody can read it on the chain and present it."""
    may_have_moved: bool = False
    """The chain says that it is used, or somebody who can submit it has been shown it."""
    is_used: bool = False
    """What the chain said last."""
    answers: int = 0
    """Nodes that were asked what became of it, and decided nothing."""

    def read(self, *, is_used: bool) -> None:
        """Note what the chain says now."""
        self.is_used = is_used
        self.was_unused = self.was_unused or not is_used
        self.may_have_moved = self.may_have_moved or is_used


def carried_look(known: LedgerEntry) -> Look:
    """The look of a new claim on an entry nobody works on: that it was seen unused stays known."""
    at = known.lease_until if known.state is PaymentState.CLAIMED else known.look.at
    return known.look.due(at)


LOOKS: Final = (timedelta(seconds=5), timedelta(minutes=3), timedelta(minutes=25))
"""Ages of a payment at which it is looked at; then every 25 minutes until it is final. Five seconds
are two blocks of Base; after three minutes its batch is on Ethereum, after 25 final (ADR 0019)."""

ENDED: Final = timedelta(seconds=130)
"""How long after its authorisation has ended an unpaid payment is looked at once more: the slack of
a chain's clock, and a little."""

REOPENED: Final = frozenset({PaymentState.FAILED, PaymentState.RELEASED, PaymentState.CLAIMED})
"""What becomes `settled` when somebody else has submitted it; an abandoned claim as well."""

OPEN: Final = frozenset({PaymentState.SETTLING, PaymentState.PENDING})
"""What the reconciler asks about; it is watched again once it has settled."""

SPENT: Final = frozenset(
    {"authorization_cancelled", "authorization_used_elsewhere", "transaction-failed"}
)
"""Reasons after which nobody can submit it any more: x402's nonce is used, MPP's too."""


@dataclass(frozen=True, slots=True)
class WatchedPayment:
    """An entry of the ledger, as much of it as a receipt is held against."""

    id: str
    protocol: ProtocolName
    asset: str
    payer: str
    nonce: str
    amount: int
    pay_to: str
    direct_fee: DirectFee | None
    state: PaymentState
    transaction: str
    since: datetime
    """When it settled; when it ended, where it did not."""


def watched_payment(entry: LedgerEntry, transaction: str) -> WatchedPayment:
    """That of an entry which that transaction is said to have paid."""
    return WatchedPayment(
        entry.id,
        entry.protocol,
        entry.asset,
        entry.payer,
        entry.nonce,
        entry.amount,
        entry.pay_to,
        entry.direct_fee,
        entry.state,
        transaction,
        since(entry),
    )


def first_look(entry: LedgerEntry) -> datetime | None:
    """When an entry is looked at that has just moved; None for one that has ended."""
    now = entry.updated_at
    if entry.state is PaymentState.FAILED:  # a holder of its authorisation may still submit it
        is_good = now < entry.expires_at and entry.reason not in SPENT
        return entry.expires_at + ENDED if is_good else None
    if entry.state is PaymentState.CLAIMED or (
        entry.state is PaymentState.RELEASED and entry.look.at
    ):
        return entry.expires_at + ENDED
    return now + LOOKS[0] if entry.has_paid else None


def since(entry: LedgerEntry) -> datetime:
    """When it settled; when it ended, where it did not."""
    return entry.settled_at or entry.updated_at


_OPEN_MOVES: Final = frozenset(
    {PaymentState.SETTLING, PaymentState.PENDING, PaymentState.SETTLED, PaymentState.FAILED}
)

TRANSITIONS: Final[Mapping[PaymentState, frozenset[PaymentState]]] = MappingProxyType(
    {
        PaymentState.CLAIMED: frozenset(
            {
                PaymentState.CLAIMED,
                PaymentState.SETTLING,
                PaymentState.SETTLED,
                PaymentState.RELEASED,
            }
        ),
        PaymentState.SETTLING: _OPEN_MOVES,
        PaymentState.PENDING: _OPEN_MOVES,
        PaymentState.SETTLED: frozenset(
            {PaymentState.SETTLED, PaymentState.DELIVERED, PaymentState.REVERSED}
        ),
        PaymentState.DELIVERED: frozenset({PaymentState.DELIVERED, PaymentState.REVERSED}),
        PaymentState.RELEASED: frozenset(
            {PaymentState.RELEASED, PaymentState.CLAIMED, PaymentState.SETTLED}
        ),
        PaymentState.FAILED: frozenset({PaymentState.SETTLED}),
        PaymentState.REVERSED: frozenset(),
    }
)
"""From each state those that a payment may be moved to."""


class IllegalTransition(ValueError):
    """A mistake of ours: nothing is written then."""


def require_legal(before: PaymentState, after: PaymentState) -> None:
    """Raises `IllegalTransition` for a move that is not in the table."""
    if after not in TRANSITIONS[before]:
        raise IllegalTransition(f"a payment that is {before} cannot become {after}")
