"""Statements of account in responses. Amounts have six decimals."""

from collections.abc import AsyncIterator, Sequence
from typing import Annotated

from pydantic import Field

from assay.common.clock import iso
from assay.payments.statement import COLUMNS, StatementLine, Transfer, decimal, values_of
from assay.server.csv_text import csv_head, csv_rows
from assay.server.schemas import (
    Caip2Text,
    Count,
    EvmAddress,
    PageResponse,
    RecordId,
    ResponseModel,
    Timestamp,
    UsdText,
    cursor_after,
    cursor_at,
)


class LineResponse(ResponseModel):
    """One account, network and asset: what the platform received and paid for it.

    `owed` = `received` - `fee` - `refunded` - `paidOut` - `underWay`. `directReceived` is what
    buyers paid the account's own wallets: nobody owes it. `directFee` is what they paid the
    platform in the same transactions.
    """

    operator_id: RecordId
    """The account's id."""
    network: Caip2Text
    """The network, as a CAIP-2 id."""
    asset: EvmAddress
    """The token's address or mint on the network."""
    payments: Count
    """Payments received for the account."""
    received: UsdText
    """What they amount to, in the asset's units."""
    fee: UsdText
    """The platform's fee on them."""
    refunded: UsdText
    """What was returned to buyers."""
    paid_out: UsdText
    """What was paid out to the account."""
    under_way: UsdText
    """Payouts and refunds that have not arrived yet."""
    owed: UsdText
    """What is owed now: received - fee - refunded - paidOut - underWay."""
    direct_payments: Count
    """Payments that buyers made to the account's own wallets."""
    direct_received: UsdText
    """What those amount to; nobody owes it."""
    direct_refunded: UsdText
    """What was returned of those."""
    direct_fee: UsdText
    """The fee that buyers paid in the same transactions."""


class TransferResponse(ResponseModel):
    """A payout or a refund. `open` waits for a person to sign it, `signed` is on its way."""

    id: RecordId
    """Its id, a UUID."""
    created_at: Timestamp
    """When it was created."""
    kind: Annotated[str, Field(examples=["payout"])]
    """`payout` or `refund`."""
    state: Annotated[str, Field(examples=["open"])]
    """`open` waits for a signature, `signed` is on its way; else its outcome."""
    amount: UsdText
    """The amount, with six decimals."""
    network: Caip2Text
    """The network, as a CAIP-2 id."""
    asset: EvmAddress
    """The token's address or mint on the network."""
    sender: EvmAddress
    """The wallet that pays."""
    recipient: EvmAddress
    """The wallet that is paid."""
    payment_reference: RecordId | None
    """The refunded payment's id; null for a payout."""
    transaction: Annotated[str, Field(examples=["0x" + "1f" * 32])] | None
    """The transaction's hash or signature; null before it is known."""


class StatementResponse(ResponseModel):
    """What is owed to the account, and its newest payouts and refunds.

    `/operator/statement/transfers` has all of them, `transfersTotal`.
    """

    lines: list[LineResponse]
    """What is owed, for each network and asset."""
    transfers: list[TransferResponse]
    """The newest payouts and refunds."""
    transfers_total: Count
    """How many payouts and refunds there are in all."""


class TransfersResponse(PageResponse):
    """Payouts and refunds, newest first."""

    items: list[TransferResponse]
    """The rows of this page."""


class StatementsResponse(PageResponse):
    """What is owed to every account that was ever paid."""

    items: list[LineResponse]
    """The rows of this page."""


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
