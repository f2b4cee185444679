"""What became of authorisations: recognised at once, many in a question, on nobody's word alone."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from typing_extensions import override

from assay.chains.model import ChainUnavailable, Network
from assay.payments.model import LedgerEntry, PaymentState
from assay.payments.outcomes import Rejected, Settled, SettlementAttempt, Undecided
from assay.payments.ports import Authorization
from assay.payments.x402.codec import credential_of
from assay.payments.x402.eip3009_outcomes import BATCH_MAX, UNUSED, WINDOW, Outcomes
from assay.payments.x402.engine import X402Engine
from tests.payments.unit.test_x402_vectors import NETWORKS, VECTORS, entry
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.payment_nodes import BLOCK_S, BURNT_WEI, Node, Nodes

ONE, TWO = "http://one", "http://two"
NOW_S = int(FrozenClock().now().timestamp())
PAYER, SELLER, THIEF = ("0x" + pair * 20 for pair in ("aa", "bb", "cc"))
CANCELLED = Rejected("authorization_cancelled")
ELSEWHERE = Rejected("authorization_used_elsewhere")
EXPIRED = Rejected("expired_unused")


def network(*urls: str) -> Network:
    return Network(
        slug="eip155:84532",
        name="n",
        chain_id=84532,
        testnet=True,
        identity_registry="0x" + "00" * 20,
        reputation_registry="0x" + "00" * 20,
        rpc_urls=urls,
        source="a test",
    )


def payment(
    number: int = 1, *, valid_s: int = 90, age_s: int = 5, payer: str = PAYER
) -> LedgerEntry:
    """Claimed so long ago, and valid for so much longer from now on."""
    nonce = f"0x{number:064x}"
    signed = Authorization(
        payer, SELLER, 10_000, 0, NOW_S + valid_s, nonce, "0x" + "01" * 64 + "1b"
    )
    made = entry(VECTORS["receipts"][0])
    return replace(
        made,
        id=str(number),
        network="eip155:84532",
        asset=NETWORKS["eip155:84532"].asset.address,
        payer=payer,
        nonce=nonce,
        pay_to=SELLER,
        state=PaymentState.PENDING,
        attempt=SettlementAttempt(""),
        credential=credential_of(signed),
        created_at=FrozenClock().now() - timedelta(seconds=age_s),
    )


def node() -> Node:
    made = Node(0)
    made.born_s = NOW_S - made.head * BLOCK_S
    return made


async def found(nodes: dict[str, Node], *entries: LedgerEntry) -> list[Any]:
    outcomes = Outcomes(Nodes(nodes), {"eip155:84532": network(*nodes)})  # type: ignore[arg-type]
    return list(await outcomes.find(entries))


async def test_a_cancelled_authorisation_is_recognised_by_its_event() -> None:
    only = node()
    only.use(payment(), None)
    assert await found({ONE: only}, payment()) == [CANCELLED]


async def test_one_that_paid_somebody_else_is_recognised() -> None:
    only = node()
    only.use(payment(), THIEF)
    assert await found({ONE: only}, payment()) == [ELSEWHERE]


async def test_one_that_somebody_else_submitted_is_paid() -> None:
    only = node()
    transaction = only.use(payment(), SELLER)
    assert await found({ONE: only}, payment()) == [Settled(transaction)]


async def test_one_that_is_not_used_may_be_sent_until_a_block_is_younger_than_it() -> None:
    only = node()
    assert await found({ONE: only}, payment(valid_s=1)) == [UNUSED]
    assert await found({ONE: only}, payment(valid_s=0)) == [EXPIRED]


async def test_a_chain_that_stands_ends_nothing_whatever_our_clock_says() -> None:
    """Its next block may be dated before the authorisation's end, and pay."""
    only = node()
    only.head -= 600
    assert await found({ONE: only}, payment(valid_s=-60)) == [UNUSED]


async def test_the_older_of_our_transactions_counts_where_it_is_the_one_that_was_mined() -> None:
    only = node()
    older = only.use(payment(), SELLER)
    only.refuses = {"eth_getLogs"}
    sent = replace(payment(), attempt=SettlementAttempt("0x" + "22" * 32, "0x02", earlier=(older,)))
    assert await found({ONE: only}, sent) == [Settled(older)]


async def test_a_node_that_searches_no_logs_ends_nothing() -> None:
    only = node()
    only.use(payment(), None)
    only.refuses = {"eth_getLogs"}
    assert await found({ONE: only}, payment()) == [Undecided("used, not found")]


@pytest.mark.parametrize("ago", [0, 7, 99])
async def test_a_node_that_searches_few_blocks_at_once_is_asked_for_so_many(ago: int) -> None:
    """As free endpoints of some providers. Source: evm-nodes.md#log-ranges."""
    only = node()
    only.use(payment(), None, block=only.head - ago)
    only.blocks_max = 5
    assert await found({ONE: only}, payment()) == [CANCELLED]
    older = node()
    older.use(payment(), None, block=older.head - 100)
    older.blocks_max = 5
    assert await found({ONE: older}, payment()) == [Undecided("used, not found")]


