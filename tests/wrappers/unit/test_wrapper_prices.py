"""A price is a whole number of millionths, and nothing is rounded to make it one.

Source: interface.md#wrapper-body.
"""

from decimal import Decimal

import pytest

from assay.common.errors import InvalidRequest
from assay.common.keyring import SecretBox
from assay.net.egress.url import EgressPolicy
from assay.payments.networks import payment_networks
from assay.wrappers.model import WrapperConfig
from assay.wrappers.service import ConfigRules, Endpoints, NewEndpoint
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.wrappers import MemoryWrapperStore

PAYOUT = "0x" + "ab" * 20


async def made(price: str) -> WrapperConfig:
    policy = EgressPolicy(allow_private=True, require_https=False)
    rules = ConfigRules(policy, payment_networks({}), PAYOUT, Decimal(1_000_000))
    box = SecretBox.from_secrets("k" * 40)
    endpoints = Endpoints(MemoryWrapperStore(), box, rules, FrozenClock())
    asked = NewEndpoint("/quote", Decimal(price), "http://127.0.0.1:8999/")
    return await endpoints.create("op", asked)


@pytest.mark.parametrize(
    ("price", "units"),
    [
        ("0", 0),
        ("0.000001", 1),
        ("1.5", 1_500_000),
        ("1e-6", 1),
        ("1.50000000000000000000000000000000000", 1_500_000),
        ("1000000", 10**12),
        ("999999.999999", 10**12 - 1),
    ],
)
async def test_a_price_is_kept_to_the_millionth(price: str, units: int) -> None:
    assert (await made(price)).price == units


@pytest.mark.parametrize(
    "price",
    [
        *("0.0000005", "0.0000019", "1.0000001", "1e-7", "-0.000001", "1000000.000001"),
        *("1.00000000000000000000000000001", "1.0000000000000000000000000000001"),
        *("0." + "0" * 60 + "1", "1e-40", "NaN", "sNaN", "Infinity", "-Infinity", "1e400"),
    ],
)
async def test_what_is_no_whole_number_of_millionths_is_refused(price: str) -> None:
    """More digits than decimal arithmetic keeps once passed for a round number."""
    with pytest.raises(InvalidRequest) as refused:
        await made(price)
    assert [row["loc"] for row in refused.value.extras["details"]] == [["body", "pricePerCall"]]
