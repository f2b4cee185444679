"""Payouts and refunds, cut at each step: sent at most once, and never forgotten.

The token's chain is a model in memory, which answers as two nodes.
"""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from assay.app.payments import chain_of
from assay.chains.evm.signing import TransactionSigner
from assay.chains.model import ChainUnavailable, Network
from assay.chains.rpc import ContractCall, Returned, RpcRefused
from assay.common.ids import new_id
from assay.payments.model import PaymentState
from assay.payments.networks import payment_networks
from assay.payments.payout_wallet import PayoutWallet
from assay.payments.statement import Statements, Transfer, TransferState
from assay.payments.store_transfers import SqlStatementStore, SqlTransferStore
from assay.payments.store_watches import SqlWatchStore
from assay.payments.transfers import Transfers
from assay.payments.watcher import plan_of
from tests.payments.boundary import Boundary, Fault, FaultKind, interrupted, open_database
from tests.support.databases import migrated_sqlite
from tests.support.fakes.calls import PAYER, claimed, counted_ledger, payment
from tests.support.fakes.clock import FrozenClock
from tests.support.token_chain import TokenChain, TokenNode

NETWORK = payment_networks({"eip155:84532": ("http://one.test", "http://two.test")})["eip155:84532"]
USDC = NETWORK.asset.address
KEY = "0x" + "77" * 32
WALLET = TransactionSigner(KEY).address
PLATFORM, SELLER = "0x" + "aa" * 20, "0x" + "dd" * 20
AMOUNT = 1000


@dataclass(slots=True)
class TokenClient:
    """Implements as much of `chains.rpc.Rpc` as payouts ask for; `down` endpoints are silent."""

    nodes: dict[str, TokenNode]
    boundary: Boundary
    down: set[str]

    async def request(self, network: Network, method: str, params: Sequence[Any]) -> Any:
        async def effect() -> Any:
            url = next((one for one in network.rpc_urls if one not in self.down), None)
            if url is None:
                raise lost()
            asked = {"id": 1, "method": method, "params": list(params)}
            answer = self.nodes[url].handle(asked)
            if "error" in answer:
                error = answer["error"]
                raise RpcRefused("no", rpc_code=error["code"], rpc_message=error["message"])
            return answer["result"]

        return await self.boundary.cross(method, effect, lost)

    async def call_newest(self, network: Network, calls: Sequence[ContractCall]) -> list[Returned]:
        asked = [{"to": one.to, "data": "0x" + one.data.hex()} for one in calls]
        found = [await self.request(network, "eth_call", [one, "latest"]) for one in asked]
        return [Returned(int(one, 16).to_bytes(32)) for one in found]


def lost() -> Exception:
    return ChainUnavailable("The chain cannot be read right now", detail="timeout")


@dataclass(slots=True)
class Books:
    """What outlives the processes that pay out."""

    folder: Path
    clock: FrozenClock = field(default_factory=FrozenClock)
    chain: TokenChain = field(init=False)
    url: str = field(init=False)
    payment_id: str = ""
    down: set[str] = field(default_factory=set[str])
    databases: list[Any] = field(default_factory=list[Any])

    def __post_init__(self) -> None:
        self.chain = TokenChain(NETWORK.chain_id, USDC, {WALLET: 10**9})
        self.url = migrated_sqlite(self.folder / f"{new_id()}.db")

    async def process(self, fault: Fault | None = None) -> tuple[Transfers, Boundary]:
        boundary = Boundary(fault)
        database = await open_database(self.url, boundary)
        self.databases.append(database)
        nodes = {url: TokenNode(self.chain) for url in NETWORK.rpc_urls}
        rpc: Any = TokenClient(nodes, boundary, self.down)
        chains = {NETWORK.id: chain_of(NETWORK)}
        wallet = PayoutWallet(rpc, chains, TransactionSigner(KEY), self.clock)
        statements = Statements(SqlStatementStore(database, {PLATFORM}))
        store = SqlTransferStore(database, {PLATFORM}, self.clock)
        networks = {NETWORK.id: NETWORK}
        made = Transfers(store, wallet, statements, networks, (PLATFORM,), self.clock)
        return made, boundary

    async def sold(self) -> "Books":
        """A payment to the platform that has settled for good."""
        database = await open_database(self.url, Boundary())
        self.databases.append(database)
        ledger = counted_ledger(database, self.clock)
        plain = payment("op", "w", self.clock.now(), AMOUNT)
        fresh = replace(plain, network=NETWORK.id, asset=USDC, pay_to=PLATFORM)
        moved = await ledger.move(await claimed(ledger, fresh), PaymentState.SETTLED)
        assert moved is not None
        await SqlWatchStore(database).plan([plan_of(moved, None)])
        self.payment_id = moved.id
        return self

    async def goes_on(self) -> list[Transfer]:
        """Another process sees through what there is; the rows it leaves."""
        transfers, _ = await self.process()
        for _ in range(4):
            self.clock.move(700)
            await transfers.resume()
        return list(await transfers.list_for_admin(None, 10))

    async def aclose(self) -> None:
        for one in self.databases:
            await one.close()


