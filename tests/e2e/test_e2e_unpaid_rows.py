"""Payments that move nothing, and calls that bring nothing, leave a bounded number of rows."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.test_e2e_payment_attacks import fresh_account
from tests.support.shop import Dollars, Upstream, shop, upstream

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
CENT = 10_000
ROWS = 6


@pytest.fixture
def up() -> Iterator[Upstream]:
    with upstream() as state:
        yield state


def counted(folder: Path, question: str) -> int:
    with sqlite3.connect(folder / "assay.db") as database:
        return int(database.execute(question).fetchone()[0])


def test_beyond_its_rows_only_calls_that_brought_money_are_logged(
    tmp_path: Path, dollar_chain: Dollars, up: Upstream
) -> None:
    folder, payer = tmp_path / "data", fresh_account()
    dollar_chain.mint(payer.address, 10 * CENT)
    with shop(folder, dollar_chain, up, ASSAY_QUOTA_ROWS=str(ROWS)) as store:
        url = store.wrap("/echo")
        payments = [store.payment(url, payer) for _ in range(3)]
        bought = store.pay(url, payments[0])
        assert bought.status_code == 200, bought.text
        for _ in range(2 * ROWS):  # replays
            assert store.pay(url, payments[0]).json() == bought.json()
        up.fails = True
        for _ in range(ROWS):  # nothing is charged
            assert store.pay(url, payments[1]).status_code == 502
        up.fails = False
        assert store.pay(url, payments[2]).status_code == 200
    sold = "SELECT COUNT(*) FROM calls WHERE cost > 0"
    assert counted(folder, sold) == 2
    # The second sale came when the rows were used up.
    assert counted(folder, "SELECT COUNT(*) FROM calls") <= ROWS + 2


def test_payments_without_money_are_refused_once_their_address_has_used_up_its_rows(
    tmp_path: Path, dollar_chain: Dollars, up: Upstream
) -> None:
    folder, payer = tmp_path / "data", fresh_account()
    dollar_chain.mint(payer.address, 10 * CENT)
    with shop(folder, dollar_chain, up, ASSAY_QUOTA_ROWS=str(ROWS)) as store:
        url = store.wrap("/echo")
        known = [store.payment(url, payer) for _ in range(2)]
        assert store.pay(url, known[0]).status_code == 200
        unfunded = [store.payment(url, fresh_account()) for _ in range(2 * ROWS)]
        answers = [store.pay(url, one) for one in unfunded]
        assert {one.status_code for one in answers} <= {402, 429}
        last = answers[-1]
        body = last.json()
        assert (last.status_code, body["code"], body["quota"]) == (429, "quota_exceeded", "rows")
        assert int(last.headers["retry-after"]) > 0
        assert store.pay(url, known[1]).status_code == 200  # a payer of the same address
    assert counted(folder, "SELECT COUNT(*) FROM payments WHERE state = 'released'") <= ROWS
    assert counted(folder, "SELECT COUNT(*) FROM payments WHERE settled_us IS NOT NULL") == 2
