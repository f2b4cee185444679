"""Combines one visit with earlier ones into the evidence of an evaluation.

Summarises one visit's evidence in the row that is stored. Pure.

Decides when the evidence of an earlier evaluation is kept. Pure.

It is kept after a re-check, which sees too little to replace it, and after a visit to a sibling: an
agent of the same owner under the same proven addresses.

The sandbox evidence gets two members: `visit`, how this visit came about, and `history`, the
combined result of all visits in the window. If this visit adds nothing, the evidence of the newest
evaluation is kept: an open trigger cannot re-roll a result, and gives no new hash.
Source: evidence.md#pooling-of-visits, #drift.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from assay.caller_behaviour.scenario import CONDUCT
from assay.common.clock import Clock
from assay.common.egress_budget import EGRESS_BUDGET
from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.evaluation.checks import CheckFinding
from assay.evaluation.history import (
    CLOAKING,
    FINISHED,
    FirstLooks,
    History,
    TriggeredTurns,
    compared,
    pool,
    row_of,
)
from assay.evaluation.model import (
    INDEXING,
    UNFINISHED,
    Evaluation,
    Evidence,
    SignalName,
    SignalResult,
    SignalScore,
)
from assay.evaluation.ports import Signal
from assay.evaluation.schedule import ScheduleEvidence, VisitReason
from assay.evaluation.store_visits import SqlVisitStore
from assay.evaluation.visits import (
    DECLARATION,
    RECHECK,
    WINDOW,
    CheckOutcome,
    EvaluationRequest,
    Label,
    VisitRecord,
    compare,
    known_facts,
)
from assay.net.egress.url import domain_of
from assay.probing.cloaking import Difference
from assay.probing.declared_services import declared_services
from assay.probing.deposited_access import CLOSED, NOT_ENTERED
from assay.probing.ports import Probe, Severity
from assay.registries.model import Subject

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
        outcomes[FINISHED] = "blocked" if _is_unfinished(evidence) else "passed"
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


def _is_unfinished(evidence: Evidence) -> bool:
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


OWN_VISIT_WITHIN: Final = timedelta(days=7)
"""Largest age of an agent's own announced visit for it to share those of its siblings: its
services' control is read again by that time."""

SHARED_WITHIN: Final = timedelta(hours=12)
"""Largest age of a shared sibling's visit: the least time between two routine visits."""

OF_REGISTRATIONS: Final = frozenset(
    {
        "domain_binding",
        "registration_complete",
        "registration_names_agent",
        "registration_readable",
        "wallet_matches_chain",
    }
)
"""Checks about a registration rather than a service, which are not shared."""

_OWN_FACTS: Final = ("registration", "texts registration")
"""Facts' services, and fingerprints, that are read from the registration."""


@dataclass(frozen=True, slots=True)
class AccumulatedEvidence:
    """The evidence of an evaluation, and the visit to be stored with it, if it adds evidence."""

    collected: tuple[SignalResult, ...]
    visit: VisitRecord | None = None
    history: History | None = None
    has_new_failure: bool = False
    """Whether the visit saw a failure or a change that scheduled visits should check soon."""