@pytest.mark.parametrize("searches", [ONE, TWO])
async def test_what_one_node_cannot_find_another_shows_it(searches: str) -> None:
    """It knows the transaction's receipt, so that its word counts beside the other's."""
    nodes = {ONE: node(), TWO: node()}
    paid, elsewhere, gone = (payment(number) for number in (1, 2, 3))
    for url, one in nodes.items():
        transaction = one.use(paid, SELLER)
        one.use(elsewhere, THIEF)
        one.use(gone, None)
        one.refuses = set() if url == searches else {"eth_getLogs"}
    outcomes = await found(nodes, paid, elsewhere, gone)
    assert outcomes == [Settled(transaction), ELSEWHERE, CANCELLED]
    assert all(one.is_agreed for one in outcomes if isinstance(one, Rejected))


@pytest.mark.parametrize("lie", ["a receipt of nothing", "another's receipt"])
async def test_a_cancellation_that_one_node_alone_shows_ends_nothing(lie: str) -> None:
    """The other searches no logs, and knows no such transaction, or one that used nothing of it."""
    honest, liar = node(), node()
    honest.refuses = {"eth_getLogs"}
    honest.use(payment(), SELLER)
    made_up = liar.use(payment(), None)
    honest.used[0].transaction = "0x" + "77" * 32
    if lie == "another's receipt":
        other = payment(2)
        honest.use(other, None)
        honest.used[1].transaction = made_up
    (outcome,) = await found({ONE: honest, TWO: liar}, payment())
    assert isinstance(outcome, Undecided)


async def test_many_are_one_search_and_a_stranger_with_the_same_nonce_is_not_confused() -> None:
    only = node()
    ours = [payment(number) for number in range(1, 101)]
    others = [payment(number, payer=THIEF) for number in range(1, 101)]
    others = [replace(one, id=f"other {one.id}") for one in others]
    for one in ours:
        only.use(one, None)
    outcomes = await found({ONE: only}, *ours, *others)
    assert outcomes == [CANCELLED] * 100 + [UNUSED] * 100
    assert only.asked.count("eth_getLogs") == 1
    assert only.asked.count("eth_call") == 1


async def test_a_thousand_cost_a_node_less_than_one_question_each() -> None:
    only = node()
    ours = [payment(number) for number in range(1, 1001)]
    for one in ours:
        only.use(one, None)
    assert await found({ONE: only}, *ours) == [CANCELLED] * 1000
    assert len(only.asked) == 3 * 1000 / BATCH_MAX


class Slow(Nodes):
    """Answers the first question for a block at once, and later ones when three are waiting."""

    asked = 0
    three: asyncio.Event

    @override
    async def request(self, network: Network, method: str, params: Sequence[Any]) -> Any:
        self.asked += method == "eth_getBlockByNumber"
        if self.asked == 1:
            return await super().request(network, method, params)
        if self.asked == 4:
            self.three.set()
        async with asyncio.timeout(5):
            await self.three.wait()
        return await super().request(network, method, params)


async def test_what_one_question_does_not_hold_is_asked_side_by_side() -> None:
    """A slow node would else hold up the payments at the end of a long list."""
    only = node()
    ours = [payment(n) for n in range(3 * BATCH_MAX + 1)]
    nodes = Slow({ONE: only})
    nodes.three = asyncio.Event()
    outcomes = Outcomes(nodes, {"eip155:84532": network(ONE)})  # type: ignore[arg-type]
    assert await outcomes.find(ours) == [UNUSED] * len(ours)


async def test_a_node_that_does_not_answer_is_asked_one_question_of_many() -> None:
    only = node()
    only.is_down = True
    with pytest.raises(ChainUnavailable):
        await found({ONE: only}, *[payment(n) for n in range(3 * BATCH_MAX)])
    assert only.tried == 1


def both(first: Node, second: Node) -> dict[str, Node]:
    return {ONE: first, TWO: second}


@pytest.mark.parametrize("lie", ["cancelled", "elsewhere", "never used"])
async def test_one_node_that_lies_ends_nothing_that_was_paid(lie: str) -> None:
    liar, honest = node(), node()
    transaction = honest.use(payment(valid_s=0), SELLER)
    if lie != "never used":
        liar.use(payment(valid_s=0), None if lie == "cancelled" else THIEF)
    assert await found(both(liar, honest), payment(valid_s=0)) == [Settled(transaction)]
    honest.is_down = True
    (alone,) = await found(both(liar, honest), payment(valid_s=0))
    assert isinstance(alone, Undecided)
    assert not alone.is_unused


@pytest.mark.parametrize("pay_to", [None, THIEF])
async def test_two_nodes_that_agree_end_a_payment(pay_to: str | None) -> None:
    first, second = node(), node()
    for one in (first, second):
        one.use(payment(), pay_to)
    assert await found(both(first, second), payment()) == [CANCELLED if not pay_to else ELSEWHERE]


