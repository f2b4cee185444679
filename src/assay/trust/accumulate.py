"""One visit and those before it -> the evidence an evaluation rests on (verdict, sections 2, 5).

The sandbox evidence gets two members: `visit`, how this visit came about, and `history`, what all
visits of the window say together. Where this visit adds nothing, the evidence of the newest
evaluation stands: an open trigger re-rolls nothing, and gives no new hash.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from assay.chains.subject import Subject
from assay.egress.domain import domain_of
from assay.evaluation.comparison import CLOAKING, compared, row_of
from assay.evaluation.history import FirstLooks, History, TriggeredTurns, pool
from assay.evaluation.schedule import Reason, Seen
from assay.evaluation.visits import WINDOW, Asked, VisitRecord, VisitStore
from assay.kit.clock import Clock
from assay.kit.json import JsonObject, is_array, is_object
from assay.probing.declared import declared_services
from assay.probing.entering import CLOSED
from assay.probing.ports import Probe, Severity
from assay.trust.callers import Judged
from assay.trust.model import (
    EGRESS_BUDGET,
    INDEXING,
    UNFINISHED,
    Collected,
    Evaluation,
    Evidence,
    SignalName,
)
from assay.trust.ports import Signal
from assay.trust.remembered import ABSENT, is_unfinished, remembered, with_comparison

Judge: TypeAlias = Callable[[Evidence, Mapping[str, Probe]], Sequence[Judged]]
"""What every check of a visit concludes, by the visit alone: `raw_findings` of the sandbox."""

HOST_CHARS_MAX: Final = 255

CONTROL: Final = ("control", "identity", "entry")
"""Members of the evidence that announced visits alone collect: no customer asks who controls a
host, or carries what was deposited. What the newest of them found stands, no matter who timed it.
"""


@dataclass(frozen=True, slots=True)
class Accumulated:
    """What an evaluation rests on, and the visit to be stored with it, if it adds evidence."""

    collected: tuple[Collected, ...]
    visit: VisitRecord | None = None
    history: History | None = None
    has_new_failure: bool = False
    """Whether the visit saw a failure or a change that scheduled visits should look at soon."""


class VisitHistory:
    """Reads what earlier visits saw, and judges the newest one by it."""

    def __init__(self, store: VisitStore, clock: Clock, judge: Judge) -> None:
        self._store = store
        self._clock = clock
        self._judge = judge

    def pending(
        self, collected: Sequence[Collected], probes: Mapping[str, Probe], asked: Asked
    ) -> str | None:
        """Why a visit that was made could not be finished, if so: it says nothing of the agent.

        What saw a critical failure counts as it is, and so does the last try.
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
        collected: tuple[Collected, ...],
        tools: "tuple[Signal, Mapping[str, Probe]]",
        newest: Evaluation | None,
        asked: Asked,
    ) -> Accumulated:
        """The evidence with its history. `tools` are the sandbox signal and the probes.

        A key agent has no services to visit, and no history of visits.
        """
        sandbox = next((c for c in collected if c.signal is SignalName.SANDBOX), None)
        if sandbox is None or subject.agent is None:
            return Accumulated(collected)
        now = self._clock.now()
        visits = await self._store.recent(subject.key, now - WINDOW)
        rows = self._judge(sandbox.evidence, tools[1])
        critical = frozenset(n for n, p in tools[1].items() if p.severity is Severity.CRITICAL)
        record = remembered(
            VisitRecord(subject.key, now, asked.timing), sandbox.evidence, rows, visits
        )
        differing = compared([*visits, record], critical)
        record = with_comparison(record, differing, visits)
        before, after = pool(visits, now, critical), pool([*visits, record], now, critical)
        adds = _adds(record, visits, before)
        found = after if adds else before
        earlier = _evidence_of(newest)
        shows = adds and _shows_more(record, visits)
        says_less = _is_absent_for_now(sandbox.evidence, found) or _is_closed(sandbox.evidence)
        keeps = earlier is not None and (not shows or says_less)
        seen = earlier if earlier is not None and keeps else sandbox.evidence
        data = seen.data if not adds else _compared_data(seen.data, row_of(differing))
        if earlier is not None and adds:
            newer = sandbox.evidence.data if record.label == "announced" else earlier.data
            data = {**data, **{n: newer[n] for n in CONTROL if n in newer}}
        evidence = Evidence(
            {**data, **_members(record, found, keep=earlier if keeps and not adds else None)},
            sandbox.evidence.interactions,
            seen.transcript,
        )
        judged = Collected(SignalName.SANDBOX, evidence, tools[0].weigh(evidence, tools[1]))
        others = [judged if c is sandbox else c for c in collected]
        has_failed = found.unconfirmed or _has_failed(record, before)
        return Accumulated(
            tuple(others),
            record if adds else None,
            found,
            has_failed or found.silent_change or bool(found.sighted),
        )


