"""Snapshots, with both their hashes (interface.md#snapshot)."""

from typing import Annotated

from pydantic import Field

from assay.common.clock import iso
from assay.evaluation.profile import SnapshotProfile
from assay.evaluation.schemas_ladder import LadderResponse, ladder
from assay.liveness.schemas import SequentialId
from assay.server.schemas_base import ResponseModel, Timestamp

EvidenceHash = Annotated[
    str | None,
    Field(
        description="Of all evidence and the policy, from which the verdict record follows byte"
        " for byte; null for snapshots made before there was a ladder."
    ),
]


class SnapshotResponse(ResponseModel):
    """One link of the agent's chain of evaluations (interface.md#snapshot)."""

    agent_id: str
    snapshot_hash: Annotated[
        str,
        Field(
            description="Of the verdict record: subject, rung, checks, findings, fingerprints"
            " and policy. An unchanged agent keeps it."
        ),
    ]
    evidence_hash: EvidenceHash = None
    rung: Annotated[
        int | None,
        Field(description="The rung proven; null for snapshots made before there was a ladder."),
    ] = None
    ladder: Annotated[
        LadderResponse | None, Field(description="Of the evaluation it is of; null as `rung`.")
    ] = None
    previous_hash: str
    encrypted_data_uri: str | None
    timestamp: Timestamp
    interaction_count: int
    sequential_id: SequentialId = None


def snapshot(found: SnapshotProfile, number: int | None = None) -> SnapshotResponse:
    """Return a snapshot as a response."""
    taken, explained = found.snapshot, found.score
    return SnapshotResponse(
        agent_id=taken.agent_id,
        snapshot_hash=taken.snapshot_hash,
        evidence_hash=taken.evidence_hash,
        rung=None if explained is None else explained.place.rung,
        ladder=None if explained is None else ladder(explained),
        previous_hash=taken.previous_hash,
        encrypted_data_uri=taken.encrypted_data_uri,
        timestamp=iso(taken.taken_at),
        interaction_count=taken.interaction_count,
        sequential_id=number,
    )
