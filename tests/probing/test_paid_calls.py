"""Calls that are paid for, of stock sellers on a real chain: what they prove, what they cost."""

import asyncio
import base64
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from eth_account import Account
from fastapi import FastAPI

from assay.app.payments import PaidCallParts, payment_chains
from assay.chains.evm.rpc_network import JsonRpc
from assay.chains.evm.signing import TransactionSigner
from assay.cli.doctor import paid_calls_said
from assay.common.clock import SystemClock
from assay.db.engine import Database
from assay.net.egress.client import GuardedHttp
from assay.net.egress.url import EgressPolicy
from assay.payments.networks import payment_networks
from assay.payments.payout_wallet import PayoutWallet
from assay.probing.clients.dialers import StockDialers
from assay.probing.declared_services import declared_services
from assay.probing.function.service import collect_function, function_rows
from assay.probing.paid_calls import (
    GAS,
    PAYEE_MAX,
    AssetBalances,
    BoughtCalls,
    DerivedWallets,
    PaidCallDependencies,
)
from assay.probing.ports import ProbeSession
from assay.probing.session import VisitHttp
from assay.probing.shared_dialers import SharedDialers
from assay.probing.store_paid_calls import SqlPaidCallStore
from assay.registries.model import OnchainAgent, RegistrationFile, Service, Subject
from assay_demo.chain.accounts import ACCOUNTS
from tests.payments.ledger.room import MovedClock
from tests.probing.paid_claims import claim_at_once
from tests.support import paid_sellers as sellers
from tests.support.databases import migrated
from tests.support.fakes import working_agents as agents
from tests.support.fakes.trust import NETWORK as REGISTRY
from tests.support.paid_sellers import ChainTill, selling
from tests.support.shop import NETWORK, Dollars, dollars_on

pytestmark = pytest.mark.slow

DOLLAR = 10**6


class Killed(BaseException):
    """Stands for the end of a process: nothing that is written catches it."""


Made = Callable[[str], FastAPI]


@dataclass
class Operator:
    """Who pays: a funding wallet, a budget, a database that several processes may share."""

    url: str
    chain: Dollars
    stack: AsyncExitStack
    clock: MovedClock = field(default_factory=MovedClock)
    key: str = ACCOUNTS[8].key
    budget: int = 10 * DOLLAR
    networks: tuple[str, ...] = (NETWORK,)
    notes: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    @property
    def wallet(self) -> str:
        return TransactionSigner(self.key).address

    async def process(self, **changes: Any) -> tuple[BoughtCalls, SqlPaidCallStore]:
        database = await Database.open(self.url)
        self.stack.push_async_callback(database.close)
        rpc = JsonRpc(self.clock)
        self.stack.push_async_callback(rpc.aclose)
        rows = payment_networks({NETWORK: (self.chain.url,)})
        networks = {name: rows[name] for name in self.networks}
        chains = {n: replace(c, multicall3=False) for n, c in payment_chains(networks).items()}
        store = SqlPaidCallStore(database, self.clock)
        signer = TransactionSigner(self.key)
        needs = PaidCallDependencies(
            store=store,
            chain=PayoutWallet(rpc, chains, signer, self.clock),
            balances=AssetBalances(rpc, chains),
            wallets=DerivedWallets(self.key),
            networks=networks,
            day_budget=self.budget,
            clock=self.clock,
            now_s=lambda: SystemClock.now().timestamp(),
            note=lambda what, more: self.notes.append((what, dict(more))),
        )
        return BoughtCalls(replace(needs, **changes)), store


@pytest.fixture
def dollar_chain() -> Iterator[Dollars]:
    """Of each test: its clock runs ahead with every block, and payments are good for a minute."""
    with dollars_on(NETWORK) as chain:
        yield chain


@pytest.fixture(params=["sqlite", "postgresql"])
async def operator(
    request: pytest.FixtureRequest, tmp_path: Path, dollar_chain: Dollars
) -> AsyncGenerator[Operator]:
    with migrated(request.param, tmp_path) as url:
        async with AsyncExitStack() as stack:
            made = Operator(url, dollar_chain, stack)
            await asyncio.to_thread(dollar_chain.mint, made.wallet, 100 * DOLLAR)
            yield made