@dataclass(frozen=True, slots=True)
class EarlierEvidence:
    """An agent's evidence, and its visits in order of time, before the newest visit."""

    subject_key: str
    now: datetime
    earlier: Evidence
    visits: Sequence[VisitRecord]
    critical: frozenset[str]
    """Names of checks that may fail critically."""
    weigh: Callable[[Evidence], SignalScore]

    def after_recheck(
        self, collected: tuple[SignalResult, ...], seen: Evidence, rows: Sequence[CheckFinding]
    ) -> AccumulatedEvidence:
        """Return the existing evidence; a visit is added only if the agent changed.

        If the agent was absent, scheduled visits check again, as after any visit timed by others.
        """
        made = VisitRecord(self.subject_key, self.now, "triggered")
        record = remembered(made, seen, rows, self.visits)
        outcomes = {name: one for name, one in record.outcomes.items() if one == "blocked"}
        record = replace(record, outcomes=outcomes)
        before = self._pool()
        is_new = bool(record.silent_changes or outcomes)
        adds = is_new and _adds_evidence(record, self.visits, before)
        found = self._pool(record) if adds else before
        members = _members_of(record, found, keep=None if adds else self.earlier)
        conduct = {n: v for n, v in seen.data.items() if n == "conduct"}
        data = {**self.earlier.data, **conduct, **members, RECHECK: True}
        has_failed = is_new or found.asks_for_a_look
        return AccumulatedEvidence(
            self._judged(collected, data, seen.interactions),
            record if adds else None,
            found,
            has_failed,
        )

    def after_sibling(
        self, collected: tuple[SignalResult, ...], visit: VisitRecord
    ) -> AccumulatedEvidence:
        """Return the existing evidence, with the history that a sibling's visit adds.

        Facts from the sibling's registration are left out.
        """
        known: JsonObject = self.visits[-1].facts if self.visits else {}
        outcomes = {n: seen for n, seen in visit.outcomes.items() if n not in OF_REGISTRATIONS}
        prints = {n: v for n, v in visit.fingerprints.items() if n not in _OWN_FACTS}
        record = replace(
            visit,
            subject_key=self.subject_key,
            outcomes=outcomes,
            fingerprints=prints,
            facts=known_facts(known, _of_services(visit.facts)),
            rung=self.visits[-1].rung if self.visits else 0,
            shared_by=visit.subject_key,
        )
        differing = compared([*self.visits, record], self.critical)
        record = with_comparison(record, differing, self.visits)
        found = self._pool(record)
        data = _with_row(self.earlier.data, row_of(differing))
        data = {n: member for n, member in data.items() if n != RECHECK}
        return AccumulatedEvidence(
            self._judged(collected, {**data, **_members_of(record, found, keep=None)}, 0),
            record,
            found,
            found.asks_for_a_look,
        )

    def _pool(self, *record: VisitRecord) -> History:
        return pool([*self.visits, *record], self.now, self.critical)

    def _judged(
        self, collected: tuple[SignalResult, ...], data: JsonObject, interactions: int
    ) -> tuple[SignalResult, ...]:
        evidence = Evidence(data, interactions, self.earlier.transcript)
        judged = SignalResult(SignalName.SANDBOX, evidence, self.weigh(evidence))
        others = [one for one in collected if one.signal is not SignalName.SANDBOX]
        return tuple(sorted([*others, judged], key=lambda one: one.signal))


def may_share(
    visit: VisitRecord, visits: Sequence[VisitRecord], now: datetime, critical: frozenset[str]
) -> bool:
    """Return whether a sibling's visit may count for an agent with these visits.

    It must be later than all visits of this agent, timed by us, and without anything that has to be
    checked again: bad results are verified at each agent itself. An announced visit is not shared
    if the agent's unannounced visits would then be fewer than the others, because rung 2 requires
    half.
    """
    known, recent = pool(visits, now, critical), now - OWN_VISIT_WITHIN
    return (
        visit.timing == "scheduled"
        and not (visit.shared_by or visit.critical or visit.findings or visit.silent_changes)
        and visit.outcomes.get(FINISHED) == "passed"
        and now - visit.at <= SHARED_WITHIN
        and all(one.at < visit.at for one in visits)
        and any(_is_own(one) for one in visits if one.at >= recent)
        and not (known.open_critical or known.asks_for_a_look)
        and (visit.label == "unannounced" or _unannounced_lead(visits) > 0)
    )


def _unannounced_lead(visits: Sequence[VisitRecord]) -> int:
    """Return how many more of the scheduled visits were unannounced than announced."""
    return sum(1 if v.label == "unannounced" else -1 for v in visits if v.timing == "scheduled")


def _is_own(visit: VisitRecord) -> bool:
    """Return whether the visit read who controls the agent's services."""
    is_finished = visit.outcomes.get(FINISHED) == "passed"
    return is_finished and visit.label == "announced" and not visit.shared_by


def _of_services(facts: JsonObject) -> JsonObject:
    """Return facts of a visit without those of the registration."""
    kept: dict[str, JsonObject] = {
        name: {service: value for service, value in by_service.items() if service not in _OWN_FACTS}
        for name, by_service in facts.items()
        if is_object(by_service)
    }
    others = {n: v for n, v in facts.items() if not is_object(v) and n != DECLARATION}
    return {**others, **kept}


def evidence_of(newest: Evaluation | None) -> Evidence | None:
    """Return the behavioural evidence of an evaluation in which the agent was tested."""
    for one in newest.collected if newest is not None else ():
        if one.signal is SignalName.SANDBOX and one.evidence.data.get("status") == "tested":
            return one.evidence
    return None


def _members_of(record: VisitRecord, found: History, keep: Evidence | None) -> JsonObject:
    """Return `visit` and `history`; those of the kept evidence if nothing was added."""
    if keep is not None and "history" in keep.data:
        return {"history": keep.data["history"], "visit": keep.data.get("visit")}
    shared: Mapping[str, str] = {"sharedBy": record.shared_by} if record.shared_by else {}
    return {
        "visit": {"timing": record.timing, "label": record.label, **shared},
        "history": found.as_json(),
    }


