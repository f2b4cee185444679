"""A claim that somebody has taken over says nothing of the payment any more."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from assay.payments.model import PaymentRefused
from assay.payments.ports import ProtocolNeeds
from assay.payments.protocols.x402 import PROTOCOL
from assay.payments.settlement import PaymentPending, Settlement
from assay.payments.till import Till
from tests.fakes.clock import FrozenClock
from tests.fakes.ledger import MemoryLedgerStore
from tests.simulation.chain import Signers
from tests.simulation.payers import Random, purchase_of
from tests.simulation.process import EPOCH, EPOCH_S


class Overtaken:
    """A facilitator that is slow: meanwhile another copy of the call has taken over, and paid."""

    def __init__(self, ledger: MemoryLedgerStore, clock: FrozenClock) -> None:
        self._ledger = ledger
        self._clock = clock

    async def verify(self, payment: object) -> int:
        del payment
        ((key, row),) = self._ledger.rows.items()
        self._clock.move(60)
        later = self._clock.now()
        fresh = replace(row, created_at=later, lease_until=later + timedelta(seconds=30))
        assert (await self._ledger.claim(fresh, later)).is_ours
        assert self._ledger.rows[key].moves == row.moves + 1
        raise PaymentRefused("invalid_exact_evm_nonce_already_used", "It was used already.")


async def test_who_has_lost_his_claim_is_told_to_wait_and_not_to_pay() -> None:
    clock = FrozenClock(EPOCH)
    ledger = MemoryLedgerStore(clock)
    unused: Any = Overtaken(ledger, clock)
    needs = ProtocolNeeds(Signers(), unused, unused, clock)
    lease = timedelta(seconds=5)
    till = Till(Settlement({"x402": PROTOCOL}, needs, ledger, clock, lease))
    purchase = purchase_of("p", "0x" + "c0" * 20, 0.0, Random(1))
    assert purchase.signed.valid_before > EPOCH_S
    request = purchase.request(purchase.caller, purchase.token)
    payment = await till.read(purchase.quote, request)
    with pytest.raises(PaymentPending):
        await till.hold(payment, request)
