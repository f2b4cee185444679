"""Turns of visits at one host: one at a time over all processes, and no longer than a while."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from assay.common.egress_budget import BudgetRules, Ceiling, EgressUse, UseClass, egress_use
from assay.db.engine import Database
from assay.db.state import SqlSharedState
from assay.evaluation.host_turns import HostTurns
from assay.net.egress.ports import EgressResponse
from tests.support.egress_process import DEVELOPMENT, OK, RULES, Process
from tests.support.fakes.clock import FrozenClock
from tests.support.raw_server import keeps_open, serving

HOST = ("http://a.example.com/x",)
SAME = ("https://b.example.com/y",)
LONG_S = 240.0


def reserved(account: str) -> EgressUse:
    return EgressUse(UseClass.RESERVED, account, agent=f"agent of {account}")


@pytest.fixture
def two(database: Database, clock: FrozenClock) -> tuple[HostTurns, HostTurns]:
    """The turns of two processes on one database."""
    return turns(database, clock), turns(database, clock)


def turns(database: Database, clock: FrozenClock, rules: BudgetRules = RULES) -> HostTurns:
    process, state = Process(database, clock, rules), SqlSharedState(database, clock)
    return HostTurns(state, process.budget.ledger, process.consents, DEVELOPMENT, rules)


async def begins(who: HostTurns, urls: tuple[str, ...], visit_s: float = 0.5) -> bool:
    async with who.turn(urls, visit_s) as found:
        return found == "whole"


async def test_one_visit_at_a_time_has_a_host_over_all_processes(
    two: tuple[HostTurns, HostTurns],
) -> None:
    async with two[0].turn(HOST, LONG_S) as first:
        assert first == "whole"
        for one in two:
            assert not await begins(one, SAME)
            assert await begins(one, ("http://other.example.org/",))
    assert await begins(two[1], SAME)


@pytest.mark.parametrize("which", [0, 1])
async def test_a_visit_waits_for_the_one_before_it(
    two: tuple[HostTurns, HostTurns], which: int
) -> None:
    begun, go_on, other = asyncio.Event(), asyncio.Event(), two[which]

    async def visit() -> None:
        async with two[0].turn(HOST, LONG_S):
            begun.set()
            await go_on.wait()

    async with asyncio.TaskGroup() as group:
        group.create_task(visit())
        await begun.wait()
        waits = group.create_task(begins(other, SAME, LONG_S))
        while not other._lines:  # noqa: ASYNC110 - nothing tells that it waits
            await asyncio.sleep(0)
        assert not waits.done()
        go_on.set()
    assert waits.result()


async def test_strangers_visits_keep_no_gate_waiting(two: tuple[HostTurns, HostTurns]) -> None:
    async with two[0].turn(HOST, LONG_S):
        with egress_use(reserved("one")):
            assert await begins(two[1], HOST)


async def test_a_visit_that_takes_too_long_or_died_keeps_nobody_waiting(
    two: tuple[HostTurns, HostTurns], clock: FrozenClock
) -> None:
    async with two[0].turn(HOST, LONG_S):
        clock.move(LONG_S / 4)
        assert await begins(two[1], HOST)
        async with two[1].turn(HOST, LONG_S):
            pass
        assert await begins(two[0], HOST)


async def test_what_ended_late_ends_no_other_visit(
    two: tuple[HostTurns, HostTurns], clock: FrozenClock
) -> None:
    async with AsyncExitStack() as later:
        async with two[0].turn(HOST, LONG_S):
            clock.move(LONG_S / 4)
            assert await later.enter_async_context(two[1].turn(HOST, LONG_S)) == "whole"
        assert not await begins(two[0], HOST)


async def test_a_visit_that_waited_begins_only_if_there_is_room_for_it(
    database: Database, one: Process, clock: FrozenClock
) -> None:
    async with serving(keeps_open(OK)) as server:
        urls = (server.url(),)
        who = turns(database, clock)
        async with who.turn(urls, LONG_S):
            for _ in range(20):
                assert isinstance(await one.ask(server.url()), EgressResponse)
            assert not await begins(who, urls, LONG_S)  # at once: the wait would be for nothing
        assert await begins(who, urls)  # nobody is in its way: what is left is its own affair
        clock.move(61)
        assert await begins(who, urls)


async def test_a_host_with_a_larger_budget_has_several_visits(
    database: Database, clock: FrozenClock
) -> None:
    large = BudgetRules(Ceiling(600, 20 * 1024 * 1024), holds_private=True)
    who = turns(database, clock, large)
    async with AsyncExitStack() as under_way:
        for _ in range(5):
            assert await under_way.enter_async_context(who.turn(HOST, LONG_S)) == "whole"
        assert not await begins(who, HOST)
