"""What the settings of paid calls have to be."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from assay.app.log import open_log
from assay.app.payments import paid_calls
from assay.common.clock import SystemClock
from assay.probing.paid_calls import DerivedWallets
from assay.settings import load

KEY, OTHER = "ab" * 31 + "01", "cd" * 31 + "02"


def made(tmp_path: Path, **changes: Any) -> Any:
    settings = load(data_dir=tmp_path, **changes)
    nobody: Any = None
    return paid_calls(settings, nobody, nobody, SystemClock(), open_log("text", "error"))


def test_nothing_is_bought_unless_a_budget_is_set(tmp_path: Path) -> None:
    assert made(tmp_path) is None
    assert made(tmp_path, paid_calls_key=KEY) is None


def test_a_budget_with_a_key_of_its_own_buys_on_main_networks_only(tmp_path: Path) -> None:
    parts = made(tmp_path, paid_calls_usd_per_day=Decimal("1.5"), paid_calls_key=KEY)
    assert parts.day_budget == 1_500_000
    assert [*parts.networks] == ["eip155:8453"]
    named = made(
        tmp_path,
        paid_calls_usd_per_day=Decimal(1),
        paid_calls_key=KEY,
        paid_calls_networks="base-sepolia",
    )
    assert [*named.networks] == ["eip155:84532"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "ASSAY_PAID_CALLS_KEY: is needed"),
        ({"paid_calls_key": "12"}, "ASSAY_PAID_CALLS_KEY: a private key has 64"),
        ({"paid_calls_key": KEY, "payout_key": KEY}, "must be a key of its own"),
        ({"paid_calls_key": KEY, "x402_private_key": "0x" + KEY}, "must be a key of its own"),
        ({"paid_calls_key": KEY, "paid_calls_networks": "tempo"}, "no network of x402 payments"),
        ({"paid_calls_key": KEY, "paid_calls_networks": "moon"}, "no network of x402 payments"),
    ],
)
def test_what_does_not_hold_is_refused_without_the_key(
    tmp_path: Path, changes: dict[str, str], said: str
) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        made(tmp_path, paid_calls_usd_per_day=Decimal(1), **changes)
    assert KEY not in str(caught.value)


def test_each_claim_has_a_wallet_of_its_own_and_the_same_key_always_the_same() -> None:
    wallets = DerivedWallets(KEY)
    found = {wallets.address(str(number)) for number in range(50)}
    assert len(found) == 50
    assert found == {DerivedWallets("0x" + KEY).address(str(n)) for n in range(50)}
    assert not found & {DerivedWallets(OTHER).address(str(n)) for n in range(50)}
