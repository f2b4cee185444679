"""What trust needs from outside, and what a signal and a probe are."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar, Protocol, TypeAlias

from assay.common.clock import Clock
from assay.common.sliced_work_runner import Slices
from assay.control.identity import Control
from assay.evaluation.model import (
    Evaluation,
    EvaluationCompleted,
    Evidence,
    SignalName,
    SignalScore,
    SignalUnavailable,
    Snapshot,
)
from assay.evaluation.signal_sources import Sources
from assay.evaluation.visits import VisitRecord
from assay.net.egress.ports import EgressClient, VisitTurns
from assay.probing.ports import AgentDialers, Probe, ReadsConsents
from assay.registries.ports import ChainReader
from assay.registries.subject import Subject


class EvaluationStore(Protocol):
    """Evaluations with all their evidence, and the chain of snapshots."""

    async def add(
        self, evaluation: Evaluation, snapshot: Snapshot, visit: VisitRecord | None = None
    ) -> Snapshot:
        """Store them in one transaction, with the visit the evaluation rests on.

        `previous_hash` is set by the store to the `snapshot_hash` of the subject's newest
        snapshot, so that two writers at once still make one chain; returns what was stored.
        """
        ...

    async def newest(self, subject_key: str, since: datetime) -> Evaluation | None:
        """The newest evaluation not older than `since`."""
        ...

    async def newest_snapshot(self, subject_key: str) -> Snapshot | None:
        """The last link of the subject's chain."""
        ...

    async def history(self, after: int, at_most: int) -> Sequence[tuple[int, Evaluation, Snapshot]]:
        """Every evaluation there is, oldest first, each with its place; those after a place."""
        ...

    async def is_oldest(self, snapshot: Snapshot) -> bool:
        """Whether all before a snapshot of its subject have left, or it has left itself by now.

        The oldest that is there names the last one that left as its `previous_hash`.
        """
        ...


class SnapshotBlobs(Protocol):
    """Encrypted snapshot data, addressed by content."""

    async def store(self, data: bytes) -> str | None:
        """Encrypt and keep; returns `ipfs://<CIDv1>`, or None when storing is switched off.

        Raises `common.errors.Unavailable` when the store is there but does not take it.
        """
        ...

    async def load(self, uri: str) -> bytes | None:
        """What was kept under an address, or None where it is not to be had now.

        Raises `ValueError` when what is there is not what was stored.
        """
        ...

    async def remove(self, uri: str) -> None:
        """Remove what was kept under an address, as far as it can be; what is gone stays gone."""
        ...

    async def trim(self, bytes_max: int, at_most: int) -> int:
        """Remove the oldest until no more than so many bytes are kept; returns how many went.

        At most so many at once. Where something else bounds the store, none.
        """
        ...


Listener: TypeAlias = Callable[[EvaluationCompleted], None]
"""Called once for every evaluation that really ran; must not fail or wait."""


@dataclass(frozen=True, slots=True)
class SignalDependencies:
    """What a signal may use to collect."""

    reader: ChainReader
    http: EgressClient
    dialers: AgentDialers
    probes: Mapping[str, Probe]
    clock: Clock
    deadline_s: float
    """Seconds this collection may take; what has not finished by then is left out and reported."""
    sources: Sources = field(default_factory=Sources)
    slices: Slices = field(default_factory=Slices)
    """The same for all evaluations of a process: they take turns."""
    consents: ReadsConsents | None = None
    """Without it every host counts as one that agreed: for tests of the rest."""
    turns: VisitTurns | None = None
    """Without it every visit begins at once."""
    control: Control | None = None
    """Without it nothing is found out of who controls the services: for tests of the rest."""
    may_recheck: bool = False
    """Whether a few requests will do where a whole visit has no room: see `evaluation.recheck`."""


class Signal(Protocol):
    """One source of trust: `collect` (through ports), then `weigh` (pure).

    `collect` returns `SignalUnavailable` for the outside world's faults and never raises for them.
    """

    name: ClassVar[SignalName]

    async def collect(
        self, subject: Subject, needs: SignalDependencies
    ) -> Evidence | SignalUnavailable:
        """What this signal sees of the subject, within `needs.deadline_s`."""
        ...

    def weigh(self, evidence: Evidence, probes: Mapping[str, Probe]) -> SignalScore:
        """What that is worth. `probes` only for the signal that is made of them."""
        ...
