"""Agents of one owner under the same proven addresses share the visits that are made to one."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import ClassVar

import pytest

from assay.control.identity import sibling_key
from assay.db.engine import Database
from assay.evaluation.accumulation import OWN_VISIT_WITHIN, SHARED_WITHIN
from assay.evaluation.model import Evidence
from assay.evaluation.ports import SignalDependencies
from assay.evaluation.schedule import EnrolmentHolder
from assay.evaluation.scheduler import SiblingVisits
from assay.evaluation.service import EVER
from assay.evaluation.visits import WINDOW, EvaluationRequest, VisitRecord
from assay.probing.declared_services import declared_services
from assay.registries.model import OnchainAgent, Service
from tests.evaluation.test_visit_simulation import (
    HOUR,
    PROBES,
    URL,
    Scheduling,
    Visited,
)
from tests.support.fakes.ladder import proven
from tests.support.fakes.trust import NETWORK, OWNER, Subject, onchain_agent

pytestmark = pytest.mark.slow

ELSEWHERE = "https://other.example/a2a"
STRANGER = "0x" + "5" * 40
IDS = ("7", "8", "9")


def agent(agent_id: str, url: str = URL, owner: str = OWNER) -> OnchainAgent:
    made = onchain_agent(agent_id)
    assert made.registration is not None
    file = replace(made.registration, services=(Service("A2A", url),))
    return replace(made, registration=file, owner=owner)


def subject(one: OnchainAgent) -> Subject:
    return Subject(NETWORK, one.agent_id, one.wallet or one.owner, one)


class VisitedFamily(Visited):
    """Agents that work and have proven control, but those named; counts visits to each."""

    fails: ClassVar[set[str]] = set()
    unproven: ClassVar[set[str]] = set()
    made: ClassVar[Counter[str]] = Counter()
    unannounced: ClassVar[bool] = False
    """Visits go out unannounced, whatever was planned."""

    async def collect(self, subject: Subject, needs: SignalDependencies) -> Evidence:
        seen = await super().collect(subject, needs)
        if self.unannounced:
            seen = replace(seen, data={**seen.data, "visit": {"label": "unannounced"}})
        self.made[subject.agent_id] += 1
        urls = [one.service.endpoint for one in declared_services(subject)[0]]
        data = {**seen.data, **proven(*urls), "probes": {"leaks": {"ok": True}}}
        if subject.agent_id in self.fails:
            data["probes"] = {"leaks": {"ok": False}}
        if seen.data["visit"] != {"label": "announced"}:
            del data["control"]
        elif subject.agent_id in self.unproven:
            data["control"] = [{"service": url, "proof": None} for url in urls]
        else:
            assert subject.agent is not None
            keys = [f"at {url}" for url in urls]
            group = sibling_key(subject, keys)
            identity = {"owner": subject.agent.owner, "group": group, "name": "n"}
            data["identity"] = {**identity, "keys": dict.fromkeys(keys, "dns")}
        return Evidence(data, seen.interactions, seen.transcript)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _fresh() -> None:
    VisitedFamily.fails, VisitedFamily.unproven = set(), set()
    VisitedFamily.made = Counter()
    VisitedFamily.unannounced = False


class Family(Scheduling):
    def __init__(self, database: Database, agents: Sequence[OnchainAgent]) -> None:
        super().__init__(database, agents=agents, visited=VisitedFamily)
        self.agents = agents

    async def enrol(self) -> None:
        for one in self.agents:
            await self.enrolments.enrol(EnrolmentHolder("owner", one.owner), subject(one))

    async def days(self, days: float) -> None:
        ends = self.clock.now() + timedelta(days=days)
        while self.clock.now() < ends:
            self.clock.move(HOUR)
            await self.scheduler.run()
        assert not self.failed

    async def of(self, one: OnchainAgent) -> Sequence[VisitRecord]:
        return await self.visits.recent(subject(one).key, self.clock.now() - WINDOW)

    async def found(self, one: OnchainAgent) -> VisitRecord | None:
        siblings = SiblingVisits(self.store, self.visits, self.clock, frozenset(PROBES))
        return await siblings.find(subject(one))

    async def visit_unannounced(self, one: OnchainAgent) -> None:
        """After an announced visit of its own, which proves control."""
        await self.visit(one)
        VisitedFamily.unannounced = True
        await self.visit(one)
        VisitedFamily.unannounced = False

    async def visit(self, one: OnchainAgent) -> None:
        """A visit of the schedule's own, made now."""
        self.clock.move(60)
        await self.evaluator.evaluate(
            subject(one), 1, EvaluationRequest("scheduled", is_background=True)
        )


