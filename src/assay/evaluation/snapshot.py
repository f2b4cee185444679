"""Writes a verdict in canonical form, and its hashes.

Snapshots older than the ladder have the earlier form, and are checked by its own rule.
Source: interface.md#snapshot; conventions.md#snapshots; ADR 0024.
"""

from collections.abc import Mapping, Sequence

from assay.common.json import JsonObject, canonical_bytes, sha256_hex
from assay.evaluation.model import SignalName, SignalResult
from assay.evaluation.record import evidence_document, verdict_record

OLDER_FORMAT = "assay.snapshot.v1"


def older_snapshot_bytes(subject_key: str, collected: Sequence[SignalResult]) -> bytes:
    """Return the canonical form (RFC 8785) of version 1: the behavioural evidence itself."""
    sandbox = next((c for c in collected if c.signal is SignalName.SANDBOX), None)
    document: JsonObject = {
        "format": OLDER_FORMAT,
        "subject": subject_key,
        "evidence": None if sandbox is None else sandbox.evidence.data,
        "value": None if sandbox is None else sandbox.weighed.value,
        "confidence": None if sandbox is None else sandbox.weighed.confidence,
    }
    return canonical_bytes(document)


def record_bytes(
    subject_key: str, rung: int, collected: Sequence[SignalResult], policy: JsonObject
) -> bytes:
    """Return the verdict record of an evaluation, which `snapshotHash` hashes."""
    sandbox = next((c for c in collected if c.signal is SignalName.SANDBOX), None)
    if sandbox is None:
        return verdict_record(subject_key, rung, {}, {}, policy)
    behaviour = sandbox.evidence.data
    return verdict_record(subject_key, rung, sandbox.weighed.checks, behaviour, policy)


def evidence_bytes(
    subject_key: str,
    collected: Sequence[SignalResult],
    unavailable: Mapping[SignalName, str],
    policy: JsonObject,
) -> bytes:
    """Return all evidence behind the record: hashed as `evidenceHash`, and stored encrypted."""
    evidence = {c.signal.value: c.evidence.data for c in collected}
    transcripts = {
        c.signal.value: c.evidence.transcript for c in collected if c.evidence.transcript
    }
    missing = {str(name): why for name, why in unavailable.items()}
    return evidence_document(subject_key, evidence, transcripts, missing, policy)


def snapshot_hash(data: bytes) -> str:
    """Return `0x` and the SHA-256 of the canonical form."""
    return sha256_hex(data)
