"""An agent's life with the service, on a clock that stands: triggers and scheduled visits.

What visits see is given; what is made of them is the service's own code: evaluation, pooling,
ladder, score, and the plan of the next visit. No network, no database.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random
from typing import ClassVar

from assay.app.evaluation import EvaluatedControl
from assay.common.cache import SingleFlight
from assay.common.shared_state import MemorySharedState
from assay.evaluation.accumulation import VisitHistory
from assay.evaluation.behaviour import raw_findings
from assay.evaluation.history import is_there
from assay.evaluation.model import EvaluationCompleted, Evidence, SignalName, SignalScore
from assay.evaluation.ports import SignalDependencies
from assay.evaluation.schedule import (
    ENROLLED,
    PENDING,
    DueVisit,
    Rank,
    ScheduleEvidence,
    VisitPlan,
    prepared,
    replan,
)
from assay.evaluation.scoring import DEFAULT_WEIGHTS, ScoringPolicy, tiers_from
from assay.evaluation.service import Evaluator, EvaluatorDependencies
from assay.evaluation.signals.sandbox import SIGNAL
from assay.evaluation.visits import TRIGGERED
from assay.net.egress.ports import EgressResponse, Limits, OutboundRequest
from assay.net.egress.url import EgressPolicy
from assay.probing.clients.dialers import StockDialers
from assay.probing.ports import Probe
from assay.probing.unannounced import UnannouncedVisits, scheduled_visits
from assay.registries.subjects import Subjects
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.trust import (
    NETWORK,
    WALLET,
    FakeChain,
    FakeSignal,
    MemoryEvaluations,
    NoBlobs,
    Subject,
    onchain_agent,
)

URL = "https://agent.example/a2a"
ALLOWED_FROM = 65.0

Draw = Callable[[bool], Evidence]
"""What one visit sees; given whether it says who it is."""


class _Site:
    """Closes nothing to anybody."""

    async def send(self, request: OutboundRequest, limits: Limits = Limits()) -> EgressResponse:  # noqa: B008
        del request, limits
        return EgressResponse(404, (), b"", truncated=False, elapsed_ms=1.0)


class _Visited:
    """The behaviour signal: the real weighing of what is drawn."""

    name: ClassVar[SignalName] = SignalName.SANDBOX

    def __init__(self, life: "VisitedLife") -> None:
        self._life = life

    async def collect(self, subject: Subject, needs: SignalDependencies) -> Evidence:
        del needs
        life = self._life
        plan = await life.unannounced.plan(subject, life.urls)
        evidence = life.draw(plan is None)
        label = {"label": "announced"} if plan is None else plan.row
        return replace(evidence, data={**evidence.data, "visit": label})

    def weigh(self, evidence: Evidence, probes: Mapping[str, Probe]) -> SignalScore:
        return SIGNAL.weigh(evidence, probes)


@dataclass
class VisitedLife:
    """One agent; `draw` may be changed at any time."""

    draw: Draw
    probes: Mapping[str, Probe]
    seed: str
    rank: Rank = ENROLLED
    urls: tuple[str, ...] = (URL,)
    clock: FrozenClock = field(default_factory=FrozenClock)
    plan_now: VisitPlan | None = None
    scheduled: int = 0
    """Scheduled visits that came to an end."""
    verdicts: list[tuple[datetime, float, int]] = field(default_factory=list)
    """After every evaluation that was completed, from the first on that found the agent there:
    when, score, rung."""

    def __post_init__(self) -> None:
        self._chance = Random(self.seed).random
        self.store = MemoryEvaluations()
        site = _Site()
        self.unannounced = UnannouncedVisits(
            MemorySharedState(self.clock),
            EvaluatedControl(self.store),  # type: ignore[arg-type]
            EgressPolicy(allow_private=True, require_https=False),
            [site],
            site,
            StockDialers(),
            (),
            self._chance,
        )
        others = [SignalName.REGISTRY_8004, SignalName.WALLET, SignalName.SELF]
        unknown = {name: FakeSignal(name, 50, confidence=0.0) for name in others}
        for signal in unknown.values():
            signal.proves = {}
        self.subject = Subject(NETWORK, "7", WALLET, onchain_agent())
        self.evaluator = Evaluator(
            EvaluatorDependencies(
                subjects=Subjects({"evm": FakeChain()}),  # type: ignore[dict-item]
                signals={SignalName.SANDBOX: _Visited(self), **unknown},  # type: ignore[dict-item]
                probes=self.probes,
                http=None,  # type: ignore[arg-type] - nobody is asked
                dialers=None,  # type: ignore[arg-type]
                store=self.store,  # type: ignore[arg-type]
                blobs=NoBlobs(),
                rules=ScoringPolicy(DEFAULT_WEIGHTS, tiers_from()),
                listeners=[],
                clock=self.clock,
                history=VisitHistory(self.store, self.clock, raw_findings),
                plans=self,
            ),
            SingleFlight(),
        )

    async def plan(self, subject: Subject, seen: ScheduleEvidence) -> datetime:
        """As the schedule in SQL does, for one agent."""
        del subject
        old = None if self.plan_now is None else replace(self.plan_now, rank=self.rank)
        self.plan_now = replace(replan(old, seen, self.clock.now(), self._chance), rank=self.rank)
        return self.plan_now.due

    async def trigger(self) -> EvaluationCompleted:
        """Somebody asks, now."""
        return self._noted(await self.evaluator.evaluate(self.subject, 90, TRIGGERED))

    async def pass_hours(self, hours: float, *, visits: bool = True) -> None:
        """Time goes by; what is due is done when it is due.

        Without `visits` only what finishes evaluations.
        """
        ends = self.clock.now() + timedelta(hours=hours)
        while (plan := self.plan_now) is not None and plan.due <= ends:
            if not visits and plan.reason not in PENDING:
                break
            await self._do(plan)
        self.clock.set(max(ends, self.clock.now()))

    async def until_scheduled(self, visits: int) -> None:
        """Time goes by until so many more scheduled visits are over."""
        wanted = self.scheduled + visits
        while self.scheduled < wanted:
            assert self.plan_now is not None
            await self._do(self.plan_now)

    @property
    def score(self) -> float:
        """Of the newest completed evaluation; 0 before there is one."""
        return self.verdicts[-1][1] if self.verdicts else 0.0

    @property
    def is_allowed(self) -> bool:
        """By the default threshold."""
        return self.score >= ALLOWED_FROM

    async def _do(self, plan: VisitPlan) -> None:
        self.clock.set(max(plan.due, self.clock.now()))
        now = self.clock.now()
        visit = DueVisit(
            self.subject.key, NETWORK.slug, "7", plan.host, plan.has_control, plan.rank,
            plan.reason, plan.tries, plan.visited, plan.due, plan.quiet, self._announced(),
        )  # fmt: skip
        if not visit.is_visit:
            await self.unannounced.read_robots(self.urls, self.clock)
            self.plan_now = prepared(plan, now, self._chance)
            return
        if visit.may_hide(now):
            with scheduled_visits(visit.announced):
                done = await self.evaluator.evaluate(self.subject, 90, visit.asked)
        else:
            done = await self.evaluator.evaluate(self.subject, 90, visit.asked)
        self.scheduled += visit.asked.timing == "scheduled" and done.reused is None
        self._noted(done)

    def _announced(self) -> int:
        timed = [v for v in self.store.visits if v.timing == "scheduled"]
        return sum(1 if v.label == "announced" else -1 for v in timed)

    def _noted(self, done: EvaluationCompleted) -> EvaluationCompleted:
        made = done.evaluation
        if done.reused is None and any(map(is_there, self.store.visits)):
            self.verdicts.append((made.evaluated_at, made.score, made.rung or 0))
        return done
