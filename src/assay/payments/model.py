"""Quotes, payments, the states of a payment, and the moves between them. Pure.

Amounts are integers in the asset's base units. Every asset here has six decimals, so a base unit is
a micro-dollar (conventions.md#time-money-and-ids). The states and moves are one table that the
ledger keeps to; `docs/payments.md` says when each move is made. A move to the same state records
something else: a lease, an attempt, a reason.

Source: interface.md#wrapper-configuration, #wrappers; conventions.md#wrapper.
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
    """A stablecoin. `eip712_name` and `eip712_version` are its signing domain, if it has one."""

    address: str
    eip712_name: str = ""
    eip712_version: str = ""


@dataclass(frozen=True, slots=True)
class PaymentNetwork:
    """A chain on which payments are taken; configs name it by `id`.

    A payment has settled after `confirmations` blocks, its own included, and is final after
    `final_blocks`. Source of ids: interface.md#enumerated-values.
    """

    id: str
    protocol: ProtocolName
    chain_id: int
    asset: PaymentAsset
    rpc_urls: tuple[str, ...]
    testnet: bool
    source: str
    short_name: str = ""
    """Return its common name; for x402 networks, the one of version 1."""
    confirmations: int = 1
    final_blocks: int = 1

    def is_final(self, depth: int) -> bool:
        """Return whether a payment at this depth needs no further look."""
        return depth >= max(self.final_blocks, self.confirmations)


@dataclass(frozen=True, slots=True)
class DirectFee:
    """The part of a price that its payer sends to the platform, in the seller's transaction."""

    payee: str
    """In lower case; never the seller."""
    amount: int


@dataclass(frozen=True)  # without slots, for `common.dataclass_copy.changed`
class Quote:
    """What one call of a wrapper costs, who is paid, and what exactly is bought."""

    wrapper_id: str
    operator_id: str
    url: str
    """Public address of the wrapper's route, from our own configuration, never from the Host
    header."""
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
    """Seconds that the upstream may take: an authorisation must outlive them."""
    settles_first: bool
    fee_rate: Decimal | None = None
    """The platform's fee rate, 0 to 1; None if it is not collected."""
    direct_fee: DirectFee | None = None
    """The fee that is paid beside the seller; None if the platform keeps its fee, or takes none."""
    body: bytes = field(default=b"", repr=False)
    """The request's body, if the protocol binds a challenge to it."""
    revision: int = 1
    """The revision of the wrapper that serves the call."""
    route: str = ""
    """Path of the wrapper, such as `/items/{id}`, if catalogues may list it; else empty."""


@dataclass(frozen=True, slots=True)
class Fees:
    """The most that settling takes from the payer besides the amount, in base units of a token.

    Empty if settling costs the payer nothing, or has cost them already.
    """

    token: str = ""
    most: int = 0


@dataclass(frozen=True, slots=True)
class Payment:
    """A payment as attached: well formed, for this quote, and with its payer established.

    `nonce` makes it unique on its network: it is the authorisation's nonce, or the challenge's id,
    however the challenge is answered.
    """

    quote: Quote
    payer: str
    nonce: str
    digest: str
    """SHA-256 of the credential: only its holder may fetch what it bought."""
    expires_at: datetime
    """When it can no longer be spent."""
    credential: JsonObject
    """What settling needs; stored, never shown or logged."""
    paid_by: str = ""
    """The transaction that has paid already, if the payer sent it."""
    version: int = 0
    identifier: str | None = None
    """x402's optional payment-identifier."""
    fees: Fees = Fees()
    token: str = ""
    """What the sender knows of our 402 and no chain shows, hashed; empty without it."""
    extensions: JsonObject = field(default_factory=dict[str, JsonValue], repr=False)
    """What the payer sends for others, such as a facilitator; stored nowhere."""


class PaymentState(StrEnum):
    """The state of a payment; `TRANSITIONS` has every legal move.

        claimed -> settling -> settled -> delivered

    A claim ends as `released` if nobody was served and nothing moved, and as `failed` if settling
    was refused for good. `pending` is settling with an unknown outcome. `reversed` is settled or
    delivered, and its transfer is gone for good.
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
    """Until when the process that works on it counts as alive."""
    created_at: datetime
    updated_at: datetime
    moves: int = 0
    """How often it has changed; a change names the number that it was read with."""
    agent_id: str = ""
    """The agent that analytics count it for; empty: the payer."""
    settled_at: datetime | None = None
    """When the money arrived: its revenue belongs to that day."""
    fees: Fees = Fees()
    """What must be left for fees until it has settled."""
    gas: Gas = NO_GAS
    look: Look = AT_ONCE
    """When the chain is asked about it next.

    A released entry is looked at before anything is said of it. Without a time, nobody else can
    have submitted what was claimed.
    """
    fee_rate: Decimal | None = None
    """The fee rate of the quote."""
    direct_fee: DirectFee | None = None
    """The direct fee of the quote: without both transfers, nothing is paid."""
    wrapper_revision: int = 1
    """The wrapper's revision when the payment was claimed; the call is finished on it."""
    idempotency_key: str = ""
    """The secret of the key by which the upstream knows the call (see `upstream_key`); empty in
    rows from before that key."""

    @property
    def has_paid(self) -> bool:
        """Return whether the money has arrived."""
        return self.state in {PaymentState.SETTLED, PaymentState.DELIVERED}


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """What a payment bought, kept to be sent again."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    caller: str = ""
    """The caller that received it."""
    receipt: str = ""
    """What its signed receipt says beside the payment, as JSON; empty in rows from before that."""


@dataclass(frozen=True, slots=True)
class ClaimedPayment:
    """A claimed payment: serve and then settle it, or release it."""

    entry: LedgerEntry
    quote: Quote
    bearer: str = ""
    """Whom its row and its answer count for if it moves nothing; empty if it has paid."""
    is_new: bool = True
    """Whether its row is new; a payment that was claimed before has been counted."""


@dataclass(frozen=True, slots=True)
class Replay:
    """The payment was spent on this very request: this is what it bought."""

    entry: LedgerEntry
    stored: StoredResponse


@dataclass(frozen=True, slots=True)
class PaymentRequirements:
    """A 402 answer: the protocol's headers, and the members that it adds to the error body."""

    headers: tuple[tuple[bytes, bytes], ...]
    extras: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    media_type: bytes = b"application/json"


