"""A claim that somebody has taken over says nothing of the payment any more."""

from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from assay.kit.keyring import MacKeys
from assay.payments.model import Held, Payment, PaymentRefused, Replay, State
from assay.payments.ports import ProtocolNeeds
from assay.payments.protocols.x402 import PROTOCOL
from assay.payments.settlement import PaymentPending, Settlement
from assay.payments.till import Till
from tests.fakes.clock import FrozenClock
from tests.fakes.ledger import MemoryLedgerStore
from tests.fakes.witness import lone_witness
from tests.simulation.chain import Signers
from tests.simulation.payers import purchase_of
from tests.simulation.process import EPOCH


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


class Slow:
    """A facilitator that says yes, after a minute."""

    def __init__(self, clock: FrozenClock) -> None:
        self._clock = clock

    async def verify(self, payment: Payment) -> int:
        self._clock.move(60)
        return payment.quote.amount


async def held(facilitator: Any, ledger: MemoryLedgerStore, clock: FrozenClock) -> Held | Replay:
    """Hold a fresh payment."""
    needs = ProtocolNeeds(Signers(), facilitator, facilitator, clock)
    lease = timedelta(seconds=5)
    witness = lone_witness({"x402": PROTOCOL}, needs, clock)
    settlement = Settlement({"x402": PROTOCOL}, needs, ledger, clock, lease, witness)
    till = Till(settlement, MacKeys(b"assay.idempotency|", ("0" * 32,)))
    purchase = purchase_of("p", "0x" + "c0" * 20, 100.0, Random(1))
    request = purchase.request(purchase.caller, purchase.token)
    return await till.hold(await till.read(purchase.quote, request), request)


async def test_who_has_lost_his_claim_is_told_to_wait_and_not_to_pay() -> None:
    clock = FrozenClock(EPOCH)
    ledger = MemoryLedgerStore(clock)
    with pytest.raises(PaymentPending):
        await held(Overtaken(ledger, clock), ledger, clock)


async def test_a_claim_that_was_verified_slowly_is_renewed_before_the_upstream_is_asked() -> None:
    """Somebody else could take it over while the upstream works, and it would work twice."""
    clock = FrozenClock(EPOCH)
    ledger = MemoryLedgerStore(clock)
    claimed = await held(Slow(clock), ledger, clock)
    assert isinstance(claimed, Held)
    assert [row.state for row in ledger.rows.values()] == [State.CLAIMED]
    assert claimed.entry.lease_until > clock.now() + timedelta(seconds=claimed.quote.work_s)
    assert await ledger.move(claimed.entry, State.SETTLING) is not None
