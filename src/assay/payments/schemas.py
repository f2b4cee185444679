"""Statements of account. Amounts have six decimals."""

from collections.abc import AsyncIterator, Sequence

from assay.common.clock import iso
from assay.payments.statement import COLUMNS, StatementLine, Transfer, decimal, values_of
from assay.server.csv_text import csv_head, csv_rows
from assay.server.schemas import PageResponse, ResponseModel, Timestamp, cursor_after, cursor_at


class LineResponse(ResponseModel):
    """One account, network and asset: what the platform was paid for it, and what it gave.

    `owed` = `received` - `fee` - `refunded` - `paidOut` - `underWay`. What buyers paid the
    account's own wallets is `directReceived`: nobody owes it. `directFee` is what they paid the
    platform in the same transactions.
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
    direct_fee: str


class TransferResponse(ResponseModel):
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


class StatementResponse(ResponseModel):
    """What is owed to the account, and its newest payouts and refunds.

    `/operator/statement/transfers` has all of them, `transfersTotal`.
    """

    lines: list[LineResponse]
    transfers: list[TransferResponse]
    transfers_total: int


class TransfersResponse(PageResponse):
    """Payouts and refunds, newest first."""

    items: list[TransferResponse]


class StatementsResponse(PageResponse):
    """What is owed to every account that was ever paid."""

    items: list[LineResponse]


def statement(
    lines: Sequence[StatementLine], newest: Sequence[Transfer], total: int
) -> StatementResponse:
    """An account's statement on the wire."""
    shown = [line(one) for one in lines]
    return StatementResponse(lines=shown, transfers=[*map(transfer, newest)], transfers_total=total)


def transfers(found: Sequence[Transfer], total: int, limit: int, offset: int) -> TransfersResponse:
    """A page of payouts and refunds on the wire."""
    last = found[-1].id if len(found) == limit else None
    return TransfersResponse(
        items=[*map(transfer, found)],
        total=total,
        limit=limit,
        offset=offset,
        next_cursor=cursor_after(last),
    )


async def transfers_csv(pieces: AsyncIterator[Sequence[Transfer]]) -> AsyncIterator[str]:
    """Payouts and refunds as CSV, in pieces as they are read."""
    yield csv_head(TransferResponse)
    async for piece in pieces:
        yield csv_rows(map(transfer, piece))


def statements(lines: Sequence[StatementLine], limit: int, offset: int) -> StatementsResponse:
    """A page of the lines of every account on the wire."""
    shown = lines[offset : offset + limit]
    return StatementsResponse(
        items=[line(one) for one in shown],
        total=len(lines),
        limit=limit,
        offset=offset,
        next_cursor=cursor_at(offset, len(shown), len(lines)),
    )


def line(found: StatementLine) -> LineResponse:
    """A line on the wire: the columns of the file, under the same names."""
    return LineResponse.model_validate(dict(zip(COLUMNS, values_of(found), strict=True)))


def transfer(found: Transfer) -> TransferResponse:
    """A payout or a refund on the wire."""
    return TransferResponse(
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
