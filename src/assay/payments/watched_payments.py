"""Payments that are watched: what a look needs of one, and when the looks are. Pure."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from assay.payments.model import DirectFee, LedgerEntry, PaymentState, Protocol

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
    protocol: Protocol
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
    if entry.state is PaymentState.FAILED:  # whoever holds its authorisation may still submit it
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
