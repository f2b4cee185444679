"""Weighs evidence collected under earlier rules, so that old evaluations can be checked.

Never changed: an evaluation made under them keeps its score. ADR 0028.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

from assay.common.json import JsonObject, is_object
from assay.evaluation.model import SignalScore
from assay.reputation.rules_v1 import ReputationResult, judge, voices_of


def feedback_weighed(seen: JsonObject) -> SignalScore:
    """Weigh the 8004 signal of evidence without `rules`: ratings by account history."""
    since, as_of = seen.get("timesKnownSince"), seen.get("asOf")
    verdict = judge(voices_of(seen), _count(as_of), since if isinstance(since, int) else None)
    if verdict is None:
        return SignalScore(50.0, 0.0, ("Nobody has given feedback in the registry yet.",))
    return SignalScore(verdict.value, verdict.confidence, _reasons(verdict, seen))


def wallet_weighed(seen: JsonObject) -> SignalScore:
    """Weigh the wallet signal of evidence without `rules`: age, transactions and balance."""
    sent, days = _count(seen["transactions"]), seen["sinceDays"]
    holds = _BALANCES[str(seen["balance"])]
    if seen["contract"]:
        return SignalScore(
            round(50 + 50 * 0.15 * holds, 2), 0.2, ("The agent's wallet is a contract.",)
        )
    if not sent:
        return SignalScore(50.0, 0.0, ("The agent's wallet has never sent a transaction.",))
    age = max((worth for day, worth in _AGES.items() if _count(days) >= day), default=0.0)
    points = 0.45 * age + 0.4 * min(1.0, sent / 100) + 0.15 * holds
    since = f"in use for {_count(days)} days or more" if _count(days) else "new"
    since_text = since if days is not None else "of unknown age"
    return SignalScore(
        value=round(50 + 50 * points, 2),
        confidence=0.5 if days is None else 0.8,
        reasons=(f"The agent's wallet is {since_text} and has sent {sent} transactions.",),
    )


_BALANCES: Final[Mapping[str, float]] = {"none": 0.0, "some": 0.5, "much": 1.0}
_AGES: Final[Mapping[int, float]] = {7: 0.35, 30: 0.6, 90: 0.85, 365: 1.0}

_CLUSTERS: Final[Mapping[str, str]] = {
    "no": "{} reviewers have no history to tell them apart, and count like a handful.",
    "ring": "{} reviewers rated the same other agents, and count like a handful.",
    "burst": "{} reviewers came within minutes of each other, and count like a handful.",
}


def _reasons(verdict: ReputationResult, seen: JsonObject) -> tuple[str, ...]:
    further = seen.get("further")
    more = further["reviewers"] if is_object(further) else 0
    count = len(verdict.ratings) + _count(more)
    people = "1 reviewer" if count == 1 else f"{count} reviewers"
    ours = f"{verdict.value:g} of 100 with the weight of {verdict.mass:.1f} full voices"
    plain = f"the plain average is {_plain_mean(seen):g}"
    sentences = [
        f"{people} in the registry, weighed by what they have at stake, give {ours}; {plain}."
    ]
    if verdict.betrayed:
        sentences.append("The newest reviews are far worse than those before, and count alone.")
    for name, size in sorted(verdict.clusters.items(), key=lambda c: (-c[1], c[0])):
        if size > 1:
            sentences.append(_CLUSTERS[name.partition(" ")[0]].format(size))
    if verdict.own:
        sentences.append("Feedback from the agent's own addresses does not count.")
    if verdict.reciprocal:
        sentences.append(f"{verdict.reciprocal} of the reviewers were rated by the agent in turn.")
    if verdict.unknown:
        sentences.append(f"Of {verdict.unknown} reviewers no history could be read.")
    return tuple(sentences)


def _plain_mean(seen: JsonObject) -> float:
    reviewers, further = seen.get("reviewers"), seen.get("further")
    rows = list(reviewers.values()) if is_object(reviewers) else []
    values = [Decimal(str(row["value"])) for row in rows if is_object(row)]
    more, rest = (further["reviewers"], further["sum"]) if is_object(further) else (0, "0")
    count = len(values) + _count(more)
    total = sum(values, Decimal(str(rest)))
    return round(float(total / count), 2) if count else 0.0


def _count(value: object) -> int:
    return value if isinstance(value, int) else 0
