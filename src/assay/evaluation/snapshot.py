"""Writes a verdict and its evidence in canonical form, and its hashes. Pure.

The record contains what stays the same for an unchanged agent: no seeds, texts, counts or times, so
that it has one hash per rung. The evidence document contains everything, the policy included, so
that the record can be recomputed byte for byte.
Source: interface.md#snapshot; evidence.md#hashes-of-evidence; ADR 0024.

Snapshots older than the ladder have the earlier form, and are checked by its own rule.
Source: interface.md#snapshot; conventions.md#snapshots; ADR 0024.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from assay.common.json import (
    JsonObject,
    JsonValue,
    canonical_bytes,
    is_array,
    is_object,
    sha256_hex,
)
from assay.evaluation.demands import member, number, rows
from assay.evaluation.model import SignalName, SignalResult

RECORD_FORMAT: Final = "assay.verdict.v2"
EVIDENCE_FORMAT: Final = "assay.evidence.v2"

INTEGER_MAX: Final = 2**53 - 1
"""The largest whole number that canonical JSON has a form for (RFC 8785, section 3.2.2.3)."""


def policy_version(policy: JsonObject) -> str:
    """Return a policy's name: the SHA-256 of its canonical form."""
    return sha256_hex(canonical_bytes(policy))


def verdict_record(
    subject_key: str,
    rung: int,
    checks: Mapping[str, str],
    behaviour: JsonObject,
    policy: JsonObject,
) -> bytes:
    """Return the canonical form of a verdict, which `snapshotHash` hashes.

    `checks` is the result of every check over all visits of the window; those not made are left
    out, because they say nothing of the agent.
    """
    made: dict[str, JsonValue] = {name: s for name, s in checks.items() if s != "not_made"}
    record: JsonObject = {
        "format": RECORD_FORMAT,
        "subject": subject_key,
        "rung": rung,
        "checks": made,
        "findings": [*_findings(behaviour)],
        "fingerprints": member(behaviour, "fingerprints"),
        "policy": policy_version(policy),
    }
    return canonical_bytes(_plain(record))


def evidence_document(
    subject_key: str,
    evidence: Mapping[str, JsonObject],
    transcripts: Mapping[str, JsonObject],
    unavailable: Mapping[str, str],
    policy: JsonObject,
) -> bytes:
    """Return the canonical form of everything behind a verdict, which `evidenceHash` hashes."""
    document: JsonObject = {
        "format": EVIDENCE_FORMAT,
        "subject": subject_key,
        "evidence": dict(evidence),
        "transcripts": dict(transcripts),
        "unavailable": dict(unavailable),
        "policy": policy,
    }
    return canonical_bytes(_plain(document))


def _findings(behaviour: JsonObject) -> list[JsonObject]:
    """Return open findings by check and severity; uncorroborated ones are not in the verdict."""
    found = {
        (str(row.get("check")), str(row.get("severity")))
        for row in rows(behaviour, "findings") or []
        if row.get("open") is not False and number(row, "sightings") >= 2  # noqa: PLR2004
    }
    older = member(behaviour, "history").get("openCritical")
    for one in older if is_array(older) else ():
        found.add((str(one.get("check")) if is_object(one) else str(one), "critical"))
    return [{"check": check, "severity": severity} for check, severity in sorted(found)]


def _plain(value: JsonValue) -> JsonValue:
    """Return the value for canonical JSON: no lone surrogates, no integers beyond 2^53."""
    if is_object(value):
        return {_text(name): _plain(one) for name, one in value.items()}
    if is_array(value):
        return [_plain(one) for one in value]
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > INTEGER_MAX:
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _text(value: str) -> str:
    return value.encode("utf-8", "replace").decode("utf-8")


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
