"""Who may use which part of a budget: accounts, agents, hosts that consent, the IPFS gateway."""

from dataclasses import replace

import pytest

from assay.common.egress_budget import BudgetRules, Ceiling, EgressUse, UseClass, egress_use
from assay.control.proofs import HostFiles
from assay.db.engine import Database
from assay.net.egress.ports import EgressResponse, OutboundRequest
from assay.registries.documents import GuardedDocuments
from assay.registries.model import Service, Subject
from assay.registries.ports import DocumentOverBudget
from tests.support.egress_process import OK, Process
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.trust import NETWORK, WALLET, onchain_agent
from tests.support.victim import suffering

pytestmark = pytest.mark.slow

CID = "bafkreih" + "a" * 51


def gate(account: str, agent: str) -> EgressUse:
    return EgressUse(UseClass.RESERVED, account, agent=agent)


async def test_an_agent_that_asks_alone_may_use_the_whole_budget(one: Process) -> None:
    async with suffering(OK) as victim:
        assert await one.ask_often(victim.url(), gate("a", "1")) == 60


async def test_one_account_with_many_agents_has_one_half_while_another_asks(
    one: Process, clock: FrozenClock
) -> None:
    async with suffering(OK) as victim:
        for agent in "123":
            await one.ask_often(victim.url(), gate("a", agent), 20)
        assert not isinstance(await one.ask(victim.url(), gate("b", "9")), EgressResponse)
        clock.move(61)
        seen = sum([await one.ask_often(victim.url(), gate("a", agent), 20) for agent in "123"])
        assert seen == 30
        assert await one.ask_often(victim.url(), gate("b", "9"), 40) == 30


async def test_one_agent_has_one_half_over_all_accounts_while_another_asks(
    one: Process, clock: FrozenClock
) -> None:
    async with suffering(OK) as victim:
        for account in "ab":
            await one.ask_often(victim.url(), gate(account, "1"), 30)
        assert not isinstance(await one.ask(victim.url(), gate("c", "2")), EgressResponse)
        clock.move(61)
        seen = sum([await one.ask_often(victim.url(), gate(a, "1"), 30) for a in "ab"])
        assert seen == 30
        assert await one.ask_often(victim.url(), gate("c", "2"), 40) == 30


async def test_who_was_refused_counts_as_asking_for_two_minutes(
    one: Process, clock: FrozenClock
) -> None:
    async with suffering(OK) as victim:
        await one.ask_often(victim.url(), gate("a", "1"))
        await one.ask(victim.url(), gate("b", "2"))
        clock.move(121)
        assert await one.ask_often(victim.url(), gate("a", "1")) == 60


async def test_reading_a_hosts_file_leaves_a_visit_there_its_whole_budget(
    one: Process, clock: FrozenClock
) -> None:
    async with suffering(OK) as victim:
        made = onchain_agent()
        assert made.registration is not None
        file = replace(made.registration, services=(Service("web", victim.url()),))
        agent = Subject(NETWORK, "7", WALLET, replace(made, registration=file))
        assert not await HostFiles(one.http, clock).name(agent)
        assert len(victim.requests) == 1
        assert await one.ask_often(victim.url(), gate("a", "1")) == 59


async def test_gates_of_an_account_leave_its_quarter_of_the_shared_half(one: Process) -> None:
    async with suffering(OK) as victim:
        assert await one.ask_often(victim.url(), gate("a", "1"), 20) == 20
        assert await one.ask_often(victim.url(), EgressUse(account="a")) == 15


async def test_the_gateway_serves_documents_and_has_no_ceiling_for_anything_else(
    one: Process,
) -> None:
    async with suffering(OK) as gateway:
        origin = gateway.url().rstrip("/")
        one.budget._configured = frozenset({origin})
        answered = sum(
            [await one.ask_often(gateway.url(), EgressUse(account=name)) for name in "abc"]
        )
        assert answered == 30
        documents = GuardedDocuments(one.http, origin)
        read = 0
        with egress_use(EgressUse(account="d")):
            for _ in range(60):
                try:
                    await documents._fetch_ipfs(f"ipfs://{CID}/file")
                except DocumentOverBudget:
                    break
                read += 1
        assert read == one.budget.rules.gateway.requests // 4


async def test_an_origin_that_consents_cannot_use_up_its_neighbours_ceiling(
    database: Database, clock: FrozenClock
) -> None:
    names = {"one_example": [["127.0.0.1"]], "two_test": [["127.0.0.1"]]}
    rules = BudgetRules(consenting=Ceiling(12, 1024 * 1024), holds_private=True)
    process = Process(database, clock, rules, names)
    async with suffering(OK) as server:
        port = server.url().rstrip("/").rpartition(":")[2]
        for host in ("one.example", "two.test"):
            await process.consents.record(f"http://{host}:{port}", host, "127.0.0.1")
        for host in ("one.example", "two.test"):
            use = gate("a", host)
            assert await process.ask_often(f"http://{host}:{port}/", use, 14) == 12
    await process.http.aclose()


async def test_a_document_that_is_redirected_has_the_budget_of_where_it_leads(
    one: Process,
) -> None:
    async with suffering(OK) as elsewhere:
        use = EgressUse(account="a", is_document=True)
        with egress_use(use):
            await one.http.send(OutboundRequest("GET", elsewhere.url()))
        assert await one.ask_often(elsewhere.url(), EgressUse(account="a")) == 14
