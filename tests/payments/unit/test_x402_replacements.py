"""A settlement that cannot be mined is replaced: written down first, and never paid twice."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from assay.chains.evm.signing import EvmTransaction, TransactionSigner, transaction_of
from assay.payments.gas import FeePerGas, fee_per_gas
from assay.payments.model import LedgerEntry, PaymentState
from assay.payments.outcomes import ATTEMPTS_MAX, SettlementAttempt, Undecided, after, hashes
from assay.payments.x402.protocol import PROTOCOL as X402
from assay.payments.x402.transaction_sender import (
    GAS_PRICE_MAX,
    STUCK_S,
    TransactionSender,
    can_be_mined,
    replacing,
)
from tests.payments.unit.test_authorization_outcomes import ONE, network, node
from tests.payments.unit.test_authorization_outcomes import payment as unsent
from tests.payments.unit.test_questions_by_row import Service, x402_payments
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.gas import ample_gas
from tests.support.fakes.payment_nodes import BLOCK_S, Node, Nodes

GWEI = 10**9
SIGNER = TransactionSigner("0x" + "11" * 32)


@dataclass
class Book:
    """The ledger's side: an entry with its attempts, each written before it is sent."""

    node: Node
    entry: LedgerEntry
    noted: list[SettlementAttempt] = field(default_factory=list[SettlementAttempt])

    async def note(self, attempt: SettlementAttempt) -> None:
        assert attempt.raw not in self.node.taken
        self.noted.append(attempt)
        self.entry = replace(self.entry, attempt=after(self.entry.attempt, attempt))


def signed(nonce: int, most: int, priority: int = 1) -> LedgerEntry:
    """A payment whose settlement was signed so."""
    entry = unsent()
    to_sign = EvmTransaction(84532, nonce, priority, most, 200_000, entry.asset, b"\x01\x02")
    raw, transaction = SIGNER.sign(to_sign)
    return replace(entry, attempt=SettlementAttempt(transaction, raw))


@pytest.fixture
def only() -> Node:
    return node()


@pytest.fixture
def sender(only: Node) -> TransactionSender:
    rpc: Any = Nodes({ONE: only})
    chain = network(ONE)
    prices = ample_gas(rpc, {chain.slug: chain}, SIGNER.address, FrozenClock())
    return TransactionSender(rpc, chain, SIGNER, prices)


def test_what_was_signed_is_read_back() -> None:
    for nonce, data in ((0, b""), (127, b"\x7f"), (128, b"\x80"), (2**40, b"x" * 260)):
        made = EvmTransaction(84532, nonce, 3, 10**12, 200_000, "0x" + "ab" * 20, data)
        assert transaction_of(SIGNER.sign(made)[0]) == made


async def test_what_is_too_cheap_for_the_next_block_is_replaced_under_its_nonce(
    sender: TransactionSender, only: Node
) -> None:
    only.counts, only.base_fee, only.gas_price = (5, 6), 30 * GWEI, 31 * GWEI
    book = Book(only, signed(5, 3 * GWEI, GWEI))
    sent = await sender.push(book.entry, book.note)
    (attempt,) = book.noted
    assert sent == attempt.transaction
    assert only.taken == [attempt.raw]
    replacement = transaction_of(attempt.raw)
    assert replacement.nonce == 5
    assert replacement.fee >= 2 * 30 * GWEI
    assert replacement.priority_fee >= GWEI * 9 // 8
    assert hashes(book.entry.attempt)[1] == signed(5, 3 * GWEI, GWEI).attempt.transaction


async def test_what_can_be_mined_is_sent_again_as_it_is(
    sender: TransactionSender, only: Node
) -> None:
    only.counts = (5, 6)
    book = Book(only, signed(5, 3 * GWEI))
    assert await sender.push(book.entry, book.note) == book.entry.attempt.transaction
    assert only.taken == [book.entry.attempt.raw]
    assert not book.noted


async def test_what_waits_behind_a_gap_is_signed_anew_below_it(
    sender: TransactionSender, only: Node
) -> None:
    only.counts = (5, 5)
    book = Book(only, signed(9, 3 * GWEI))
    assert await sender.push(book.entry, book.note) == book.noted[0].transaction
    assert transaction_of(book.noted[0].raw).nonce == 5
    assert only.taken == [book.noted[0].raw]


