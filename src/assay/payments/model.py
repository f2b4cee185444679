"""What is asked, what is paid, and what became of it.

Amounts are integers in the asset's base units; every asset here has six decimals, so that a base
unit is a micro-dollar (conventions.md#time-money-and-ids).
Source: interface.md#wrapper-configuration, #wrappers; conventions.md#wrapper.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Literal, TypeAlias

from assay.common.errors import Conflict, ServiceError, Unavailable
from assay.common.json import JsonObject, JsonValue
from assay.payments.gas_cost import NO_GAS, Gas
from assay.payments.outcomes import SettlementAttempt
from assay.payments.recheck_schedule import AT_ONCE, Look

Protocol: TypeAlias = Literal["x402", "mpp"]
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
    protocol: Protocol
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
    protocol: Protocol
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
