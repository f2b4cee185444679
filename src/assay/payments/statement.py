"""Statements of what is owed to accounts, and the payouts and refunds that settle it.

For each account and asset: what the platform received for it, and what it paid. Everything is read
from the ledger when it is asked for, so no sum can differ from it (ADR 0021). A payment counts
while its money is there, and not after a reorganisation took it back. Payouts and refunds are rows:

    signed -> paid · failed          open -> paid · cancelled          failed -> paid · cancelled
    paid -> signed, if a reorganisation took it back before it was final
"""

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction
from typing import Literal, Protocol, TypeAlias

from assay.common.errors import Conflict, NotFound
from assay.common.numbers import DECIMALS
from assay.payments.model import PaymentState

SumKind: TypeAlias = Literal["received", "refund", "payout"]


@dataclass(frozen=True, slots=True)
class LedgerSum:
    """Settled payments, or transfers, that are alike; `amount` in base units of the asset."""

    operator_id: str
    network: str
    asset: str
    kind: SumKind
    of_balance: bool
    """Whether the platform was paid, or pays; else the seller's own wallet."""
    is_done: bool
    """Whether it has arrived for good: not a payment that is not final, and not a transfer under
    way."""
    fee_rate: Decimal | None
    count: int
    amount: int
    direct_fee: int = 0
    """The part of the amount that payers sent to the platform beside the seller."""


@dataclass(slots=True)
class StatementLine:
    """What is owed to one account in one asset of one network, in base units."""

    operator_id: str
    network: str
    asset: str
    payments: int = 0
    received: int = 0
    """What the platform was paid for the account."""
    refunded: int = 0
    paid_out: int = 0
    unfinal: int = 0
    """The part of what was received that a reorganisation could still take back."""
    under_way: int = 0
    """Refunds and payouts that are not on the chain yet: nobody may receive them twice."""
    direct_payments: int = 0
    direct: int = 0
    """What the account's own wallets were paid, without `direct_fee`. Nobody owes it."""
    direct_refunded: int = 0
    direct_fee: int = 0
    """What the platform was paid beside them. It is final with its payment, and not refunded."""
    _fee: Fraction = field(default_factory=Fraction)
    _unfinal_fee: Fraction = field(default_factory=Fraction)

    @property
    def fee(self) -> int:
        """Return the platform's fee: the exact sum, rounded down once, in favour of the account.

        What was refunded to a payer, or is about to be, bears no fee.
        """
        return self._fee.numerator // self._fee.denominator

    @property
    def owed(self) -> int:
        """Return what is owed; below zero if a payment that was paid out was taken back."""
        return self.received - self.fee - self.refunded - self.paid_out - self.under_way

    @property
    def payable(self) -> int:
        """Return what may be paid out or refunded now: only of final payments."""
        fee = self._fee - self._unfinal_fee
        return self.owed + self.fee - self.unfinal - fee.numerator // fee.denominator

    def add(self, one: LedgerSum) -> None:
        """Add a sum."""
        if one.kind == "received":
            self._receive(one)
        elif not one.of_balance:
            self.direct_refunded += one.amount if one.is_done else 0
        elif not one.is_done:
            self.under_way += one.amount
        elif one.kind == "refund":
            self.refunded += one.amount
        else:
            self.paid_out += one.amount
        if one.of_balance and one.kind != "payout" and one.fee_rate is not None:
            share = Fraction(one.fee_rate) * one.amount
            self._fee += share if one.kind == "received" else -share
            self._unfinal_fee += share if one.kind == "received" and not one.is_done else 0

    def _receive(self, one: LedgerSum) -> None:
        if one.of_balance:
            self.payments += one.count
            self.received += one.amount
            self.unfinal += 0 if one.is_done else one.amount
        else:
            self.direct_payments += one.count
            self.direct += one.amount - one.direct_fee
            self.direct_fee += one.direct_fee


def lines_of(sums: Iterable[LedgerSum]) -> Sequence[StatementLine]:
    """Return a line for each account, network and asset, in that order."""
    found: dict[tuple[str, str, str], StatementLine] = {}
    for one in sums:
        key = (one.operator_id, one.network, one.asset)
        found.setdefault(key, StatementLine(*key)).add(one)
    return [found[key] for key in sorted(found)]


class StatementStore(Protocol):
    """What a statement is made of."""

    async def sums(self, operator_id: str) -> Sequence[LedgerSum]:
        """Return all sums of one account."""
        ...

    async def sums_for_admin(self) -> Sequence[LedgerSum]:
        """Return all sums of every account."""
        ...


