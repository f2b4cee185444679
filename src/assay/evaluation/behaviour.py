"""Derives findings, their worth and a summary from a visit's evidence. Pure.

`evaluation.checks` combines checks, and decides which of them could have failed. A critical failure
caps the whole score below 35 (conventions.md#signals-and-score). Unfinished checks are left out and
reported.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from assay.common.egress_budget import EGRESS_BUDGET
from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.control import rules
from assay.evaluation.checks import (
    CRITICAL_CAP,
    NOT_SEEN,
    CheckFinding,
    CheckTally,
    applicable_unseen,
    critical_failures,
    function_checks,
    judged_conduct,
    only_what_could_fail,
    pooled,
    supposed,
    worth,
)
from assay.evaluation.model import Cap, Evidence, SignalScore
from assay.probing.deposited_access import NOT_ENTERED
from assay.probing.findings import waiting_checks
from assay.probing.ports import Finding, Probe, Severity, VisitedService
from assay.probing.visit_steps import UNFINISHED, RoundResult
from assay.registries.model import Subject


def weigh(evidence: Evidence, probes: Mapping[str, Probe]) -> SignalScore:
    """Return the evidence's worth, with the least and the most that missing checks allow."""
    behaviour = evidence.data
    judged = findings(evidence, probes) if behaviour["status"] == "tested" else []
    history = behaviour.get("history")
    severities = {name: probe.severity for name, probe in probes.items()}
    tested = pooled(judged, history if is_object(history) else {}, severities)
    families = {name: probe.family for name, probe in probes.items()}
    unseen = [
        CheckTally(name, probes[name].severity, passed=False, failed=False, note=NOT_SEEN)
        for name in applicable_unseen(behaviour, families)
        if name not in {t.name for t in tested}
    ]
    tested = [*tested, *unseen, *function_checks(behaviour)]
    now = _weighed(tested, behaviour)
    if behaviour["status"] != "tested":
        why = _WHY.get(str(behaviour["why"]), _WHY["no_service"])
        return replace(now, reasons=(why, *now.reasons))
    return replace(
        now,
        reasons=now.reasons or ("No check came to a verdict.",),
        low=_weighed(supposed(tested, passes=False), behaviour),
        high=_weighed(supposed(tested, passes=True), behaviour),
        checks={t.name: t.outcome for t in sorted(tested, key=lambda t: t.name)},
    )


def _weighed(tested: Sequence[CheckTally], behaviour: JsonObject) -> SignalScore:
    value, confidence = worth(tested)
    failed = sorted((t for t in tested if t.failed), key=lambda t: (-t.weight, t.name))
    critical = critical_failures(tested, behaviour)
    critical += [reason.sentence for reason in rules.inherited(behaviour)]
    limits = [reason.sentence for reason in rules.ceiling_reasons(behaviour)]
    made = [t for t in tested if t.outcome != "not_made"]
    said = ()
    if made:
        good = sum(t.outcome == "passed" for t in made)
        said = (
            f"{len(made)} of {len(tested)} applicable checks could be made; {good} were passed.",
        )
    return SignalScore(
        value=value,
        confidence=confidence,
        reasons=(*(t.note for t in failed), *limits, *said),
        cap=Cap(CRITICAL_CAP, critical[0]) if critical else None,
    )


_WHY = {
    "no_conduct": "No conduct of this agent has been observed yet.",
    "no_service": "The agent declares no service that can be tested.",
    "unreachable": "None of the agent's services could be reached.",
    NOT_ENTERED: "Its services open only to credentials, which this visit did not carry.",
    "opted_out": "The agent's site asks not to be tested.",
    "out_of_time": "There was no time to visit the agent's services.",
    EGRESS_BUDGET: "The host of the agent's services has had its share of requests for now"
    " (egress_budget); it gets more by naming the agent in its"
    " /.well-known/agent-registration.json.",
}


def findings(evidence: Evidence, probes: Mapping[str, Probe]) -> list[CheckFinding]:
    """Return the conclusion of every probe and scenario that applies, by name.

    Unfinished ones are included. A pass that could not have been a failure is `not_tested`. If
    visits of the window were pooled, it is the conclusion of all of them, not of the newest one.
    """
    rows, history = raw_findings(evidence, probes), evidence.data.get("history")
    if not is_object(history):
        return rows
    return [replace(row, finding=_pooled(row, history)) for row in rows]