Pay = Callable[[Books, Transfers], Coroutine[Any, Any, Transfer]]


async def payout(_books: Books, transfers: Transfers) -> Transfer:
    return await transfers.payout("op", NETWORK.id, SELLER)


async def refund(books: Books, transfers: Transfers) -> Transfer:
    return await transfers.refund(books.payment_id)


WAYS: dict[str, tuple[Pay, str]] = {"payout": (payout, SELLER), "refund": (refund, PAYER)}


async def steps_of(folder: Path, pay: Pay) -> int:
    books = await Books(folder).sold()
    transfers, boundary = await books.process()
    await pay(books, transfers)
    await books.aclose()
    return len(boundary.steps)


@pytest.mark.parametrize("kind", ["killed", pytest.param("lost", marks=pytest.mark.slow)])
@pytest.mark.parametrize("way", WAYS)
async def test_money_that_is_paid_out_is_sent_once_wherever_it_is_cut(
    folder: Path, way: str, kind: FaultKind
) -> None:
    pay, payee = WAYS[way]
    for step in range(await steps_of(folder, pay)):
        for is_after in (True,) if (kind, way) != ("lost", "payout") else (False, True):
            books = await Books(folder).sold()
            transfers, boundary = await books.process(Fault(kind, step, is_after))
            with interrupted():
                await pay(books, transfers)
            assert boundary.has_failed
            rows = await books.goes_on()
            if not rows:  # nothing was written down, so nothing was sent: it may be asked for anew
                assert books.chain.transfers_to(payee) == 0
                again, _ = await books.process()
                await pay(books, again)
                rows = await books.goes_on()
            assert [row.state for row in rows] == [TransferState.PAID]
            assert books.chain.transfers_to(payee) == 1
            assert books.chain.balances[payee] == AMOUNT
            await books.aclose()


async def test_what_is_seen_through_is_sent_once_wherever_that_is_cut(folder: Path) -> None:
    """The node swallows the transaction, and whoever sends it again dies at each step."""
    books, cut = Books(folder), 0
    while True:
        books = await Books(folder).sold()
        books.chain.is_mining = False
        transfers, _ = await books.process()
        await payout(books, transfers)
        books.chain.pool.clear()
        books.chain.is_mining = True
        books.clock.move(700)
        other, boundary = await books.process(Fault("killed", cut, is_after=True))
        with interrupted():
            await other.resume()
        rows = await books.goes_on()
        assert [row.state for row in rows] == [TransferState.PAID]
        assert books.chain.transfers_to(SELLER) == 1
        await books.aclose()
        if not boundary.has_failed:
            break
        cut += 1
    assert cut > 5


async def test_a_payout_that_became_too_cheap_is_signed_again_under_its_nonce(folder: Path) -> None:
    books = await Books(folder).sold()
    books.chain.is_mining = False
    transfers, _ = await books.process()
    await payout(books, transfers)
    books.chain.gas_price *= 5
    books.chain.is_mining = True
    (row,) = await books.goes_on()
    assert (row.state, row.nonce, books.chain.nonces[WALLET]) == (TransferState.PAID, 0, 1)
    assert books.chain.transfers_to(SELLER) == 1
    await books.aclose()


async def test_a_payout_that_a_reorganisation_takes_back_is_sent_again(folder: Path) -> None:
    books = await Books(folder).sold()
    transfers, _ = await books.process()
    await payout(books, transfers)
    (row,) = await books.goes_on()
    assert row.state is TransferState.PAID
    books.chain.reorganise()
    books.clock.move(4000)
    (row,) = await books.goes_on()
    assert row.state is TransferState.PAID
    assert books.chain.transfers_to(SELLER) == 1
    await books.aclose()


async def test_nothing_is_paid_by_the_word_of_one_of_two_nodes(folder: Path) -> None:
    books = await Books(folder).sold()
    books.down.add(NETWORK.rpc_urls[0])
    transfers, _ = await books.process()
    await payout(books, transfers)
    (row,) = await books.goes_on()
    assert row.state is TransferState.SIGNED
    books.down.clear()
    (row,) = await books.goes_on()
    assert (row.state, books.chain.transfers_to(SELLER)) == (TransferState.PAID, 1)
    await books.aclose()


async def test_what_is_owed_is_paid_out_once(folder: Path) -> None:
    books = await Books(folder).sold()
    transfers, _ = await books.process()
    await payout(books, transfers)
    await books.goes_on()
    lines = await transfers._statements.of("op")
    assert sum(line.owed for line in lines) == Decimal(0)
    await books.aclose()
