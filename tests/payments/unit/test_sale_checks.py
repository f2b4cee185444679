"""What a seller is told when a wrapper is made or read, of its fee and its time over MPP."""

from dataclasses import replace
from decimal import Decimal

import pytest

from assay.payments.networks import payment_networks
from assay.payments.sale_checks import PlatformWallets, SaleTerms, brief_check, fee_check

PLATFORM, OWN = "0x" + "aa" * 20, "0x" + "cc" * 20
NETWORKS = payment_networks({}).values()
TEMPO = next(one for one in NETWORKS if one.protocol == "mpp")
BASE = next(one for one in NETWORKS if one.protocol == "x402")
SALE = SaleTerms("op", TEMPO, 10_000, OWN, Decimal("0.05"), work_s=30.0)


async def test_a_fee_that_is_paid_beside_the_seller_is_told_with_amount_and_wallet() -> None:
    check = fee_check(PlatformWallets(PLATFORM, frozenset({PLATFORM}), PLATFORM))
    told = await check(SALE)
    assert told is not None
    assert "0.0005 USD" in told or "0.000500 USD" in told
    assert "5 %" in told
    assert PLATFORM in told
    not_collected = await check(replace(SALE, network=BASE))
    assert not_collected is not None
    assert "not collected" in not_collected
    assert await check(replace(SALE, pay_to=PLATFORM)) is None
    assert await check(replace(SALE, fee_rate=Decimal(0))) is None


@pytest.mark.parametrize(
    ("sale", "is_warned"),
    [
        (SALE, True),
        (replace(SALE, work_s=12.0), False),
        (replace(SALE, settles_first=True), False),
        (replace(SALE, network=BASE), False),
    ],
)
async def test_a_wrapper_is_warned_of_where_payments_leave_it_less_than_its_time(
    sale: SaleTerms, *, is_warned: bool
) -> None:
    told = await brief_check(12.0)(sale)
    assert (told is not None) == is_warned
    assert told is None or ("12 of its 30 seconds" in told and "timeoutMs" in told)
