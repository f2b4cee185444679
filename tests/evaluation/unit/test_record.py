"""The record of a verdict, and the hashes of record and evidence."""

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.common.json import JsonObject, JsonValue, sha256_hex
from assay.evaluation.scoring import DEFAULT_WEIGHTS, ScoringPolicy, rules_from, tiers_from
from assay.evaluation.snapshot import evidence_document, policy_version, verdict_record
from tests.support.fakes.ladder import proven

KEY = "eip155:1/22"
POLICY = ScoringPolicy(DEFAULT_WEIGHTS, tiers_from()).document()
CHECKS = {"reachable": "passed", "no_cross_talk": "not_made"}
FINDING: JsonObject = {"check": "no_leaked_secrets", "severity": "critical", "open": True}


def record(behaviour: JsonObject, rung: int = 1) -> bytes:
    return verdict_record(KEY, rung, CHECKS, behaviour, POLICY)


def test_the_record_holds_subject_rung_checks_findings_fingerprints_and_policy() -> None:
    prints: JsonObject = {"tools": "ab" * 32}
    finding: JsonObject = {**FINDING, "sightings": 2, "request": "GET /", "bytes": "AKIA"}
    found = record({"fingerprints": prints, "findings": [finding]})
    assert json.loads(found) == {
        "format": "assay.verdict.v2",
        "subject": KEY,
        "rung": 1,
        "checks": {"reachable": "passed"},
        "findings": [{"check": "no_leaked_secrets", "severity": "critical"}],
        "fingerprints": prints,
        "policy": policy_version(POLICY),
    }


def test_an_unchanged_agent_has_one_hash_per_rung() -> None:
    """Seeds, texts, counts, times and how often a visit was made do not move it."""
    first: JsonObject = {**proven(), "seed": "a", "history": {"visits": 1, "pooled": {}}}
    later: JsonObject = {**proven(), "seed": "b", "history": {"visits": 9, "days": 4}}
    assert record(first) == record(later)
    assert record(first, rung=2) != record(first, rung=1)


def test_a_finding_that_is_not_corroborated_is_not_in_the_verdict() -> None:
    assert record({"findings": [{**FINDING, "sightings": 1}]}) == record({})
    assert record({"findings": [{**FINDING, "sightings": 2}]}) != record({})
    assert record({"history": {"openCritical": ["no_leaked_secrets"]}}) == record(
        {"findings": [{**FINDING, "sightings": 3}]}
    )


def test_another_policy_is_another_record() -> None:
    other = {**POLICY, "ladder": {}}
    assert verdict_record(KEY, 1, CHECKS, {}, other) != record({})


scalars: st.SearchStrategy[JsonValue] = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=5)
)
documents = st.dictionaries(
    st.text(st.characters(exclude_categories=()), max_size=5),
    scalars | st.lists(scalars, max_size=3),
    max_size=6,
)


@given(documents, st.integers())
def test_any_evidence_has_a_hash_and_the_same_one_in_whatever_order_it_came(
    data: dict[str, JsonValue], seed: int
) -> None:
    shuffled = list(data.items())
    random.Random(seed).shuffle(shuffled)
    one = evidence_document(KEY, {"sandbox": data}, {}, {}, POLICY)
    other = evidence_document(KEY, {"sandbox": dict(shuffled)}, {}, {}, POLICY)
    assert sha256_hex(one) == sha256_hex(other)


@given(documents)
def test_other_evidence_has_another_evidence_hash(data: dict[str, JsonValue]) -> None:
    one = evidence_document(KEY, {"sandbox": data}, {}, {}, POLICY)
    assert one != evidence_document(KEY, {"sandbox": {**data, "one more": True}}, {}, {}, POLICY)


def test_the_policy_of_an_evaluation_gives_its_rules_back() -> None:
    stored = json.loads(json.dumps(POLICY))
    rules = rules_from(stored)
    assert rules is not None
    assert policy_version(rules.document()) == policy_version(stored)
    assert rules_from({**stored, "rules": 999}) is None
    with pytest.raises(ValueError, match="policy"):
        rules_from({"rules": stored["rules"]})
