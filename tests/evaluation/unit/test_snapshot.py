import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.common.json import sha256_hex
from assay.evaluation.model import Evidence, SignalName, SignalResult, SignalScore
from assay.evaluation.snapshot import evidence_document, older_snapshot_bytes, snapshot_hash

scalars = st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(max_size=20)
documents = st.dictionaries(
    st.text(max_size=10), scalars | st.lists(scalars, max_size=4), max_size=8
)


def hash_of(data: dict[str, object], value: float = 80.0) -> str:
    sandbox = SignalResult(SignalName.SANDBOX, Evidence(data), SignalScore(value, 0.5))  # type: ignore[arg-type]
    return snapshot_hash(older_snapshot_bytes("eip155:1/22", [sandbox]))


@given(documents, st.integers())
def test_version_1_the_same_evidence_has_the_same_hash_in_whatever_order_it_came(
    data: dict[str, object], seed: int
) -> None:
    shuffled = list(data.items())
    random.Random(seed).shuffle(shuffled)
    assert hash_of(data) == hash_of(dict(shuffled))


@given(documents)
def test_version_1_other_evidence_has_another_hash(data: dict[str, object]) -> None:
    assert hash_of(data) != hash_of({**data, "one more": True})


def test_version_1_is_the_sha256_of_the_canonical_json() -> None:
    """Recomputable with nothing of ours: sorted keys, no blanks, shortest numbers."""
    document = {
        "confidence": 0.5,
        "evidence": {"b": 1, "a": [True, None]},
        "format": "assay.snapshot.v1",
        "subject": "eip155:1/22",
        "value": 80,
    }
    text = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
    assert hash_of({"a": [True, None], "b": 1}) == sha256_hex(text)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (float("nan"), None),
        (float("inf"), None),
        (-float("inf"), None),
        (2**53 + 1, "9007199254740993"),
        ("\ud800", "?"),
    ],
)
def test_what_canonical_json_cannot_hold_is_replaced(value: object, kept: object) -> None:
    """An agent's answer may hold it, and must not stop an evaluation."""
    written, as_kept = (
        evidence_document("eip155:1/22", {"sandbox": {"a": [one]}}, {}, {}, {})  # type: ignore[list-item]
        for one in (value, kept)
    )
    assert written == as_kept
