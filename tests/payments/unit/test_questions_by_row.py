"""What becomes of a payment is asked of nodes five times at most, counted by row."""

import json
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, cast

import httpx2
import pytest
from typing_extensions import override

from assay.app.background import RECONCILE_EVERY_S
from assay.app.payments import payment_chains
from assay.chains.evm.signing import EvmTransaction, TransactionSigner
from assay.chains.model import Network
from assay.chains.rpc import ContractCall, Returned, Reverted
from assay.payments.finality import View, Witness
from assay.payments.model import LedgerEntry, PaymentState
from assay.payments.mpp.charges import LATE, TempoCharges
from assay.payments.mpp.protocol import PROTOCOL as MPP
from assay.payments.networks import payment_networks
from assay.payments.outcomes import ANSWERS_MAX, AT_END, SettlementAttempt
from assay.payments.payout_wallet import ChainReceipts
from assay.payments.ports import PaymentProtocol, ProtocolDependencies
from assay.payments.settlement import PaymentPending, Settlement, find_out
from assay.payments.watcher import Watcher
from assay.payments.x402.eip3009 import Eip3009Signers
from assay.payments.x402.engine import X402Engine
from assay.payments.x402.facilitator import RemoteFacilitator
from assay.payments.x402.facilitator_access import FacilitatorEndpoint
from assay.payments.x402.protocol import PROTOCOL as X402
from tests.payments.unit.test_authorization_outcomes import (
    NOW_S,
    ONE,
    THIEF,
    TWO,
    network,
    payment,
)
from tests.payments.unit.test_mpp_transfers import entry as mpp_payment
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.gas import ample_gas
from tests.support.fakes.ledger import MemoryLedgerStore
from tests.support.fakes.payment_nodes import BLOCK_S, Node, Nodes, Used

HOUR_S = 3600
ROWS = 20
TEMPO = payment_networks({"tempo:4217": (ONE, TWO)}, None)["tempo:4217"]


@dataclass
class Counting(Nodes):
    """Counts what nodes are asked of each row, by the word that is asked."""

    asked: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])

    @override
    async def request(self, network: Network, method: str, params: Sequence[Any]) -> Any:
        answer = await super().request(network, method, params)
        if method == "eth_getTransactionReceipt":
            self.asked[method, params[0]] += 1
        elif method == "eth_getLogs":
            self.asked.update((method, nonce) for nonce in params[0]["topics"][2])
        return answer

    @override
    async def request_all(
        self, network: Network, requests: Sequence[tuple[str, Sequence[Any]]]
    ) -> list[Any]:
        answers = await super().request_all(network, requests)
        for (method, params), answer in zip(requests, answers, strict=True):
            if method == "eth_getLogs":
                nonces = params[0]["topics"][2] if answer is not None else ()
                self.asked.update((method, nonce) for nonce in nonces)
            elif params:
                self.asked[method, params[0]] += 1
        return answers

    @override
    async def call_at(
        self, network: Network, calls: Sequence[ContractCall], block: int
    ) -> list[Returned | Reverted]:
        self.asked.update(("state", "0x" + call.data[36:68].hex()) for call in calls)
        return await super().call_at(network, calls, block)

    def most_of_rows(self) -> int:
        """The same without what is asked of our key."""
        of_rows = {"state", "eth_getLogs", "eth_getTransactionReceipt"}
        return max(count for (kind, _), count in self.asked.items() if kind in of_rows)

    def most(self) -> int:
        """What one row was asked about most often."""
        return max(self.asked.values())


