"""Payouts and refunds as rows, and what making them needs of the outside.

signed -> paid · failed          open -> paid · cancelled          failed -> paid · cancelled
paid -> signed, where a reorganisation took it back before it was final
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Literal, Protocol, TypeAlias

from assay.audit.service import AuditEntry
from assay.common.errors import Conflict, NotFound
from assay.payments.model import PaymentState

TransferKind: TypeAlias = Literal["refund", "payout"]


class TransferState(StrEnum):
    """What has become of a transfer.

    `open` waits for a person to sign it; `signed` is on its way; `failed` is one that the chain
    shows as failed: it stays until it is recorded by hand or cancelled.
    """

    OPEN = "open"
    SIGNED = "signed"
    PAID = "paid"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Transfer:
    """A row: so many base units of the asset, from a wallet to another."""

    id: str
    kind: TransferKind
    operator_id: str
    payment_id: str | None
    network: str
    asset: str
    sender: str
    recipient: str
    amount: int
    of_balance: bool
    """Whether it comes out of what the platform holds for the operator."""
    fee_rate: Decimal | None
    """Of the payment that is given back."""
    state: TransferState
    nonce: int | None
    transaction: str
    reason: str
    created_at: datetime
    updated_at: datetime
    check_at: datetime
    """When the chain is asked next."""
    moves: int = 0


@dataclass(frozen=True, slots=True)
class SignedTransfer:
    """A signed transaction; prices in wei a gas."""

    transaction: str
    raw: str
    fee: int
    tip: int


@dataclass(frozen=True, slots=True)
class Draft:
    """A transfer that the chain would take now: what is signed once its nonce is known."""

    nonce_min: int
    """The first one that the chain has not seen."""
    sign: Callable[[int], SignedTransfer]


@dataclass(frozen=True, slots=True)
class ReceivedPayment:
    """A payment of the ledger, as far as it can be given back.

    `watch_at` is when the watcher looks at it next; None once every endpoint has shown it as final.
    """

    id: str
    operator_id: str
    network: str
    asset: str
    payer: str
    pay_to: str
    amount: int
    state: PaymentState
    fee_rate: Decimal | None
    direct_fee: int
    """Of the amount, what its payer sent to the platform beside the seller."""
    settled_at: datetime | None
    watch_at: datetime | None


@dataclass(frozen=True, slots=True)
class TransferSighting:
    """What the nodes of a network show of a transfer by one word.

    `paid` or `reverted` by that transaction, at least `depth` blocks deep; `is_lost`: something
    else has used its nonce for long; `is_gone`: nothing has, and no transaction of it is mined.
    None of these: they do not agree, or cannot be asked.
    """

    paid: str = ""
    reverted: str = ""
    depth: int = 0
    is_lost: bool = False
    is_gone: bool = False


class TransferStore(Protocol):
    """Transfers, durable before they are answered."""

    async def payment_for_admin(self, payment_id: str) -> ReceivedPayment | None:
        """A payment that may be given back."""
        ...

    async def add(self, made: Transfer, draft: Draft | None, audit_entry: AuditEntry) -> Transfer:
        """Add a transfer, with the next nonce of its wallet and its signed transaction if drafted.

        Raises `Conflict` for a payment that was given back already, and `NotOwed`, with nothing
        added, where the operator is owed less.
        """
        ...

    async def sign_again(self, known: Transfer, signed: SignedTransfer) -> Transfer | None:
        """Write down another transaction of the same nonce; None when the row has moved."""
        ...

    async def move(
        self,
        known: Transfer,
        state: TransferState,
        *,
        transaction: str = "",
        reason: str = "",
        audit_entry: AuditEntry | None = None,
    ) -> Transfer | None:
        """Move a row on; None when it is not as `known` says any more.

        Raises `Conflict` for a transaction that is another transfer's, or paid for something.
        """
        ...

    async def due(
        self, now: datetime, since: Mapping[TransferState, datetime], limit: int
    ) -> Sequence[Transfer]:
        """What the chain is to be asked about, each taken by one process for a while.

        Signed ones first; of other states those that came to it after that moment of `since`.
        """
        ...

    async def finish(self, known: Transfer) -> None:
        """Look at it no more, unless it has moved meanwhile."""
        ...

    async def transactions(self, transfer_id: str) -> Sequence[SignedTransfer]:
        """Everything signed for a transfer, oldest first."""
        ...

    async def find_for_admin(self, transfer_id: str) -> Transfer | None:
        """By its own id, or its payment's."""
        ...

    async def list_for_admin(self, operator_id: str | None, limit: int) -> Sequence[Transfer]:
        """Newest first."""
        ...


class TransferChain(Protocol):
    """The payout wallet, and the chains it pays on."""

    wallet: str | None
    """Its lower-case address; None without a key."""

    def calldata(self, transfer: Transfer) -> bytes:
        """The call of the asset's contract that makes the transfer."""
        ...

    async def draft(self, transfer: Transfer) -> Draft:
        """Raises `InvalidRequest` for one the wallet cannot make, and `PaymentsUnavailable`."""
        ...

    async def send(self, transfer: Transfer, signed: SignedTransfer) -> str:
        """Hand a transaction to every node; what they said against it. Nothing is proven by it."""
        ...

    async def dearer(self, transfer: Transfer, signed: SignedTransfer) -> SignedTransfer | None:
        """The same transfer and nonce at today's price; None where the last one will do."""
        ...

    async def found(self, transfer: Transfer, transactions: Sequence[str]) -> TransferSighting:
        """What the nodes agree on: two of them where there are two, and all that answer."""
        ...


class NotOwed(Conflict):
    """It is more than the operator is owed."""


class TransferNotFound(NotFound):
    """There is no such payment or transfer."""
