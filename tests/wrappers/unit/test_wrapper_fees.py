"""The account's fee is part of a quote: kept where the platform is paid, else paid beside."""

from decimal import Decimal
from typing import Any, cast

import pytest

from assay.payments.model import DirectFee, PaymentNetwork, Quote
from assay.payments.networks import ROWS, payment_networks
from assay.payments.sale_checks import PlatformWallets
from assay.wrappers.stages.pay import PayStage

PLATFORM, EARLIER, OWN = "0x" + "aa" * 20, "0x" + "bb" * 20, "0x" + "cc" * 20
OURS = frozenset({PLATFORM, EARLIER})


class _Of:
    """What a request is, as far as a quote asks."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


@pytest.mark.parametrize("network", ROWS, ids=lambda row: row.id)
@pytest.mark.parametrize(
    ("payee", "rate"),
    [
        (None, Decimal("0.05")),
        (PLATFORM, Decimal("0.05")),
        (PLATFORM.upper().replace("X", "x"), Decimal("0.05")),
        (EARLIER, Decimal("0.05")),
        (OWN, None),
    ],
)
def test_a_fee_is_due_where_the_platform_is_paid(
    network: Any, payee: str | None, rate: Decimal | None
) -> None:
    quote = quote_of(network, payee, rate or Decimal("0.05"), PlatformWallets(PLATFORM, OURS))
    assert (quote.fee_rate, quote.direct_fee) == (rate, None)


@pytest.mark.parametrize("network", ROWS, ids=lambda row: row.id)
@pytest.mark.parametrize(
    ("payee", "rate", "amount", "fee"),
    [
        *((OWN, "0.05", 10_000, 500), (OWN, "0.05", 10_019, 500), (OWN, "0.05", 10_020, 501)),
        *((OWN, "0.000001", 10_000, 0), (OWN, "0.05", 19, 0), (OWN, "0.05", 20, 1)),
        *((OWN, "1", 10_000, 0), (OWN, "0.9999", 10_000, 9999), (OWN, "0", 10_000, 0)),
        *((OWN, "0.5", 1, 0), (OWN, "0.5", 2, 1), (OWN, f"0.{'9' * 30}", 10**12, 10**12 - 1)),
        *((None, "0.05", 10_000, 0), (PLATFORM, "0.05", 10_000, 0), (EARLIER, "0.05", 10_000, 0)),
    ],
)
def test_a_seller_of_mpp_is_paid_beside_the_platform(
    network: PaymentNetwork, payee: str | None, rate: str, amount: int, fee: int
) -> None:
    """Rounded down; nothing, or all of it, is no part of a payment."""
    wallets = PlatformWallets(PLATFORM, OURS, PLATFORM)
    quote = quote_of(network, payee, Decimal(rate), wallets, amount)
    if payee != OWN:
        assert (quote.fee_rate, quote.direct_fee) == (Decimal(rate), None)
    elif network.protocol == "mpp" and fee:
        assert quote.fee_rate == Decimal(rate)
        assert quote.direct_fee == DirectFee(PLATFORM, fee)
    else:
        assert (quote.fee_rate, quote.direct_fee) == (None, None)


def quote_of(
    network: PaymentNetwork,
    payee: str | None,
    rate: Decimal,
    platform: PlatformWallets,
    amount: int = 10_000,
) -> Quote:
    made = _Of(
        id="w",
        operator_id="op",
        price=amount,
        description="",
        network=network.id,
        payout_address=payee,
        timeout_ms=1000,
        settle="after",
        fee_rate=rate,
        revision=1,
    )
    request = _Of(config=made, incoming=_Of(path="/quote", method="GET", query=None))
    unused = cast("Any", None)
    parts = (unused, payment_networks({}), "https://a", platform, unused, unused)
    step = PayStage(*parts, tiers=unused)
    quote = step.quote(cast("Any", request))
    assert quote is not None
    return quote
