"""Every reading of an MPP payment judges the seller's and the platform's part, of one transaction.

The charges, receipts, witness, watcher and reconciler are real; the node says what a test wants.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, cast

import pytest
from hypothesis import given
from mpp.methods.tempo._attribution import encode

from assay.app.payments import payment_chains
from assay.chains.evm.abi import address_word
from assay.chains.model import Network
from assay.common.json import JsonValue
from assay.payments.finality import View, Witness
from assay.payments.model import DirectFee, LedgerEntry, PaymentState, watched_payment
from assay.payments.mpp.charges import TempoCharges
from assay.payments.mpp.protocol import PROTOCOL
from assay.payments.mpp.tempo import TRANSFER_WITH_MEMO, pays
from assay.payments.networks import payment_networks
from assay.payments.outcomes import PaymentOutcome, Rejected, Settled, SettlementAttempt, Undecided
from assay.payments.payout_wallet import ChainReceipts
from assay.payments.ports import ProtocolDependencies
from assay.payments.settlement import PaymentPending, Settlement, find_out
from assay.payments.watcher import Watcher
from assay.payments.x402.eip3009 import TRANSFERRED
from tests.payments.unit.test_mpp_echoed_fee import JSON
from tests.support.fakes.calls import payment
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.ledger import MemoryLedgerStore

TEMPO = payment_networks({}, {"tempo:4217": 2})["tempo:4217"]
SELLER, PLATFORM, PAYER = ("0x" + two * 20 for two in ("5e", "ab", "c0"))
PAID_BY = "0x" + "77" * 32
CHALLENGE = "a challenge's id"
PRICE, FEE = 10_000, 500
REST = PRICE - FEE
MEMO = encode(CHALLENGE, "assay.example")
OTHER_MEMO = encode("another", "assay.example")
Log = dict[str, JsonValue]


def topic(address: str) -> str:
    return "0x" + address_word(address).hex()


def moved(payee: str, amount: int, memo: str = MEMO, **fields: str) -> list[Log]:
    """The logs of one transfer, as TIP-20 writes them."""
    given = {"payer": PAYER, "token": TEMPO.asset.address, **fields}
    topics: list[JsonValue] = [TRANSFERRED, topic(given["payer"]), topic(payee)]
    plain: Log = {"address": given["token"], "topics": topics, "data": f"0x{amount:064x}"}
    return (
        [plain, {**plain, "topics": [TRANSFER_WITH_MEMO, *topics[1:], memo]}] if memo else [plain]
    )


BOTH = (*moved(SELLER, REST), *moved(PLATFORM, FEE))
HALVES = {
    "the seller's part": moved(SELLER, REST),
    "the platform's part": moved(PLATFORM, FEE),
    "all to the seller": moved(SELLER, PRICE),
    "merged": moved(PLATFORM, PRICE),
    "the fee to the seller": [*moved(SELLER, REST), *moved(SELLER, FEE)],
    "one for the other": [*moved(SELLER, FEE), *moved(PLATFORM, REST)],
    "too little": [*moved(SELLER, REST), *moved(PLATFORM, FEE - 1)],
    "too much": [*moved(SELLER, REST + 1), *moved(PLATFORM, FEE)],
    "somebody else's money": [*moved(SELLER, REST), *moved(PLATFORM, FEE, payer=SELLER)],
    "another token": [*moved(SELLER, REST), *moved(PLATFORM, FEE, token=SELLER)],
    "no memo": [*moved(SELLER, REST, ""), *moved(PLATFORM, FEE, "")],
    "another challenge": [*moved(SELLER, REST, OTHER_MEMO), *moved(PLATFORM, FEE, OTHER_MEMO)],
    "nothing": list[Log](),
}


def receipt(logs: Sequence[Log], status: str = "0x1") -> JsonValue:
    return {"status": status, "logs": list(logs), "blockNumber": "0x5"}


def entry(**fields: Any) -> LedgerEntry:
    made = payment("op", "w", FrozenClock().now(), PRICE)
    given: dict[str, Any] = {
        "protocol": "mpp",
        "network": TEMPO.id,
        "asset": TEMPO.asset.address,
        "payer": PAYER,
        "nonce": CHALLENGE,
        "pay_to": SELLER,
        "direct_fee": DirectFee(PLATFORM, FEE),
        "attempt": SettlementAttempt(PAID_BY),
        "credential": {"payload": {"type": "hash", "hash": PAID_BY}},
    }
    return replace(made, **{**given, **fields})


@pytest.mark.parametrize(
    "logs",
    [
        BOTH,
        BOTH[::-1],
        (*moved(SELLER, REST, ""), *moved(PLATFORM, FEE)),
        (*moved(SELLER, REST), *moved(PLATFORM, FEE, "")),
        (*moved(PLATFORM, 7), *moved(SELLER, REST, OTHER_MEMO), *BOTH),
        BOTH[1::2],
    ],
    ids=("both", "reordered", "memo on the fee", "memo on the price", "and others", "noted"),
)
def test_both_parts_pay_in_any_order_with_the_memo_on_one(logs: Sequence[Log]) -> None:
    assert pays(receipt(logs), entry())
    assert not pays(receipt(logs, "0x0"), entry())


@pytest.mark.parametrize("name", HALVES)
def test_anything_else_does_not(name: str) -> None:
    assert not pays(receipt(HALVES[name]), entry())


def test_a_payment_without_a_fee_is_one_transfer() -> None:
    whole = entry(direct_fee=None)
    assert pays(receipt(moved(SELLER, PRICE)), whole)
    for logs in (BOTH, moved(SELLER, PRICE, ""), moved(SELLER, PRICE, OTHER_MEMO)):
        assert not pays(receipt(logs), whole)


@pytest.mark.parametrize(
    "odd",
    [
        *(None, 5, [], {}, {"status": "0x1"}, {"status": "0x1", "logs": 5}),
        {"status": "0x1", "logs": [None, 5, {}, {"address": TEMPO.asset.address}]},
        receipt([{**BOTH[0], "topics": [7, None, {}]}]),
        receipt([{**BOTH[0], "topics": []}]),
        receipt([{**one, "data": "0x"} for one in BOTH]),
        receipt([{**one, "data": 5} for one in BOTH]),
        receipt([{**one, "address": None} for one in BOTH]),
    ],
)
def test_a_receipt_of_an_odd_form_pays_nothing(odd: JsonValue) -> None:
    assert not pays(odd, entry())


@given(one=JSON, other=JSON)
def test_nothing_that_a_node_shows_makes_a_fault(one: Any, other: Any) -> None:
    logs: list[Any] = [one, {**BOTH[0], "topics": other}, {**BOTH[0], "data": other}]
    logs += [
        {**BOTH[1], "topics": [TRANSFER_WITH_MEMO, one, other, one]},
        {**BOTH[1], "address": one},
    ]
    for shown in (one, {"status": "0x1", "logs": one}, {"status": "0x1", "logs": logs}):
        assert not pays(shown, entry())


@dataclass
class Node:
    """Shows one receipt, at any height."""

    shown: JsonValue
    height: int = 5
    sent: int = 0

    async def request(self, _chain: Network, method: str, _params: Sequence[JsonValue]) -> Any:
        if method == "eth_sendRawTransaction":
            self.sent += 1
            return PAID_BY
        return hex(self.height) if method == "eth_blockNumber" else self.shown

    async def request_all(self, chain: Network, asked: Sequence[tuple[str, Any]]) -> list[Any]:
        return [await self.request(chain, *one) for one in asked]


@dataclass
class Service:
    """What reads payments, over one node."""

    node: Node
    clock: FrozenClock = field(default_factory=FrozenClock)

    def __post_init__(self) -> None:
        networks = {TEMPO.id: TEMPO}
        chains, rpc = payment_chains(networks), cast("Any", self.node)
        unused = cast("Any", None)  # nothing here makes or reads a challenge
        ttl = timedelta(minutes=5)
        self.charges = TempoCharges(unused, chains, rpc, self.clock, challenge_ttl=ttl)
        self.receipts = ChainReceipts(rpc, chains)
        self.ledger = MemoryLedgerStore(self.clock)
        needs = ProtocolDependencies(unused, unused, self.charges, self.clock)
        view, protocols = View(needs, self.receipts), {"mpp": PROTOCOL}
        witness = Witness(networks, protocols, view, {}, self.clock, 0.0)
        lease = timedelta(seconds=5)
        self.settlement = Settlement(protocols, needs, self.ledger, self.clock, lease, witness)
        self.watcher = Watcher(self.settlement, witness, self.ledger, self.clock)

    async def put(self, state: PaymentState, **fields: Any) -> LedgerEntry:
        """A row in that state, which nobody works on any more."""
        claim = await self.ledger.claim(entry(**fields), self.clock.now())
        made = claim.entry
        if state is not PaymentState.CLAIMED:
            done = await self.ledger.move(made, state, lease_until=self.clock.now())
            assert done is not None
            made = done
        return made

    def row(self) -> LedgerEntry:
        (found,) = self.ledger.rows.values()
        return found


@pytest.mark.parametrize("name", HALVES)
async def test_no_reading_takes_half_for_a_payment(name: str) -> None:
    """Its own outcome, its depth, a released claim, and what a killed process left."""
    made = Service(Node(receipt(HALVES[name]), height=50))
    outcome: PaymentOutcome = await made.charges.outcome(entry())
    assert outcome == Rejected("transaction-failed")
    assert await made.receipts.depths(TEMPO.id, [watched_payment(entry(), PAID_BY)]) == [0]
    assert await made.receipts.agreed_depths(TEMPO.id, [watched_payment(entry(), PAID_BY)]) == [0]
    with pytest.raises(PaymentPending):
        await made.settlement.arrived(await made.put(PaymentState.CLAIMED), PAID_BY)
    made = Service(Node(receipt(HALVES[name]), height=50))
    await made.put(PaymentState.SETTLING)
    made.clock.move(60)
    (ended,) = await made.settlement.reconcile(is_due_only=False)
    assert (ended.state, ended.reason) == (PaymentState.FAILED, "transaction-failed")


async def test_both_are_found_by_every_reading() -> None:
    made = Service(Node(receipt(BOTH), height=6))
    assert await made.charges.outcome(entry()) == Settled(PAID_BY)
    assert await made.receipts.depths(TEMPO.id, [watched_payment(entry(), PAID_BY)]) == [2]
    await made.put(PaymentState.SETTLING)
    made.clock.move(60)
    (ended,) = await made.settlement.reconcile(is_due_only=False)
    assert (ended.state, ended.direct_fee) == (PaymentState.SETTLED, DirectFee(PLATFORM, FEE))


async def test_a_transaction_that_pays_one_of_them_after_a_reorganisation_is_reversed() -> None:
    """A payer's own contract did both the first time it was mined."""
    made = Service(Node(receipt(BOTH), height=5))
    await made.put(PaymentState.SETTLED)
    made.clock.move(6)
    assert await made.watcher.run(TEMPO.id) == []
    assert made.row().state is PaymentState.SETTLED
    made.node.shown = receipt(HALVES["the seller's part"])
    made.clock.move(200)
    (changed,) = await made.watcher.run(TEMPO.id)
    assert (changed.state, made.row().state) == (PaymentState.REVERSED, PaymentState.REVERSED)


async def test_a_released_payment_is_not_found_by_half_of_it() -> None:
    made = Service(Node(receipt(HALVES["the platform's part"]), height=9))
    released = await made.put(PaymentState.RELEASED)
    released = replace(released, look=replace(released.look, at=made.clock.now()))
    assert await find_out(made.settlement, released) is None
    assert made.row().state is PaymentState.RELEASED
    made = Service(Node(receipt(BOTH), height=9))
    released = await made.put(PaymentState.RELEASED)
    released = replace(released, look=replace(released.look, at=made.clock.now()))
    found = await find_out(made.settlement, released)
    assert found is not None
    assert found.state is PaymentState.SETTLED


async def test_nothing_is_said_while_there_is_no_receipt() -> None:
    made = Service(Node(None))
    assert isinstance(await made.charges.outcome(entry()), Undecided)
