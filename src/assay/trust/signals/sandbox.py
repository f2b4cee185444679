"""How an agent behaves when its declared services are called (decisions, section 5).

Value: 100 x passed / (passed + 2 x failed), weighted by severity. Confidence: w / (w + 10) for a
tested weight w, so that ten points of evidence weigh as much as the prior. A critical failure caps
the whole score below 35 (decisions, section 4). What did not finish is left out and reported.
"""

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import ClassVar, Final

from assay.chains.ports import OVER_BUDGET
from assay.egress.ports import EgressError
from assay.egress.waiting import BLAMED_FROM_S, OwnWaits, count_own_waits
from assay.kit.json import JsonObject, JsonValue, is_array, is_object
from assay.trust.callers import Judged, judged_conduct
from assay.trust.conduct import CONDUCT
from assay.trust.declared import declared_services, service_row
from assay.trust.model import (
    EGRESS_BUDGET,
    Cap,
    Evidence,
    SignalName,
    Subject,
    Unavailable,
    Weighed,
)
from assay.trust.ports import (
    BudgetExhausted,
    Finding,
    Probe,
    Severity,
    Signal,
    SignalNeeds,
    Visit,
    Visited,
)
from assay.trust.visiting import HANG_UP_S, SharedDialers, VisitHttp, opted_out

REQUESTS_MAX = 60
"""Requests one evaluation may cost an agent. Source: facts, honest-agent rules."""

AT_ONCE = 6
"""Probes that run at a time: a visit must not look like a flood."""

WEIGHTS: Mapping[Severity, float] = {
    Severity.INFO: 0.5,
    Severity.MINOR: 1.0,
    Severity.MAJOR: 3.0,
    Severity.CRITICAL: 6.0,
}
"""What a probe counts for. A decision, so that one critical finding outweighs a page of minor ones
and a passed critical probe is worth having."""

FAILURE_COUNTS = 2.0
"""How much more a failure says than a pass. A decision: nearly every agent passes nearly every
probe, so what tells them apart is what they fail; an agent that answers every other call must not
grade like one that answers all."""

HALF_SURE_AT = 10.0
"""Tested weight at which confidence is one half: three major probes and one minor."""

CRITICAL_CAP = 34.99
"""Highest score with a critical failure. Source: decisions, section 4."""

UNFINISHED = "unfinished"


