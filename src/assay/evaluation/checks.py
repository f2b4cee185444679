"""Combines checks, and judges an agent as a caller by them. Pure.

Combines checks, and decides which of them could have failed.

A pass is evidence only if the check could have failed: the service it is about works. A check that
passes because there was nothing to see (no answer, 404 to everything), or that no agent can fail,
proves nothing. A failure is always evidence.

Judges an agent as a caller by its observed behaviour.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from assay.caller_behaviour.scenario import CONDUCT, count, failed, passed
from assay.caller_behaviour.scenarios import SCENARIOS
from assay.common.json import JsonObject, is_array, is_object
from assay.evaluation.demands import member, number, rows
from assay.evaluation.ladder import function_rows
from assay.probing.ports import Finding, Severity

CheckClass = Literal["passed", "failed", "not_made"]
"""The result of one check over all visits of the window."""

WEIGHTS: Mapping[Severity, float] = {
    Severity.INFO: 0.0,
    Severity.MINOR: 1.0,
    Severity.MAJOR: 3.0,
    Severity.CRITICAL: 6.0,
}
"""The weight of a check. A decision, so that one critical finding outweighs a page of minor ones
and a passed critical check is worth having. Checks that cannot fail have no weight."""

FAILURE_COUNTS: Final = 2.0
"""How much more a failure counts than a pass. A decision: nearly every agent passes nearly every
check, so failures distinguish agents; an agent that answers every other call must not grade like
one that answers all."""

HALF_SURE_AT: Final = 10.0
"""Weight of checks at which confidence is one half: three major ones and one minor."""

FUNCTION: Final = "function"
"""Prefix of the checks that prove function, one for each kind of service."""

FUNCTION_WEIGHT: Final = 6.0
"""The weight of a proof of function. A decision: as much as a critical check, because an agent
exists to do what it says."""

CRITICAL_CAP: Final = 34.99
"""Highest score with a critical failure. Source: conventions.md#signals-and-score."""

_HTTP: Final = frozenset({"http", "x402"})
_ABOUT: Final[Mapping[str, frozenset[str]]] = {
    "a2a": frozenset({"a2a", "grpc"}),
    "mcp": frozenset({"mcp"}),
    "http": _HTTP,
    "payment": _HTTP,
    "ssrf": frozenset({"mcp"}),
}
"""Kinds of services that checks of a family are about; other families are about any kind."""

_NEEDED_BY: Final[Mapping[str, frozenset[str]]] = {
    "a2a": frozenset({"a2a", "grpc"}),
    "mcp": frozenset({"mcp"}),
    "injection": frozenset({"a2a", "mcp"}),
    "ssrf": frozenset({"mcp"}),
}
"""Kinds of declared services at which checks of a family apply, even if they saw nothing."""

_FREE_TEXT: Final = frozenset({"registration"})
"""Text that every agent has to read, and that costs nothing to write."""

NOT_SEEN: Final = "There was nothing to see that could have failed."


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """A finding with the name, family and severity of its check."""

    name: str
    family: str
    severity: Severity
    finding: Finding


@dataclass(frozen=True, slots=True)
class CheckTally:
    """One check over all visits of the window: whether it passed, failed, or was not made."""

    name: str
    severity: Severity
    passed: bool
    failed: bool
    note: str

    @property
    def outcome(self) -> CheckClass:
        """Return the combined result of all visits."""
        return "failed" if self.failed else "passed" if self.passed else "not_made"

    @property
    def weight(self) -> float:
        """Return its weight."""
        return FUNCTION_WEIGHT if self.name.startswith(FUNCTION) else WEIGHTS[self.severity]


def _working_kinds(behaviour: JsonObject) -> frozenset[str]:
    """Return the kinds of which a service was shown to work.

    Evidence from before proofs of function shows it by its answers: an answered greeting, listed
    tools, a correct payment demand.
    """
    listed = function_rows(behaviour)
    if listed is not None:
        return frozenset(str(r.get("kind")) for r in listed if r.get("state") == "functional")
    seen = member(behaviour, "probes")
    answered = {
        "a2a": member(seen, "a2a_answers").get("answer") == "ok",
        "mcp": member(seen, "mcp_tools_valid").get("listed") == "ok",
        "x402": member(seen, "x402_challenge_valid").get("valid") is True,
    }
    return frozenset(kind for kind, does in answered.items() if does)


def only_what_could_fail(
    judged: Sequence[CheckFinding], behaviour: JsonObject
) -> list[CheckFinding]:
    """Return the rows with every pass that could not have been a failure as not tested."""
    working = _working_kinds(behaviour)
    seen = member(behaviour, "probes")
    return [
        one
        if one.finding.outcome != "pass" or _could_fail(one, member(seen, one.name), working)
        else replace(one, finding=Finding("not_tested", NOT_SEEN))
        for one in judged
    ]


def _could_fail(one: CheckFinding, seen: JsonObject, working: frozenset[str]) -> bool:
    if one.family == "conduct":
        return True  # A caller was observed.
    if one.severity is Severity.INFO:
        return False
    if one.family == "poisoning" and seen.keys() <= _FREE_TEXT:
        return False
    kinds = frozenset(seen) & {"a2a", "mcp", "http", "x402"}
    about = _ABOUT.get(one.family) or (kinds | _HTTP if kinds & _HTTP else kinds)
    return bool(working & about if about else working)


def applicable_unseen(behaviour: JsonObject, families: Mapping[str, str]) -> list[str]:
    """Return applicable checks that saw nothing, by name; `families` by check."""
    declared = {str(row.get("kind")) for row in rows(behaviour, "services") or []}
    declared |= {str(row.get("kind")) for row in rows(behaviour, "function") or []}
    seen = member(behaviour, "probes")
    return sorted(
        name
        for name, what in seen.items()
        if what is None and declared & _NEEDED_BY.get(families.get(name, ""), frozenset())
    )


