"""MPP transactions that are mined late: no payment fails that can be mined, none is overlooked."""

from datetime import timedelta
from typing import Any

import pytest

from assay.payments.model import ENDED, LedgerEntry, PaymentState
from assay.payments.mpp.charges import LATE
from assay.payments.mpp.protocol import PROTOCOL as MPP
from assay.payments.mpp.tempo import attempt_of_entry
from tests.payments.unit.test_authorization_outcomes import ONE, TWO
from tests.payments.unit.test_mpp_time import raw
from tests.payments.unit.test_mpp_transfers import BOTH, receipt
from tests.payments.unit.test_mpp_transfers import entry as mpp_payment
from tests.payments.unit.test_questions_by_row import Service
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.payment_nodes import Node

CHALLENGE = timedelta(minutes=5)
END = FrozenClock().now() + CHALLENGE + LATE


def payment() -> LedgerEntry:
    """Its transaction can be mined as late as any that is taken."""
    credential: Any = raw(int(END.timestamp()))
    made = mpp_payment(credential=credential, expires_at=END)
    return mpp_payment(credential=credential, expires_at=END, attempt=attempt_of_entry(made))


class Mined(Node):
    """Shows that the payment was made."""

    def answer(self, method: str, params: Any) -> Any:
        if method == "eth_getTransactionReceipt":
            return receipt(BOTH)
        return super().answer(method, params)


def mine(made: Service) -> None:
    for url, one in made.nodes.items():
        made.rpc.by_url[url] = Mined(one.born_s, one.head)


async def test_a_payment_does_not_fail_while_the_chain_can_take_it() -> None:
    """It stood still for an hour: its next block may be older than our clock says."""
    made = Service(MPP)
    await made.put(payment(), PaymentState.SETTLING)
    heads = {url: one.head for url, one in made.nodes.items()}
    for _ in range(60):
        made.move(60)
        for url, one in made.nodes.items():
            one.head = heads[url]
        await made.settlement.reconcile(is_due_only=True)
    assert made.states() == {PaymentState.PENDING}
    assert made.nodes[ONE].taken  # it is sent again meanwhile
    made.move(600)
    await made.settlement.reconcile(is_due_only=True)
    assert made.states() == {PaymentState.FAILED}


async def test_one_that_was_refused_and_is_mined_before_its_end_is_settled() -> None:
    """Its payer, or a node that was shown it, can send it until then."""
    made = Service(MPP)
    await made.put(payment(), PaymentState.SETTLING, PaymentState.FAILED)
    made.move((CHALLENGE + LATE).total_seconds())
    mine(made)
    await made.watch()
    assert made.states() == {PaymentState.FAILED}
    made.clock.move(ENDED.total_seconds())
    await made.watch()
    assert made.states() == {PaymentState.SETTLED}


@pytest.mark.parametrize("url", [ONE, TWO])
async def test_one_node_that_shows_it_is_enough(url: str) -> None:
    made = Service(MPP)
    await made.put(payment(), PaymentState.SETTLING)
    made.move((CHALLENGE + LATE + ENDED).total_seconds())
    one = made.nodes[url]
    made.rpc.by_url[url] = Mined(one.born_s, one.head)
    await made.settlement.reconcile(is_due_only=True)
    assert made.states() == {PaymentState.SETTLED}
