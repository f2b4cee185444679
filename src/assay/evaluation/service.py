"""Runs an evaluation: collect -> weigh -> score -> grade -> snapshot -> announce.

Adds on-chain settlements as proof of function to the sandbox's transcripts. Pure.

A visit pays nothing, so of a service that only sells it sees only the demand. The registry's signal
reads who was charged; its fact joins the transcript, and the row of evidence follows.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from assay.common.cache import SingleFlight
from assay.common.clock import Clock
from assay.common.costs import Cost, CostLedger
from assay.common.egress_budget import current_use
from assay.common.errors import Unavailable
from assay.common.ids import new_id
from assay.common.json import JsonObject, is_array, is_object
from assay.common.sliced_work_runner import Slices
from assay.control.identity import Control
from assay.evaluation.accumulation import AccumulatedEvidence, VisitHistory, seen_by, waits_for
from assay.evaluation.demands import LadderPolicy
from assay.evaluation.listing import listing_of
from assay.evaluation.model import (
    FIRST_PREVIOUS_HASH,
    Evaluation,
    EvaluationCompleted,
    Evidence,
    SignalName,
    SignalResult,
    SignalUnavailable,
    Snapshot,
)
from assay.evaluation.ports import (
    EvaluationStore,
    Listener,
    Signal,
    SignalDependencies,
    SnapshotBlobs,
    Sources,
)
from assay.evaluation.schedule import PlansVisits
from assay.evaluation.scoring import ScoringPolicy, grade_score
from assay.evaluation.snapshot import evidence_bytes, record_bytes, snapshot_hash
from assay.evaluation.visits import TRIGGERED, EvaluationRequest
from assay.net.egress.ports import EgressClient, VisitTurns
from assay.probing.deposited_access import EvaluationCredentials
from assay.probing.function.payment import with_settlements
from assay.probing.function.service import function_rows
from assay.probing.ports import AgentDialers, Probe, ReadsConsents
from assay.registries.model import Subject
from assay.registries.subjects import Subjects


def with_sales(
    collected: Sequence[SignalResult],
    sandbox: Signal,
    probes: Mapping[str, Probe],
    policy: LadderPolicy,
) -> tuple[SignalResult, ...]:
    """Return the results; services whose payee is the wallet get their settlements."""
    chain = next((c.evidence.data for c in collected if c.signal is SignalName.REGISTRY_8004), None)
    fact = _fact(chain, policy)
    return tuple(
        _judged(c, fact, sandbox, probes) if c.signal is SignalName.SANDBOX else c
        for c in collected
    )


def _fact(chain: JsonObject | None, policy: LadderPolicy) -> JsonObject:
    """Return the settlements and the demanded ones; `unread` if a chain was not fully read."""
    needs: JsonObject = {
        "clusters": policy.sold_clusters,
        "days": policy.sold_days,
        "usdNet": str(policy.sold_usd),
    }
    if chain is None or chain.get("stale"):
        return {"unread": 1, "needs": needs}
    found = chain.get("settlements")
    return {**(found if is_object(found) else {}), "needs": needs}


def _judged(
    one: SignalResult, fact: JsonObject, sandbox: Signal, probes: Mapping[str, Probe]
) -> SignalResult:
    listed = one.evidence.transcript.get("function")
    before = [row for row in listed if is_object(row)] if is_array(listed) else []
    after = with_settlements(before, fact)
    if after == before:
        return one
    evidence = replace(
        one.evidence,
        data={**one.evidence.data, "function": [*function_rows(after)]},
        transcript={**one.evidence.transcript, "function": [*after]},
    )
    return SignalResult(one.signal, evidence, sandbox.weigh(evidence, probes))


PERSONHOOD_S = 2.0
"""Time limit of reading the stored proofs."""

_COSTS = (Cost.EVALUATIONS, Cost.RPC_CALLS, Cost.ROWS, Cost.DISK_BYTES)
_ROWS = 2
"""An evaluation and its snapshot."""

_COPIES = 2
"""Evidence is stored as a row and as an encrypted block."""

GRACE_S = 0.5
"""Time beyond its deadline for a signal to return what it has."""


EVER = datetime(1970, 1, 1, tzinfo=UTC)
"""Earliest time of evaluations to look for, if their age does not matter."""


@dataclass(frozen=True, slots=True)
class EvaluatorDependencies:
    """The dependencies of an evaluation."""

    subjects: Subjects
    signals: Mapping[SignalName, Signal]
    probes: Mapping[str, Probe]
    http: EgressClient
    dialers: AgentDialers
    store: EvaluationStore
    blobs: SnapshotBlobs
    rules: ScoringPolicy
    listeners: Sequence[Listener]
    clock: Clock
    sources: Sources = field(default_factory=Sources)
    costs: CostLedger | None = None
    consents: ReadsConsents | None = None
    turns: VisitTurns | None = None
    control: Control | None = None
    history: VisitHistory | None = None
    """Without it every evaluation rests on its own visit alone: for tests of the rest."""
    plans: PlansVisits | None = None


class Evaluator:
    """Runs evaluations; concurrent requests for one subject share one run."""

    def __init__(
        self, needs: EvaluatorDependencies, flights: SingleFlight[EvaluationCompleted]
    ) -> None:
        self._needs = needs
        self._flights = flights
        self._slices = Slices()

    async def evaluate(
        self, subject: Subject, deadline_s: float, asked: EvaluationRequest = TRIGGERED
    ) -> EvaluationCompleted:
        """Evaluate now, within `deadline_s`, and store the result before returning it.

        Raises `EvidenceUnavailable` if no base signal could be collected; nothing is stored then. A
        caller joins a running evaluation, and gets its result, only if it has the same deadline,
        class of the egress budget and reason. If the budget of the agent's host, our time or an
        index cut the evaluation short, the newest existing one is returned instead and a retry runs
        in the background; if there is none, the agent was not tested. Nothing is stored or
        announced then. Raises `QuotaExceeded` for a caller whose evaluations have cost too much
        today.
        """
        if self._needs.costs is not None:
            self._needs.costs.require(*_COSTS)
        kind = f"{asked.timing} {'recheck ' if asked.may_recheck else ''}"
        kind += "" if asked.shared is None else "shared "
        key = f"{current_use().sharers} {deadline_s} {kind}{subject.key}"
        return await self._flights.run(key, lambda: self._run(subject, deadline_s, asked))

    async def collect(
        self,
        subject: Subject,
        names: frozenset[SignalName],
        deadline_s: float,
        *,
        may_recheck: bool = False,
        credentials: EvaluationCredentials | None = None,
    ) -> tuple[tuple[SignalResult, ...], Mapping[SignalName, str]]:
        """Return what the named signals see now, and why the others are unavailable.

        `credentials` are used in place of deposited ones.
        """
        needs = self._needs
        sources = needs.sources
        if credentials is not None:
            sources = replace(sources, credentials=credentials)
        wanted = {name: signal for name, signal in needs.signals.items() if name in names}
        async with asyncio.TaskGroup() as group:
            tasks = {
                name: group.create_task(
                    self._hear(signal, subject, deadline_s, sources, may_recheck=may_recheck)
                )
                for name, signal in sorted(wanted.items())
            }
        by_name = {name: task.result() for name, task in tasks.items()}
        collected = tuple(
            SignalResult(name, evidence, wanted[name].weigh(evidence, needs.probes))
            for name, evidence in by_name.items()
            if isinstance(evidence, Evidence)
        )
        missing = {n: e.reason for n, e in by_name.items() if isinstance(e, SignalUnavailable)}
        return collected, missing

    async def with_personhood(self, subject: Subject, evaluation: Evaluation) -> Evaluation:
        """Return the evaluation with what is known now of its human (interface.md#personhood)."""
        name = SignalName.PERSONHOOD
        if name not in self._needs.signals:
            return evaluation
        found, _ = await self.collect(subject, frozenset({name}), PERSONHOOD_S)
        others = (c for c in evaluation.collected if c.signal is not name)
        return replace(evaluation, collected=(*others, *found))

    async def _newest(self, subject: Subject) -> EvaluationCompleted | None:
        """Return the existing evaluation, however old, in place of one that could not be made."""
        evaluation = await self._needs.store.newest(subject.key, EVER)
        snapshot = await self._needs.store.newest_snapshot(subject.key)
        if evaluation is None or snapshot is None:
            return None
        return EvaluationCompleted(evaluation, snapshot)

    async def _hear(
        self,
        signal: Signal,
        subject: Subject,
        deadline_s: float,
        sources: Sources,
        *,
        may_recheck: bool,
    ) -> Evidence | SignalUnavailable:
        needs = self._needs
        tools = SignalDependencies(
            reader=needs.subjects.reader(subject.network),
            http=needs.http,
            dialers=needs.dialers,
            probes=needs.probes,
            clock=needs.clock,
            deadline_s=deadline_s,
            sources=sources,
            slices=self._slices,
            consents=needs.consents,
            turns=needs.turns,
            control=needs.control,
            may_recheck=may_recheck,
        )
        try:
            async with asyncio.timeout(deadline_s + GRACE_S):
                return await signal.collect(subject, tools)
        except TimeoutError:
            return SignalUnavailable("it did not answer in time")
        except Unavailable as error:
            return SignalUnavailable(error.message)
        except ExceptionGroup as failures:  # of the tasks of a visit
            if failures.split(Unavailable)[1] is not None:
                raise
            return SignalUnavailable("a database or a chain did not answer meanwhile")

    async def _run(
        self, subject: Subject, deadline_s: float, asked: EvaluationRequest
    ) -> EvaluationCompleted:
        needs = self._needs
        everything = frozenset(needs.signals)
        if asked.shared is not None:
            everything -= {SignalName.SANDBOX}
        may_recheck = asked.may_recheck and await self._is_known(subject)
        collected, missing = await self.collect(
            subject, everything, deadline_s, may_recheck=may_recheck
        )
        if {SignalName.REGISTRY_8004, SignalName.SANDBOX} <= everything:
            sandbox = needs.signals[SignalName.SANDBOX]
            collected = with_sales(collected, sandbox, needs.probes, needs.rules.ladder)
        pending = waits_for(collected, missing)
        if pending is None and needs.history is not None:
            pending = needs.history.pending(collected, needs.probes, asked)
        found = AccumulatedEvidence(collected)
        if needs.history is not None and pending is None:
            tools = needs.signals[SignalName.SANDBOX], needs.probes
            newest = await needs.store.newest(subject.key, EVER)
            found = await needs.history.accumulate(subject, collected, tools, newest, asked)
        next_try_at = await self._plan(subject, found, pending, asked)
        if pending is not None and (earlier := await self._newest(subject)) is not None:
            return replace(earlier, reused=pending, next_try_at=next_try_at)
        made = self._made(subject, found.collected, missing)
        if pending is not None:
            return replace(made, reused=pending, next_try_at=next_try_at)
        return await self._stored(made, subject, found)

    async def _is_known(self, subject: Subject) -> bool:
        """Return whether visits know the agent well enough for a re-check to decide."""
        needs = self._needs
        if needs.history is None:
            return False
        newest = await needs.store.newest(subject.key, EVER)
        return await needs.history.is_known(subject, newest)

    def _made(
        self,
        subject: Subject,
        collected: tuple[SignalResult, ...],
        missing: Mapping[SignalName, str],
    ) -> EvaluationCompleted:
        """Return the evaluation of the collected evidence, before it is stored."""
        needs = self._needs
        result = grade_score(subject.agent_id, collected, missing, needs.rules)
        policy = needs.rules.document()
        evaluation = Evaluation(
            id=new_id(),
            subject_key=subject.key,
            chain=subject.network.slug,
            agent_id=subject.agent_id,
            wallet=subject.wallet,
            collected=collected,
            unavailable=missing,
            score=result.value,
            grade=needs.rules.tiers.grade(result.value),
            evaluated_at=needs.clock.now(),
            rung=result.place.rung,
            policy=policy,
        )
        record = record_bytes(subject.key, result.place.rung, collected, policy)
        data = evidence_bytes(subject.key, collected, missing, policy)
        if needs.costs is not None:
            needs.costs.charge(Cost.EVALUATIONS)
        snapshot = Snapshot(
            id=new_id(),
            evaluation_id=evaluation.id,
            subject_key=subject.key,
            agent_id=subject.agent_id,
            snapshot_hash=snapshot_hash(record),
            previous_hash=FIRST_PREVIOUS_HASH,
            encrypted_data_uri=None,
            interaction_count=evaluation.interactions,
            taken_at=evaluation.evaluated_at,
            evidence_hash=snapshot_hash(data),
            record=record.decode(),
        )
        return EvaluationCompleted(evaluation, snapshot)

    async def _stored(
        self, made: EvaluationCompleted, subject: Subject, found: AccumulatedEvidence
    ) -> EvaluationCompleted:
        """Store it with its visit, and announce it."""
        needs, evaluation = self._needs, made.evaluation
        data = evidence_bytes(
            subject.key, evaluation.collected, evaluation.unavailable, evaluation.policy or {}
        )
        seen = found.visit
        visit = None if seen is None else replace(seen, rung=evaluation.rung or 0)
        if needs.costs is not None:
            needs.costs.charge(Cost.ROWS, _ROWS)
            needs.costs.charge(Cost.DISK_BYTES, _COPIES * len(data))
        taken = replace(made.snapshot, encrypted_data_uri=await needs.blobs.store(data))
        listing = listing_of(subject, evaluation.collected)
        snapshot = await needs.store.add(evaluation, taken, visit, listing)
        completed = EvaluationCompleted(evaluation, snapshot)
        for listener in needs.listeners:
            listener(completed)
        return completed

    async def _plan(
        self,
        subject: Subject,
        found: AccumulatedEvidence,
        pending: str | None,
        asked: EvaluationRequest,
    ) -> datetime | None:
        """Plan the next visit; return when an unfinished evaluation is retried."""
        plans = self._needs.plans
        if plans is None or subject.agent is None:
            return None
        due = await plans.plan(subject, seen_by(subject, found, pending, asked))
        return due if pending is not None else None