def pooled(
    judged: Sequence[CheckFinding], history: JsonObject, severities: Mapping[str, Severity]
) -> list[CheckTally]:
    """Return every applicable check by name, with the combined result of all visits.

    If the history has an outcome of a check, that is used; it includes the newest visit.
    """
    earlier = member(history, "pooled")
    now = {one.name: one for one in judged}
    tested: list[CheckTally] = []
    for name in sorted(now.keys() | (earlier.keys() & severities.keys())):
        one, past = now.get(name), member(earlier, name)
        outcome = past.get("outcome") or (None if one is None else one.finding.outcome)
        severity = severities[name] if one is None else one.severity
        if severity is Severity.INFO:
            continue  # No agent can fail it.
        tested.append(
            CheckTally(
                name,
                severity,
                passed=outcome == "pass",
                failed=outcome == "fail",
                note=f"Visits of the last weeks found a fault: {name}."
                if one is None
                else one.finding.note,
            )
        )
    return tested


def function_checks(behaviour: JsonObject) -> list[CheckTally]:
    """Return proofs of function: by kind, whether a service of it does what it says.

    A service that refuses or cannot be reached counts as not checked: other checks and the ladder
    cover that. The same holds for what a single visit timed by others saw, until it is confirmed,
    and for inconclusive visits.
    """
    if behaviour.get("status") != "tested":
        return []
    soft = member(behaviour, "history").get("unconfirmed") is True
    states: dict[str, set[str]] = {}
    for row in function_rows(behaviour) or []:
        if row.get("state") != "not_callable":
            states.setdefault(str(row.get("kind")), set()).add(str(row.get("state")))
    return [
        CheckTally(
            f"{FUNCTION}_{kind}",
            Severity.MAJOR,
            passed="functional" in found,
            failed=not soft and "not_functional" in found and "functional" not in found,
            note=f"No {kind} service was shown to do what it says.",
        )
        for kind, found in sorted(states.items())
    ]


def worth(tested: Sequence[CheckTally]) -> tuple[float, float]:
    """Return value 0 to 100 and confidence 0 to 1 of checks: 50 and 0 if none could be made.

    Value: 100 x passed / (passed + 2 x failed), weighted by severity. Confidence: w / (w + 10) for
    a weight w of the checks that were made.
    """
    passed = sum(t.weight for t in tested if t.outcome == "passed")
    failed = sum(t.weight for t in tested if t.outcome == "failed")
    total = passed + failed
    if not total:
        return 50.0, 0.0
    value = 100 * passed / (passed + FAILURE_COUNTS * failed)
    return round(value, 2), round(total / (total + HALF_SURE_AT), 4)


def supposed(tested: Sequence[CheckTally], *, passes: bool) -> list[CheckTally]:
    """Return the checks as if every one that could not be made had passed, or failed."""
    return [
        replace(t, passed=passes, failed=not passes) if t.outcome == "not_made" else t
        for t in tested
    ]


def critical_failures(tested: Sequence[CheckTally], behaviour: JsonObject) -> list[str]:
    """Return sentences of the critical failures that cap the score, corroborated if recorded."""
    listed = rows(behaviour, "findings")
    sure = {
        str(row.get("check"))
        for row in listed or []
        if row.get("severity") == "critical"
        and row.get("open") is not False
        and number(row, "sightings") >= 2  # noqa: PLR2004 - corroborated
    }
    failed = {t.name: t.note for t in tested if t.severity is Severity.CRITICAL and t.failed}
    if listed is None:
        sure |= failed.keys()
    older = member(behaviour, "history").get("openCritical")
    for one in older if is_array(older) else ():
        sure.add(str(one.get("check")) if is_object(one) else str(one))
    return [failed.get(name, f"A critical finding is open: {name}.") for name in sorted(sure)]


LIMITED_MIN = 3
"""429s needed before their handling is judged."""

EARLY_SHARE = 1 / 3
CALLS_MIN = 10
ERROR_RUN = 10
"""Equal errors in a row, on one path of one wrapper, that count as a loop."""


def judged_conduct(seen: JsonObject) -> list[CheckFinding]:
    """Return every finding about a caller, by name; `seen` comes from a `CallerBehaviourSource`."""
    course, wrappers = seen.get("course"), seen.get("wrappers")
    rows: list[CheckFinding] = []
    for name, what in sorted(course.items()) if is_object(course) else ():
        scenario = SCENARIOS.get(name)
        if scenario is not None and is_object(what):
            rows.append(CheckFinding(name, CONDUCT, scenario.severity, scenario.weigh(what)))
    if is_object(wrappers):
        rows.extend(_at_wrappers(wrappers))
    return rows


def _at_wrappers(seen: JsonObject) -> list[CheckFinding]:
    rows: list[CheckFinding] = []
    limited, early = count(seen, "limited"), count(seen, "early")
    if limited >= LIMITED_MIN:
        ignored = early > EARLY_SHARE * limited
        finding = (
            failed("At wrappers it calls again at once after a 429.")
            if ignored
            else passed("At wrappers it waits after a 429.")
        )
        rows.append(CheckFinding("wrapper_limits_obeyed", CONDUCT, Severity.MAJOR, finding))
    if count(seen, "calls") >= CALLS_MIN:
        looped = count(seen, "errorRun") >= ERROR_RUN
        finding = (
            failed("At wrappers it repeats calls that are refused, in a loop.")
            if looped
            else passed("At wrappers it does not repeat what is refused.")
        )
        rows.append(CheckFinding("wrapper_errors_not_looped", CONDUCT, Severity.MINOR, finding))
    return rows
