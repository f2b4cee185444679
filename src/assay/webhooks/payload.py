"""Builds and signs what is sent (interface.md#events; Standard Webhooks 1.0). Pure."""

import base64
import binascii
import hashlib
import hmac
import json
from typing import Final

from assay.common.clock import iso
from assay.evaluation.model import Evaluation, EvaluationChange, Snapshot
from assay.webhooks.model import EVENT, GRADE_CHANGED

SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - how a secret begins, not one
SECRET_BYTES: Final = range(24, 65)
"""Source: Standard Webhooks, "Signature scheme": between 24 and 64 random bytes, in base64."""


def payload(evaluation: Evaluation, snapshot: Snapshot, threshold: float) -> str:
    """Return the body: the fields of interface.md#events, no more and no fewer."""
    document = {
        "event": EVENT,
        "agentId": evaluation.agent_id,
        "tier": evaluation.grade.tier,
        "riskLevel": evaluation.grade.risk_level,
        "route": evaluation.grade.route,
        "meetsThreshold": evaluation.score >= threshold,
        "snapshotHash": snapshot.snapshot_hash,
        "previousHash": snapshot.previous_hash,
        "encryptedDataUri": snapshot.encrypted_data_uri,
        "timestamp": iso(evaluation.evaluated_at),
        "interactionCount": snapshot.interaction_count,
    }
    return json.dumps(document, separators=(",", ":"))


def change_payload(event: str, body: str, change: EvaluationChange) -> str:
    """Return the body of an event beyond interface.md#events: its fields, and what changed."""
    document = json.loads(body) | {"event": event}
    if event == GRADE_CHANGED:
        document["previousTier"] = change.tier_before
    else:
        document["changes"] = list(change.drift)
    return json.dumps(document, separators=(",", ":"))


def secret_bytes(secret: str) -> bytes:
    """Return the key of a `whsec_...` secret; raises `ValueError` for any other text."""
    if not secret.startswith(SECRET_PREFIX):
        raise ValueError("must begin with whsec_")
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("must be whsec_ and base64") from None
    if len(key) not in SECRET_BYTES:
        raise ValueError("must hold 24 to 64 bytes, in base64 after whsec_")
    return key


def signature(key: bytes, delivery_id: str, timestamp_s: int, body: bytes) -> str:
    """Return the value of `webhook-signature`: HMAC-SHA256 over id, time and body."""
    signed = f"{delivery_id}.{timestamp_s}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