def waits_for(collected: Sequence[Collected], missing: Mapping[SignalName, str]) -> str | None:
    """What an evaluation lacked of ours, if anything: a host's budget, or events of the chain."""
    evidence = next((c.evidence for c in collected if c.signal is SignalName.SANDBOX), None)
    if evidence is not None and evidence.data.get("why") == EGRESS_BUDGET:
        return EGRESS_BUDGET
    return INDEXING if any(reason.startswith(INDEXING) for reason in missing.values()) else None


def seen_by(subject: Subject, found: Accumulated, pending: str | None, asked: Asked) -> Seen:
    """What the evaluation means for the agent's next visit."""
    evidence = next((c.evidence for c in found.collected if c.signal is SignalName.SANDBOX), None)
    control = evidence.data.get("control") if evidence is not None else None
    rows = [row for row in control if is_object(row)] if is_array(control) else []
    return Seen(
        host=_host(subject),
        has_control=any(row.get("proof") and not row.get("conflict") for row in rows),
        asked=asked,
        pending=_REASONS[pending] if pending is not None else None,
        has_failed=found.has_new_failure,
    )


_REASONS: Final[Mapping[str, Reason]] = {
    EGRESS_BUDGET: "waiting_for_budget",
    UNFINISHED: "unfinished",
    INDEXING: "indexing",
}


def _host(subject: Subject) -> str:
    """The registrable domain of the first service that can be called."""
    for visited in declared_services(subject)[0]:
        host = urlsplit(visited.service.endpoint).hostname
        if host:
            return domain_of(host)[:HOST_CHARS_MAX]
    return ""


def _members(record: VisitRecord, found: History, keep: Evidence | None) -> JsonObject:
    """The members this module adds; those of the evidence that stands where nothing was added."""
    if keep is not None and "history" in keep.data:
        return {"history": keep.data["history"], "visit": keep.data.get("visit")}
    return {
        "visit": {"timing": record.timing, "label": record.label},
        "history": found.as_json(),
    }


def _adds(record: VisitRecord, visits: Sequence[VisitRecord], before: History) -> bool:
    """Whether the visit counts; a critical finding or a silent change always does, once."""
    if record.timing == "scheduled" or record.silent_changes:
        return True
    seen = {*record.critical, *(str(row["check"]) for row in record.findings)}
    if not seen <= {*before.open_critical, *before.sighted}:
        return True
    return TriggeredTurns(visits).take(record)


def _shows_more(record: VisitRecord, visits: Sequence[VisitRecord]) -> bool:
    """Whether what the visit saw takes the place of what stands, and not only refutes it."""
    return bool(record.critical or record.findings) or FirstLooks(visits).take(record)


def _compared_data(data: JsonObject, row: JsonObject | None) -> JsonObject:
    """The evidence with what the comparison of visits found among its findings."""
    listed = data.get("findings")
    if not is_array(listed):
        return data if row is None else {**data, "findings": [row]}
    others = [one for one in listed if not is_object(one) or one.get("check") != CLOAKING]
    return {**data, "findings": [*others, *([] if row is None else [row])]}


def _is_absent_for_now(evidence: Evidence, found: History) -> bool:
    """Whether the agent was not there, and that is not yet more than a moment's absence."""
    reachable = found.pooled.get("reachable")
    is_absent = evidence.data["status"] != "tested" and evidence.data.get("why") in ABSENT
    return is_absent and reachable is not None and reachable.outcome == "pass"


def _is_closed(evidence: Evidence) -> bool:
    """Whether a visit without credentials found nothing open."""
    listed = evidence.data.get("services")
    rows = [row for row in listed if is_object(row)] if is_array(listed) else []
    return bool(rows) and all(row.get("state") == CLOSED for row in rows)


def _has_failed(record: VisitRecord, before: History) -> bool:
    """Whether a check failed that did not count as failed before."""
    return any(
        seen != "passed" and (name not in before.pooled or before.pooled[name].outcome == "pass")
        for name, seen in record.outcomes.items()
    )


def _evidence_of(newest: Evaluation | None) -> Evidence | None:
    """The behavioural evidence of an evaluation in which the agent was tested."""
    for one in newest.collected if newest is not None else ():
        if one.signal is SignalName.SANDBOX and one.evidence.data.get("status") == "tested":
            return one.evidence
    return None
