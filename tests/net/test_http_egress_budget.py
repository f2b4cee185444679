"""Nobody is sent more than a budget: counted at a real victim, on every database."""

import asyncio
from pathlib import Path

import pytest

from assay.common.egress_budget import (
    ANYBODY,
    RESERVED,
    BudgetRules,
    Ceiling,
    EgressUse,
    UseClass,
    egress_use,
)
from assay.common.errors import Unavailable
from assay.db.engine import Database
from assay.net.egress.ports import EgressError, EgressResponse, Failure, Limits, OutboundRequest
from tests.support.certificates import TestAuthority
from tests.support.egress_process import BYTES, GLANCE, OK, Process
from tests.support.fakes.clock import FrozenClock
from tests.support.raw_server import Request, plain, serving
from tests.support.victim import suffering

pytestmark = pytest.mark.slow


async def test_a_host_sees_sixty_requests_a_minute_and_no_more(
    one: Process, clock: FrozenClock
) -> None:
    async with suffering(OK) as victim:
        assert await one.ask_often(victim.url(), RESERVED) == 60
        clock.move(59.9)
        assert await one.ask_often(victim.url(), RESERVED, 5) == 0
        clock.move(0.2)
        assert await one.ask_often(victim.url(), RESERVED) == 60
        assert len(victim.requests) == 120


async def test_half_of_it_is_kept_for_gates_and_a_quarter_is_the_most_for_one_account(
    one: Process,
) -> None:
    async with suffering(OK) as victim:
        assert await one.ask_often(victim.url(), EgressUse(account="a")) == 15
        assert await one.ask_often(victim.url(), EgressUse(account="b"), 10) == 10
        assert await one.ask_often(victim.url()) == 5
        assert await one.ask_often(victim.url(), EgressUse(account="c")) == 0
        assert await one.ask_often(victim.url(), RESERVED) == 30


async def test_all_processes_share_it(database: Database, clock: FrozenClock) -> None:
    both = [Process(database, clock) for _ in range(2)]
    async with suffering(OK) as victim, asyncio.TaskGroup() as group:
        asked = [group.create_task(p.ask_often(victim.url(), RESERVED)) for p in both]
    assert sum(task.result() for task in asked) == len(victim.requests) == 60
    for process in both:
        await process.http.aclose()


async def test_a_thousand_names_of_one_address_share_one_budget(
    database: Database, clock: FrozenClock
) -> None:
    names = {f"victim_{n}_example": [["127.0.0.1"]] for n in range(100)}
    process = Process(database, clock, names=names)
    async with suffering(OK) as victim:
        async with asyncio.TaskGroup() as group:
            asked = [
                group.create_task(process.ask(victim.url(host=host), RESERVED))
                for host in (name.replace("_", ".") for name in names)
            ]
        answered = sum(isinstance(task.result(), EgressResponse) for task in asked)
        assert answered == len(victim.requests) == 60
        assert victim.connections <= 60
        assert await process.ask(victim.url()) is Failure.BUDGET
    await process.http.aclose()


async def test_a_kept_connection_is_counted_like_a_new_one(one: Process) -> None:
    async with suffering(OK) as victim:
        for _ in range(40):
            await one.ask(victim.url(), RESERVED)
        assert victim.connections == 1
        assert await one.ask_often(victim.url(), RESERVED) == 20


async def test_every_name_of_a_domain_shares_one_budget(
    database: Database, clock: FrozenClock
) -> None:
    """None of these names has an address, so that no address's budget is in play."""
    process = Process(database, clock, names={"other_example": [[]]})
    urls = [f"http://a{n}.b{n}.example.org/" for n in range(90)]
    answers = [await process.ask(url, RESERVED) for url in urls]
    assert answers == [Failure.NAME] * 60 + [Failure.BUDGET] * 30
    await process.http.aclose()


async def test_an_endless_answer_costs_the_host_no_more_than_the_budget(
    one: Process, clock: FrozenClock
) -> None:
    """Counted by the victim's own system: what is under way when we stop reading counts too."""
    async with suffering(b"HTTP/1.1 200 OK\r\n\r\n", endless=True) as victim:
        for minute in range(1, 4):
            cut = await one.ask(victim.url(), RESERVED)
            assert isinstance(cut, EgressResponse)
            assert cut.truncated
            assert cut.over_budget
            assert len(cut.body) > BYTES // 2
            assert await one.ask(victim.url(), RESERVED) is Failure.BUDGET
            await asyncio.sleep(0)
            assert victim.size_bytes <= minute * BYTES
            clock.move(61)