async def test_a_node_that_is_late_agrees_to_nothing() -> None:
    first, second = node(), node()
    first.use(payment(), None)
    (late,) = await found(both(first, second), payment())
    assert isinstance(late, Undecided)
    late_block = node()
    late_block.head -= 60
    (late,) = await found(both(node(), late_block), payment(valid_s=0))
    assert isinstance(late, Undecided)


async def test_what_is_undecided_asks_no_second_node() -> None:
    first, second = node(), node()
    assert await found(both(first, second), payment()) == [UNUSED]
    assert not second.asked


async def test_when_no_node_answers_each_is_asked_once_for_all() -> None:
    first, second = node(), node()
    first.is_down = second.is_down = True
    with pytest.raises(ChainUnavailable):
        await found(both(first, second), *(payment(n) for n in range(1, 1001)))
    assert (first.tried, second.tried) == (1, 1)


async def test_an_old_payment_is_looked_for_where_it_was_claimed() -> None:
    """After days without this service, its time is a hundred thousand blocks ago."""
    only = node()
    age_s = 150_000
    block = only.head - (age_s - 60) // BLOCK_S
    old = payment(age_s=age_s, valid_s=300 - age_s)
    transaction = only.use(old, SELLER, block)
    assert await found({ONE: only}, old) == [Settled(transaction)]
    assert only.asked.count("eth_getLogs") == 3
    assert len(only.asked) < 35


async def test_one_cancelled_long_after_its_end_is_over_wherever_its_event_is() -> None:
    only = node()
    old = payment(age_s=150_000, valid_s=300 - 150_000)
    only.use(old, None, only.head - WINDOW - 10)
    assert await found({ONE: only}, old) == [CANCELLED]


async def test_a_node_behind_a_balancer_that_is_a_block_late_is_read_a_little_deeper() -> None:
    class Balanced(Nodes):
        async def call_at(self, network: Network, calls: Sequence[Any], block: int) -> Any:
            self.by_url[ONE].head -= 1 if block == 100_000 else 0
            return await super().call_at(network, calls, block)

    outcomes = Outcomes(Balanced({ONE: node()}), {"eip155:84532": network(ONE)})  # type: ignore[arg-type]
    assert await outcomes.find([payment()]) == [UNUSED]


async def test_a_transaction_of_ours_has_failed_when_two_nodes_show_it() -> None:
    first, second = node(), node()
    sent = replace(payment(), attempt=SettlementAttempt("0x" + "22" * 32, "0x02"))
    outcomes = Outcomes(Nodes(both(first, second)), {"eip155:84532": network(ONE, TWO)})  # type: ignore[arg-type]
    assert isinstance(await outcomes.reverted(sent), Undecided)
    first.reverted = {sent.attempt.transaction}
    assert isinstance(await outcomes.reverted(sent), Undecided)
    second.reverted = {sent.attempt.transaction}
    assert await outcomes.reverted(sent) == Rejected("transaction_failed")
    second.is_down = True
    assert isinstance(await outcomes.reverted(sent), Undecided)


async def test_a_transaction_of_ours_that_was_overtaken_in_its_block_has_not_failed() -> None:
    """A balancer's older node has just said that the authorisation is unused."""
    first, second = node(), node()
    sent = replace(payment(), attempt=SettlementAttempt("0x" + "22" * 32, "0x02"))
    for one in (first, second):
        one.reverted = {sent.attempt.transaction}
        one.use(payment(), SELLER)
    outcomes = Outcomes(Nodes(both(first, second)), {"eip155:84532": network(ONE, TWO)})  # type: ignore[arg-type]
    with pytest.raises(ChainUnavailable):
        await outcomes.reverted(sent)


def sent_twice(first: str) -> LedgerEntry:
    """Its second transaction has another nonce, so that both may be mined."""
    return replace(payment(), attempt=SettlementAttempt("0x" + "22" * 32, "0x02", earlier=(first,)))


@pytest.mark.parametrize("pay_to", [SELLER, THIEF, None])
async def test_gas_of_every_transaction_of_ours_counts_whoever_has_used_it(
    pay_to: str | None,
) -> None:
    """A stranger was first: ours have burnt gas for nothing, and nobody else's is ours."""
    only, first = node(), "0x" + "33" * 32
    only.use(payment(), pay_to)
    only.reverted = {first, "0x" + "22" * 32}
    (outcome,) = await found({ONE: only}, sent_twice(first))
    assert outcome.gas_wei == 2 * BURNT_WEI


async def test_gas_of_what_reverted_counts_beside_that_of_what_has_paid() -> None:
    only = node()
    first = only.use(payment(), SELLER)
    only.reverted = {"0x" + "22" * 32}
    sent = sent_twice(first)
    (looked_for,) = await found({ONE: only}, sent)
    rpc: Any = Nodes({ONE: only})
    engine = X402Engine(rpc, {"eip155:84532": network(ONE)}, None, None, FrozenClock(), 1.0)
    waited_for = await engine._mined(sent)
    for outcome in (looked_for, waited_for):
        assert outcome == Settled(first)
        assert outcome.gas_wei == 2 * BURNT_WEI