async def visited(
    sales: BoughtCalls | None,
    base: str,
    payee: str,
    *,
    announced: bool = False,
    agent_id: str = "7",
    owner: str = "0x" + "a" * 40,
    path: str = "/divisors",
) -> tuple[str, str]:
    """State and reason of the seller's service, by one visit."""
    file = RegistrationFile(name="Desk", services=(Service("x402", base + path),))
    agent = OnchainAgent(REGISTRY, agent_id, owner, payee.lower(), "data:,", file, None)
    http = GuardedHttp(EgressPolicy(allow_private=True, require_https=False))
    pause_s = None if announced else (lambda: 0.0)
    visit_http = VisitHttp(http, SystemClock(), 60, 60.0, pause_s=pause_s)
    try:
        async with asyncio.TaskGroup() as group:
            dialers = SharedDialers(StockDialers(), group)
            subject = Subject(REGISTRY, agent_id, payee.lower(), agent)
            planned = () if announced else tuple(declared_services(subject)[0])
            visit = ProbeSession(
                *(subject, planned, visit_http, dialers, "seed"),
                nonce=agent_id,
                ends_at=asyncio.get_running_loop().time() + 60,
                announced=announced,
                sales=sales,
            )
            transcripts = await collect_function(visit)
            dialers.hang_up()
    finally:
        await http.aclose()
    [row] = function_rows(transcripts)
    return str(row["state"]), str(row["why"])


async def sold(operator: Operator, make: Made, payee: str) -> tuple[str, str]:
    sales, _ = await operator.process()
    async with agents.serving(make) as base:
        return await visited(sales, base, payee)


async def test_a_seller_without_a_free_part_is_proven_by_what_is_bought(
    operator: Operator,
) -> None:
    payee, till = Account.create().address, ChainTill(operator.chain)
    make = selling(operator.chain, payee, sellers.honest, till=till)
    sales, _ = await operator.process()
    async with agents.serving(make) as base:
        assert await visited(sales, base, payee, announced=True) == ("closed", "payment_needed")
        assert operator.chain.balance(payee) == 0  # nobody who says who he is buys
        assert await visited(sales, base, payee) == ("functional", "bought")
        earned = operator.chain.balance(payee)
        assert 2 * 10_000 <= earned <= PAYEE_MAX
        # What was bought is known to announced visits and later ones, and not bought again.
        for announced in (True, False):
            found = await visited(sales, base, payee, announced=announced)
            assert found == ("functional", "bought")
        # A sibling of the same wallet at the same address needs no purchase of its own.
        assert await visited(sales, base, payee, agent_id="8") == ("functional", "bought")
        operator.clock.move(29 * 86_400)
        assert await visited(sales, base, payee) == ("functional", "bought")
    assert operator.chain.balance(payee) == earned
    assert len(set(till.payers)) == 1
    assert operator.wallet not in till.payers  # nobody knows the wallet
    assert operator.key.removeprefix("0x") not in str(operator.notes)


async def test_nothing_in_a_paid_call_is_ours(operator: Operator) -> None:
    payee, seen = Account.create().address, list[dict[bytes, bytes]]()
    make = selling(operator.chain, payee, sellers.honest)

    def watching(base: str) -> FastAPI:
        inner = make(base)

        async def app(scope: Any, receive: Any, send: Any) -> None:
            seen.append(dict(scope.get("headers", ())))
            await inner(scope, receive, send)

        return app  # type: ignore[return-value]

    sales, _ = await operator.process()
    async with agents.serving(watching) as base:
        assert (await visited(sales, base, payee))[0] == "functional"
    paid = [headers for headers in seen if b"payment-signature" in headers]
    assert len(paid) > 1
    assert {headers[b"user-agent"] for headers in seen} == {b"python-httpx/0.28.1"}
    assert not any(b"assay" in value.lower() for headers in seen for value in headers.values())
    packed = base64.b64decode(paid[0][b"payment-signature"])
    assert operator.wallet not in packed.decode().lower()


