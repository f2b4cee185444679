"""A serving process finds out that a transfer was taken back, also after it was killed."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.test_e2e_payment_attacks import fresh_account
from tests.support.eventually import eventually
from tests.support.reorganised_chain import Anvil, anvil
from tests.support.shop import SELLER, free_port, receipt, shop, upstream

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
CENT = 10_000


@pytest.fixture(scope="module")
def base() -> Iterator[Anvil]:
    with anvil() as chain:
        yield chain


def test_a_transfer_that_was_taken_back_is_made_again_by_whoever_serves(
    base: Anvil, tmp_path: Path
) -> None:
    payer = fresh_account()
    base.mint(payer.address, 10 * CENT)
    base.mine(12)
    rpc = {"ASSAY_PAYMENT_RPC": json.dumps({base.network: [base.url]})}
    with upstream() as up, shop(tmp_path, base, up, free_port(), **rpc) as made:  # type: ignore[arg-type] - as a chain of dollars
        url = made.wrap("/echo/again")
        payment = made.payment(url, payer)
        bought = made.pay(url, payment)
        assert bought.status_code == 200, bought.text
        made.server.stop(signal.SIGKILL)
        base.mine(2)
        base.reorganise(3)
        assert base.balance(SELLER.address) == 0
        made.server.start()
        eventually(lambda: base.balance(SELLER.address) != 0)
        assert base.balance(payer.address) == 9 * CENT
        again = made.pay(url, payment)
        assert (again.status_code, again.content) == (200, bought.content)
        mined = base.wallet.request("eth_getTransactionReceipt", receipt(again)["transaction"])
        assert mined["status"] == "0x1"
        assert up.calls("/echo/again") == 1
        stats = made.http.get("/operator/analytics/stats", headers=dict(made.token)).json()
        assert stats["totalRevenue"] == "0.010000"