def _adds_evidence(record: VisitRecord, visits: Sequence[VisitRecord], before: History) -> bool:
    """Return whether the visit counts; a critical finding or a silent change always does, once."""
    if record.timing == "scheduled" or record.silent_changes:
        return True
    seen = {*record.critical, *(str(row["check"]) for row in record.findings)}
    if not seen <= {*before.open_critical, *before.sighted}:
        return True
    return TriggeredTurns(visits).take(record)


def _with_row(data: JsonObject, row: JsonObject | None) -> JsonObject:
    """Return the evidence, adding the comparison of visits to its findings."""
    listed = data.get("findings")
    if not is_array(listed):
        return data if row is None else {**data, "findings": [row]}
    others = [one for one in listed if not is_object(one) or one.get("check") != CLOAKING]
    return {**data, "findings": [*others, *([] if row is None else [row])]}


Judge: TypeAlias = Callable[[Evidence, Mapping[str, Probe]], Sequence[CheckFinding]]
"""Returns the conclusions of every check from one visit alone: `raw_findings` of the sandbox."""

HOST_CHARS_MAX: Final = 255

RECHECKED_WITHIN: Final = timedelta(days=6)
"""Largest age of the newest whole visit that a re-check confirms. Together with the lifetime of a
re-check, at most a day, no result is reused for longer than the seven days of every other."""

CONTROL: Final = ("control", "identity", "entry")
"""Members of the evidence that only announced visits collect: a customer does not ask who controls
a host, and carries no deposited credential. The newest result counts."""


class VisitHistory:
    """Reads the results of earlier visits, and judges the newest one by them."""

    def __init__(self, store: SqlVisitStore, clock: Clock, judge: Judge) -> None:
        self._store = store
        self._clock = clock
        self._judge = judge

    def pending(
        self,
        collected: Sequence[SignalResult],
        probes: Mapping[str, Probe],
        asked: EvaluationRequest,
    ) -> str | None:
        """Return why a visit could not be finished, or None; unfinished visits prove nothing.

        A visit that saw a critical failure counts as it is, and so does the last try.
        """
        evidence = next((c.evidence for c in collected if c.signal is SignalName.SANDBOX), None)
        if evidence is None or asked.is_last_try or not _is_unfinished(evidence):
            return None
        has_failed = any(
            row.severity is Severity.CRITICAL and row.finding.outcome == "fail"
            for row in self._judge(evidence, probes)
        )
        return None if has_failed else UNFINISHED

    async def accumulate(
        self,
        subject: Subject,
        collected: tuple[SignalResult, ...],
        tools: "tuple[Signal, Mapping[str, Probe]]",
        newest: Evaluation | None,
        asked: EvaluationRequest,
    ) -> AccumulatedEvidence:
        """Return the evidence with its history (none for a key agent). `tools`: sandbox, probes."""
        sandbox = next((c for c in collected if c.signal is SignalName.SANDBOX), None)
        if subject.agent is None:
            return AccumulatedEvidence(collected)
        now = self._clock.now()
        visits = await self._store.recent(subject.key, now - WINDOW)
        critical = frozenset(n for n, p in tools[1].items() if p.severity is Severity.CRITICAL)
        earlier = evidence_of(newest)
        if earlier is not None and (asked.shared is not None or _is_recheck(sandbox)):
            weigh = partial(tools[0].weigh, probes=tools[1])
            earlier_evidence = EarlierEvidence(subject.key, now, earlier, visits, critical, weigh)
            return self._stands(earlier_evidence, collected, tools[1], asked)
        if sandbox is None:
            return AccumulatedEvidence(collected)
        rows = self._judge(sandbox.evidence, tools[1])
        made = VisitRecord(subject.key, now, asked.timing)
        record = remembered(made, sandbox.evidence, rows, visits)
        differing = compared([*visits, record], critical)
        record = with_comparison(record, differing, visits)
        before, after = pool(visits, now, critical), pool([*visits, record], now, critical)
        adds = _adds_evidence(record, visits, before)
        found = after if adds else before
        keeps = earlier is not None and (
            not (adds and _shows_more(record, visits))
            or _is_absent_for_now(sandbox.evidence, found)
            or _is_closed(sandbox.evidence)
        )
        seen = earlier if earlier is not None and keeps else sandbox.evidence
        data = dict(seen.data if not adds else _with_row(seen.data, row_of(differing)))
        if earlier is not None and adds:
            data |= _control_of(sandbox.evidence if record.label == "announced" else earlier)
        data.pop(RECHECK, None)
        evidence = Evidence(
            {**data, **_members_of(record, found, keep=earlier if keeps and not adds else None)},
            sandbox.evidence.interactions,
            seen.transcript,
        )
        judged = SignalResult(SignalName.SANDBOX, evidence, tools[0].weigh(evidence, tools[1]))
        others = [judged if c is sandbox else c for c in collected]
        has_failed = _has_failed(record, before) or found.asks_for_a_look
        return AccumulatedEvidence(tuple(others), record if adds else None, found, has_failed)

    def _stands(
        self,
        earlier_evidence: EarlierEvidence,
        collected: tuple[SignalResult, ...],
        probes: Mapping[str, Probe],
        asked: EvaluationRequest,
    ) -> AccumulatedEvidence:
        """Return what an evaluation without a visit of its own rests on."""
        if asked.shared is not None:
            return earlier_evidence.after_sibling(collected, asked.shared)
        seen = next(c.evidence for c in collected if c.signal is SignalName.SANDBOX)
        return earlier_evidence.after_recheck(collected, seen, self._judge(seen, probes))

    async def is_known(self, subject: Subject, newest: Evaluation | None) -> bool:
        """Return whether a whole visit is recent enough for re-checks to confirm its result."""
        if subject.agent is None or evidence_of(newest) is None:
            return False
        since = self._clock.now() - RECHECKED_WITHIN
        visits = await self._store.recent(subject.key, since)
        return any(visit.outcomes.get(FINISHED) == "passed" for visit in visits)


