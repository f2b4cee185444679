"""The behavioural evaluation in canonical form, and its hash (spec 2.7; decisions 10)."""

from collections.abc import Sequence

from assay.kit.canonical import canonical_bytes, sha256_hex
from assay.kit.json import JsonObject
from assay.trust.model import Collected, SignalName, Subject

FORMAT = "assay.snapshot.v1"


def behaviour(subject_key: str, collected: Sequence[Collected]) -> JsonObject:
    """What the hash is taken of: the subject and its behavioural evidence, no wall-clock times."""
    sandbox = next((c for c in collected if c.signal is SignalName.SANDBOX), None)
    return {
        "format": FORMAT,
        "subject": subject_key,
        "evidence": None if sandbox is None else sandbox.evidence.data,
        "value": None if sandbox is None else sandbox.weighed.value,
        "confidence": None if sandbox is None else sandbox.weighed.confidence,
    }


def snapshot_bytes(subject: Subject, collected: Sequence[Collected]) -> bytes:
    """The canonical form (RFC 8785) of an evaluation's behaviour."""
    return canonical_bytes(behaviour(subject.key, collected))


def snapshot_hash(data: bytes) -> str:
    """`0x` and the SHA-256 of the canonical form."""
    return sha256_hex(data)
