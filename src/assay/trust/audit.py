"""Everything that was ever evaluated, recomputed: snapshots checked, scores under other rules."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from assay.kit.canonical import canonical_bytes
from assay.trust.model import (
    FIRST_PREVIOUS_HASH,
    Collected,
    Evaluation,
    EvidenceUnavailable,
    SignalName,
    Snapshot,
)
from assay.trust.ports import EvaluationStore, Probe, Signal, SnapshotBlobs
from assay.trust.scoring import score
from assay.trust.snapshot import behaviour, snapshot_hash
from assay.trust.tiers import Rules

PAGE = 200


@dataclass(frozen=True, slots=True)
class Checked:
    """One snapshot, and what is wrong with it: empty when it holds.

    `has_data` says whether its encrypted data was there to be compared.
    """

    snapshot: Snapshot
    faults: tuple[str, ...]
    has_data: bool


@dataclass(frozen=True, slots=True)
class Rescored:
    """The newest evaluation of a subject as it stands, and as it would under other rules."""

    evaluation: Evaluation
    score: float | None
    tier: str | None

    @property
    def changed(self) -> bool:
        """Whether anything would be different."""
        same = self.score == self.evaluation.score and self.tier == self.evaluation.grade.tier
        return not same


class Audit:
    """Reads what is stored and recomputes it; changes nothing."""

    def __init__(
        self,
        store: EvaluationStore,
        blobs: SnapshotBlobs,
        signals: Mapping[SignalName, Signal],
        probes: Mapping[str, Probe],
    ) -> None:
        self._store = store
        self._blobs = blobs
        self._signals = signals
        self._probes = probes

    async def snapshots(self) -> AsyncIterator[Checked]:
        """Every snapshot, oldest first: its hash, its place in the chain, its data."""
        last: dict[str, str] = {}
        async for evaluation, snapshot in self._everything():
            data = canonical_bytes(behaviour(evaluation.subject_key, evaluation.collected))
            faults: list[str] = []
            if snapshot_hash(data) != snapshot.snapshot_hash:
                faults.append("the stored evidence does not give this hash")
            expected = last.get(snapshot.subject_key, FIRST_PREVIOUS_HASH)
            if snapshot.previous_hash != expected:
                faults.append(f"previousHash is {snapshot.previous_hash}, not {expected}")
            if evaluation.subject_key != snapshot.subject_key:
                faults.append("it belongs to the evaluation of another agent")
            last[snapshot.subject_key] = snapshot.snapshot_hash
            stored, fault = await self._stored(snapshot)
            if fault is not None:
                faults.append(fault)
            elif stored is not None and stored != data:
                faults.append("the encrypted data is not that of the stored evidence")
            yield Checked(snapshot, tuple(faults), has_data=stored is not None)

    async def replay(self, rules: Rules) -> list[Rescored]:
        """The newest evaluation of every subject under `rules`, and under today's signals."""
        newest: dict[str, Evaluation] = {}
        async for evaluation, _ in self._everything():
            newest[evaluation.subject_key] = evaluation
        return [self._rescored(newest[key], rules) for key in sorted(newest)]

    def _rescored(self, evaluation: Evaluation, rules: Rules) -> Rescored:
        collected = tuple(self._weighed_again(c) for c in evaluation.collected)
        try:
            found = score(collected, evaluation.unavailable, rules.weights)
        except EvidenceUnavailable:
            return Rescored(evaluation, None, None)
        return Rescored(evaluation, found.value, rules.tiers.grade(found.value).tier)

    def _weighed_again(self, collected: Collected) -> Collected:
        signal = self._signals.get(collected.signal)
        if signal is None:
            return collected
        weighed = signal.weigh(collected.evidence, self._probes)
        return Collected(collected.signal, collected.evidence, weighed)

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
