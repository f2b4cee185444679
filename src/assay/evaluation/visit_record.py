"""Summarises one visit's evidence in the row that is stored. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from assay.caller_behaviour.scenario import CONDUCT
from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.evaluation.caller_verdict import CheckFinding
from assay.evaluation.comparison import CLOAKING
from assay.evaluation.drift import compare, known_facts
from assay.evaluation.model import UNFINISHED, Evidence
from assay.evaluation.pooling import FINISHED
from assay.evaluation.visits import CheckOutcome, Label, VisitRecord
from assay.probing.deposited_access import NOT_ENTERED
from assay.probing.ports import Severity
from assay.probing.unannounced import Difference

AVAILABILITY_FAMILY: Final = "reachability"
AVAILABILITY_CHECKS: Final = frozenset({"a2a_answers", "mcp_initialize", "mcp_tools_stable"})
"""Checks that fail for timeouts, 429, 5xx or unreachability, which others' load can cause."""

SERVICES_MAX: Final = 64
WAITS: Final = "waiting_for_budget"
"""Why a service was not asked in a visit whose budget others used: its turn is later."""

_NOT_ASKED: Final = frozenset({WAITS, NOT_ENTERED})

ABSENT: Final = frozenset({"unreachable", "out_of_time"})
"""Reasons why a visit saw nothing that mean the agent was absent."""


def remembered(
    made: VisitRecord,
    evidence: Evidence,
    rows: Sequence[CheckFinding],
    visits: Sequence[VisitRecord],
) -> VisitRecord:
    """Return the visit as it is stored."""
    outcomes: dict[str, CheckOutcome] = {}
    critical: set[str] = set()
    for row in rows:
        if row.family == CONDUCT or row.finding.outcome == "not_tested":
            continue
        has_passed = row.finding.outcome == "pass"
        is_blocked = row.family == AVAILABILITY_FAMILY or row.name in AVAILABILITY_CHECKS
        outcomes[row.name] = "passed" if has_passed else "blocked" if is_blocked else "failed"
        if row.severity is Severity.CRITICAL and not has_passed:
            critical.add(row.name)
    if evidence.data.get("why") in ABSENT:
        outcomes["reachable"] = "blocked"
    elif evidence.data.get("status") == "tested":
        outcomes[FINISHED] = "blocked" if is_unfinished(evidence) else "passed"
    listed = evidence.data.get("findings")
    if is_array(listed):  # CheckFinding by corroboration: a single sighting opens nothing yet.
        critical = {str(row["check"]) for row in listed if is_object(row) and _is_open(row)}
    facts, prints = evidence.data.get("facts"), _texts(evidence.data.get("fingerprints"))
    known: JsonObject = visits[-1].facts if visits else _NOTHING
    seen: JsonObject = {**facts, "fingerprints": prints} if is_object(facts) else _NOTHING
    return replace(
        made,
        label=_label(evidence.data.get("visit")),
        outcomes=outcomes,
        critical=tuple(sorted(critical)),
        states=_states(evidence),
        fingerprints=prints,
        facts=known_facts(known, seen),
        silent_changes=compare(known, seen).silent if known else (),
        rung=visits[-1].rung if visits else 0,
        findings=_sightings(listed),
        calls=_calls(evidence.transcript.get("calls")),
        source=_source(evidence.data.get("visit")),
    )


def with_comparison(
    record: VisitRecord, found: Sequence[Difference], visits: Sequence[VisitRecord]
) -> VisitRecord:
    """Add what it and the earlier `visits` show together: cloaking is a critical check.

    It closes like the others, by scheduled visits without such a difference.
    """
    if any(difference.is_finding for difference in found):
        outcomes: dict[str, CheckOutcome] = {**record.outcomes, CLOAKING: "failed"}
        return replace(record, outcomes=outcomes, critical=(*record.critical, CLOAKING))
    if any(CLOAKING in visit.critical for visit in visits) and record.fingerprints:
        return replace(record, outcomes={**record.outcomes, CLOAKING: "passed"})
    return record


def _is_open(row: JsonObject) -> bool:
    return bool(row.get("open")) and row.get("severity") == Severity.CRITICAL.value


def _sightings(listed: JsonValue) -> tuple[JsonObject, ...]:
    """Return sightings that count together with those of other visits."""
    rows = [row for row in listed if is_object(row)] if is_array(listed) else []
    return tuple(
        {name: row[name] for name in ("check", "severity", "sightings")}
        for row in rows
        if row.get("severity") == Severity.CRITICAL.value and isinstance(row.get("sightings"), int)
    )


def _source(value: JsonValue) -> str:
    said = value.get("source") if is_object(value) else None
    return said if isinstance(said, str) else ""


def _label(value: JsonValue) -> Label:
    said = value.get("label") if is_object(value) else None
    return _LABELS.get(str(said), "unlabelled")


_LABELS: Final[Mapping[str, Label]] = {"announced": "announced", "unannounced": "unannounced"}
_NOTHING: Final[JsonObject] = {}


def _states(evidence: Evidence) -> dict[str, str]:
    """Return states by service, without those whose turn is later; absence is not a fault."""
    value = evidence.data.get("function")
    rows = [row for row in value if is_object(row)] if is_array(value) else []
    asked = [row for row in rows if row.get("why") not in _NOT_ASKED]
    found = {str(row.get("service")): str(row.get("state")) for row in asked[:SERVICES_MAX]}
    if evidence.data.get("why") not in ABSENT:
        return found
    return {n: "unreachable" if s == "not_functional" else s for n, s in found.items()}


def _calls(value: JsonValue) -> tuple[int, int]:
    made, failed = (value.get(n) for n in ("made", "failed")) if is_object(value) else (0, 0)
    return (made, failed) if isinstance(made, int) and isinstance(failed, int) else (0, 0)


def is_unfinished(evidence: Evidence) -> bool:
    """Return whether our time, budget or a missing answer left function or a check open.

    A service whose turn is later is not counted.
    """
    rows = evidence.data.get("function")
    listed = [row for row in rows if is_object(row)] if is_array(rows) else []
    if any(r.get("state") == UNFINISHED and r.get("why") not in _NOT_ASKED for r in listed):
        return True
    waiting, found = evidence.data.get("criticalUnfinished"), evidence.data.get("findings")
    # A single sighting is kept, so that a second one can confirm it.
    once = [row.get("check") for row in found if is_object(row)] if is_array(found) else []
    return is_array(waiting) and any(name not in once for name in waiting)


def _texts(value: JsonValue) -> dict[str, str]:
    return {n: v for n, v in value.items() if isinstance(v, str)} if is_object(value) else {}