class Sandbox:
    """Runs every probe within one budget and one deadline."""

    name: ClassVar[SignalName] = SignalName.SANDBOX

    async def collect(self, subject: Subject, needs: SignalNeeds) -> Evidence | Unavailable:
        conduct = await _conduct(subject, needs)
        if subject.agent is None:
            seen_any = bool(judged_conduct(conduct))
            status, why = ("tested", None) if seen_any else ("inconclusive", "no_conduct")
            return Evidence({"status": status, "why": why, "conduct": conduct})
        ends_s = max(0.1, needs.deadline_s - HANG_UP_S)
        http = VisitHttp(needs.http, needs.clock, REQUESTS_MAX, ends_s)
        urls = [visited.service.endpoint for visited in declared_services(subject)[0]]
        turns, visit_s = needs.turns, needs.deadline_s
        turn = turns.turn(urls, visit_s) if turns else nullcontext(enter_result=True)
        with count_own_waits(is_visit=True) as waits:
            async with turn as begins:
                if begins:
                    return await self._visit(subject, needs, http, waits, conduct)
        # Its hosts are being visited, and have no room for another visit beside that.
        unvisited: JsonObject = {"status": "inconclusive", "why": EGRESS_BUDGET, "probes": {}}
        return Evidence({**unvisited, "conduct": conduct} if conduct else unvisited)

    async def _visit(
        self,
        subject: Subject,
        needs: SignalNeeds,
        http: VisitHttp,
        waits: OwnWaits,
        conduct: JsonObject,
    ) -> Evidence:
        declared, ignored = declared_services(subject)
        async with asyncio.TaskGroup() as group:
            dialers = SharedDialers(needs.dialers, group)
            visited, refused = await _allowed(declared, http)
            urls, consents = [v.service.endpoint for v in visited], needs.consents
            agreed = await consents.read(subject, urls, http) if consents else None
            asked = http.replied
            bait = None if needs.sources.lures is None else needs.sources.lures.new()
            visit = Visit(
                subject,
                visited,
                http,
                dialers,
                _seed(subject),
                bait,
                agreed,
                slices=needs.slices,
            )
            seen = await _probe_all(visit, needs.probes, http.left_s)
            dialers.hang_up()
        listed = [service_row(v, "visited") for v in visited] + [
            service_row(v, "opted_out") for v in refused
        ]
        status, why = _status(visited, refused, seen, replied=http.replied > asked)
        if _is_cut(subject, http, waits, seen) and not _betrayed(seen, needs.probes):
            # Half a visit is no evidence: a rival who uses up the budget must not choose the half.
            status, why, seen = "inconclusive", EGRESS_BUDGET, {}
        data: JsonObject = {
            "status": status,
            "why": why,
            "services": listed,
            "ignored": ignored,
            "probes": seen,
        }
        if conduct:
            data = {**data, "conduct": conduct}
            if judged_conduct(conduct) and status != "tested" and why != EGRESS_BUDGET:
                data = {**data, "status": "tested", "why": None}
        return Evidence(data, interactions=http.sent)

    def weigh(self, evidence: Evidence, probes: Mapping[str, Probe]) -> Weighed:
        if evidence.data["status"] != "tested":
            why = _WHY.get(str(evidence.data["why"]), _WHY["no_service"])
            return Weighed(50.0, 0.0, (why,))
        judged = [j for j in findings(evidence, probes) if j.finding.outcome != "not_tested"]
        tested = sum(WEIGHTS[j.severity] for j in judged)
        if not tested:
            return Weighed(50.0, 0.0, ("No probe came to a verdict.",))
        passed = sum(WEIGHTS[j.severity] for j in judged if j.finding.outcome == "pass")
        failed = sorted(
            (j for j in judged if j.finding.outcome == "fail"),
            key=lambda j: (-WEIGHTS[j.severity], j.name),
        )
        critical = [j.finding.note for j in failed if j.severity is Severity.CRITICAL]
        count = sum(j.finding.outcome == "pass" for j in judged)
        return Weighed(
            value=round(100 * passed / (passed + FAILURE_COUNTS * (tested - passed)), 2),
            confidence=round(tested / (tested + HALF_SURE_AT), 4),
            reasons=(*(j.finding.note for j in failed), _told(judged, count)),
            cap=Cap(CRITICAL_CAP, critical[0]) if critical else None,
        )


_WHY = {
    "no_conduct": "No conduct of this agent has been observed yet.",
    "no_service": "The agent declares no service that can be tested.",
    "unreachable": "None of the agent's services could be reached.",
    "opted_out": "The agent's site asks not to be tested.",
    "out_of_time": "There was no time to visit the agent's services.",
    EGRESS_BUDGET: "The host of the agent's services has had its share of requests for now"
    " (egress_budget); it gets more by naming the agent in its"
    " /.well-known/agent-registration.json.",
}


def findings(evidence: Evidence, probes: Mapping[str, Probe]) -> list[Judged]:
    """What every probe and obstacle that applies concludes, by name; unfinished ones too."""
    seen, conduct = evidence.data.get("probes"), evidence.data.get("conduct")
    rows: list[Judged] = []
    for name, what in sorted(seen.items()) if is_object(seen) else ():
        probe = probes.get(name)
        if probe is not None and is_object(what):
            rows.append(Judged(name, probe.family, probe.severity, probe.weigh(what)))
        elif probe is not None and what == UNFINISHED:
            rows.append(Judged(name, probe.family, probe.severity, _UNFINISHED))
    return rows + (judged_conduct(conduct) if is_object(conduct) else [])


_UNFINISHED = Finding("not_tested", "The visit's time or requests were used up before this.")


def _told(judged: Sequence[Judged], count: int) -> str:
    """The verdict in one sentence."""
    steps = sum(j.family == CONDUCT for j in judged)
    if steps == len(judged):
        return f"{count} of {len(judged)} tests of its conduct were passed."
    return f"{count} of {len(judged)} probes were passed."


async def _conduct(subject: Subject, needs: SignalNeeds) -> JsonObject:
    """How the agent, or whoever speaks for it, behaved as a caller."""
    if needs.sources.conduct is None:
        return {}
    agent = subject.agent
    return await needs.sources.conduct.observed(
        sorted(agent.controllers) if agent else [subject.agent_id]
    )


