"""An evaluation rests on all visits of the window: nobody re-rolls a verdict (finding D1)."""

import random
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import ClassVar

import pytest

from assay.common.cache import SingleFlight
from assay.common.json import JsonObject
from assay.evaluation.accumulation import VisitHistory
from assay.evaluation.behaviour import raw_findings
from assay.evaluation.model import EvaluationCompleted, Evidence, SignalName, SignalScore
from assay.evaluation.ports import SignalDependencies
from assay.evaluation.schedule import ScheduleEvidence
from assay.evaluation.scoring import DEFAULT_WEIGHTS, ScoringPolicy, tiers_from
from assay.evaluation.service import Evaluator, EvaluatorDependencies
from assay.evaluation.signals.sandbox import SIGNAL
from assay.evaluation.visits import BY_GATE, TRIGGERED, EvaluationRequest
from assay.probing.ports import Finding, Probe, ProbeSession, Severity
from assay.registries.subjects import Subjects
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.ladder import proven
from tests.support.fakes.trust import (
    NETWORK,
    WALLET,
    FakeChain,
    FakeSignal,
    Hears,
    MemoryEvaluations,
    NoBlobs,
    Subject,
    onchain_agent,
)

SUBJECT = Subject(NETWORK, "7", WALLET, onchain_agent())
SCHEDULED = EvaluationRequest("scheduled", is_background=True)


class Check:
    """A check that passes or fails as it was seen."""

    family: ClassVar[str] = "a2a"

    def __init__(self, name: str, severity: Severity, family: str = "a2a") -> None:
        self.name, self.severity, self.family = name, severity, family  # type: ignore[misc]

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        raise NotImplementedError

    def weigh(self, seen: JsonObject) -> Finding:
        return Finding("pass" if seen["ok"] else "fail", f"{self.name}: {seen['ok']}")


NAMES = [f"check_{number}" for number in range(8)]
PROBES: dict[str, Probe] = {
    **{name: Check(name, Severity.MAJOR) for name in NAMES},  # type: ignore[dict-item]
    "reachable": Check("reachable", Severity.MAJOR, "reachability"),  # type: ignore[dict-item]
    "leaks": Check("leaks", Severity.CRITICAL),  # type: ignore[dict-item]
}


class Sandbox:
    """The real verdict on what an agent does that fails each call by chance."""

    name: ClassVar[SignalName] = SignalName.SANDBOX

    def __init__(self, failing: float = 0.0, seed: str = "") -> None:
        self.failing, self.rng = failing, random.Random(seed)
        self.extra: dict[str, JsonObject] = {}
        self.members: JsonObject = {}
        self.absent = self.is_slow = False
        self.rechecked: JsonObject | None = None
        """What a re-check saw, where the host has no room for more."""

    async def collect(self, subject: Subject, needs: SignalDependencies) -> Evidence:
        del subject
        if self.rechecked is not None and needs.may_recheck:
            return Evidence({**self.rechecked, "recheck": True}, interactions=3)
        if self.rechecked is not None:
            return Evidence({"status": "inconclusive", "why": "egress_budget", "probes": {}})
        if self.absent:
            return Evidence({"status": "inconclusive", "why": "unreachable", "probes": {}})
        seen: dict[str, JsonObject] = {
            name: {"ok": all(self.rng.random() >= self.failing for _ in range(2))} for name in NAMES
        }
        seen |= {"reachable": {"ok": True}, "leaks": {"ok": True}} | self.extra
        function = [{"service": "s", "kind": "a2a", "state": "unfinished", "why": "time"}]
        data: dict[str, object] = {"status": "tested", "why": None, "probes": seen}
        data |= {**proven("https://seven.example"), **self.members}
        if self.is_slow:
            data["function"] = function
        return Evidence(data, interactions=20)  # type: ignore[arg-type]

    def weigh(self, evidence: Evidence, probes: Mapping[str, Probe]) -> SignalScore:
        return SIGNAL.weigh(evidence, probes)


