"""The scheduler on a simulated clock: labels, quiet times, rung 2, and whom it serves first."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import ClassVar

import pytest

from assay.app.evaluation import EvaluatedControl
from assay.chains.networks import Networks
from assay.common.cache import SingleFlight
from assay.common.shared_state import MemorySharedState
from assay.db.engine import Database
from assay.evaluation import schedule
from assay.evaluation.accumulation import VisitHistory
from assay.evaluation.behaviour import raw_findings
from assay.evaluation.model import Evidence, SignalName, SignalScore
from assay.evaluation.ports import SignalDependencies, Sources
from assay.evaluation.recompute import Audit
from assay.evaluation.schedule import GATE_ASKS_COUNT, EnrolmentHolder, Enrolments, GateAsks
from assay.evaluation.scheduler import Scheduler, SchedulerDependencies, SiblingVisits
from assay.evaluation.scoring import DEFAULT_WEIGHTS, ScoringPolicy, tiers_from
from assay.evaluation.service import EVER, Evaluator, EvaluatorDependencies
from assay.evaluation.signals.sandbox import SIGNAL
from assay.evaluation.store_evaluations import ControlRecords, SqlEvaluationStore
from assay.evaluation.store_visits import (
    SqlSeeds,
    SqlVisitRequests,
    SqlVisitSchedule,
    SqlVisitStore,
)
from assay.evaluation.visits import WINDOW, VisitRecord
from assay.net.egress.ports import EgressResponse, Limits, OutboundRequest
from assay.net.egress.url import EgressPolicy
from assay.probing.clients.dialers import StockDialers
from assay.probing.ports import Finding, Probe, Severity
from assay.probing.unannounced import UnannouncedVisits, commitment
from assay.registries.model import OnchainAgent, Service
from assay.registries.subjects import Subjects
from tests.evaluation.test_visit_stores import add_operator
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.ladder import proven
from tests.support.fakes.trust import (
    NETWORK,
    OWNER,
    WALLET,
    FakeChain,
    NoBlobs,
    Subject,
    onchain_agent,
)

pytestmark = pytest.mark.slow

URL = "https://agent.example/a2a"
HOUR = 3600.0


class Check:
    """A critical check that always passes."""

    name: ClassVar[str] = "leaks"
    family: ClassVar[str] = "a2a"
    severity: ClassVar[Severity] = Severity.CRITICAL

    def weigh(self, seen: Mapping[str, object]) -> Finding:
        return Finding("pass" if seen["ok"] else "fail", "")


PROBES: dict[str, Probe] = {"leaks": Check()}  # type: ignore[dict-item]


@dataclass
class Asked:
    """One request or visit that the agent could see."""

    at: datetime
    what: str


class Site:
    """The agent's site: it answers requests for robots.txt, and writes down when."""

    def __init__(self, clock: FrozenClock, robots: str = "") -> None:
        self.clock, self.robots = clock, robots
        self.seen: list[Asked] = []

    async def send(self, request: OutboundRequest, limits: Limits = Limits()) -> EgressResponse:  # noqa: B008
        del limits
        assert "Assay" in request.headers["user-agent"]
        self.seen.append(Asked(self.clock.now(), "robots"))
        return EgressResponse(200, (), self.robots.encode(), truncated=False, elapsed_ms=1.0)


class Visited:
    """The behaviour of an agent that works: what a visit sees, and how it went out."""

    name: ClassVar[SignalName] = SignalName.SANDBOX

    def __init__(self, clock: FrozenClock, site: Site) -> None:
        self.clock, self.site, self.number = clock, site, 0

    async def collect(self, subject: Subject, needs: SignalDependencies) -> Evidence:
        visits = needs.sources.visits
        assert visits is not None
        self.number += 1
        await visits.begin(subject, f"{self.number}")
        plan = await visits.plan(subject, [URL])
        if plan is None:
            await visits.read_robots([URL], self.clock)
        row = {"label": "announced"} if plan is None else plan.row
        self.site.seen.append(Asked(self.clock.now(), str(row["label"])))
        shown = proven(URL)
        if plan is not None:
            del shown["control"]
        data = {"status": "tested", "why": None, "probes": {"leaks": {"ok": True}}, **shown}
        transcript = {"seed": f"{self.number}", "commitment": commitment(f"{self.number}")}
        return Evidence({**data, "visit": row}, 20, transcript)  # type: ignore[arg-type]

    def weigh(self, evidence: Evidence, probes: Mapping[str, Probe]) -> SignalScore:
        return SIGNAL.weigh(evidence, probes)