class PaymentRefused(Exception):
    """The attached payment does not pay for this; `reason` is a word of its protocol.

    `message` is public: one sentence. `transaction` names a failed settlement, if there is one.
    `digest` names the credential if it is only too old.
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
    """402 (interface.md#wrapper-errors): `demand` says how to pay."""

    code = "payment_required"

    def __init__(self, message: str, demand: PaymentRequirements) -> None:
        super().__init__(message)
        self.extras = dict(demand.extras)
        self.demand = demand


class IdentifierReused(Conflict):
    """A payment identifier belongs to one payment: it does not identify another."""

    code = "conflict"


class SettlementPending(Unavailable):
    """The payment's outcome is not known yet: never a 402, or it would be paid twice."""

    code = "settlement_pending"


class PaymentsUnavailable(Unavailable):
    """Nobody can say now whether it pays: nothing is forwarded, and nobody is charged."""

    code = "payments_unavailable"


CUT_SHORT: Final = "cut_short"
"""Why a payment was released: its end left the upstream less than its time."""


@dataclass(frozen=True, slots=True)
class InFlightAmount:
    """What a payer's other payments in flight may take, in base units."""

    amount: int = 0
    """The amount in the entry's asset, with fees in that asset."""
    fees: int = 0
    """The amount in the token of the entry's fees, if that is another one."""
    sent: int = 0
    """How many of them may have left the balance already."""
    mark: int = 0
    """Differs if they are other payments, or have moved: equal sums may be of others."""


@dataclass(frozen=True, slots=True)
class PaymentClaim:
    """A claim's result: the entry, whether it is ours to work on now, and what is in flight."""

    entry: LedgerEntry
    is_ours: bool
    committed: InFlightAmount
    failures: int
    """The payer's failed settlements, and `CUT_SHORT` calls, in the last hour."""


@dataclass(frozen=True, slots=True)
class Due:
    """Selects unfinished entries: every payer's first comes before anybody's second."""

    network: str
    free_at: datetime
    """Their lease ended before that moment."""
    look_at: datetime | None
    """Their next look is not after that moment; None: at any time."""
    limit: int
    of_payer: int
    """The most entries of one payer."""


@dataclass(slots=True)
class PaymentSighting:
    """What the chain has shown of a claimed payment; its verifier writes it."""

    was_unused: bool = False
    """It was unused once it had come here, so a transfer since then pays for what was claimed. One
    that was used before proves nothing: anybody can read it on the chain and present it."""
    may_have_moved: bool = False
    """The chain says that it is used, or somebody who can submit it has seen it."""
    is_used: bool = False
    """The chain's last answer."""
    answers: int = 0
    """Nodes that were asked about its outcome and decided nothing."""

    def read(self, *, is_used: bool) -> None:
        """Record the chain's answer."""
        self.is_used = is_used
        self.was_unused = self.was_unused or not is_used
        self.may_have_moved = self.may_have_moved or is_used


def carried_look(known: LedgerEntry) -> Look:
    """Return the look of a new claim on a free entry: it stays known that it was seen unused."""
    at = known.lease_until if known.state is PaymentState.CLAIMED else known.look.at
    return known.look.due(at)


LOOKS: Final = (timedelta(seconds=5), timedelta(minutes=3), timedelta(minutes=25))
"""Ages of a payment at which it is looked at; after that every 25 minutes until it is final. Five
seconds are two blocks of Base. After three minutes its batch is on Ethereum, after 25 it is final
(ADR 0019)."""

ENDED: Final = timedelta(seconds=130)
"""How long after the end of its authorisation an unpaid payment is looked at once more: the
tolerance of a chain's clock, and some time."""

REOPENED: Final = frozenset({PaymentState.FAILED, PaymentState.RELEASED, PaymentState.CLAIMED})
"""States that become `settled` if somebody else has submitted the payment, abandoned claims too."""

OPEN: Final = frozenset({PaymentState.SETTLING, PaymentState.PENDING})
"""States that the reconciler asks about; the payment is watched again once it has settled."""

SPENT: Final = frozenset(
    {"authorization_cancelled", "authorization_used_elsewhere", "transaction-failed"}
)
"""Reasons after which nobody can submit it any more: x402's nonce is used, and MPP's too."""


@dataclass(frozen=True, slots=True)
class WatchedPayment:
    """The part of a ledger entry that a receipt is compared with."""

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
    """When it settled, or else when it ended."""


def watched_payment(entry: LedgerEntry, transaction: str) -> WatchedPayment:
    """Return the watched part of an entry that this transaction is said to have paid."""
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
    """Return when an entry that has just moved is looked at; None if it has ended."""
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
    """Return when it settled, or else when it ended."""
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
"""The states that a payment may move to, by its present state."""


class IllegalTransition(ValueError):
    """A mistake of ours: nothing is written."""


def require_legal(before: PaymentState, after: PaymentState) -> None:
    """Raise `IllegalTransition` for a move that is not in the table."""
    if after not in TRANSITIONS[before]:
        raise IllegalTransition(f"a payment that is {before} cannot become {after}")
