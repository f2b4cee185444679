"""A thousand made-up evaluations, and one hash of everything that follows from them.

    python -m tests.services.same_everywhere

Prints the hash: the same in every process, whatever its hash seed.
"""

import hashlib
import random
import sys

import assay.trust.probes
import assay.trust.signals
from assay.kit.canonical import canonical_bytes
from assay.kit.json import JsonObject, JsonValue
from assay.kit.plugins import load_plugins
from assay.trust.conduct import CourseCall, CourseRequest, Dice
from assay.trust.model import Collected, Evidence, SignalName
from assay.trust.obstacle_list import OBSTACLES
from assay.trust.ports import Probe, Signal
from assay.trust.scoring import DEFAULT_WEIGHTS, score
from assay.trust.snapshot import behaviour, snapshot_hash

CASES = 1000
NOW_S = 1_790_000_000
SIGNALS = load_plugins(assay.trust.signals, "SIGNAL", Signal)
PROBES = load_plugins(assay.trust.probes, "PROBE", Probe)


def evidence(dice: random.Random) -> dict[str, JsonObject]:
    """Of every signal, by its name."""
    return {
        "8004": _feedback(dice),
        "sandbox": _behaviour(dice),
        "wallet": {
            "transactions": dice.choice([None, dice.randint(0, 500)]),
            "contract": dice.random() < 0.2,
            "sinceDays": dice.choice([None, 0, 7, 30, 90, 365]),
            "balance": dice.choice(["none", "some", "much"]),
        },
        "self": {"registered": dice.random() < 0.5, "holds": dice.random() < 0.5, "agents": 2},
        "personhood": {"level": dice.choice([None, "orb", "device"])},
        "attestation": {"attested": dice.random() < 0.5, "handles": [{"source": "s"}]},
    }


def _feedback(dice: random.Random) -> JsonObject:
    reviewers: dict[str, JsonValue] = {}
    for number in dice.sample(range(10**6), dice.randint(0, 40)):
        reviewers[f"0x{number:040x}"] = {
            "value": str(dice.randint(0, 10_000) / 100),
            "given": NOW_S - dice.randint(0, 10**7),
            "first": NOW_S - dice.randint(0, 10**8),
            "transactions": dice.randint(0, 300),
            "rated": [str(n) for n in dice.sample(range(50), dice.randint(0, 6))],
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


def _behaviour(dice: random.Random) -> JsonObject:
    course: dict[str, JsonValue] = {}
    for name in dice.sample(sorted(OBSTACLES), dice.randint(1, len(OBSTACLES))):
        obstacle, own = OBSTACLES[name], Dice(str(dice.random()))
        request = CourseRequest("GET", {}, b"", "", dice.random() < 0.5, dice.random() < 0.5)
        calls = [
            CourseCall(1000 * n, 1000 * n + dice.randint(0, 3000), "", obstacle.note(own, request))
            for n in range(dice.randint(1, 6))
        ]
        course[name] = obstacle.observe(own, calls)
    probes = dict.fromkeys(dice.sample(sorted(PROBES), 5), "unfinished")
    return {"status": "tested", "why": None, "probes": probes, "conduct": {"course": course}}


def digest() -> str:
    """Of every score, its reasons and its snapshot hash."""
    dice, whole = random.Random(8004), hashlib.sha256()
    for _ in range(CASES):
        collected = [
            Collected(SignalName(name), Evidence(seen), SIGNALS[name].weigh(Evidence(seen), PROBES))
            for name, seen in evidence(dice).items()
        ]
        dice.shuffle(collected)
        found = score(collected, {}, DEFAULT_WEIGHTS)
        taken = snapshot_hash(canonical_bytes(behaviour("eip155:1/22", collected)))
        whole.update(repr((found.value, found.reasons, found.contributions, taken)).encode())
    return whole.hexdigest()


if __name__ == "__main__":
    sys.stdout.write(digest())