async def test_what_only_the_demand_describes_is_bought_as_it_says(operator: Operator) -> None:
    payee = Account.create().address
    make = selling(operator.chain, payee, sellers.honest, documented=False)
    assert await sold(operator, make, payee) == ("functional", "bought")


async def test_where_nothing_says_what_to_ask_no_money_moves(operator: Operator) -> None:
    payee = Account.create().address
    make = selling(operator.chain, payee, sellers.honest)
    sales, store = await operator.process()

    def silent(base: str) -> FastAPI:
        app = make(base)
        app.openapi_url = None
        app.router.routes = [r for r in app.router.routes if getattr(r, "path", "") == "/divisors"]
        return app

    async with agents.serving(silent) as base:
        assert await visited(sales, base, payee) == ("closed", "payment_needed")
    assert (await store.spending(operator.clock.now())).calls == 0


@pytest.mark.parametrize(
    ("answer", "takes_anyway", "verdict"),
    [
        (sellers.template, False, ("not_functional", "same_answer")),
        (sellers.nothing, False, ("not_functional", "paid_for_nothing")),
        (sellers.broken, False, ("closed", "payment_needed")),  # it takes nothing
        (sellers.honest, True, ("not_functional", "paid_for_nothing")),
    ],
)
async def test_money_taken_for_nothing_proves_nothing(
    operator: Operator,
    answer: Callable[[int], dict[str, Any]],
    takes_anyway: bool,  # noqa: FBT001 - a row of a table
    verdict: tuple[str, str],
) -> None:
    payee = Account.create().address
    make = selling(operator.chain, payee, answer, takes_anyway=takes_anyway)
    assert await sold(operator, make, payee) == verdict
    assert operator.chain.balance(payee) <= PAYEE_MAX


async def test_a_failure_of_the_moment_is_tried_again_with_the_same_money(
    operator: Operator,
) -> None:
    payee, works = Account.create().address, []

    def sometimes(number: int) -> dict[str, Any]:
        return sellers.honest(number) if works else sellers.broken(number)

    sales, store = await operator.process()
    make = selling(operator.chain, payee, sometimes)
    async with agents.serving(make) as base:
        assert await visited(sales, base, payee) == ("closed", "payment_needed")
        works.append(1)
        assert await visited(sales, base, payee) == ("functional", "bought")
    assert (await store.spending(operator.clock.now())).calls == 1


async def test_who_asks_for_more_for_another_payee_or_for_too_much_is_not_paid(
    operator: Operator,
) -> None:
    payee, other = Account.create().address, Account.create().address
    sales, store = await operator.process()
    for asked, price in ((other, "$0.01"), (payee, "$0.051"), (payee, "$5")):
        async with agents.serving(
            selling(operator.chain, asked, sellers.honest, price=price)
        ) as at:
            assert (await visited(sales, at, payee))[0] != "functional"
    assert (await store.spending(operator.clock.now())).calls == 0
    assert operator.chain.balance(payee) == operator.chain.balance(other) == 0


async def test_a_payee_that_changes_while_it_is_paid_gets_nothing(operator: Operator) -> None:
    payee, thief = Account.create().address, Account.create().address
    made = [selling(operator.chain, one, sellers.honest)("") for one in (payee, thief)]
    seen: list[str] = []

    def make(_base: str) -> FastAPI:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            seen.append(scope.get("path", ""))
            looks = seen.count("/divisors")
            await made[looks > 2](scope, receive, send)

        return app  # type: ignore[return-value]

    sales, _ = await operator.process()
    async with agents.serving(make) as base:
        assert (await visited(sales, base, payee))[0] == "closed"
    assert operator.chain.balance(thief) == 0
    assert seen.count("/divisors") > 2


async def test_a_test_network_is_paid_on_only_where_it_is_named(operator: Operator) -> None:
    payee = Account.create().address
    operator.networks = ("eip155:8453",)
    make = selling(operator.chain, payee, sellers.honest)
    assert await sold(operator, make, payee) == ("closed", "payment_needed")
    assert operator.chain.balance(payee) == 0