class Scheduling:
    """All of it but chains and network."""

    def __init__(
        self,
        database: Database,
        *,
        proxies: int = 1,
        seed: str = "s",
        agents: Sequence[OnchainAgent] = (),
        visited: "type[Visited] | None" = None,
    ) -> None:
        self.clock = FrozenClock()
        chance = random.Random(seed).random
        self.site = Site(self.clock)
        self.schedule = SqlVisitSchedule(database, self.clock, chance)
        self.enrolments = Enrolments(SqlVisitRequests(database), self.clock, chance)
        self.visits = SqlVisitStore(database)
        control = ControlRecords(lambda _: ())
        self.store = SqlEvaluationStore(database, None, control)
        self.seeds = SqlSeeds(database, self.clock)
        unannounced = UnannouncedVisits(
            MemorySharedState(self.clock),
            EvaluatedControl(self.store),
            EgressPolicy(allow_private=True, require_https=False),
            [self.site] * proxies,
            self.site,
            StockDialers(),
            (),
            chance,
            self.seeds,
        )
        self.chain = FakeChain(*(agents or [agent()]))
        subjects = Subjects({"evm": self.chain})  # type: ignore[dict-item]
        sandbox = (visited or Visited)(self.clock, self.site)
        self.evaluator = Evaluator(
            EvaluatorDependencies(
                subjects=subjects,
                signals={SignalName.SANDBOX: sandbox},  # type: ignore[dict-item]
                probes=PROBES,
                http=self.site,
                dialers=StockDialers(),
                store=self.store,
                blobs=NoBlobs(),
                rules=ScoringPolicy(DEFAULT_WEIGHTS, tiers_from()),
                listeners=[],
                clock=self.clock,
                sources=Sources(visits=unannounced),
                history=VisitHistory(self.visits, self.clock, raw_findings),
                plans=self.schedule,
            ),
            SingleFlight(),
        )
        self.failed: list[Exception] = []
        self.scheduler = Scheduler(
            SchedulerDependencies(
                self.schedule,
                subjects,
                Networks({NETWORK.slug: NETWORK}, NETWORK.slug),
                self.evaluator,
                self.clock,
                240,
                lambda _, error: self.failed.append(error),
                unannounced,
                SiblingVisits(self.store, self.visits, self.clock, frozenset(PROBES)),
            )
        )

    async def trigger(self) -> None:
        await self.evaluator.evaluate(subject(), 1)

    async def run(self, days: float, *, trigger_every_h: float = 0, step_s: float = 900) -> int:
        """The rung after so many days; ends at rung 2."""
        ends, next_h, rung = self.clock.now() + timedelta(days=days), 0.0, 0
        began = self.clock.now()
        while self.clock.now() < ends and rung < 2:
            self.clock.move(step_s)
            if trigger_every_h and (self.clock.now() - began) / timedelta(hours=1) >= next_h:
                next_h += trigger_every_h
                await self.trigger()
            if await self.scheduler.run():
                newest = await self.store.newest(subject().key, EVER)
                rung = (newest.rung or 0) if newest else 0
        assert not self.failed
        return rung

    async def records(self) -> Sequence[VisitRecord]:
        return await self.visits.recent(subject().key, self.clock.now() - WINDOW)


def agent() -> OnchainAgent:
    made = onchain_agent()
    assert made.registration is not None
    file = replace(made.registration, services=(Service("A2A", URL),))
    return replace(made, registration=file)


def subject() -> Subject:
    return Subject(NETWORK, "7", WALLET, agent())


async def test_an_enrolled_agent_without_customers_reaches_rung_two_in_days(
    database: Database,
) -> None:
    service = Scheduling(database)
    await service.enrolments.enrol(EnrolmentHolder("owner", OWNER), subject())
    began = service.clock.now()
    assert await service.run(11) == 2
    assert timedelta(days=7) <= service.clock.now() - began <= timedelta(days=10)
    scheduled = [v for v in await service.records() if v.timing == "scheduled"]
    hidden = [v for v in scheduled if v.label == "unannounced"]
    assert len(scheduled) >= 5
    assert len(hidden) * 2 >= len(scheduled)
    newest = await service.store.newest(subject().key, EVER)
    assert newest is not None
    history = newest.collected[0].evidence.data["history"]
    assert isinstance(history, Mapping)
    assert history["unannounced"] == len(hidden)