async def test_a_nonce_that_is_used_is_for_its_receipt_to_explain(
    sender: TransactionSender, only: Node
) -> None:
    only.counts = (6, 6)
    book = Book(only, signed(5, 3 * GWEI))
    assert await sender.push(book.entry, book.note) is None
    assert await sender.resend(book.entry, book.note) is None
    assert not only.taken


@pytest.mark.parametrize("nonce", [3, 7, 500])
async def test_what_an_earlier_key_has_signed_is_not_replaced_under_a_nonce_of_ours(
    sender: TransactionSender, only: Node, nonce: int
) -> None:
    """It is another payment's: after a change of key, receipts say what became of it."""
    only.counts, only.base_fee = (5, 9), 30 * GWEI
    earlier = TransactionSigner("0x" + "22" * 32)
    entry = signed(nonce, 3 * GWEI)
    raw, transaction = earlier.sign(transaction_of(entry.attempt.raw))
    book = Book(only, replace(entry, attempt=SettlementAttempt(transaction, raw)))
    assert await sender.push(book.entry, book.note) is None
    assert await sender.resend(book.entry, book.note) is None
    assert not only.taken
    assert not book.noted


async def test_after_a_change_of_key_a_payment_is_settled_by_the_new_one() -> None:
    made = Service(X402, has_key=True)
    earlier = TransactionSigner("0x" + "22" * 32)
    (entry, *_) = x402_payments(395)
    to_sign = EvmTransaction(84532, 500, 1, 3 * GWEI, 200_000, entry.asset, b"")
    raw, transaction = earlier.sign(to_sign)
    await made.put(
        replace(entry, attempt=SettlementAttempt(transaction, raw)), PaymentState.SETTLING
    )
    await made.pass_time(120)
    (row,) = made.ledger.rows.values()
    assert SIGNER.has_signed(row.attempt.raw)
    assert transaction in row.attempt.earlier  # and counts if it is mined after all
    for one in made.nodes.values():
        one.use(row, row.pay_to)
    await made.pass_time(600)
    assert made.states() == {PaymentState.SETTLED}


async def test_what_somebody_else_has_taken_over_is_not_sent(
    sender: TransactionSender, only: Node
) -> None:
    only.counts, only.base_fee = (5, 6), 30 * GWEI
    entry = signed(5, 3 * GWEI)

    async def taken_over(_: SettlementAttempt) -> None:
        raise RuntimeError("taken over")

    with pytest.raises(RuntimeError):
        await sender.push(entry, taken_over)
    assert not only.taken


async def test_a_node_that_tells_of_ever_higher_fees_makes_us_sign_a_bounded_number(
    sender: TransactionSender, only: Node
) -> None:
    book = Book(only, signed(5, 1))
    for _ in range(3 * ATTEMPTS_MAX):
        only.counts = (5, 6)
        only.base_fee = min(transaction_of(book.entry.attempt.raw).fee, GAS_PRICE_MAX)
        await sender.push(book.entry, book.note)
    assert len(book.noted) <= ATTEMPTS_MAX
    only.base_fee = GAS_PRICE_MAX + 1
    with pytest.raises(Exception, match="price cannot be"):
        await sender.resend(book.entry, book.note)


NO_CAP = 10**18


@pytest.mark.parametrize(
    "offered", [FeePerGas(1, 1), FeePerGas(7, 8), FeePerGas(GWEI, 3 * GWEI), FeePerGas(0, 0)]
)
@pytest.mark.parametrize("price", [0, 1, GWEI, 100 * GWEI])
def test_a_replacement_offers_an_eighth_more_of_both(offered: FeePerGas, price: int) -> None:
    replacement = fee_per_gas(price, NO_CAP, replacing(offered))
    assert replacement.priority * 8 >= offered.priority * 9
    assert replacement.most * 8 >= offered.most * 9
    assert replacement.priority > offered.priority
    assert replacement.priority <= replacement.most
    assert can_be_mined(replacement.most, price)


