"""Statements: exact sums, rounded once and in favour of the seller."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from assay.payments.networks import checksummed, payee_problem
from assay.payments.statement import COLUMNS, LedgerSum, StatementLine, csv_of, lines_of, values_of


def one(**fields: Any) -> LedgerSum:
    made = LedgerSum(
        *("op", "eip155:8453", "0xa"),
        kind="received",
        of_balance=True,
        is_done=True,
        fee_rate=Decimal("0.05"),
        count=1,
        amount=1000,
    )
    return replace(made, **fields)


def line(*sums: LedgerSum) -> StatementLine:
    (made,) = lines_of(sums)
    return made


@pytest.mark.parametrize(
    ("rate", "amount", "fee"),
    [
        ("0.05", 1, 0),
        ("0.05", 19, 0),
        ("0.05", 20, 1),
        ("0.999999999999999999999999999999", 10**12, 10**12 - 1),
        ("1", 7, 7),
        ("0", 10**18, 0),
        ("0.1", 3, 0),
    ],
)
def test_a_fee_is_rounded_down_once(rate: str, amount: int, fee: int) -> None:
    made = line(one(fee_rate=Decimal(rate), amount=amount))
    assert (made.fee, made.owed) == (fee, amount - fee)


def test_many_small_payments_bear_the_fee_of_their_sum() -> None:
    """A thousand of one base unit: rounded one by one they would bear none."""
    assert line(one(amount=1000, count=1000)).fee == 50
    assert line(one(amount=19), one(amount=1, fee_rate=Decimal("0.050"))).fee == 1


def test_what_is_owed_is_what_was_received_less_everything_given() -> None:
    made = line(
        one(),
        one(kind="refund", amount=100),
        one(kind="refund", amount=40, is_done=False),
        one(kind="payout", fee_rate=None, amount=300),
        one(kind="payout", fee_rate=None, amount=60, is_done=False),
    )
    assert (made.received, made.refunded, made.paid_out, made.under_way) == (1000, 100, 300, 100)
    assert made.fee == (1000 - 140) * 5 // 100
    assert made.owed == 1000 - 43 - 100 - 300 - 100


def test_what_buyers_paid_the_seller_directly_is_shown_and_owed_by_nobody() -> None:
    made = line(
        one(of_balance=False, fee_rate=None, count=3),
        one(of_balance=False, fee_rate=None, kind="refund", amount=10),
        one(of_balance=False, fee_rate=None, kind="refund", amount=10, is_done=False),
    )
    assert (made.direct_payments, made.direct, made.direct_refunded) == (3, 1000, 10)
    assert (made.owed, made.fee, made.payments) == (0, 0, 0)


def test_a_fee_that_was_paid_beside_the_seller_is_shown_and_is_no_part_of_a_balance() -> None:
    made = line(
        one(of_balance=False, direct_fee=50, count=3),
        one(of_balance=False, fee_rate=None, amount=500),
        one(of_balance=False, kind="refund", amount=950),
        one(amount=200),
    )
    assert (made.direct_payments, made.direct, made.direct_fee) == (4, 950 + 500, 50)
    assert (made.direct_refunded, made.received, made.fee, made.owed) == (950, 200, 10, 190)
    assert csv_of([made]).splitlines()[1].endswith(",0.000950,0.000050")


def test_each_account_network_and_asset_has_a_line_of_its_own() -> None:
    sums = [one(operator_id=a, network=b, asset=c) for a in "xy" for b in "pq" for c in "uv"]
    assert [(m.operator_id, m.network, m.asset) for m in lines_of(sums)] == [
        (a, b, c) for a in "xy" for b in "pq" for c in "uv"
    ]


def test_the_file_has_every_column_with_six_places() -> None:
    head, row = csv_of([line(one(amount=1234567))]).splitlines()
    assert head == ",".join(COLUMNS)
    assert row == (
        "op,eip155:8453,0xa,1,1.234567,0.061728,0.000000,0.000000,0.000000,1.172839,0,"
        "0.000000,0.000000,0.000000"
    )
    assert len(values_of(line(one()))) == len(COLUMNS)


EIP55 = (
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
    "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
    "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
)
"""Source: EIP-55, its test cases."""


@pytest.mark.parametrize("address", EIP55)
def test_a_checksum_is_that_of_eip_55(address: str) -> None:
    assert checksummed(address.lower()) == address
    upper = "0x" + address[2:].upper()
    assert [payee_problem(one) for one in (address, address.lower(), upper)] == [None] * 3
    place = next(n for n, digit in enumerate(address[2:], 2) if digit.isalpha())
    mistyped = address[:place] + address[place].swapcase() + address[place + 1 :]
    assert "checksum" in (payee_problem(mistyped) or "")


@pytest.mark.parametrize(
    "address",
    [
        *("0x" + "00" * 20, "0x" + "00" * 19 + "01", "0x" + "00" * 18 + "dEaD"),
        *("0x" + "ff" * 20, "0xdEAD000000000000000042069420694206942069"),
        *("", "0x12", "0X" + "ab" * 20, "0x" + "ab" * 20 + "\n", "vitalik.eth"),
        "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913",
    ],
)
def test_a_wallet_that_nobody_can_spend_from_is_no_payee(address: str) -> None:
    usdc = "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913"
    assert payee_problem(address, {usdc}) is not None