async def test_without_a_way_of_its_own_no_visit_counts_as_unannounced(database: Database) -> None:
    service = Scheduling(database, proxies=0)
    await service.enrolments.enrol(EnrolmentHolder("owner", OWNER), subject())
    assert await service.run(12, step_s=HOUR) == 1
    labels = {visit.label for visit in await service.records()}
    assert labels == {"announced", "unlabelled"}


async def test_no_unannounced_visit_follows_a_visible_event_closely(database: Database) -> None:
    """Nor do triggers keep the agent from being visited so."""
    service = Scheduling(database)
    await service.enrolments.enrol(EnrolmentHolder("owner", OWNER), subject())
    await service.run(8, trigger_every_h=5, step_s=HOUR / 2)
    seen = service.site.seen
    hidden = [number for number, asked in enumerate(seen) if asked.what == "unannounced"]
    assert hidden
    for number in hidden:
        before = [asked for asked in seen[:number] if asked.what != "unannounced"]
        assert seen[number].at - before[-1].at >= timedelta(minutes=10)
        # robots.txt was read within a day: closed sites are left alone
        assert seen[number].at - before[-1].at <= timedelta(hours=24)


async def test_what_a_site_closes_to_us_is_not_visited_unannounced(database: Database) -> None:
    service = Scheduling(database)
    service.site.robots = "User-agent: Assay\nDisallow: /a2a\n"
    await service.enrolments.enrol(EnrolmentHolder("owner", OWNER), subject())
    await service.run(6, step_s=HOUR)
    assert {visit.label for visit in await service.records()} == {"announced"}


async def test_the_seed_of_every_visit_is_committed_to_before_it(database: Database) -> None:
    service = Scheduling(database)
    await service.trigger()
    newest = await service.store.newest(subject().key, EVER)
    assert newest is not None
    made = newest.collected[0].evidence.transcript["commitment"]
    kept = await service.seeds.since([str(made), commitment("another")])
    assert list(kept) == [made]
    assert kept[str(made)] <= newest.evaluated_at
    audit = Audit(service.store, NoBlobs(), {}, PROBES, service.seeds, service.clock)  # type: ignore[arg-type]
    [checked] = [one async for one in audit.snapshots()]
    assert not [fault for fault in checked.faults if "seed" in fault]
    service.clock.move(HOUR)
    assert await service.seeds.remove(service.clock.now(), 10) == 1
    [checked] = [one async for one in audit.snapshots()]
    assert [fault for fault in checked.faults if "seed of its visit was chosen before" in fault]


async def test_gate_calls_of_two_unrelated_operators_raise_an_agents_rank(
    database: Database,
) -> None:
    service = Scheduling(database)
    asks = GateAsks(service.enrolments, service.clock)
    await service.trigger()
    for origin, rank in (("a", 3), ("a2", 3), ("b", 2)):
        operator = await add_operator(database, origin)
        for _ in range(3):
            asks.note(operator, subject(), allowed=True)
        await asks.flush()
        plan = await service.schedule.find(subject().key)
        assert plan is not None
        assert plan.rank == rank
    assert plan.due - service.clock.now() <= timedelta(hours=24)
    requests = SqlVisitRequests(database)
    service.clock.move(GATE_ASKS_COUNT.total_seconds() + 1)
    assert await requests.remove_gates(service.clock.now() - GATE_ASKS_COUNT, 100) == 3
    plan = await service.schedule.find(subject().key)
    assert plan is not None
    assert plan.rank == 3


async def test_ids_that_a_gate_denies_leave_room_for_those_it_lets_in(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schedule, "DENIED_MAX", 2)
    service = Scheduling(database)
    asks, operator = GateAsks(service.enrolments, service.clock), "operator"
    for number in range(5):
        asks.note(operator, replace(subject(), agent_id=f"{number + 10}"), allowed=False)
    asks.note(operator, subject(), allowed=True)
    await asks.flush()
    listed = await SqlVisitRequests(database).list(EnrolmentHolder("gate", operator))
    assert sorted(one.agent_id for one in listed) == ["10", "11", "7"]
