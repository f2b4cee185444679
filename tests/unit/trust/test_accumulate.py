"""An evaluation rests on all visits of the window: nobody re-rolls a verdict (finding D1)."""

import random
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import ClassVar

import pytest

from assay.evaluation.schedule import Seen
from assay.evaluation.visits import TRIGGERED, Asked
from assay.kit.json import JsonObject
from assay.kit.singleflight import SingleFlight
from assay.probing.ports import Finding, Probe, Severity, Visit
from assay.trust.accumulate import VisitHistory
from assay.trust.behaviour import raw_findings
from assay.trust.evaluate import Evaluator, EvaluatorNeeds
from assay.trust.model import EvaluationCompleted, Evidence, SignalName, Weighed
from assay.trust.ports import SignalNeeds
from assay.trust.scoring import DEFAULT_WEIGHTS
from assay.trust.signals.sandbox import SIGNAL
from assay.trust.subjects import Subjects
from assay.trust.tiers import Rules, tiers_from
from tests.fakes.clock import FrozenClock
from tests.fakes.ladder import proven
from tests.fakes.trust import (
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
SCHEDULED = Asked("scheduled", is_background=True)


class Check:
    """A check that passes or fails as it was seen."""

    family: ClassVar[str] = "a2a"

    def __init__(self, name: str, severity: Severity, family: str = "a2a") -> None:
        self.name, self.severity, self.family = name, severity, family  # type: ignore[misc]

    async def collect(self, visit: Visit) -> JsonObject | None:
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

    async def collect(self, subject: Subject, needs: SignalNeeds) -> Evidence:
        del subject, needs
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

    def weigh(self, evidence: Evidence, probes: Mapping[str, Probe]) -> Weighed:
        return SIGNAL.weigh(evidence, probes)


class Plans:
    """Notes what was planned."""

    def __init__(self, clock: FrozenClock) -> None:
        self.seen: list[Seen] = []
        self._clock = clock

    async def plan(self, subject: Subject, seen: Seen) -> object:
        del subject
        self.seen.append(seen)
        return self._clock.now()


class House:
    def __init__(self, sandbox: Sandbox, registry: float = 80) -> None:
        self.sandbox, self.clock = sandbox, FrozenClock()
        self.store, self.hears = MemoryEvaluations(), Hears()
        self.plans = Plans(self.clock)
        self.registry = FakeSignal(SignalName.REGISTRY_8004, registry)
        self.evaluator = Evaluator(
            EvaluatorNeeds(
                subjects=Subjects({"evm": FakeChain()}),  # type: ignore[dict-item]
                signals={SignalName.SANDBOX: sandbox, self.registry.name: self.registry},  # type: ignore[dict-item]
                probes=PROBES,
                http=None,  # type: ignore[arg-type] - these signals ask nobody
                dialers=None,  # type: ignore[arg-type]
                store=self.store,
                blobs=NoBlobs(),
                rules=Rules(DEFAULT_WEIGHTS, tiers_from()),
                listeners=[self.hears],
                clock=self.clock,
                history=VisitHistory(self.store, self.clock, raw_findings),
                plans=self.plans,  # type: ignore[arg-type]
            ),
            SingleFlight(),
        )

    async def run(self, asked: Asked = TRIGGERED, move_s: float = 1.0) -> EvaluationCompleted:
        self.clock.move(move_s)
        return await self.evaluator.evaluate(SUBJECT, 1, asked)


def _flips(scores: Sequence[float]) -> int:
    allowed = [score >= 65 for score in scores]
    return sum(a != b for a, b in pairwise(allowed))


@pytest.mark.parametrize("failing", [0.1, 0.3, 0.5])
async def test_nine_triggers_in_a_row_do_not_re_roll_a_verdict(failing: float) -> None:
    for seed in range(20):
        house = House(Sandbox(failing, f"{seed}"))
        done = [await house.run() for _ in range(9)]
        assert len({news.evaluation.score for news in done}) == 1
        assert len({news.snapshot.snapshot_hash for news in done}) == 1


@pytest.mark.parametrize("every_s", [1.0, 5_400.0])
@pytest.mark.parametrize("failing", [0.1, 0.2, 0.3, 0.4, 0.5])
async def test_allow_flips_at_most_once_over_fifty_triggers(failing: float, every_s: float) -> None:
    for seed in range(10):
        house = House(Sandbox(failing, f"{seed}"))
        scores = [(await house.run(move_s=every_s)).evaluation.score for _ in range(50)]
        assert _flips(scores) <= 1, scores
        assert scores == sorted(scores, reverse=True)  # a trigger never makes it better


async def test_a_trigger_that_finds_nobody_leaves_the_verdict_and_asks_for_a_second_look() -> None:
    house = House(Sandbox())
    before = (await house.run(SCHEDULED)).evaluation.score
    house.sandbox.absent = True
    news = await house.run(move_s=7200)
    assert news.evaluation.score == before
    assert _history(news)["unconfirmed"] is True
    assert house.plans.seen[-1].has_failed
    for _ in range(2):
        news = await house.run(SCHEDULED, move_s=7200)
    assert news.evaluation.score < 65


async def test_a_repaired_agent_is_back_within_three_scheduled_visits() -> None:
    house = House(Sandbox(1.0), registry=100)
    for _ in range(5):
        assert (await house.run(SCHEDULED, 86_400)).evaluation.score < 65
    house.sandbox.failing = 0.0
    scores = [(await house.run(SCHEDULED, 86_400)).evaluation.score for _ in range(3)]
    assert scores[-1] >= 65
    house.sandbox.failing = 1.0
    scores = [(await house.run(SCHEDULED, 86_400)).evaluation.score for _ in range(2)]
    assert scores[-1] < 65


async def test_a_leak_counts_at_once_whoever_asked_and_stays_when_it_is_not_seen_again() -> None:
    house = House(Sandbox())
    await house.run()
    house.sandbox.extra = {"leaks": {"ok": False}}
    assert (await house.run()).evaluation.score < 35
    house.sandbox.extra = {}
    for _ in range(5):
        assert (await house.run(move_s=7200)).evaluation.score < 35
    for _ in range(3):
        news = await house.run(SCHEDULED, 7200)
    assert news.evaluation.score >= 65


async def test_an_unfinished_evaluation_is_kept_nowhere_and_a_held_verdict_stands() -> None:
    house = House(Sandbox())
    house.sandbox.is_slow = True
    first = await house.run()
    assert (first.reused, first.next_try_at) == ("unfinished", house.clock.now())
    assert house.store.rows == house.store.visits == house.hears.news == []
    house.sandbox.is_slow = False
    held = await house.run()
    house.sandbox.is_slow = True
    again = await house.run(move_s=7200)
    assert (again.reused, again.evaluation) == ("unfinished", held.evaluation)
    assert len(house.store.rows) == len(house.hears.news) == 1
    assert house.plans.seen[-1].pending == "unfinished"


async def test_two_background_evaluations_that_do_not_finish_end_the_rung() -> None:
    house = House(Sandbox())
    await house.run()
    house.sandbox.is_slow = True
    assert (await house.run(SCHEDULED)).reused == "unfinished"
    ended = await house.run(Asked("scheduled", is_background=True, tries=1))
    assert ended.reused is None
    assert _history(ended)["heldRung"] == 0
    assert ended.evaluation.rung == 0
    house.sandbox.is_slow = False
    rungs = [(await house.run(SCHEDULED, 86_400)).evaluation.rung for _ in range(3)]
    assert rungs == [0, 0, 1]


async def test_what_does_not_finish_when_others_ask_waits_for_visits_that_we_time() -> None:
    house = House(Sandbox())
    held = await house.run()
    house.sandbox.is_slow = True
    for tries in (0, 1):
        news = await house.run(Asked("triggered", is_background=True, tries=tries))
    assert (news.reused, news.evaluation.rung) == (None, held.evaluation.rung)
    assert house.plans.seen[-1].has_failed


async def test_a_silent_change_is_in_the_history_until_the_next_visit() -> None:
    house = House(Sandbox())
    house.sandbox.members = {"facts": {"payees": {"u": ["0xa"]}, "uri": "u"}, "fingerprints": {}}
    await house.run()
    house.sandbox.members = {"facts": {"payees": {"u": ["0xb"]}, "uri": "u"}, "fingerprints": {}}
    changed = await house.run()
    assert _history(changed)["silentChange"] is True
    assert house.plans.seen[-1].has_failed
    assert _history(await house.run(SCHEDULED))["silentChange"] is False


def _history(news: EvaluationCompleted) -> JsonObject:
    [sandbox] = [c for c in news.evaluation.collected if c.signal is SignalName.SANDBOX]
    found = sandbox.evidence.data["history"]
    assert isinstance(found, Mapping)
    return found


async def test_a_critical_check_without_an_answer_leaves_the_evaluation_unfinished() -> None:
    sandbox = Sandbox()
    house = House(sandbox)
    sandbox.members = {"criticalUnfinished": ["leaks"]}
    await house.run()
    assert house.plans.seen[-1].pending == "unfinished"
    sandbox.members = {
        "criticalUnfinished": ["leaks"],
        "findings": [{"check": "leaks", "severity": "critical", "sightings": 1, "open": False}],
    }
    await house.run(SCHEDULED)
    assert house.plans.seen[-1].pending is None