def summary(evidence: Evidence, probes: Mapping[str, Probe]) -> JsonObject:
    """The evidence for people: status, counts, and every probe that applies with its verdict."""
    rows = findings(evidence, probes)
    seen = evidence.data.get("probes")
    values = list(seen.values()) if is_object(seen) else []
    outcomes = [row.finding.outcome for row in rows]
    reasons = SIGNAL.weigh(evidence, probes).reasons
    return {
        "status": evidence.data["status"],
        "reason": None if evidence.data["status"] == "tested" else reasons[0],
        "requests": evidence.interactions,
        "passed": outcomes.count("pass"),
        "failed": outcomes.count("fail"),
        "notTested": outcomes.count("not_tested"),
        "unfinished": values.count(UNFINISHED),
        "services": evidence.data.get("services", []),
        "probes": [
            {
                "name": row.name,
                "family": row.family,
                "severity": row.severity.value,
                "outcome": row.finding.outcome,
                "note": row.finding.note,
            }
            for row in rows
        ],
    }


async def _allowed(
    declared: list[Visited], http: VisitHttp
) -> tuple[tuple[Visited, ...], tuple[Visited, ...]]:
    """The services that may be visited, and those whose site asks us not to."""
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(_wants_none(v, http)) for v in declared]
    answers = [task.result() for task in asked]
    pairs = list(zip(declared, answers, strict=True))
    return tuple(v for v, no in pairs if not no), tuple(v for v, no in pairs if no)


def _is_cut(
    subject: Subject,
    http: VisitHttp,
    waits: OwnWaits,
    seen: Mapping[str, JsonObject | str | None],
) -> bool:
    """Whether a budget, or waiting for this service, kept the visit from what it was to see."""
    if http.over_budget or (
        subject.agent is not None and subject.agent.registration_problem == OVER_BUDGET
    ):
        return True
    is_late = UNFINISHED in seen.values() and http.sent < REQUESTS_MAX
    return is_late and waits.waited_s >= BLAMED_FROM_S


def _betrayed(seen: Mapping[str, JsonObject | str | None], probes: Mapping[str, Probe]) -> bool:
    """Whether a visit that was cut short saw what no lack of budget can make: it counts."""
    return any(
        is_object(what)
        and probes[name].severity is Severity.CRITICAL
        and probes[name].weigh(what).outcome == "fail"
        for name, what in seen.items()
    )


async def _wants_none(visited: Visited, http: VisitHttp) -> bool:
    try:
        return await opted_out(visited.service.endpoint, http)
    except (BudgetExhausted, EgressError):
        return False


async def _probe_all(
    visit: Visit, probes: Mapping[str, Probe], deadline_s: float
) -> dict[str, JsonObject | str | None]:
    turns = asyncio.Semaphore(AT_ONCE)
    ends_at = asyncio.get_running_loop().time() + deadline_s
    async with asyncio.TaskGroup() as group:
        asked = {
            name: group.create_task(_probe(probe, visit, turns, ends_at))
            for name, probe in sorted(probes.items(), key=_turn)
        }
    return {name: task.result() for name, task in sorted(asked.items())}


def _turn(named: tuple[str, Probe]) -> tuple[bool, float, str]:
    """What decides whether there is anything to judge first, then what weighs most."""
    name, probe = named
    return name != "reachable", -WEIGHTS[probe.severity], name


async def _probe(
    probe: Probe, visit: Visit, turns: asyncio.Semaphore, ends_at: float
) -> JsonObject | str | None:
    try:
        async with asyncio.timeout_at(ends_at), turns:
            return await probe.collect(visit)
    except Exception:  # noqa: BLE001 - time, budget, or an answer nobody thought of: one hostile
        # service must not take the whole evaluation down; what did not finish is reported.
        return UNFINISHED


def _status(
    visited: tuple[Visited, ...],
    refused: tuple[Visited, ...],
    seen: Mapping[str, JsonValue],
    *,
    replied: bool,
) -> tuple[str, str | None]:
    """Whether there was behaviour to judge, and why not.

    Where `reachable` did not finish, any reply will do: a service that keeps us waiting on purpose
    must not get out of what the other probes found.
    """
    if not visited:
        return "inconclusive", "opted_out" if refused else "no_service"
    reached = seen.get("reachable")
    rows = reached.get("services") if is_object(reached) else None
    if not is_array(rows):
        return ("tested", None) if replied else ("inconclusive", "out_of_time")
    if not any(is_object(row) and row.get("answers") for row in rows):
        return "inconclusive", "unreachable"
    return "tested", None


def _seed(subject: Subject) -> str:
    return hashlib.sha256(subject.key.encode()).hexdigest()[:32]


SIGNAL: Final[Signal] = Sandbox()
