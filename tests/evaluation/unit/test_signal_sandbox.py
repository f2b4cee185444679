"""What a visit's evidence is worth."""

import asyncio
from contextlib import nullcontext
from dataclasses import replace
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.common.egress_budget import EGRESS_BUDGET
from assay.common.json import JsonObject
from assay.evaluation.behaviour import CRITICAL_CAP, summary
from assay.evaluation.checks import WEIGHTS
from assay.evaluation.model import Evidence
from assay.evaluation.ports import SignalDependencies
from assay.evaluation.signals.sandbox import SIGNAL
from assay.net.egress.ports import EgressResponse, Limits, OutboundRequest
from assay.net.egress.request_slots import own_wait
from assay.probing.ports import Finding, Probe, ProbeOutcome, ProbeSession, Severity
from assay.registries.model import RegistrationFile, Service, Subject
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.ladder import proven
from tests.support.fakes.trust import NETWORK, WALLET, FakeChain, onchain_agent


class Says:
    """A probe that concludes what its evidence says."""

    family: ClassVar[str] = "fake"

    def __init__(self, name: str, severity: Severity) -> None:
        self.name = name
        self.severity = severity

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        del visit
        return None

    def weigh(self, seen: JsonObject) -> Finding:
        outcome: ProbeOutcome = seen["outcome"]  # type: ignore[assignment]
        return Finding(outcome, f"{self.name} {outcome}.")


PROBES: dict[str, Probe] = {s.value: Says(s.value, s) for s in Severity}  # type: ignore[dict-item]


def evidence(**outcomes: str | None) -> Evidence:
    probes = {
        name: {"outcome": outcome} if outcome in {"pass", "fail", "not_tested"} else outcome
        for name, outcome in outcomes.items()
    }
    data: JsonObject = {"status": "tested", "why": None, "services": [], "probes": probes}
    return Evidence({**data, **proven()}, 9)


def test_a_failure_says_twice_what_a_pass_says() -> None:
    weighed = SIGNAL.weigh(evidence(major="pass", minor="fail"), PROBES)
    assert weighed.value == 81.82  # (6 + 3) / (6 + 3 + 2 x 1): its service works
    assert weighed.confidence == 0.5  # 10 / (10 + 10)
    assert weighed.reasons == (
        "minor fail.",
        "3 of 3 applicable checks could be made; 2 were passed.",
    )
    assert weighed.cap is None


def test_what_was_not_tested_weighs_nothing() -> None:
    tested = SIGNAL.weigh(evidence(major="pass", minor="fail"), PROBES)
    more = SIGNAL.weigh(
        evidence(major="pass", minor="fail", critical="not_tested", info="unfinished"), PROBES
    )
    none = SIGNAL.weigh(evidence(major="pass", minor="fail", critical=None), PROBES)
    assert (more.value, more.confidence, more.cap) == (tested.value, tested.confidence, None)
    assert (none.value, none.confidence) == (tested.value, tested.confidence)


def test_a_critical_failure_caps_the_score_and_says_why() -> None:
    weighed = SIGNAL.weigh(evidence(major="pass", minor="pass", critical="fail"), PROBES)
    assert weighed.cap is not None
    assert (weighed.cap.score, weighed.cap.reason) == (CRITICAL_CAP, "critical fail.")
    assert weighed.reasons[0] == "critical fail."


def test_nothing_that_came_to_a_verdict_is_no_knowledge() -> None:
    nothing = evidence(major="not_tested", minor="unfinished").data
    assert SIGNAL.weigh(Evidence({**nothing, "function": []}), PROBES).confidence == 0


def test_an_inconclusive_visit_is_no_knowledge_whatever_a_probe_saw() -> None:
    data = {**evidence(major="fail").data, "status": "inconclusive", "why": "unreachable"}
    weighed = SIGNAL.weigh(Evidence(data), PROBES)
    assert (weighed.confidence, weighed.cap) == (0, None)
    assert weighed.reasons == ("None of the agent's services could be reached.",)
    assert weighed.checks == {}


def test_evidence_of_a_probe_that_is_gone_is_passed_over() -> None:
    assert SIGNAL.weigh(evidence(major="pass", gone="fail"), PROBES).value == 100.0


def test_the_summary_lists_every_probe_with_its_verdict() -> None:
    told = summary(evidence(major="fail", minor="pass", critical="unfinished", info=None), PROBES)
    assert (told["status"], told["passed"], told["failed"]) == ("tested", 1, 1)
    assert (told["notTested"], told["unfinished"], told["requests"]) == (1, 1, 9)
    assert told["probes"][1] == {  # type: ignore[index]
        "name": "major",
        "family": "fake",
        "severity": "major",
        "outcome": "fail",
        "note": "major fail.",
    }


def test_the_summary_of_a_key_agent_says_that_nothing_was_seen() -> None:
    told = summary(Evidence({"status": "inconclusive", "why": "no_conduct"}), PROBES)
    assert (told["status"], told["probes"]) == ("inconclusive", [])
    assert told["reason"] == "No conduct of this agent has been observed yet."


@given(st.dictionaries(st.sampled_from(sorted(PROBES)), st.sampled_from(["pass", "fail"])))
def test_a_pass_in_place_of_a_failure_never_lowers_the_value(outcomes: dict[str, str]) -> None:
    weighed = SIGNAL.weigh(evidence(**outcomes), PROBES)
    assert 0 <= weighed.value <= 100
    assert 0 <= weighed.confidence < 1
    for name in outcomes:
        better = SIGNAL.weigh(evidence(**{**outcomes, name: "pass"}), PROBES)
        assert better.value >= weighed.value


def test_severities_are_ordered() -> None:
    assert sorted(Severity, key=lambda s: WEIGHTS[s]) == [
        Severity.INFO,
        Severity.MINOR,
        Severity.MAJOR,
        Severity.CRITICAL,
    ]


class Asks(Says):
    """A probe that puts one question."""

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        await visit.http.send(
            OutboundRequest("GET", f"{visit.services[0].service.endpoint}{self.name}")
        )
        return {"outcome": "pass"}


class Waits:
    """Answers whether it may be tested, and no question after that."""

    def __init__(self, *, is_ours: bool) -> None:
        self._is_ours = is_ours

    async def send(self, request: OutboundRequest, limits: Limits = Limits()) -> EgressResponse:  # noqa: B008
        del limits
        if not request.url.endswith("robots.txt"):
            with own_wait() if self._is_ours else nullcontext():
                await asyncio.Event().wait()
        return EgressResponse(404, (), b"", truncated=False, elapsed_ms=1.0)


@pytest.mark.parametrize(("is_ours", "why"), [(True, EGRESS_BUDGET), (False, "out_of_time")])
async def test_a_visit_that_waited_for_us_until_its_end_is_cut_short(
    is_ours: bool,  # noqa: FBT001 - a column of the table
    why: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("assay.evaluation.signals.sandbox.BLAMED_FROM_S", 0.05)
    file = RegistrationFile(name="Seven", services=(Service("web", "https://a.test/"),))
    who = Subject(NETWORK, "7", WALLET, replace(onchain_agent(), registration=file))
    probes = {s.value: Asks(s.value, s) for s in Severity}
    needs = SignalDependencies(
        FakeChain(), Waits(is_ours=is_ours), None, probes, FrozenClock(), 0.5
    )  # type: ignore[arg-type]
    found = await SIGNAL.collect(who, needs)
    assert isinstance(found, Evidence)
    assert (found.data["status"], found.data["why"]) == ("inconclusive", why)
