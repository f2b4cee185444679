"""Whom the row of a payment that moves nothing is counted for."""

from dataclasses import replace
from random import Random
from typing import Any, cast

import pytest

from assay.common.costs import Bearer, Cost, CostLedger, QuotaExceeded
from assay.payments.model import Payment, StoredResponse
from assay.payments.service import UnpaidRows
from tests.simulation.payers import purchase_of
from tests.support.fakes.clock import FrozenClock

CALLER = "192.0.2.1"
ADDRESS = Bearer(f"address {CALLER}")
QUOTA = 3


class Known:
    """A ledger in which one payer has paid."""

    async def has_paid(self, payment: Payment) -> bool:
        return payment.payer == "0xknown"


def costs() -> CostLedger:
    return CostLedger(FrozenClock(), {Cost.ROWS: QUOTA, Cost.DISK_BYTES: 1000})


def payment(payer: str) -> Payment:
    purchase = purchase_of("p", "0x" + "c0" * 20, 100.0, Random(1))
    made: Any = replace(cast("Any", purchase.quote))
    return Payment(made, payer, "n", "d", FrozenClock().now(), {})


async def test_beyond_the_quota_of_an_address_a_payer_who_has_paid_has_one_of_its_own() -> None:
    ledger = costs()
    rows = UnpaidRows(ledger, Known())
    for _ in range(QUOTA):
        rows.count(await rows.bearer(payment("0xstranger"), CALLER))
    assert ledger.used(Cost.ROWS, ADDRESS) == QUOTA
    with pytest.raises(QuotaExceeded):
        await rows.bearer(payment("0xstranger"), CALLER)
    for _ in range(QUOTA):
        rows.count(await rows.bearer(payment("0xknown"), CALLER))
    assert ledger.used(Cost.ROWS, ADDRESS) == QUOTA
    with pytest.raises(QuotaExceeded):
        await rows.bearer(payment("0xknown"), CALLER)
    assert await rows.bearer(payment("0xstranger"), "192.0.2.2")


async def test_what_holds_is_no_row_and_what_fails_is_one_with_what_was_kept_for_it() -> None:
    ledger = costs()
    rows = UnpaidRows(ledger)
    with rows.unless_it_holds(ADDRESS.name):
        pass
    assert ledger.used(Cost.ROWS, ADDRESS) == 0
    kept = StoredResponse(200, (), b"x" * 600)
    with pytest.raises(ValueError, match="gone"), rows.unless_it_holds(ADDRESS.name, kept):
        raise ValueError("gone")
    assert ledger.used(Cost.ROWS, ADDRESS) == 2
    assert ledger.used(Cost.DISK_BYTES, ADDRESS) == 600
    rows.count(ADDRESS.name, is_new=False)  # taken over: its row was counted before
    assert ledger.used(Cost.ROWS, ADDRESS) == 2
    rows.count(ADDRESS.name, kept, is_new=False)
    assert ledger.used(Cost.ROWS, ADDRESS) == 3
    assert ledger.used(Cost.DISK_BYTES, ADDRESS) == 1200
    rows.count("", kept)  # paid
    assert ledger.used(Cost.ROWS, ADDRESS) == 3
