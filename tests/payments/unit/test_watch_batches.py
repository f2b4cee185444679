"""However many payments settle in five seconds, all of them are looked at when it is time."""

from dataclasses import replace

from assay.payments.model import LOOKS, PaymentState
from assay.payments.outcomes import SettlementAttempt
from assay.payments.watcher import LOOKED_AT_ONCE
from assay.payments.x402.protocol import PROTOCOL as X402
from tests.payments.unit.test_authorization_outcomes import ONE, SELLER, TWO, payment
from tests.payments.unit.test_questions_by_row import Service

MANY = 2 * LOOKED_AT_ONCE + 1


async def test_more_than_one_batch_is_looked_at_in_one_pass() -> None:
    made = Service(X402)
    for number in range(MANY):
        entry = payment(number, payer=f"0x{number:040x}")
        (transaction,) = {node.use(entry, SELLER) for node in made.nodes.values()}
        await made.put(replace(entry, attempt=SettlementAttempt(transaction)), PaymentState.SETTLED)
    made.move(LOOKS[0].total_seconds())
    assert await made.watch() == []
    assert len(made.ledger.looks) == MANY
    assert min(made.ledger.looks.values()) > made.clock.now()
    # A batch is one exchange: the receipts of it, and the height.
    assert made.nodes[ONE].tried + made.nodes[TWO].tried == -(-MANY // LOOKED_AT_ONCE)


async def test_a_network_that_cannot_be_asked_ends_the_pass() -> None:
    made = Service(X402)
    for number in range(MANY):
        entry = payment(number, payer=f"0x{number:040x}")
        await made.put(
            replace(entry, attempt=SettlementAttempt(f"0x{number:064x}")), PaymentState.SETTLED
        )
    for one in made.nodes.values():
        one.is_down = True
    made.move(LOOKS[0].total_seconds())
    assert await made.watch() == []
    assert max(one.tried for one in made.nodes.values()) == 1