class Plans:
    """Notes what was planned."""

    def __init__(self, clock: FrozenClock) -> None:
        self.seen: list[ScheduleEvidence] = []
        self._clock = clock

    async def plan(self, subject: Subject, seen: ScheduleEvidence) -> object:
        del subject
        self.seen.append(seen)
        return self._clock.now()


class EvaluatorSetup:
    def __init__(self, sandbox: Sandbox, registry: float = 80) -> None:
        self.sandbox, self.clock = sandbox, FrozenClock()
        self.store, self.hears = MemoryEvaluations(), Hears()
        self.plans = Plans(self.clock)
        self.registry = FakeSignal(SignalName.REGISTRY_8004, registry)
        self.evaluator = Evaluator(
            EvaluatorDependencies(
                subjects=Subjects({"evm": FakeChain()}),  # type: ignore[dict-item]
                signals={SignalName.SANDBOX: sandbox, self.registry.name: self.registry},  # type: ignore[dict-item]
                probes=PROBES,
                http=None,  # type: ignore[arg-type] - these signals ask nobody
                dialers=None,  # type: ignore[arg-type]
                store=self.store,
                blobs=NoBlobs(),
                rules=ScoringPolicy(DEFAULT_WEIGHTS, tiers_from()),
                listeners=[self.hears.evaluated],
                clock=self.clock,
                history=VisitHistory(self.store, self.clock, raw_findings),
                plans=self.plans,  # type: ignore[arg-type]
            ),
            SingleFlight(),
        )

    async def run(
        self, asked: EvaluationRequest = TRIGGERED, move_s: float = 1.0
    ) -> EvaluationCompleted:
        self.clock.move(move_s)
        return await self.evaluator.evaluate(SUBJECT, 1, asked)


def _flips(scores: Sequence[float]) -> int:
    allowed = [score >= 65 for score in scores]
    return sum(a != b for a, b in pairwise(allowed))


@pytest.mark.parametrize("seeds", [5, pytest.param(20, marks=pytest.mark.slow)])
@pytest.mark.parametrize("failing", [0.1, 0.3, 0.5])
async def test_nine_triggers_in_a_row_do_not_re_roll_a_verdict(failing: float, seeds: int) -> None:
    for seed in range(seeds):
        setup = EvaluatorSetup(Sandbox(failing, f"{seed}"))
        done = [await setup.run() for _ in range(9)]
        assert len({news.evaluation.score for news in done}) == 1
        assert len({news.snapshot.snapshot_hash for news in done}) == 1


@pytest.mark.parametrize("seeds", [3, pytest.param(10, marks=pytest.mark.slow)])
@pytest.mark.parametrize("every_s", [1.0, 5_400.0])
@pytest.mark.parametrize("failing", [0.1, 0.2, 0.3, 0.4, 0.5])
async def test_allow_flips_at_most_once_over_fifty_triggers(
    failing: float, every_s: float, seeds: int
) -> None:
    for seed in range(seeds):
        setup = EvaluatorSetup(Sandbox(failing, f"{seed}"))
        scores = [(await setup.run(move_s=every_s)).evaluation.score for _ in range(50)]
        assert _flips(scores) <= 1, scores
        assert scores == sorted(scores, reverse=True)  # a trigger never makes it better


async def test_a_trigger_that_finds_nobody_leaves_the_verdict_and_asks_for_a_second_look() -> None:
    setup = EvaluatorSetup(Sandbox())
    before = (await setup.run(SCHEDULED)).evaluation.score
    setup.sandbox.absent = True
    news = await setup.run(move_s=7200)
    assert news.evaluation.score == before
    assert _history(news)["unconfirmed"] is True
    assert setup.plans.seen[-1].has_failed
    for _ in range(2):
        news = await setup.run(SCHEDULED, move_s=7200)
    assert news.evaluation.score < 65