async def test_no_budget_and_an_empty_purse_buy_nothing(operator: Operator) -> None:
    payee = Account.create().address
    make = selling(operator.chain, payee, sellers.honest)
    operator.budget = 0
    assert await sold(operator, make, payee) == ("closed", "payment_needed")
    operator.budget, operator.key = 10 * DOLLAR, Account.create().key.hex()
    assert await sold(operator, make, payee) == ("closed", "payment_needed")
    assert operator.notes[-1][0] == "paid calls could not be made"
    assert operator.chain.balance(payee) == 0


async def test_claims_of_many_processes_never_exceed_a_limit(operator: Operator) -> None:
    """Of one payee, one site, one agent, one owner, one domain, and of all."""
    await claim_at_once(operator)


async def test_a_process_that_dies_between_claim_and_payment_costs_its_claim_at_most(
    operator: Operator,
) -> None:
    payee = Account.create().address

    class Dying(PayoutWallet):
        async def send(self, *_: Any) -> str:
            raise Killed

    make = selling(operator.chain, payee, sellers.honest)
    sales, store = await operator.process()
    before = operator.chain.balance(operator.wallet)
    needs = sales._needs
    wallet = needs.chain
    dying = Dying(wallet._rpc, wallet._networks, wallet._signer, operator.clock)  # type: ignore[attr-defined]
    ends, _ = await operator.process(chain=dying)
    async with agents.serving(make) as base:
        with pytest.raises(BaseExceptionGroup):
            await visited(ends, base, payee)
        assert operator.chain.balance(operator.wallet) == before
        assert (await store.spending(operator.clock.now())).day <= PAYEE_MAX + GAS
        assert await visited(sales, base, payee) == ("functional", "bought")
    spent = before - operator.chain.balance(operator.wallet)
    assert spent <= PAYEE_MAX
    assert (await store.spending(operator.clock.now())).calls == 1


async def test_a_process_that_dies_after_it_has_paid_never_pays_beyond_its_claim(
    operator: Operator,
) -> None:
    payee = Account.create().address

    class Dying(SqlPaidCallStore):
        async def keep(self, *_: Any, **__: Any) -> None:
            raise Killed

    sales, store = await operator.process()
    ends, _ = await operator.process(store=Dying(store._database, operator.clock))
    before = operator.chain.balance(operator.wallet)
    async with agents.serving(selling(operator.chain, payee, sellers.honest)) as base:
        with pytest.raises(BaseExceptionGroup):
            await visited(ends, base, payee)
        paid = operator.chain.balance(payee)
        assert paid > 0
        await visited(sales, base, payee)
        await visited(sales, base, payee)
    assert paid <= operator.chain.balance(payee) <= PAYEE_MAX
    assert before - operator.chain.balance(operator.wallet) <= PAYEE_MAX
    assert (await store.spending(operator.clock.now())).filled == 1


async def test_doctor_says_what_was_spent_and_what_to_send(operator: Operator) -> None:
    payee = Account.create().address
    sales, store = await operator.process()
    async with agents.serving(selling(operator.chain, payee, sellers.honest)) as base:
        assert (await visited(sales, base, payee))[0] == "functional"
    networks = sales._needs.networks
    parts: Any = PaidCallParts(
        *(sales, store, sales._needs.balances, networks),
        *(operator.wallet, operator.budget, operator.clock),
    )
    app: Any = SimpleNamespace(paid_calls=parts)
    [(works, says, fix)] = await paid_calls_said(app)
    assert works
    assert "0.07 of 10 USD claimed within a day" in says
    assert "1 wallets filled, 1 sellers proven" in says
    assert operator.wallet in says
    assert operator.wallet in fix
    app.paid_calls = replace(parts, wallet=Account.create().address.lower())
    assert not (await paid_calls_said(app))[0][0]
    app.paid_calls = replace(parts, day_budget=90_000)
    assert (await paid_calls_said(app))[0][2].endswith("0.20 or more")
    app.paid_calls = None
    assert await paid_calls_said(app) == []
