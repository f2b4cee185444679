"""An MPP payment that has waited for its payer's other payments: its times are read once more."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest

from assay.app.payments import payment_chains
from assay.chains.evm.abi import word
from assay.chains.model import Network
from assay.chains.rpc import ContractCall, Returned
from assay.payments.model import (
    InFlightAmount,
    LedgerEntry,
    Payment,
    PaymentClaim,
    PaymentRefused,
    PaymentSighting,
    Quote,
)
from assay.payments.mpp.charges import LATE, TempoCharges
from assay.payments.mpp.protocol import PROTOCOL
from assay.payments.mpp.tempo import MARGIN_S, STOCK_S
from assay.payments.ports import ProtocolDependencies
from assay.payments.service import require_cover
from tests.payments.unit.test_mpp_time import raw
from tests.payments.unit.test_mpp_transfers import PAYER, TEMPO
from tests.payments.unit.test_mpp_transfers import entry as entry_of
from tests.payments.unit.test_x402_vectors import quote
from tests.support.fakes.clock import FrozenClock

WORK_S = 30.0
QUOTE: Quote = replace(quote("eip155:8453"), network=TEMPO, work_s=WORK_S)


class Funded:
    """A node that shows the price and no more, and a ledger where another payment lands late."""

    def __init__(self, clock: FrozenClock, lands_s: float) -> None:
        self._clock = clock
        self._lands_s = lands_s

    async def call_newest(self, _network: Network, calls: Sequence[ContractCall]) -> list[Returned]:
        return [Returned(word(QUOTE.amount)) for _ in calls]

    async def committed(self, _entry: LedgerEntry) -> InFlightAmount:
        self._clock.move(self._lands_s)
        return InFlightAmount()


class Waiting:
    """A payment whose payer has another one in flight, until so much later."""

    def __init__(self, lands_s: float, challenge_s: float, valid_s: int | None = None) -> None:
        clock = self.clock = FrozenClock()
        self.funded = Funded(clock, lands_s)
        self.entry = replace(entry_of(), amount=QUOTE.amount)
        nothing, node = cast("Any", None), cast("Any", self.funded)
        chains, ttl = payment_chains({TEMPO.id: TEMPO}), timedelta(minutes=5)
        charges = TempoCharges(nothing, chains, node, clock, challenge_ttl=ttl)
        self.needs = ProtocolDependencies(nothing, nothing, charges, clock)
        now = clock.now()
        before: Any = b"" if valid_s is None else int(now.timestamp()) + valid_s
        self.payment = Payment(
            quote=QUOTE,
            payer=PAYER,
            nonce="a challenge's id",
            digest="d" * 64,
            expires_at=now + timedelta(seconds=challenge_s) + LATE,
            credential=raw(before),
        )

    async def work_s(self) -> float:
        """What its upstream is left, once it is covered."""
        in_flight = PaymentClaim(
            self.entry, is_ours=True, committed=InFlightAmount(1, sent=1), failures=0
        )
        ledger = cast("Any", self.funded)
        await require_cover(
            self.payment, in_flight, PROTOCOL, self.needs, ledger, PaymentSighting()
        )
        return PROTOCOL.work_s(self.payment, self.needs)


async def test_one_whose_challenge_has_time_left_is_forwarded() -> None:
    assert await Waiting(8, challenge_s=WORK_S + MARGIN_S + 8).work_s() == WORK_S


@pytest.mark.parametrize("lands_s", [1, 8])
async def test_one_whose_challenge_would_end_before_its_upstream_is_refused(lands_s: int) -> None:
    waiting = Waiting(lands_s, challenge_s=WORK_S + MARGIN_S)
    with pytest.raises(PaymentRefused) as refused:
        await waiting.work_s()
    assert refused.value.reason == "payment-expired"


async def test_one_whose_transaction_ends_too_soon_now_is_refused() -> None:
    waiting = Waiting(8, challenge_s=120, valid_s=25)
    with pytest.raises(PaymentRefused) as refused:
        await waiting.work_s()
    assert refused.value.reason == "payment-expired"


async def test_the_upstream_gets_what_its_transaction_has_left_after_the_wait() -> None:
    waiting = Waiting(5, challenge_s=120, valid_s=25)
    assert await waiting.work_s() == STOCK_S - MARGIN_S
