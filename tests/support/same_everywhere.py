"""A thousand made-up evaluations, and one hash of everything that follows from them.

    python -m tests.support.same_everywhere

Prints the hash: the same in every process, whatever its hash seed.
"""

import hashlib
import random
import sys

import assay.evaluation.signals
from assay.caller_behaviour.scenario import ScenarioCall, ScenarioRequest, SeededRandom
from assay.caller_behaviour.scenarios import SCENARIOS
from assay.common.json import JsonObject, JsonValue
from assay.common.plugins import load_plugins
from assay.evaluation.model import Evidence, SignalName, SignalResult
from assay.evaluation.ports import Signal
from assay.evaluation.scoring import DEFAULT_WEIGHTS, ScoringPolicy, grade_score, tiers_from
from assay.evaluation.snapshot import evidence_bytes, record_bytes, snapshot_hash
from assay.probing.probes import PROBES
from tests.support.fakes.ladder import STEADY, proven

CASES = 1000
NOW_S = 1_790_000_000
SIGNALS = load_plugins(assay.evaluation.signals, "SIGNAL", Signal)
RULES = ScoringPolicy(DEFAULT_WEIGHTS, tiers_from())


def evidence(rng: random.Random) -> dict[str, JsonObject]:
    """Of every signal, by its name."""
    return {
        "8004": rng.choice([_feedback, _paid_feedback])(rng),
        "sandbox": _behaviour(rng),
        "wallet": _wallet(rng),
        "self": {"registered": rng.random() < 0.5, "holds": rng.random() < 0.5, "agents": 2},
        "personhood": {"level": rng.choice([None, "orb", "device"])},
        "attestation": {"attested": rng.random() < 0.5, "handles": [{"source": "s"}]},
    }


def _wallet(rng: random.Random) -> JsonObject:
    """Of today's rules, and of those before."""
    spent = f"{rng.randint(0, 40)}.{rng.randint(0, 999_999):06d}"
    now: JsonObject = {"rules": 2, "spentUsd": spent}
    before: JsonObject = {
        "transactions": rng.choice([None, rng.randint(0, 500)]),
        "contract": rng.random() < 0.2,
        "sinceDays": rng.choice([None, 0, 7, 30, 90, 365]),
        "balance": rng.choice(["none", "some", "much"]),
    }
    return rng.choice([now, before])


def _paid_feedback(rng: random.Random) -> JsonObject:
    """Payers and votes."""
    payers: dict[str, JsonValue] = {}
    votes: dict[str, JsonValue] = {}
    for number in rng.sample(range(10**6), rng.randint(0, 40)):
        address, day = f"0x{number:040x}", 20_000 - rng.randint(0, 300)
        spent = {str(day): rng.randint(0, 5_000_000), str(day + 1): 700_001}
        payers[address] = {
            "spent": spent,
            "elsewhere": rng.randint(0, 4_000_000),
            "sources": [f"0x{rng.randint(0, 20):040x}"],
            "charge": rng.random() < 0.5,
        }
        votes[address] = {"rating": repr(rng.randint(0, 10_000) / 100), "day": day}
    counts: JsonObject = {"registered": True, "rules": 2, "day": 20_000, "price": 10_000}
    return {**counts, "payers": payers, "votes": votes}


def _feedback(rng: random.Random) -> JsonObject:
    reviewers: dict[str, JsonValue] = {}
    for number in rng.sample(range(10**6), rng.randint(0, 40)):
        reviewers[f"0x{number:040x}"] = {
            "value": str(rng.randint(0, 10_000) / 100),
            "given": NOW_S - rng.randint(0, 10**7),
            "first": NOW_S - rng.randint(0, 10**8),
            "transactions": rng.randint(0, 300),
            "rated": [str(n) for n in rng.sample(range(50), rng.randint(0, 6))],
        }
    return {
        "registered": True,
        "asOf": NOW_S,
        "timesKnownSince": NOW_S - 10**7,
        "reviewers": reviewers,
        "further": {"reviewers": 0, "sum": "0"},
        "entries": len(reviewers),
        "discarded": 0,
    }


def _behaviour(rng: random.Random) -> JsonObject:
    course: dict[str, JsonValue] = {}
    for name in rng.sample(sorted(SCENARIOS), rng.randint(1, len(SCENARIOS))):
        obstacle, own = SCENARIOS[name], SeededRandom(str(rng.random()))
        request = ScenarioRequest("GET", {}, b"", "", rng.random() < 0.5, rng.random() < 0.5)
        calls = [
            ScenarioCall(1000 * n, 1000 * n + rng.randint(0, 3000), "", obstacle.note(own, request))
            for n in range(rng.randint(1, 6))
        ]
        course[name] = obstacle.observe(own, calls)
    probes = dict.fromkeys(rng.sample(sorted(PROBES), 5), "unfinished")
    return {
        "status": "tested",
        "why": None,
        "probes": probes,
        "conduct": {"course": course},
        **rng.choice([{}, proven(), {**proven(), "history": STEADY}]),
    }


def digest() -> str:
    """Of every score, its reasons and its snapshot hash."""
    rng, whole = random.Random(8004), hashlib.sha256()
    for _ in range(CASES):
        collected = [
            SignalResult(
                SignalName(name), Evidence(seen), SIGNALS[name].weigh(Evidence(seen), PROBES)
            )
            for name, seen in evidence(rng).items()
        ]
        rng.shuffle(collected)
        found = grade_score("22", collected, {}, RULES)
        policy = RULES.document()
        taken = [
            snapshot_hash(record_bytes("eip155:1/22", found.place.rung, collected, policy)),
            snapshot_hash(evidence_bytes("eip155:1/22", collected, {}, policy)),
        ]
        whole.update(repr((found.value, found.reasons, found.contributions, taken)).encode())
    return whole.hexdigest()


if __name__ == "__main__":
    sys.stdout.write(digest())
