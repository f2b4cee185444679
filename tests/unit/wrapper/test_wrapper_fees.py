"""The account's fee is part of a quote where the platform is paid, on every network."""

from decimal import Decimal
from typing import Any, cast

import pytest

from assay.payments.networks import ROWS, payment_networks
from assay.wrapper.model import Matched
from assay.wrapper.steps.pay import PayStep, PlatformWallets

PLATFORM, EARLIER, OWN = "0x" + "aa" * 20, "0x" + "bb" * 20, "0x" + "cc" * 20


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
    made = _Of(
        id="w",
        operator_id="op",
        price=10_000,
        description="",
        network=network.id,
        payout_address=payee,
        timeout_ms=1000,
        settle="after",
        fee_rate=Decimal("0.05"),
        revision=1,
    )
    request = _Of(config=made, incoming=_Of(path="/quote", method="GET", query=None))
    platform = PlatformWallets(PLATFORM, frozenset({PLATFORM, EARLIER}))
    unused = cast("Any", None)
    step = PayStep(unused, payment_networks({}), "https://a", platform, unused, unused)
    quote = step.quote(cast("Matched", request))
    assert quote is not None
    assert quote.fee_rate == rate