async def test_three_siblings_are_visited_little_more_often_than_one(database: Database) -> None:
    family = Family(database, [agent(name) for name in IDS])
    await family.enrol()
    await family.days(14)
    made = sum(VisitedFamily.made.values())
    scheduled = [
        sum(v.timing == "scheduled" for v in await family.of(one)) for one in family.agents
    ]
    assert min(scheduled) >= 14  # each has its visits
    assert made * 1.8 <= sum(scheduled)
    shared = [v for one in family.agents for v in await family.of(one) if v.shared_by]
    assert {v.shared_by for v in shared} <= {subject(one).key for one in family.agents}
    for one in family.agents:  # and each is visited itself, by a visit that reads who controls it
        own = [v.at for v in await family.of(one) if not v.shared_by and v.label == "announced"]
        assert own[-1] >= family.clock.now() - OWN_VISIT_WITHIN - timedelta(days=1.5)
        newest = await family.store.newest(subject(one).key, EVER)
        assert newest is not None
        assert newest.rung == 2
        history = newest.collected[0].evidence.data["history"]
        assert isinstance(history, Mapping)
        assert history["scheduled"] == len(await family.of(one))


async def test_strangers_and_other_endpoints_share_nothing(database: Database) -> None:
    """Neither whose owner is another, nor who declares another address, nor who proved nothing."""
    first, other = agent("7"), agent("8", ELSEWHERE)
    stranger, claims = agent("9", owner=STRANGER), agent("10")
    family = Family(database, [first, other, stranger, claims])
    VisitedFamily.unproven = {"10"}
    for one in (other, stranger, claims):
        await family.visit(one)
    family.clock.move(HOUR)
    await family.visit(first)
    assert [await family.found(one) for one in (other, stranger, claims)] == [None] * 3
    more = replace(other.registration, services=(Service("A2A", URL),))  # type: ignore[type-var]
    moved = replace(other, registration=more)  # it declares the good address now, unvisited
    assert await family.found(moved) is None


@pytest.mark.parametrize("sold", [True, False])
async def test_a_sold_agent_shares_nothing_of_its_former_siblings(
    database: Database, *, sold: bool
) -> None:
    first, second = agent("7"), agent("8")
    family = Family(database, [first, second])
    await family.visit(second)
    await family.visit_unannounced(first)
    now = replace(second, owner=STRANGER) if sold else second
    found = await family.found(now)
    assert (found is None) == sold


async def test_only_a_late_whole_good_visit_is_shared_and_bad_news_are_found_out_at_each(
    database: Database,
) -> None:
    first, second = agent("7"), agent("8")
    family = Family(database, [first, second])
    await family.visit(second)
    assert await family.found(first) is None  # nothing is known of it itself
    await family.visit_unannounced(first)
    assert await family.found(first) is None  # it was visited later
    assert (await family.found(second)) is not None
    family.clock.move(SHARED_WITHIN.total_seconds() + 60)
    assert await family.found(second) is None
    VisitedFamily.fails = {"7"}
    await family.visit_unannounced(first)
    assert await family.found(second) is None


async def test_announced_visits_are_shared_only_with_who_has_more_unannounced_ones(
    database: Database,
) -> None:
    """Shared ones once left siblings with fewer than half unannounced, which rung 2 asks for."""
    first, second = agent("7"), agent("8")
    family = Family(database, [first, second])
    await family.visit(second)
    await family.visit(first)
    assert await family.found(second) is None  # one announced, none other
    for _ in range(2):
        await family.visit_unannounced(second)
        VisitedFamily.unannounced = True
        await family.visit(second)
        VisitedFamily.unannounced = False
    await family.visit(first)
    assert (await family.found(second)) is not None


async def test_a_shared_visit_is_not_shared_on(database: Database) -> None:
    first, second, third = (agent(name) for name in IDS)
    family = Family(database, [first, second, third])
    for one in (third, second):
        await family.visit(one)
    await family.visit_unannounced(first)
    found = await family.found(second)
    assert found is not None
    asked = EvaluationRequest("scheduled", is_background=True, shared=found)
    before = VisitedFamily.made.total()
    await family.evaluator.evaluate(subject(second), 1, asked)
    assert VisitedFamily.made.total() == before  # nothing was sent
    record = (await family.of(second))[-1]
    assert (record.shared_by, record.at) == (subject(first).key, found.at)
    again = await family.found(third)
    assert again is not None
    assert again.subject_key == subject(first).key
    newest = await family.store.newest(subject(second).key, EVER)
    assert newest is not None
    visit = newest.collected[0].evidence.data["visit"]
    assert isinstance(visit, Mapping)
    assert visit["sharedBy"] == subject(first).key
