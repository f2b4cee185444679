"""Pages of payouts and refunds, on every database."""

from datetime import timedelta

import pytest
from sqlalchemy import insert

from assay.db.engine import Database
from assay.db.schema.payments import transfers
from assay.payments.statement import Transfer, TransferNotFound, TransferState
from assay.payments.store_transfers import SqlTransferRows, values_of
from assay.payments.transfers import TransferPages
from tests.support.fakes.clock import FrozenClock


def transfer(number: int, operator_id: str, seconds: int) -> Transfer:
    at = FrozenClock().now() + timedelta(seconds=seconds)
    return Transfer(
        id=f"{number:08x}-0000-4000-8000-000000000000",
        kind="payout",
        operator_id=operator_id,
        payment_id=None,
        network="eip155:8453",
        asset="0x" + "aa" * 20,
        sender="0x" + "bb" * 20,
        recipient="0x" + "cc" * 20,
        amount=number + 1,
        of_balance=True,
        fee_rate=None,
        state=TransferState.OPEN,
        nonce=None,
        transaction="",
        reason="",
        created_at=at,
        updated_at=at,
        check_at=at,
    )


async def test_pages_hold_every_row_of_one_account_once_newest_first(database: Database) -> None:
    mine = [transfer(number, "mine", number // 3) for number in range(10)]
    others = [transfer(100 + number, "other", number) for number in range(10)]
    async with database.write() as connection:
        await connection.execute(insert(transfers), [values_of(one) for one in [*mine, *others]])
    pages = TransferPages(SqlTransferRows(database))
    newest = [*reversed(mine)]
    for limit in (1, 3, 10, 11):
        seen: list[Transfer] = []
        while found := (await pages.page("mine", seen[-1].id if seen else None, limit))[0]:
            seen += found
        assert seen == newest
    found, total = await pages.page("mine", newest[1].id, 3, 2)
    assert (found, total) == (newest[4:7], 10)
    pieces = await pages.export("mine", newest[0].id, 8)
    assert [one async for piece in pieces for one in piece] == newest[1:9]
    with pytest.raises(TransferNotFound):
        await pages.page("other", newest[0].id, 3)
