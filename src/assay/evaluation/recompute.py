"""Recomputes all stored evaluations: checks snapshots, and scores under other rules."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from assay.common.clock import Clock, SystemClock
from assay.evaluation.model import (
    FIRST_PREVIOUS_HASH,
    Evaluation,
    EvidenceUnavailable,
    SignalName,
    SignalResult,
    Snapshot,
)
from assay.evaluation.ports import EvaluationStore, Signal, SnapshotBlobs
from assay.evaluation.scoring import ScoringPolicy, grade_score, place_of, rules_from
from assay.evaluation.snapshot import (
    evidence_bytes,
    older_snapshot_bytes,
    record_bytes,
    snapshot_hash,
)
from assay.evaluation.visits import WINDOW
from assay.probing.ports import Probe
from assay.probing.unannounced import Seeds, commitment

PAGE = 200


@dataclass(frozen=True, slots=True)
class SnapshotCheck:
    """One snapshot, and what is wrong with it: empty if it is valid.

    `has_data` says whether its encrypted data was available for the comparison.
    """

    snapshot: Snapshot
    faults: tuple[str, ...]
    has_data: bool


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The newest evaluation of a subject as stored, and under other rules."""

    evaluation: Evaluation
    score: float | None
    tier: str | None
    rung: int | None

    @property
    def changed(self) -> bool:
        """Return whether anything would be different."""
        then = self.evaluation
        now = (self.score, self.tier, self.rung)
        return now != (then.score, then.grade.tier, then.rung)


class Audit:
    """Reads stored evaluations and recomputes them; changes nothing."""

    def __init__(
        self,
        store: EvaluationStore,
        blobs: SnapshotBlobs,
        signals: Mapping[SignalName, Signal],
        probes: Mapping[str, Probe],
        seeds: Seeds | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Create it.

        With `seeds`, visits of the window are compared with their earlier commitments.
        """
        self._store = store
        self._blobs = blobs
        self._signals = signals
        self._probes = probes
        self._seeds = seeds
        self._clock = clock or SystemClock()

    async def snapshots(self) -> AsyncIterator[SnapshotCheck]:
        """Yield every snapshot, oldest first, with checks of its hash, chain position and data.

        If a chain's oldest snapshots were removed, it begins with the one after them.
        """
        last: dict[str, str] = {}
        async for evaluation, snapshot in self._everything():
            data, faults = self._recomputed(evaluation, snapshot)
            expected = last.get(snapshot.subject_key, FIRST_PREVIOUS_HASH)
            if snapshot.previous_hash != expected and not await self._store.is_oldest(snapshot):
                faults.append(f"previousHash is {snapshot.previous_hash}, not {expected}")
            if evaluation.subject_key != snapshot.subject_key:
                faults.append("it belongs to the evaluation of another agent")
            faults += await self._seed_faults(evaluation)
            last[snapshot.subject_key] = snapshot.snapshot_hash
            stored, fault = await self._stored(snapshot)
            if fault is not None:
                faults.append(fault)
            elif stored is not None and stored != data:
                faults.append("the encrypted data is not that of the stored evidence")
            yield SnapshotCheck(snapshot, tuple(faults), has_data=stored is not None)

    async def _seed_faults(self, evaluation: Evaluation) -> list[str]:
        """Return what is wrong with its visit's seed: it must not have been chosen afterwards."""
        faults: list[str] = []
        for one in evaluation.collected:
            transcript = one.evidence.transcript
            made = transcript.get("commitment")
            if not isinstance(made, str):
                continue
            if commitment(str(transcript.get("seed"))) != made:
                faults.append("the seed of its visit is not the one that was committed to")
            is_kept = evaluation.evaluated_at >= self._clock.now() - WINDOW
            if self._seeds is not None and is_kept:
                since = (await self._seeds.since([made])).get(made)
                if since is None or since > evaluation.evaluated_at:
                    faults.append("nothing shows that the seed of its visit was chosen before it")
        return faults

    def _recomputed(self, evaluation: Evaluation, snapshot: Snapshot) -> tuple[bytes, list[str]]:
        """Return a snapshot's data recomputed from stored evidence, and where it differs."""
        faults: list[str] = []
        if snapshot.record is None or evaluation.policy is None:
            data = older_snapshot_bytes(evaluation.subject_key, evaluation.collected)
            if snapshot_hash(data) != snapshot.snapshot_hash:
                faults.append("the stored evidence does not give this hash")
            return data, faults
        record = snapshot.record.encode()
        if snapshot_hash(record) != snapshot.snapshot_hash:
            faults.append("the stored record does not give this hash")
        policy = evaluation.policy
        data = evidence_bytes(
            evaluation.subject_key, evaluation.collected, evaluation.unavailable, policy
        )
        if snapshot_hash(data) != snapshot.evidence_hash:
            faults.append("the stored evidence does not give its evidenceHash")
        rules = rules_from(policy)
        if rules is not None and self._record(evaluation, rules) != record:
            faults.append("the stored evidence does not give this hash")
        return data, faults

    def _record(self, evaluation: Evaluation, rules: ScoringPolicy) -> bytes:
        """Return the record that the stored evidence gives under the rules it was graded by."""
        collected = tuple(self._weighed_again(c) for c in evaluation.collected)
        found = place_of(evaluation.agent_id, collected, evaluation.unavailable, rules)
        return record_bytes(evaluation.subject_key, found.rung, collected, rules.document())

    async def replay(self, rules: ScoringPolicy) -> list[ReplayResult]:
        """Return every subject's newest evaluation under `rules`, and under current signals."""
        newest: dict[str, Evaluation] = {}
        async for evaluation, _ in self._everything():
            newest[evaluation.subject_key] = evaluation
        return [self._rescored(newest[key], rules) for key in sorted(newest)]

    def _rescored(self, evaluation: Evaluation, rules: ScoringPolicy) -> ReplayResult:
        collected = tuple(self._weighed_again(c) for c in evaluation.collected)
        try:
            found = grade_score(evaluation.agent_id, collected, evaluation.unavailable, rules)
        except EvidenceUnavailable:
            return ReplayResult(evaluation, None, None, None)
        tier = rules.tiers.grade(found.value).tier
        return ReplayResult(evaluation, found.value, tier, found.place.rung)

    def _weighed_again(self, collected: SignalResult) -> SignalResult:
        signal = self._signals.get(collected.signal)
        if signal is None:
            return collected
        weighed = signal.weigh(collected.evidence, self._probes)
        return SignalResult(collected.signal, collected.evidence, weighed)

    async def _stored(self, snapshot: Snapshot) -> tuple[bytes | None, str | None]:
        if snapshot.encrypted_data_uri is None:
            return None, None
        try:
            return await self._blobs.load(snapshot.encrypted_data_uri), None
        except ValueError as error:
            return None, f"the encrypted data cannot be believed: {error}"

    async def _everything(self) -> AsyncIterator[tuple[Evaluation, Snapshot]]:
        after = 0
        while page := await self._store.history(after, PAGE):
            for place, evaluation, snapshot in page:
                after = place
                yield evaluation, snapshot