class Statements:
    """Statements of one account, and of all."""

    def __init__(self, store: StatementStore) -> None:
        self._store = store

    async def of(self, operator_id: str) -> Sequence[StatementLine]:
        """Return the lines of one account."""
        return lines_of(await self._store.sums(operator_id))

    async def all_for_admin(self) -> Sequence[StatementLine]:
        """Return the lines of every account that was ever paid."""
        return lines_of(await self._store.sums_for_admin())


COLUMNS = (
    *("operatorId", "network", "asset", "payments", "received", "fee", "refunded", "paidOut"),
    *("underWay", "owed", "directPayments", "directReceived", "directRefunded", "directFee"),
)
"""The columns of a line, in the order of `values_of`."""


def values_of(line: StatementLine) -> Sequence[str | int]:
    """Return a line's values: amounts are decimal texts of the asset with six places."""
    return (
        *(line.operator_id, line.network, line.asset, line.payments),
        *(decimal(n) for n in (line.received, line.fee, line.refunded, line.paid_out)),
        *(decimal(n) for n in (line.under_way, line.owed)),
        *(line.direct_payments, decimal(line.direct), decimal(line.direct_refunded)),
        decimal(line.direct_fee),
    )


def csv_of(lines: Iterable[StatementLine]) -> str:
    """Return the lines as CSV (RFC 4180). No value in it is a text that somebody chose."""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    writer.writerows(values_of(line) for line in lines)
    return out.getvalue()


def decimal(base_units: int) -> str:
    """Return base units as a decimal with six places, exactly."""
    return f"{Decimal(base_units).scaleb(-DECIMALS):.6f}"


TransferKind: TypeAlias = Literal["refund", "payout"]


class TransferState(StrEnum):
    """The state of a transfer.

    `open` waits for a person to sign it; `signed` is on its way. `failed` is shown as failed by the
    chain, and stays until it is recorded by hand or cancelled.
    """

    OPEN = "open"
    SIGNED = "signed"
    PAID = "paid"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class Transfer:
    """A payout or a refund: base units of an asset, from one wallet to another."""

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
    """The fee rate of the payment that is refunded."""
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
    """A signed transaction; prices in wei for each unit of gas."""

    transaction: str
    raw: str
    fee: int
    tip: int


@dataclass(frozen=True, slots=True)
class Draft:
    """A transfer that the chain would accept now; it is signed once its nonce is known."""

    nonce_min: int
    """The first nonce that the chain has not seen."""
    sign: Callable[[int], SignedTransfer]


@dataclass(frozen=True, slots=True)
class ReceivedPayment:
    """A payment of the ledger, as far as it can be refunded.

    `watch_at` is the watcher's next look; None once every endpoint has shown it as final.
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
    """The part of the amount that its payer sent to the platform beside the seller."""
    settled_at: datetime | None
    watch_at: datetime | None


@dataclass(frozen=True, slots=True)
class TransferSighting:
    """What the nodes of a network agree on about a transfer.

    `paid` or `reverted` by that transaction, at least `depth` blocks deep; `is_lost`: something
    else has used its nonce for long; `is_gone`: nothing has, and no transaction of it is mined.
    None of these: they do not agree, or cannot be asked.
    """

    paid: str = ""
    reverted: str = ""
    depth: int = 0
    is_lost: bool = False
    is_gone: bool = False


class TransferChain(Protocol):
    """The payout wallet, and the chains it pays on."""

    wallet: str | None
    """Its lower-case address; None without a key."""

    def calldata(self, transfer: Transfer) -> bytes:
        """Return the call of the asset's contract that makes the transfer."""
        ...

    async def draft(self, transfer: Transfer) -> Draft:
        """Return a draft.

        Raises `InvalidRequest` if the wallet cannot make it, and `PaymentsUnavailable`.
        """
        ...

    async def send(self, transfer: Transfer, signed: SignedTransfer) -> str:
        """Send a transaction to every node; return their objections. It proves nothing."""
        ...

    async def dearer(self, transfer: Transfer, signed: SignedTransfer) -> SignedTransfer | None:
        """Return the same transfer and nonce at today's price; None if the last one suffices."""
        ...

    async def found(self, transfer: Transfer, transactions: Sequence[str]) -> TransferSighting:
        """Return what the nodes agree on: two if there are two, and all that answer."""
        ...


class NotOwed(Conflict):
    """The amount is more than the operator is owed."""


class TransferNotFound(NotFound):
    """There is no such payment or transfer."""
