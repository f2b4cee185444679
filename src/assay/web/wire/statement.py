"""Statements of account. Amounts have six decimals."""

from collections.abc import Sequence

from assay.kit.clock import iso
from assay.payments.statement import COLUMNS, Line, decimal, values_of
from assay.payments.transfer_model import Transfer
from assay.web.wire.page import Paged, cursor_at
from assay.web.wire.shape import Answer, Timestamp


class LineShape(Answer):
    """One account, network and asset: what the platform was paid for it, and what it gave.

    `owed` = `received` - `fee` - `refunded` - `paidOut` - `underWay`. What buyers paid the
    account's own wallets is `directReceived`: nobody owes it.
    """

    operator_id: str
    network: str
    asset: str
    payments: int
    received: str
    fee: str
    refunded: str
    paid_out: str
    under_way: str
    owed: str
    direct_payments: int
    direct_received: str
    direct_refunded: str


class TransferShape(Answer):
    """A payout or a refund. `open` waits for somebody to sign it, `signed` is on its way."""

    id: str
    created_at: Timestamp
    kind: str
    state: str
    amount: str
    network: str
    asset: str
    sender: str
    recipient: str
    payment_reference: str | None
    transaction: str | None


class StatementShape(Answer):
    """What is owed to the account, and its newest payouts and refunds."""

    lines: list[LineShape]
    transfers: list[TransferShape]


class StatementsShape(Paged):
    """What is owed to every account that was ever paid."""

    items: list[LineShape]


def statement(lines: Sequence[Line], transfers: Sequence[Transfer]) -> StatementShape:
    """An account's statement on the wire."""
    shown = [line(one) for one in lines]
    return StatementShape(lines=shown, transfers=[*map(transfer, transfers)])


def statements(lines: Sequence[Line], limit: int, offset: int) -> StatementsShape:
    """A page of the lines of every account on the wire."""
    shown = lines[offset : offset + limit]
    return StatementsShape(
        items=[line(one) for one in shown],
        total=len(lines),
        limit=limit,
        offset=offset,
        next_cursor=cursor_at(offset, len(shown), len(lines)),
    )


def line(found: Line) -> LineShape:
    """A line on the wire: the columns of the file, under the same names."""
    return LineShape.model_validate(dict(zip(COLUMNS, values_of(found), strict=True)))


def transfer(found: Transfer) -> TransferShape:
    """A payout or a refund on the wire."""
    return TransferShape(
        id=found.id,
        created_at=iso(found.created_at),
        kind=found.kind,
        state=found.state.value,
        amount=decimal(found.amount),
        network=found.network,
        asset=found.asset,
        sender=found.sender,
        recipient=found.recipient,
        payment_reference=found.payment_id,
        transaction=found.transaction or None,
    )