def waits_for(collected: Sequence[SignalResult], missing: Mapping[SignalName, str]) -> str | None:
    """Return what of ours an evaluation lacked: a host's budget, or events of the chain."""
    evidence = next((c.evidence for c in collected if c.signal is SignalName.SANDBOX), None)
    if evidence is not None and evidence.data.get("why") == EGRESS_BUDGET:
        return EGRESS_BUDGET
    return INDEXING if any(reason.startswith(INDEXING) for reason in missing.values()) else None


def seen_by(
    subject: Subject, found: AccumulatedEvidence, pending: str | None, asked: EvaluationRequest
) -> ScheduleEvidence:
    """Return what the evaluation means for the agent's next visit."""
    evidence = next((c.evidence for c in found.collected if c.signal is SignalName.SANDBOX), None)
    control = evidence.data.get("control") if evidence is not None else None
    rows = [row for row in control if is_object(row)] if is_array(control) else []
    return ScheduleEvidence(
        host=_host(subject),
        has_control=any(row.get("proof") and not row.get("conflict") for row in rows),
        asked=asked,
        pending=_REASONS[pending] if pending is not None else None,
        has_failed=found.has_new_failure,
    )


_REASONS: Final[Mapping[str, VisitReason]] = {
    EGRESS_BUDGET: "waiting_for_budget",
    UNFINISHED: "unfinished",
    INDEXING: "indexing",
}


def _host(subject: Subject) -> str:
    """Return the registrable domain of the first service that can be called."""
    for visited in declared_services(subject)[0]:
        host = urlsplit(visited.service.endpoint).hostname
        if host:
            return domain_of(host)[:HOST_CHARS_MAX]
    return ""


def _shows_more(record: VisitRecord, visits: Sequence[VisitRecord]) -> bool:
    """Return whether the visit's evidence replaces the current one, and not only refutes it."""
    return bool(record.critical or record.findings) or FirstLooks(visits).take(record)


def _control_of(evidence: Evidence) -> JsonObject:
    return {name: evidence.data[name] for name in CONTROL if name in evidence.data}


def _is_recheck(sandbox: SignalResult | None) -> bool:
    return sandbox is not None and bool(sandbox.evidence.data.get(RECHECK))


def _is_absent_for_now(evidence: Evidence, found: History) -> bool:
    """Return whether the agent is absent, but not yet for longer than a moment."""
    reachable = found.pooled.get("reachable")
    is_absent = evidence.data["status"] != "tested" and evidence.data.get("why") in ABSENT
    return is_absent and reachable is not None and reachable.outcome == "pass"


def _is_closed(evidence: Evidence) -> bool:
    """Return whether a visit without credentials found no open service."""
    listed = evidence.data.get("services")
    rows = [row for row in listed if is_object(row)] if is_array(listed) else []
    return bool(rows) and all(row.get("state") == CLOSED for row in rows)


def _has_failed(record: VisitRecord, before: History) -> bool:
    """Return whether a check failed that did not count as failed before."""
    return any(
        seen != "passed" and (name not in before.pooled or before.pooled[name].outcome == "pass")
        for name, seen in record.outcomes.items()
    )