async def test_many_endless_answers_at_once_stay_below_it_too(one: Process) -> None:
    async with suffering(b"HTTP/1.1 200 OK\r\n\r\n", endless=True) as victim:
        await one.ask_often(victim.url(), RESERVED, 30)
        assert BYTES // 2 < victim.size_bytes <= BYTES


async def test_glances_at_endless_answers_stay_below_it_as_well(one: Process) -> None:
    async with suffering(b"HTTP/1.1 200 OK\r\n\r\n", endless=True) as victim:
        assert await one.glance_often(victim.url()) > 20
        assert victim.size_bytes <= BYTES


@pytest.mark.parametrize("size_bytes", [900, 3_000, 6_000, 9_000, 30_000, 200_000])
async def test_glances_at_answers_of_any_length_stay_below_it(
    one: Process, size_bytes: int
) -> None:
    """Short ones are read to their end, and long ones cut: counted by the host's own system."""
    async with suffering(plain(b"x" * size_bytes)) as victim:
        await one.glance_often(victim.url())
        assert len(victim.requests) >= min(60, BYTES // (size_bytes + 6_000))
        assert len(victim.requests) > 30
        assert victim.size_bytes <= BYTES


@pytest.mark.parametrize("size_bytes", [10, 16_384, 100_000])
async def test_glances_over_tls_stay_below_it_as_well(
    database: Database, clock: FrozenClock, tmp_path: Path, size_bytes: int
) -> None:
    """A record has to be read whole, and a connection that was cut costs a handshake."""
    authority = TestAuthority(tmp_path)
    process = Process(database, clock, tls=authority.client_context())
    tls = authority.server_context("127.0.0.1")
    async with suffering(plain(b"x" * size_bytes), tls=tls) as victim:
        assert await process.glance_often(victim.url()) > 8
        assert len(victim.requests) <= 60
        assert victim.size_bytes <= BYTES
    await process.http.aclose()


async def test_glances_of_several_processes_at_names_of_one_address_stay_below_it(
    database: Database, clock: FrozenClock
) -> None:
    names = {f"victim_{n}_example": [["127.0.0.1"]] for n in range(20)}
    processes = [Process(database, clock, names=dict(names)) for _ in range(3)]
    async with suffering(b"HTTP/1.1 200 OK\r\n\r\n", endless=True) as victim:
        urls = [victim.url(host=name.replace("_", ".")) for name in names]
        async with asyncio.TaskGroup() as group:
            for process in processes:
                for url in urls:
                    group.create_task(process.glance_often(url, 1))
        assert victim.requests
        assert victim.size_bytes <= BYTES
    for process in processes:
        await process.http.aclose()


async def test_a_short_rest_is_read_and_its_connection_kept(one: Process) -> None:
    async with suffering(plain(b"x" * 5000)) as victim:
        for _ in range(10):
            reply = await one.http.send(OutboundRequest("GET", victim.url()), GLANCE)
            assert (len(reply.body), reply.truncated) == (1024, True)
        assert victim.connections == 1


async def test_a_glance_never_leaves_on_a_connection_with_a_wide_window(one: Process) -> None:
    """It would be charged for all that such a connection may have under way."""
    async with suffering(plain(b"x" * 50_000), OK) as victim:
        assert isinstance(await one.ask(victim.url(), RESERVED), EgressResponse)
        with egress_use(RESERVED):
            await one.http.send(OutboundRequest("GET", victim.url()), GLANCE)
            assert victim.connections == 2
            for _ in range(28):
                await one.http.send(OutboundRequest("GET", victim.url()), GLANCE)


async def test_a_connection_made_under_a_consent_is_not_used_without_one(
    one: Process,
) -> None:
    """Its host may have as much under way on it as the system allows."""
    async with suffering(OK) as victim:
        origin = victim.url("")
        await one.consents.record(origin, "agent", "127.0.0.1")
        assert isinstance(await one.ask(victim.url()), EgressResponse)
        await one.consents.withdraw(origin, "agent")
        assert isinstance(await one.ask(victim.url()), EgressResponse)
        assert victim.connections == 2
        await one.consents.record(origin, "agent", "127.0.0.1")
        assert isinstance(await one.ask(victim.url()), EgressResponse)
        assert victim.connections == 2
        await one.consents.record(origin, "another", "127.0.0.9")
        assert await one.ask(victim.url()) is Failure.BUDGET
        assert isinstance(await one.ask(victim.url()), EgressResponse)
        assert victim.connections == 3


async def test_waiting_for_an_addresss_budget_is_no_fault_of_the_hosts(
    database: Database, clock: FrozenClock
) -> None:
    """Who holds up a rival's address must not make its agents time out."""
    names = {f"n{n}_example": [["127.0.0.1"]] for n in range(5)}
    process = Process(database, clock, names=names)
    release = asyncio.Event()

    async def hold(_: Request, writer: asyncio.StreamWriter) -> None:
        await release.wait()
        writer.write(OK)

    async with serving(hold) as server, asyncio.TaskGroup() as group:
        urls = [server.url(host=name.replace("_", ".")) for name in names]
        held = [group.create_task(process.ask(url, RESERVED)) for url in urls[:4]]
        while len(server.requests) < 4:  # noqa: ASYNC110 - a server has no event
            await asyncio.sleep(0)
        with egress_use(RESERVED), pytest.raises(EgressError) as raised:
            await process.http.send(
                OutboundRequest("GET", urls[4]), Limits(connect_s=0.1, total_s=0.5)
            )
        assert (raised.value.failure, raised.value.is_sent) == (Failure.BUDGET, False)
        release.set()
    assert all(isinstance(task.result(), EgressResponse) for task in held)
    await process.http.aclose()


async def test_what_is_sent_counts_as_well(one: Process) -> None:
    async with suffering(OK) as victim:
        assert isinstance(await one.ask(victim.url(), RESERVED, b"x" * 150_000), EgressResponse)
        assert await one.ask(victim.url(), RESERVED, b"x" * 150_000) is Failure.BUDGET
        assert await one.ask(victim.url(), RESERVED, b"x" * 10_000_000) is Failure.BUDGET
        assert len(victim.requests) == 1
        assert victim.size_bytes <= BYTES


async def test_a_long_answer_takes_what_others_do_not_need(one: Process) -> None:
    """Requests that are under way hold more than they use; whoever needs it waits for their end."""
    async with suffering(OK, OK, OK, plain(b"x" * 60_000)) as victim:
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(one.ask(victim.url(), RESERVED)) for _ in range(12)]
        replies = [task.result() for task in asked]
        assert all(isinstance(reply, EgressResponse) and not reply.truncated for reply in replies)