def _pooled(row: CheckFinding, history: JsonObject) -> Finding:
    """Return the finding on one check over all visits; critical ones fail while they are open."""
    pooled, critical = history.get("pooled"), history.get("openCritical")
    counted = pooled.get(row.name) if is_object(pooled) else None
    if not is_object(counted):
        return row.finding
    has_failed = counted["outcome"] == "fail"
    if row.severity is Severity.CRITICAL and is_array(critical):
        has_failed = row.name in critical
    if row.finding.outcome == ("fail" if has_failed else "pass"):
        return row.finding
    if has_failed:
        note = "Failed in earlier visits; visits that we time have to pass it before it counts."
        return Finding("fail", note)
    return Finding("pass", "Passed by the visits of the last weeks together.")


def raw_findings(evidence: Evidence, probes: Mapping[str, Probe]) -> list[CheckFinding]:
    """Return the findings of the newest visit alone."""
    seen, conduct = evidence.data.get("probes"), evidence.data.get("conduct")
    rows: list[CheckFinding] = []
    for name, what in sorted(seen.items()) if is_object(seen) else ():
        probe = probes.get(name)
        if probe is not None and is_object(what):
            rows.append(CheckFinding(name, probe.family, probe.severity, probe.weigh(what)))
        elif probe is not None and what == UNFINISHED:
            rows.append(CheckFinding(name, probe.family, probe.severity, _UNFINISHED))
    rows = only_what_could_fail(rows, evidence.data)
    return rows + (judged_conduct(conduct) if is_object(conduct) else [])


_UNFINISHED = Finding("not_tested", "The visit's time or requests were used up before this.")


def critical_findings(evidence: Evidence, probes: Mapping[str, Probe]) -> list[str]:
    """Return the checks whose critical finding this evidence opens or keeps open.

    Findings of other agents under the same control are not included.
    """
    rows = evidence.data.get("findings")
    if is_array(rows):
        return [
            str(row.get("check"))
            for row in rows
            if is_object(row) and row.get("severity") == "critical" and row.get("open")
        ]
    return [
        j.name
        for j in findings(evidence, probes)
        if j.severity is Severity.CRITICAL and j.finding.outcome == "fail" and j.family != "conduct"
    ]


def betrayed(seen: RoundResult, probes: Mapping[str, Probe]) -> bool:
    """Return whether an aborted visit saw a failure that no lack of budget can cause: it counts."""
    return any(
        is_object(what)
        and probes[name].severity is Severity.CRITICAL
        and probes[name].weigh(what).outcome == "fail"
        for name, what in seen.items()
    )


def ceiling_data(subject: Subject, seen: RoundResult, probes: Mapping[str, Probe]) -> JsonObject:
    """Return what keeps the agent on rung 0 besides its services' results, if anything does."""
    file = subject.agent.registration if subject.agent else None
    waiting = waiting_checks(seen, probes)
    failed = sorted(
        name
        for name, what in seen.items()
        if is_object(what)
        and probes[name].severity is Severity.CRITICAL
        and probes[name].weigh(what).outcome == "fail"
    )
    inactive: JsonObject = {"active": False} if file is not None and file.active is False else {}
    listed = {"criticalUnfinished": waiting, "criticalFailed": failed}
    return {**inactive, **{name: [*names] for name, names in listed.items() if names}}


def status_of(
    visited: tuple[VisitedService, ...],
    refused: tuple[VisitedService, ...],
    seen: Mapping[str, JsonValue],
    *,
    replied: bool,
) -> tuple[str, str | None]:
    """Return whether there was behaviour to judge, and why not.

    If `reachable` did not finish, any reply suffices: a service that delays us on purpose must not
    escape the findings of the other probes.
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


def _entry(entry: JsonValue) -> JsonObject:
    """Return which services a deposited credential opened, and the result of each credential."""
    if not is_object(entry):
        return {}
    return {name: entry[name] for name in ("entered", "credentials") if name in entry}


def summary(evidence: Evidence, probes: Mapping[str, Probe]) -> JsonObject:
    """Return a readable summary: status, counts, and every applicable probe with its verdict."""
    rows = findings(evidence, probes)
    seen = evidence.data.get("probes")
    values = list(seen.values()) if is_object(seen) else []
    outcomes = [row.finding.outcome for row in rows]
    reasons = weigh(evidence, probes).reasons
    return {
        "status": evidence.data["status"],
        "reason": None if evidence.data["status"] == "tested" else reasons[0],
        "requests": evidence.interactions,
        "passed": outcomes.count("pass"),
        "failed": outcomes.count("fail"),
        "notTested": outcomes.count("not_tested"),
        "unfinished": values.count(UNFINISHED),
        "services": evidence.data.get("services", []),
        "control": evidence.data.get("control", []),
        **_entry(evidence.data.get("entry")),
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