class Service:
    """Reconciler and watcher over two nodes."""

    def __init__(
        self,
        protocol: PaymentProtocol,
        *,
        is_second_blind: bool = False,
        has_key: bool = False,
        answers: Callable[[str], dict[str, Any]] | None = None,
        confirmations: int = 1,
    ) -> None:
        """`answers`: of a facilitator, by path."""
        self.clock = FrozenClock()
        self.nodes = {ONE: Node(0), TWO: Node(0)}
        self.is_second_blind = is_second_blind
        for one in self.nodes.values():
            one.born_s = NOW_S - one.head * BLOCK_S
        self.rpc = Counting(dict(self.nodes))
        rpc, nothing = cast("Any", self.rpc), cast("Any", None)
        self.ledger = MemoryLedgerStore(self.clock)
        rows = payment_networks({}, {"eip155:84532": confirmations})
        networks = {TEMPO.id: TEMPO, **rows}
        chains = {"eip155:84532": network(ONE, TWO), **payment_chains({TEMPO.id: TEMPO})}

        def view(some: dict[str, Network]) -> View:
            signer = TransactionSigner("0x" + "11" * 32) if has_key else None
            prices = signer and ample_gas(rpc, some, signer.address, self.clock)
            engine = X402Engine(rpc, some, signer, prices, self.clock, 0.0)
            ttl = timedelta(minutes=5)
            charges = TempoCharges(nothing, some, rpc, self.clock, challenge_ttl=ttl)
            facilitator = engine if answers is None else self.facilitator(engine, answers)
            needs = ProtocolDependencies(Eip3009Signers(), facilitator, charges, self.clock)
            return View(needs, ChainReceipts(rpc, some))

        first = view(chains)
        second = view({n: replace(c, rpc_urls=(TWO,)) for n, c in chains.items()})
        protocols = {protocol.name: protocol}
        others = dict.fromkeys(chains, second)
        witness = Witness(networks, protocols, first, others, self.clock, 0.0)
        lease = timedelta(seconds=45)
        self.settlement = Settlement(
            protocols, first.needs, self.ledger, self.clock, lease, witness
        )
        self.watcher = Watcher(self.settlement, witness, self.ledger, self.clock)
        self.networks = tuple(networks)

    async def watch(self) -> list[LedgerEntry]:
        """A pass over every network."""
        return [one for name in self.networks for one in await self.watcher.run(name)]

    def facilitator(
        self, engine: X402Engine, answers: Callable[[str], dict[str, Any]]
    ) -> RemoteFacilitator:
        """One that is asked, and waits for nothing that it claims."""

        def answered(request: httpx2.Request) -> httpx2.Response:
            async def body() -> AsyncGenerator[bytes]:
                yield json.dumps(answers(request.url.path)).encode()

            return httpx2.Response(200, content=body())

        networks = {"eip155:84532": payment_networks({}, None)["eip155:84532"]}
        made = RemoteFacilitator(
            [FacilitatorEndpoint("http://facilitator.test")], networks, engine, self.clock, 0.05
        )
        made._client = httpx2.AsyncClient(transport=httpx2.MockTransport(answered))
        return made

    async def put(self, entry: LedgerEntry, *states: PaymentState) -> LedgerEntry:
        now = self.clock.now()
        fresh = replace(
            entry,
            state=PaymentState.CLAIMED,
            digest=f"digest {entry.id}",
            lease_until=now,
            updated_at=now,
        )
        made = (await self.ledger.claim(fresh, now)).entry
        for state in states:
            moved = await self.ledger.move(made, state, attempt=entry.attempt)
            assert moved is not None
            made = moved
        return made

    def spend(self, how: str, entries: Sequence[LedgerEntry]) -> None:
        """Cancel them, or use them elsewhere, for the nodes that see it."""
        for url, one in self.nodes.items():
            is_blind = url == TWO and self.is_second_blind
            for entry in entries if how != "expired" and not is_blind else ():
                one.use(entry, None if how == "cancelled" else THIEF)

    def move(self, seconds: float) -> None:
        self.clock.move(seconds)
        for one in self.nodes.values():
            one.head = (int(self.clock.now().timestamp()) - one.born_s) // BLOCK_S

    async def pass_time(self, seconds: float) -> None:
        for _ in range(int(seconds // RECONCILE_EVERY_S)):
            self.move(RECONCILE_EVERY_S)
            await self.settlement.reconcile(is_due_only=True)
            await self.watch()

    def states(self) -> set[PaymentState]:
        return {row.state for row in self.ledger.rows.values()}


def x402_payments(valid_s: int = 90) -> list[LedgerEntry]:
    made = [payment(n, valid_s=valid_s, payer=f"0x{n:040x}") for n in range(1, ROWS + 1)]
    end = FrozenClock().now() + timedelta(seconds=valid_s)
    return [
        replace(one, expires_at=end, attempt=SettlementAttempt(f"0x{n:064x}"))
        for n, one in enumerate(made)
    ]


@pytest.mark.parametrize("valid_s", [0, 20, 90, 400])
@pytest.mark.parametrize("is_second_blind", [False, True])
@pytest.mark.parametrize("how", ["cancelled", "used elsewhere", "expired"])
async def test_an_x402_payment_that_cannot_pay(
    how: str, valid_s: int, *, is_second_blind: bool
) -> None:
    made = Service(X402, is_second_blind=is_second_blind)
    entries = x402_payments(valid_s)
    made.spend(how, entries)
    for one in entries:
        await made.put(one, PaymentState.SETTLING)
    await made.pass_time(HOUR_S)
    assert made.states() == {PaymentState.FAILED}
    assert made.rpc.most() <= ANSWERS_MAX


@pytest.mark.parametrize("valid_s", [20, 90, 395])
@pytest.mark.parametrize("is_second_blind", [False, True])
async def test_an_x402_payment_whose_settlement_has_reverted(
    valid_s: int, *, is_second_blind: bool
) -> None:
    """Its payer has emptied the wallet; one node may show the receipt, and another none."""
    made = Service(X402, is_second_blind=is_second_blind, has_key=True)
    signer = TransactionSigner("0x" + "11" * 32)
    for n, entry in enumerate(x402_payments(valid_s)):
        to_sign = EvmTransaction(84532, n, 1, 3 * 10**9, 200_000, entry.asset, b"")
        raw, transaction = signer.sign(to_sign)
        made.nodes[ONE].reverted.add(transaction)
        made.nodes[TWO].reverted |= set() if is_second_blind else {transaction}
        await made.put(
            replace(entry, attempt=SettlementAttempt(transaction, raw)), PaymentState.SETTLING
        )
    for one in made.nodes.values():
        one.counts = (ROWS, ROWS)
    await made.pass_time(HOUR_S)
    assert made.states() == {PaymentState.FAILED}
    assert not any(one.taken for one in made.nodes.values())
    assert made.rpc.most_of_rows() <= ANSWERS_MAX


async def settlements_that_wait(made: Service, valid_s: int) -> list[LedgerEntry]:
    """Transactions of ours that every node has and none mines."""
    signer, entries = TransactionSigner("0x" + "11" * 32), list[LedgerEntry]()
    for n, entry in enumerate(x402_payments(valid_s)):
        to_sign = EvmTransaction(84532, n, 1, 3 * 10**9, 200_000, entry.asset, b"")
        raw, transaction = signer.sign(to_sign)
        entries.append(replace(entry, attempt=SettlementAttempt(transaction, raw)))
        await made.put(entries[-1], PaymentState.SETTLING)
    for one in made.nodes.values():
        one.counts = (0, ROWS)
    return entries


@pytest.mark.parametrize("valid_s", [20, 90, 395, 900])
@pytest.mark.parametrize("how", ["cancelled", "used elsewhere", "expired"])
async def test_an_x402_payment_whose_settlement_is_never_mined(how: str, valid_s: int) -> None:
    """It is sent again at every look, and asked about no more often than any other."""
    made = Service(X402, has_key=True)
    entries = await settlements_that_wait(made, valid_s)
    await made.pass_time(valid_s - 10)
    made.spend(how, entries)
    sent = made.nodes[ONE].taken.count(entries[-1].attempt.raw)
    assert sent > ANSWERS_MAX - AT_END or valid_s < 114  # the fourth look
    await made.pass_time(HOUR_S)
    assert made.states() == {PaymentState.FAILED}
    assert made.rpc.most_of_rows() <= ANSWERS_MAX


@pytest.mark.parametrize("is_by_hand", [False, True])
async def test_one_that_waits_is_found_mined_long_before_its_end(*, is_by_hand: bool) -> None:
    made = Service(X402, has_key=True)
    entries = await settlements_that_wait(made, 900)
    await made.pass_time(130)
    for node in made.nodes.values():
        for one in entries:
            node.used.append(Used(one, one.attempt.transaction, node.head, one.pay_to))
        node.counts = (0 if is_by_hand else ROWS, ROWS)
    if is_by_hand:
        await made.settlement.reconcile(is_due_only=False)
    else:
        await made.pass_time(600)
    assert made.states() == {PaymentState.SETTLED}


@pytest.mark.parametrize("is_spent_later", [False, True])
@pytest.mark.parametrize("how", ["cancelled", "used elsewhere", "expired"])
async def test_a_released_x402_payment_whose_buyer_comes_again_and_again(
    how: str, *, is_spent_later: bool
) -> None:
    """Refused each time: nobody is told so without asking, and five answers are all there are."""
    made = Service(X402, is_second_blind=True)
    entries = x402_payments(90)
    made.spend(how, [] if is_spent_later else entries)
    for one in entries:
        released = await made.put(one)
        look = replace(released.look, at=made.clock.now())
        assert await made.ledger.move(replace(released, look=look), PaymentState.RELEASED)
    for second in range(0, 300, 5):
        if second == 20 and is_spent_later:
            made.spend(how, entries)
        await made.pass_time(RECONCILE_EVERY_S)
        for row in list(made.ledger.rows.values()):
            try:
                await find_out(made.settlement, row, is_refused=True)
            except PaymentPending:
                continue
    await made.pass_time(HOUR_S)
    assert made.states() == {PaymentState.RELEASED}
    assert {row.look.at for row in made.ledger.rows.values()} == {None}
    assert made.rpc.most() <= ANSWERS_MAX


@pytest.mark.parametrize("how", ["expired", "reverted"])
@pytest.mark.parametrize("is_second_blind", [False, True])
async def test_an_mpp_payment_that_cannot_pay(how: str, *, is_second_blind: bool) -> None:
    made = Service(MPP, is_second_blind=is_second_blind)
    end = made.clock.now() + timedelta(minutes=5) + LATE
    for n in range(1, ROWS + 1):
        sent = SettlementAttempt(f"0x{n:064x}", "0x02")
        credential: Any = {"payload": {"type": "hash", "hash": sent.transaction}}
        if how == "reverted":
            made.nodes[ONE].reverted.add(sent.transaction)
            made.nodes[TWO].reverted |= set() if is_second_blind else {sent.transaction}
        entry = mpp_payment(
            id=str(n),
            nonce=f"challenge {n}",
            payer=f"0x{n:040x}",
            attempt=sent,
            credential=credential,
            expires_at=end,
        )
        await made.put(entry, PaymentState.SETTLING)
    await made.pass_time(HOUR_S)
    assert made.states() == {PaymentState.FAILED}
    assert made.rpc.most() <= ANSWERS_MAX
