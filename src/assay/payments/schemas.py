"""Statements of account in responses. Amounts have six decimals."""

from collections.abc import AsyncIterator, Sequence

from assay.common.clock import iso
from assay.payments.statement import COLUMNS, StatementLine, Transfer, decimal, values_of
from assay.server.csv_text import csv_head, csv_rows
from assay.server.schemas import PageResponse, ResponseModel, Timestamp, cursor_after, cursor_at


class LineResponse(ResponseModel):
    """One account, network and asset: what the platform received and paid for it.

    `owed` = `received` - `fee` - `refunded` - `paidOut` - `underWay`. `directReceived` is what
    buyers paid the account's own wallets: nobody owes it. `directFee` is what they paid the
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
    """A payout or a refund. `open` waits for a person to sign it, `signed` is on its way."""

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
    """Return an account's statement as a response."""
    shown = [line(one) for one in lines]
    return StatementResponse(lines=shown, transfers=[*map(transfer, newest)], transfers_total=total)


def transfers(found: Sequence[Transfer], total: int, limit: int, offset: int) -> TransfersResponse:
    """Return a page of payouts and refunds as a response."""
    last = found[-1].id if len(found) == limit else None
    return TransfersResponse(
        items=[*map(transfer, found)],
        total=total,
        limit=limit,
        offset=offset,
        next_cursor=cursor_after(last),
    )


async def transfers_csv(pieces: AsyncIterator[Sequence[Transfer]]) -> AsyncIterator[str]:
    """Yield payouts and refunds as CSV, in pieces as they are read."""
    yield csv_head(TransferResponse)
    async for piece in pieces:
        yield csv_rows(map(transfer, piece))


def statements(lines: Sequence[StatementLine], limit: int, offset: int) -> StatementsResponse:
    """Return a page of every account's lines as a response."""
    shown = lines[offset : offset + limit]
    return StatementsResponse(
        items=[line(one) for one in shown],
        total=len(lines),
        limit=limit,
        offset=offset,
        next_cursor=cursor_at(offset, len(shown), len(lines)),
    )


def line(found: StatementLine) -> LineResponse:
    """Return a line as a response: the columns of the file, under the same names."""
    return LineResponse.model_validate(dict(zip(COLUMNS, values_of(found), strict=True)))


def transfer(found: Transfer) -> TransferResponse:
    """Return a payout or a refund as a response."""
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
