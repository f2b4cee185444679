"""Decides when the evidence of an earlier evaluation is kept. Pure.

It is kept after a re-check, which sees too little to replace it, and after a visit to a sibling: an
agent of the same owner under the same proven addresses.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from assay.common.json import JsonObject, is_array, is_object
from assay.evaluation.caller_verdict import CheckFinding
from assay.evaluation.comparison import CLOAKING, compared, row_of
from assay.evaluation.drift import DECLARATION, known_facts
from assay.evaluation.history import History, TriggeredTurns, pool
from assay.evaluation.model import Evaluation, Evidence, SignalName, SignalResult, SignalScore
from assay.evaluation.pooling import FINISHED
from assay.evaluation.visit_record import remembered, with_comparison
from assay.evaluation.visits import RECHECK, VisitRecord

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
        adds = is_new and adds_evidence(record, self.visits, before)
        found = self._pool(record) if adds else before
        members = members_of(record, found, keep=None if adds else self.earlier)
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
        data = with_row(self.earlier.data, row_of(differing))
        data = {n: member for n, member in data.items() if n != RECHECK}
        return AccumulatedEvidence(
            self._judged(collected, {**data, **members_of(record, found, keep=None)}, 0),
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


def members_of(record: VisitRecord, found: History, keep: Evidence | None) -> JsonObject:
    """Return `visit` and `history`; those of the kept evidence if nothing was added."""
    if keep is not None and "history" in keep.data:
        return {"history": keep.data["history"], "visit": keep.data.get("visit")}
    shared: Mapping[str, str] = {"sharedBy": record.shared_by} if record.shared_by else {}
    return {
        "visit": {"timing": record.timing, "label": record.label, **shared},
        "history": found.as_json(),
    }


def adds_evidence(record: VisitRecord, visits: Sequence[VisitRecord], before: History) -> bool:
    """Return whether the visit counts; a critical finding or a silent change always does, once."""
    if record.timing == "scheduled" or record.silent_changes:
        return True
    seen = {*record.critical, *(str(row["check"]) for row in record.findings)}
    if not seen <= {*before.open_critical, *before.sighted}:
        return True
    return TriggeredTurns(visits).take(record)


def with_row(data: JsonObject, row: JsonObject | None) -> JsonObject:
    """Return the evidence, adding the comparison of visits to its findings."""
    listed = data.get("findings")
    if not is_array(listed):
        return data if row is None else {**data, "findings": [row]}
    others = [one for one in listed if not is_object(one) or one.get("check") != CLOAKING]
    return {**data, "findings": [*others, *([] if row is None else [row])]}