def test_what_is_offered_at_first_outlasts_a_rise_by_three_quarters() -> None:
    assert can_be_mined(fee_per_gas(GWEI, NO_CAP).most, GWEI * 7 // 4)
    assert not can_be_mined(fee_per_gas(GWEI, NO_CAP).most, 10 * GWEI)


async def test_a_nonce_that_nobody_offers_more_for_is_spent_on_nothing(
    sender: TransactionSender, only: Node
) -> None:
    """A row that has ended, in this process or an earlier one, leaves one behind."""
    only.counts, only.base_fee, only.gas_price = (5, 9), 30 * GWEI, 31 * GWEI
    behind = Book(only, signed(7, 90 * GWEI))
    for _ in range(STUCK_S // BLOCK_S + 1):
        await sender.resend(behind.entry, behind.note)
        only.head += 1
    (nothing,) = map(transaction_of, only.taken)
    assert (nothing.nonce, nothing.to, nothing.data) == (5, SIGNER.address, b"")
    assert (nothing.gas, nothing.fee >= 2 * 31 * GWEI) == (21_000, True)
    only.head += STUCK_S
    await sender.resend(behind.entry, behind.note)
    more = transaction_of(only.taken[1])
    assert (more.nonce, more.priority_fee * 8 >= nothing.priority_fee * 9) == (5, True)


async def test_a_nonce_is_left_alone_while_they_move_or_no_block_is_made(
    sender: TransactionSender, only: Node
) -> None:
    waits = Book(only, signed(50, 90 * GWEI))
    for mined in range(5, 45):
        only.counts = (mined, 60)
        only.head += STUCK_S // BLOCK_S - 1
        await sender.resend(waits.entry, waits.note)
    for _ in range(100):  # the chain stands still
        await sender.resend(waits.entry, waits.note)
    only.counts = (60, 60)
    only.head += STUCK_S
    for _ in range(3):  # nothing waits
        await sender.resend(waits.entry, waits.note)
    assert not only.taken


async def test_a_nonce_is_never_freed_for_more_than_one_call_may_cost(only: Node) -> None:
    rpc, chain = Nodes({ONE: only}), network(ONE)
    prices = ample_gas(rpc, {chain.slug: chain}, SIGNER.address, FrozenClock(), coins=0)
    sender = TransactionSender(rpc, chain, SIGNER, prices)  # type: ignore[arg-type]
    only.counts = (5, 9)
    behind = Book(only, signed(7, 90 * GWEI))
    await sender.resend(behind.entry, behind.note)
    only.head += STUCK_S
    await sender.resend(behind.entry, behind.note)
    assert not only.taken


async def test_what_cannot_be_mined_at_what_it_may_cost_is_not_sent(only: Node) -> None:
    """It would hold up all that is sent behind it."""
    rpc, chain = Nodes({ONE: only}), network(ONE)
    prices = ample_gas(rpc, {chain.slug: chain}, SIGNER.address, FrozenClock(), coins=0)
    sender = TransactionSender(rpc, chain, SIGNER, prices)  # type: ignore[arg-type]
    book = Book(only, unsent())
    assert isinstance(await sender.send(book.entry, book.note), Undecided)
    assert not only.taken
    assert not book.noted


async def test_what_may_not_be_replaced_for_its_cost_is_sent_again(only: Node) -> None:
    rpc, chain = Nodes({ONE: only}), network(ONE)
    prices = ample_gas(rpc, {chain.slug: chain}, SIGNER.address, FrozenClock(), coins=0)
    sender = TransactionSender(rpc, chain, SIGNER, prices)  # type: ignore[arg-type]
    only.counts, only.base_fee = (5, 6), 30 * GWEI
    book = Book(only, signed(5, 3 * GWEI))
    await sender.push(book.entry, book.note)
    assert only.taken == [book.entry.attempt.raw]
    assert not book.noted


def test_attempts_are_remembered_once_each_the_newest_first() -> None:
    first = after(SettlementAttempt(""), SettlementAttempt("0xa", "1"))
    second = after(first, SettlementAttempt("0xb", "2"))
    back = after(second, SettlementAttempt("0xa", "2"))
    assert hashes(second) == ("0xb", "0xa")
    assert hashes(back) == ("0xa", "0xb")