async def test_a_repaired_agent_is_back_within_three_scheduled_visits() -> None:
    setup = EvaluatorSetup(Sandbox(1.0), registry=100)
    for _ in range(5):
        assert (await setup.run(SCHEDULED, 86_400)).evaluation.score < 65
    setup.sandbox.failing = 0.0
    scores = [(await setup.run(SCHEDULED, 86_400)).evaluation.score for _ in range(3)]
    assert scores[-1] >= 65
    setup.sandbox.failing = 1.0
    scores = [(await setup.run(SCHEDULED, 86_400)).evaluation.score for _ in range(2)]
    assert scores[-1] < 65


async def test_a_leak_counts_at_once_whoever_asked_and_stays_when_it_is_not_seen_again() -> None:
    setup = EvaluatorSetup(Sandbox())
    await setup.run()
    setup.sandbox.extra = {"leaks": {"ok": False}}
    assert (await setup.run()).evaluation.score < 35
    setup.sandbox.extra = {}
    for _ in range(5):
        assert (await setup.run(move_s=7200)).evaluation.score < 35
    for _ in range(3):
        news = await setup.run(SCHEDULED, 7200)
    assert news.evaluation.score >= 65


async def test_an_unfinished_evaluation_is_kept_nowhere_and_a_held_verdict_stands() -> None:
    setup = EvaluatorSetup(Sandbox())
    setup.sandbox.is_slow = True
    first = await setup.run()
    assert (first.reused, first.next_try_at) == ("unfinished", setup.clock.now())
    assert setup.store.rows == setup.store.visits == setup.hears.news == []
    setup.sandbox.is_slow = False
    held = await setup.run()
    setup.sandbox.is_slow = True
    again = await setup.run(move_s=7200)
    assert (again.reused, again.evaluation) == ("unfinished", held.evaluation)
    assert len(setup.store.rows) == len(setup.hears.news) == 1
    assert setup.plans.seen[-1].pending == "unfinished"


async def test_two_background_evaluations_that_do_not_finish_end_the_rung() -> None:
    setup = EvaluatorSetup(Sandbox())
    await setup.run()
    setup.sandbox.is_slow = True
    assert (await setup.run(SCHEDULED)).reused == "unfinished"
    ended = await setup.run(EvaluationRequest("scheduled", is_background=True, tries=1))
    assert ended.reused is None
    assert _history(ended)["heldRung"] == 0
    assert ended.evaluation.rung == 0
    setup.sandbox.is_slow = False
    rungs = [(await setup.run(SCHEDULED, 86_400)).evaluation.rung for _ in range(3)]
    assert rungs == [0, 0, 1]


async def test_what_does_not_finish_when_others_ask_waits_for_visits_that_we_time() -> None:
    setup = EvaluatorSetup(Sandbox())
    held = await setup.run()
    setup.sandbox.is_slow = True
    for tries in (0, 1):
        news = await setup.run(EvaluationRequest("triggered", is_background=True, tries=tries))
    assert (news.reused, news.evaluation.rung) == (None, held.evaluation.rung)
    assert setup.plans.seen[-1].has_failed


async def test_a_silent_change_is_in_the_history_until_the_next_visit() -> None:
    setup = EvaluatorSetup(Sandbox())
    setup.sandbox.members = {"facts": {"payees": {"u": ["0xa"]}, "uri": "u"}, "fingerprints": {}}
    await setup.run()
    setup.sandbox.members = {"facts": {"payees": {"u": ["0xb"]}, "uri": "u"}, "fingerprints": {}}
    changed = await setup.run()
    assert _history(changed)["silentChange"] is True
    assert setup.plans.seen[-1].has_failed
    assert _history(await setup.run(SCHEDULED))["silentChange"] is False


def _history(news: EvaluationCompleted) -> JsonObject:
    [sandbox] = [c for c in news.evaluation.collected if c.signal is SignalName.SANDBOX]
    found = sandbox.evidence.data["history"]
    assert isinstance(found, Mapping)
    return found