async def test_a_consenting_origin_has_a_ceiling_of_its_own_where_it_consented(
    database: Database, clock: FrozenClock
) -> None:
    rules = BudgetRules(Ceiling(6, BYTES), Ceiling(20, 10 * BYTES), holds_private=True)
    names = {"host_example": [["127.0.0.1"]]}
    process = Process(database, clock, rules, names)
    async with suffering(OK) as victim:
        url = victim.url(host="host.example")
        assert await process.ask_often(url, RESERVED, 10) == 6
        await process.consents.record(f"http://host.example:{victim.port}", "agent", "127.0.0.1")
        assert await process.ask_often(url, RESERVED, 30) == 20
        clock.move(61)
        assert await process.ask_often(url, ANYBODY, 30) == 10
    await process.http.aclose()


async def test_a_name_that_consented_and_now_points_elsewhere_carries_nothing_there(
    database: Database, clock: FrozenClock
) -> None:
    process = Process(database, clock, names={"evil_example": [["127.0.0.1"]]})
    async with suffering(OK) as victim:
        await process.consents.record(f"http://evil.example:{victim.port}", "agent", "127.0.0.9")
        url = victim.url(host="evil.example")
        assert await process.ask_often(url, RESERVED) == len(victim.requests) == 60
    await process.http.aclose()


async def test_a_proven_receiver_has_a_budget_that_others_do_not_use_up(one: Process) -> None:
    async with suffering(OK) as victim:
        assert await one.ask_often(victim.url(), RESERVED) == 60
        own = EgressUse(UseClass.OWN, "a", "webhook a host")
        assert await one.ask(victim.url(), own) is Failure.BUDGET
        await one.consents.record("webhook a host", "a", "127.0.0.1")
        assert isinstance(await one.ask(victim.url(), own), EgressResponse)


async def test_private_addresses_opened_by_a_setting_have_no_budget(
    database: Database, clock: FrozenClock
) -> None:
    names = {"agent_example": [["127.0.0.1"]]}
    process = Process(database, clock, BudgetRules(), names)
    async with suffering(OK) as victim:
        assert await process.ask_often(victim.url(), ANYBODY, 70) == 70
        for _ in range(70):
            named = await process.ask(victim.url(host="agent.example"), ANYBODY)
            assert isinstance(named, EgressResponse)
    await process.http.aclose()


async def test_without_the_ledger_nothing_is_sent(
    database: Database, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gone(_: object) -> None:
        raise Unavailable("The database cannot be used now.")

    process = Process(database, clock)
    async with suffering(OK) as victim:
        monkeypatch.setattr(database, "change", gone)
        assert await process.ask(victim.url()) is Failure.BUDGET
        assert victim.requests == []
    await process.http.aclose()
