"""Combines one visit with earlier ones into the evidence of an evaluation.

The sandbox evidence gets two members: `visit`, how this visit came about, and `history`, the
combined result of all visits in the window. If this visit adds nothing, the evidence of the newest
evaluation is kept: an open trigger cannot re-roll a result, and gives no new hash.
Source: evidence.md#pooling-of-visits, #drift.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from assay.common.clock import Clock
from assay.common.egress_budget import EGRESS_BUDGET
from assay.common.json import JsonObject, is_array, is_object
from assay.evaluation.caller_verdict import CheckFinding
from assay.evaluation.comparison import compared, row_of
from assay.evaluation.earlier_evidence import (
    AccumulatedEvidence,
    EarlierEvidence,
    adds_evidence,
    evidence_of,
    members_of,
    with_row,
)
from assay.evaluation.history import FirstLooks, History, pool
from assay.evaluation.model import (
    INDEXING,
    UNFINISHED,
    Evaluation,
    Evidence,
    SignalName,
    SignalResult,
)
from assay.evaluation.pooling import FINISHED
from assay.evaluation.ports import Signal
from assay.evaluation.schedule import ScheduleEvidence, VisitReason
from assay.evaluation.visit_record import ABSENT, is_unfinished, remembered, with_comparison
from assay.evaluation.visits import RECHECK, WINDOW, EvaluationRequest, VisitRecord, VisitStore
from assay.net.egress.domain import domain_of
from assay.probing.declared_services import declared_services
from assay.probing.deposited_access import CLOSED
from assay.probing.ports import Probe, Severity
from assay.registries.subject import Subject

Judge: TypeAlias = Callable[[Evidence, Mapping[str, Probe]], Sequence[CheckFinding]]
"""Returns the conclusions of every check from one visit alone: `raw_findings` of the sandbox."""

HOST_CHARS_MAX: Final = 255

RECHECKED_WITHIN: Final = timedelta(days=6)
"""Largest age of the newest whole visit that a re-check confirms. Together with the lifetime of a
re-check, at most a day, no result is reused for longer than the seven days of every other."""

CONTROL: Final = ("control", "identity", "entry")
"""Members of the evidence that only announced visits collect: a customer does not ask who controls
a host, and carries no deposited credential. The newest result counts, whoever timed the visit."""


class VisitHistory:
    """Reads the results of earlier visits, and judges the newest one by them."""

    def __init__(self, store: VisitStore, clock: Clock, judge: Judge) -> None:
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
        if evidence is None or asked.is_last_try or not is_unfinished(evidence):
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
        adds = adds_evidence(record, visits, before)
        found = after if adds else before
        keeps = earlier is not None and (
            not (adds and _shows_more(record, visits))
            or _is_absent_for_now(sandbox.evidence, found)
            or _is_closed(sandbox.evidence)
        )
        seen = earlier if earlier is not None and keeps else sandbox.evidence
        data = dict(seen.data if not adds else with_row(seen.data, row_of(differing)))
        if earlier is not None and adds:
            data |= _control_of(sandbox.evidence if record.label == "announced" else earlier)
        data.pop(RECHECK, None)
        evidence = Evidence(
            {**data, **members_of(record, found, keep=earlier if keeps and not adds else None)},
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
