"""collect -> weigh -> score -> grade -> snapshot -> announce: the one path of an evaluation."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from assay.egress.budget import current_use
from assay.egress.ports import SafeHttp, VisitTurns
from assay.kit.clock import Clock
from assay.kit.costs import Cost, CostLedger
from assay.kit.ids import new_id
from assay.kit.singleflight import SingleFlight
from assay.kit.slice_runner import Slices
from assay.trust.model import (
    EGRESS_BUDGET,
    FIRST_PREVIOUS_HASH,
    Collected,
    Evaluation,
    EvaluationCompleted,
    Evidence,
    SignalName,
    Snapshot,
    Subject,
    Unavailable,
)
from assay.trust.ports import (
    AgentDialers,
    EvaluationStore,
    Listener,
    Probe,
    ReadsConsents,
    Signal,
    SignalNeeds,
    SnapshotBlobs,
)
from assay.trust.scoring import score
from assay.trust.snapshot import snapshot_bytes, snapshot_hash
from assay.trust.sources import Sources
from assay.trust.subjects import Subjects
from assay.trust.tiers import Rules

PERSONHOOD_S = 2.0
"""What a look at the stored proofs may take."""

_COSTS = (Cost.EVALUATIONS, Cost.RPC_CALLS, Cost.ROWS, Cost.DISK_BYTES)
_ROWS = 2
"""An evaluation and its snapshot."""

_COPIES = 2
"""Evidence is kept as a row and as an encrypted block."""

GRACE_S = 0.5
"""What a signal may take beyond its deadline to hand over what it has."""


EVER = datetime(1970, 1, 1, tzinfo=UTC)
"""Since when evaluations are looked for, where their age does not matter."""


@dataclass(frozen=True, slots=True)
class EvaluatorNeeds:
    """What an evaluation rests on."""

    subjects: Subjects
    signals: Mapping[SignalName, Signal]
    probes: Mapping[str, Probe]
    http: SafeHttp
    dialers: AgentDialers
    store: EvaluationStore
    blobs: SnapshotBlobs
    rules: Rules
    listeners: Sequence[Listener]
    clock: Clock
    sources: Sources = field(default_factory=Sources)
    costs: CostLedger | None = None
    consents: ReadsConsents | None = None
    turns: VisitTurns | None = None


class Evaluator:
    """Runs evaluations; of several asked for one subject at once, one runs and all get it."""

    def __init__(self, needs: EvaluatorNeeds, flights: SingleFlight[EvaluationCompleted]) -> None:
        self._needs = needs
        self._flights = flights
        self._slices = Slices()

    async def evaluate(self, subject: Subject, deadline_s: float) -> EvaluationCompleted:
        """Evaluate now, within `deadline_s`, and store the result before it is answered.

        Raises `EvidenceUnavailable` when no base signal could be collected; nothing is stored
        then. A caller that joins a running evaluation gets its result: only those join it that have
        its deadline and its class of the egress budget. Where that budget of the agent's host cut
        it short, or visits under way left no room for it, the newest one there is counts instead;
        without one the agent was not tested. Nothing is stored or announced then. Raises
        `QuotaExceeded` for a caller whose evaluations have cost too much today.
        """
        if self._needs.costs is not None:
            self._needs.costs.require(*_COSTS)
        key = f"{current_use().sharers} {deadline_s} {subject.key}"
        return await self._flights.run(key, lambda: self._run(subject, deadline_s))

    async def collect(
        self, subject: Subject, names: frozenset[SignalName], deadline_s: float
    ) -> tuple[tuple[Collected, ...], Mapping[SignalName, str]]:
        """What the named signals see now, and why the others of them could not be had."""
        needs = self._needs
        wanted = {name: signal for name, signal in needs.signals.items() if name in names}
        async with asyncio.TaskGroup() as group:
            tasks = {
                name: group.create_task(self._hear(signal, subject, deadline_s))
                for name, signal in sorted(wanted.items())
            }
        heard = {name: task.result() for name, task in tasks.items()}
        collected = tuple(
            Collected(name, evidence, wanted[name].weigh(evidence, needs.probes))
            for name, evidence in heard.items()
            if isinstance(evidence, Evidence)
        )
        missing = {n: e.reason for n, e in heard.items() if isinstance(e, Unavailable)}
        return collected, missing

    async def with_personhood(self, subject: Subject, evaluation: Evaluation) -> Evaluation:
        """The evaluation with what is known now of the human behind its subject (spec 4.4)."""
        name = SignalName.PERSONHOOD
        if name not in self._needs.signals:
            return evaluation
        found, _ = await self.collect(subject, frozenset({name}), PERSONHOOD_S)
        others = (c for c in evaluation.collected if c.signal is not name)
        return replace(evaluation, collected=(*others, *found))

    async def _newest(self, subject: Subject) -> EvaluationCompleted | None:
        """The evaluation there was, however old, in place of one that could not be made."""
        evaluation = await self._needs.store.newest(subject.key, EVER)
        snapshot = await self._needs.store.newest_snapshot(subject.key)
        if evaluation is None or snapshot is None:
            return None
        return EvaluationCompleted(evaluation, snapshot, reused=EGRESS_BUDGET)

    async def _hear(
        self, signal: Signal, subject: Subject, deadline_s: float
    ) -> Evidence | Unavailable:
        needs = self._needs
        tools = SignalNeeds(
            reader=needs.subjects.reader(subject.network),
            http=needs.http,
            dialers=needs.dialers,
            probes=needs.probes,
            clock=needs.clock,
            deadline_s=deadline_s,
            sources=needs.sources,
            slices=self._slices,
            consents=needs.consents,
            turns=needs.turns,
        )
        try:
            async with asyncio.timeout(deadline_s + GRACE_S):
                return await signal.collect(subject, tools)
        except TimeoutError:
            return Unavailable("it did not answer in time")

    async def _run(self, subject: Subject, deadline_s: float) -> EvaluationCompleted:
        needs = self._needs
        everything = frozenset(needs.signals)
        collected, missing = await self.collect(subject, everything, deadline_s)
        if _is_cut_short(collected) and (earlier := await self._newest(subject)) is not None:
            return earlier
        result = score(collected, missing, needs.rules.weights)
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
        )
        data = snapshot_bytes(subject, collected)
        if needs.costs is not None:
            needs.costs.charge(Cost.EVALUATIONS)
        taken = Snapshot(
            id=new_id(),
            evaluation_id=evaluation.id,
            subject_key=subject.key,
            agent_id=subject.agent_id,
            snapshot_hash=snapshot_hash(data),
            previous_hash=FIRST_PREVIOUS_HASH,
            encrypted_data_uri=None,
            interaction_count=evaluation.interactions,
            taken_at=evaluation.evaluated_at,
        )
        if _is_cut_short(collected):
            return EvaluationCompleted(evaluation, taken, reused=EGRESS_BUDGET)
        if needs.costs is not None:
            needs.costs.charge(Cost.ROWS, _ROWS)
            needs.costs.charge(Cost.DISK_BYTES, _COPIES * len(data))
        uri = await needs.blobs.store(data)
        snapshot = await needs.store.add(evaluation, replace(taken, encrypted_data_uri=uri))
        news = EvaluationCompleted(evaluation, snapshot)
        for listener in needs.listeners:
            listener.evaluated(news)
        return news


def _is_cut_short(collected: Sequence[Collected]) -> bool:
    return any(c.evidence.data.get("why") == EGRESS_BUDGET for c in collected)