async def test_a_critical_check_without_an_answer_leaves_the_evaluation_unfinished() -> None:
    sandbox = Sandbox()
    setup = EvaluatorSetup(sandbox)
    sandbox.members = {"criticalUnfinished": ["leaks"]}
    await setup.run()
    assert setup.plans.seen[-1].pending == "unfinished"
    sandbox.members = {
        "criticalUnfinished": ["leaks"],
        "findings": [{"check": "leaks", "severity": "critical", "sightings": 1, "open": False}],
    }
    await setup.run(SCHEDULED)
    assert setup.plans.seen[-1].pending is None


THERE: JsonObject = {"status": "tested", "why": None, "probes": {"reachable": {"ok": True}}}
NOBODY: JsonObject = {
    "status": "inconclusive",
    "why": "unreachable",
    "probes": {"reachable": {"ok": False}},
}


def paid_to(payee: str) -> JsonObject:
    facts: JsonObject = {"payees": {"u": [payee]}, "uri": "u"}
    return {"facts": facts, "fingerprints": {"payee u": payee}}


def _evidence(news: EvaluationCompleted) -> JsonObject:
    [sandbox] = [c for c in news.evaluation.collected if c.signal is SignalName.SANDBOX]
    return sandbox.evidence.data


async def test_a_re_check_of_what_is_as_it_was_confirms_it_and_adds_nothing() -> None:
    setup = EvaluatorSetup(Sandbox(0.3, "1"))
    setup.sandbox.members = paid_to("0xa")
    before = await setup.run(SCHEDULED)
    setup.sandbox.rechecked = {**THERE, **paid_to("0xa")}
    after = await setup.run(BY_GATE, move_s=7200)
    assert after.reused is None
    assert after.evaluation.evaluated_at > before.evaluation.evaluated_at
    assert after.snapshot.snapshot_hash == before.snapshot.snapshot_hash
    assert {n: v for n, v in _evidence(after).items() if n != "recheck"} == _evidence(before)
    assert _evidence(after)["recheck"] is True
    assert len(setup.store.visits) == 1
    setup.sandbox.rechecked = None
    assert "recheck" not in _evidence(await setup.run(BY_GATE))


async def test_a_re_check_that_finds_nobody_asks_for_scheduled_visits_and_lowers_nothing() -> None:
    setup = EvaluatorSetup(Sandbox())
    before = await setup.run(SCHEDULED)
    setup.sandbox.rechecked = NOBODY
    for _ in range(3):
        news = await setup.run(BY_GATE, move_s=7200)
        assert news.evaluation.score == before.evaluation.score
    assert _history(news)["unconfirmed"] is True
    assert setup.plans.seen[-1].has_failed


async def test_a_silent_change_that_a_re_check_saw_stays_until_a_visit_is_finished() -> None:
    setup = EvaluatorSetup(Sandbox())
    setup.sandbox.members = paid_to("0xa")
    await setup.run(SCHEDULED)
    setup.sandbox.rechecked = {**THERE, **paid_to("0xb")}
    assert _history(await setup.run(BY_GATE, move_s=7200))["silentChange"] is True
    assert setup.plans.seen[-1].has_failed
    again = await setup.run(BY_GATE, move_s=7200)  # it is confirmed, and nobody has judged it yet
    assert _history(again)["silentChange"] is True
    setup.sandbox.rechecked = NOBODY
    assert _history(await setup.run(BY_GATE, move_s=60))["silentChange"] is True
    setup.sandbox.rechecked, setup.sandbox.members = None, paid_to("0xb")
    assert _history(await setup.run(SCHEDULED))["silentChange"] is False


async def test_only_what_a_whole_visit_saw_within_six_days_is_re_checked() -> None:
    setup = EvaluatorSetup(Sandbox())
    setup.sandbox.rechecked = THERE
    assert (await setup.run(BY_GATE)).reused == "egress_budget"  # nothing is known of it
    setup.sandbox.rechecked = None
    await setup.run(SCHEDULED)
    setup.sandbox.rechecked = THERE
    for _ in range(5):
        assert (await setup.run(BY_GATE, move_s=86_400)).reused is None
    assert (await setup.run(TRIGGERED)).reused == "egress_budget"  # asked for a visit
    assert (await setup.run(BY_GATE, move_s=2 * 86_400)).reused == "egress_budget"
