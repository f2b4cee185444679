"""What signals are worth -> score, tier, verdict. Pure: the same evidence gives the same anywhere.

What signals are worth -> one score. Pure: the same evidence gives the same score anywhere.

    score = 50 + sum_i weight_i * confidence_i * (value_i - 50), then + bonus, clamped to 0..100,
    then at most the critical caps, then at most the ceiling of the rung that is proven

with weights normalised over the selected signals, so that the sum is the confidence-weighted mean
shrunk towards the prior by whatever is not known. A signal that could not be collected keeps its
weight and has no points: it pulls the score towards the prior, never towards zero.
Nothing else is subtracted, and the ceiling holds for every selection of signals.
Source: conventions.md#signals-and-score; ADR 0024; Efron & Morris 1975 for shrinkage towards a
prior mean.

Maps a score to tier, risk level and route: one replaceable table, always monotone.

Source: conventions.md#tiers.

Computes rung, score and verdict record from evidence and policy.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import cast, get_args

from assay.chains.model import is_address
from assay.common.json import JsonObject, is_array, is_object
from assay.evaluation.demands import RULES, LadderPolicy, ladder_from
from assay.evaluation.ladder import LadderPlace, place
from assay.evaluation.model import (
    Cap,
    Contribution,
    EvidenceUnavailable,
    Grade,
    RiskLevel,
    Score,
    SignalName,
    SignalResult,
    SignalScore,
    Tier,
    TierRoute,
)

PRIOR = 50.0
"""The score of an agent about which nothing is known. Source: conventions.md#signals-and-score."""

BASE_SIGNALS = frozenset(
    {SignalName.SANDBOX, SignalName.REGISTRY_8004, SignalName.WALLET, SignalName.SELF}
)
"""Signals that count by default. Source: conventions.md#signals-and-score."""

DEFAULT_WEIGHTS: Mapping[SignalName, float] = MappingProxyType(
    {
        SignalName.SANDBOX: 55.0,
        SignalName.REGISTRY_8004: 25.0,
        SignalName.WALLET: 10.0,
        SignalName.SELF: 10.0,
        SignalName.PERSONHOOD: 15.0,
        SignalName.ATTESTATION: 5.0,
    }
)
"""Source: conventions.md#signals-and-score."""

BONUS: Mapping[str, float] = MappingProxyType({"orb": 8.0})
BONUS_OTHERWISE = 5.0
"""Points that a proven human adds, by level: an orb's, and any other's.
Source: conventions.md#signals-and-score; interface.md#personhood-points."""

_REASONS_MAX = 6


def weights_from(overrides: Mapping[str, float]) -> Mapping[SignalName, float]:
    """Return the default weights with `overrides` by signal name.

    Raises `ValueError` for an unknown signal or a weight that is not above 0 (and finite).
    """
    weights = dict(DEFAULT_WEIGHTS)
    for name, weight in overrides.items():
        if name not in set(SignalName):
            raise ValueError(f"there is no signal {name!r}")
        if not 0 < weight <= 1_000_000:  # noqa: PLR2004 - any bound that excludes inf and nan
            raise ValueError(f"the weight of signal {name!r} must be above 0")
        weights[SignalName(name)] = weight
    return MappingProxyType(weights)


def score(
    collected: Sequence[SignalResult],
    unavailable: Mapping[SignalName, str],
    weights: Mapping[SignalName, float],
    place: LadderPlace,
    selected: frozenset[SignalName] = frozenset(),
) -> Score:
    """Return the score of an evaluation over `selected` signals (empty: the base ones).

    Raises `EvidenceUnavailable` when not one selected signal could be collected.
    """
    chosen = selected or BASE_SIGNALS
    results = sorted((c for c in collected if c.signal in chosen), key=lambda c: c.signal)
    missing = tuple(sorted(name for name in unavailable if name in chosen))
    if not results:
        raise _nothing(missing or tuple(sorted(chosen)))
    total = sum(weights[c.signal] for c in results) + sum(weights[name] for name in missing)
    shares = {c.signal: weights[c.signal] / total for c in results}
    bonus, why = (0.0, ()) if SignalName.PERSONHOOD in chosen else _bonus(collected)
    contributions = tuple(_contribution(c, shares[c.signal]) for c in results)
    caps = tuple(c.weighed.cap for c in results if c.weighed.cap is not None)
    points = sum(c.points for c in contributions)
    before = _bounded(points, bonus, caps)
    value = min(before, place.ceiling)
    hidden = max(0.0, min(bonus, before - max(value, _bounded(points, 0.0, caps))))
    checks = [state for c in collected for state in c.weighed.checks.values()]
    first = [*(c.reason for c in caps), *_ceiling(place, before, value, hidden), *why]
    return Score(
        value=round(value, 2),
        confidence=round(sum(c.weight * c.confidence for c in contributions), 4),
        contributions=contributions,
        unavailable=missing,
        caps=caps,
        bonus=bonus,
        reasons=_reasons(contributions, missing, unavailable, first),
        place=place,
        low=_supposed(results, shares, bonus, place.ceiling, lambda w: w.low),
        high=_supposed(results, shares, bonus, place.ceiling, lambda w: w.high),
        before_ceiling=round(before, 2),
        hidden_bonus=round(hidden, 2),
        checks_made=sum(state != "not_made" for state in checks),
        checks_applicable=len(checks),
    )


def _nothing(missing: Sequence[SignalName]) -> EvidenceUnavailable:
    names = ", ".join(missing)
    return EvidenceUnavailable(
        f"None of the selected trust signals could be collected now ({names}).",
        signals=list(missing),
        retry_after_s=10,
    )


def lacks_knowledge(found: Score, min_score: float) -> bool:
    """Return whether a score is below `min_score` only for lack of knowledge.

    Either no signal counts against the agent, or only the rung's ceiling bounds the score.
    """
    if found.value >= min_score or found.caps or found.place.faults:
        return False
    return all(c.points >= 0 for c in found.contributions) or found.before_ceiling >= min_score


def _bounded(points: float, bonus: float, caps: Sequence[Cap]) -> float:
    """Apply formula, then bonus, then critical caps."""
    value = min(100.0, max(0.0, PRIOR + points + bonus))
    return min([value, *(cap.score for cap in caps)])


def _supposed(
    results: Sequence[SignalResult],
    shares: Mapping[SignalName, float],
    bonus: float,
    ceiling: float,
    pick: Callable[[SignalScore], SignalScore | None],
) -> float:
    """Apply the same formula, with the assumption of `pick` about checks that were not made."""
    supposed = [(c.signal, pick(c.weighed) or c.weighed) for c in results]
    points = sum(_points(w, shares[signal]) for signal, w in supposed)
    caps = [w.cap for _, w in supposed if w.cap is not None]
    return round(min(ceiling, _bounded(points, bonus, caps)), 2)


def _ceiling(place: LadderPlace, before: float, value: float, hidden: float) -> tuple[str, ...]:
    """Return the sentence that explains the ceiling's effect."""
    if before <= value:
        return ()
    asked = "; ".join(d.asks.rstrip(".") for d in place.next_demands)
    of_bonus = f", {hidden:.2f} of them of the bonus" if hidden else ""
    said = f"Rung {place.rung} ({place.name}) has the ceiling {place.ceiling:g}: it hides"
    return (f"{said} {before - value:.2f} points{of_bonus}. The next rung asks for: {asked}.",)


def _points(weighed: SignalScore, share: float) -> float:
    return round(share * weighed.confidence * (weighed.value - PRIOR), 6)


def _bonus(collected: Sequence[SignalResult]) -> tuple[float, tuple[str, ...]]:
    """Return what a proven human adds, and the sentence that says so."""
    for one in collected:
        level = one.evidence.data.get("level") if one.signal is SignalName.PERSONHOOD else None
        if isinstance(level, str):
            points = BONUS.get(level, BONUS_OTHERWISE)
            return points, (f"A proven human behind the agent adds {points:g} points ({level}).",)
    return 0.0, ()


def _contribution(collected: SignalResult, weight: float) -> Contribution:
    weighed = collected.weighed
    return Contribution(
        signal=collected.signal,
        value=weighed.value,
        weight=round(weight, 6),
        confidence=weighed.confidence,
        points=_points(weighed, weight),
        reasons=weighed.reasons,
    )


def _reasons(
    contributions: Sequence[Contribution],
    missing: Sequence[SignalName],
    unavailable: Mapping[SignalName, str],
    capped: Sequence[str],
) -> tuple[str, ...]:
    """Order reasons: caps, then signals by how far they moved the score, then missing ones."""
    by_weight = sorted(contributions, key=lambda c: (-abs(c.points), c.signal))
    sentences = [
        *capped,
        *(reason for c in by_weight for reason in c.reasons),
        *(f"The {name} signal could not be collected: {unavailable[name]}" for name in missing),
    ]
    return tuple(dict.fromkeys(sentences))[:_REASONS_MAX]


TierRow = tuple[float, str, str, str]

DEFAULT_ROWS: tuple[TierRow, ...] = (
    (95, "AAA", "GREEN", "prod"),
    (90, "AA", "GREEN", "prod"),
    (85, "A", "GREEN", "prod"),
    (75, "BAA", "YELLOW", "prod_throttled"),
    (65, "BA", "YELLOW", "prod_throttled"),
    (50, "B", "RED", "sandbox"),
    (35, "CAA", "RED", "sandbox_only"),
    (20, "CA", "RED", "sandbox_only"),
    (0, "C", "RED", "sandbox_only"),
)
"""Least score, tier, risk level, route; best first. Source: conventions.md#tiers."""


@dataclass(frozen=True, slots=True)
class Tiers:
    """The table in use.

    Every score 0..100 has exactly one grade; a higher score never a lower one.
    """

    rows: tuple[tuple[float, Grade], ...]

    def grade(self, score: float) -> Grade:
        """Return the grade of a score 0..100."""
        return next(grade for minimum, grade in self.rows if score >= minimum)


@dataclass(frozen=True, slots=True)
class ScoringPolicy:
    """The rules from evidence to grade: the weights, the tier table and the ladder in use."""

    weights: Mapping[SignalName, float]
    tiers: Tiers
    ladder: LadderPolicy = field(default_factory=LadderPolicy)

    def document(self) -> JsonObject:
        """Return every number, as it is stored with an evaluation; `rules_from` reads it."""
        return {
            "rules": RULES,
            "weights": {name.value: weight for name, weight in sorted(self.weights.items())},
            "tiers": [[minimum, g.tier, g.risk_level, g.route] for minimum, g in self.tiers.rows],
            "ladder": self.ladder.document(),
        }


def tiers_from(rows: Sequence[TierRow] | None = None) -> Tiers:
    """Return the table of `rows` (the default one if None).

    Raises `ValueError` with a plain sentence when a row has an unknown word, minima do not fall
    strictly from at most 100 to 0, or tier, risk level or route get better as the score falls.
    """
    listed = tuple(DEFAULT_ROWS if rows is None else rows)
    _check_minima([row[0] for row in listed])
    for column, words, what in (
        (1, get_args(Tier), "tier"),
        (2, get_args(RiskLevel), "risk level"),
        (3, get_args(TierRoute), "route"),
    ):
        _check_falling([str(row[column]) for row in listed], words, what)
    return Tiers(
        tuple(
            (minimum, Grade(cast("Tier", t), cast("RiskLevel", k), cast("TierRoute", r)))
            for minimum, t, k, r in listed  # The word checks above justify the casts.
        )
    )


def _check_minima(minima: Sequence[float]) -> None:
    if not minima or minima[-1] != 0:
        raise ValueError("the last row of the tier table must begin at score 0")
    falling = all(above > below for above, below in pairwise(minima))
    if not falling or minima[0] > 100:  # noqa: PLR2004 - the top of the scale
        raise ValueError("scores in the tier table must fall from row to row, from at most 100")


def _check_falling(column: Sequence[str], words: Sequence[str], what: str) -> None:
    unknown = [word for word in column if word not in words]
    if unknown:
        raise ValueError(f"the tier table has an unknown {what}: {unknown[0]!r}")
    ranks = [words.index(word) for word in column]
    if ranks != sorted(ranks):
        raise ValueError(f"the {what} in the tier table must not get better as the score falls")


MIN_SCORE_DEFAULT = 65.0
"""Default threshold. Source: interface.md#limits."""


_CELLS = 4
"""Cells of a row of the tier table."""


def place_of(
    agent_id: str,
    collected: Sequence[SignalResult],
    unavailable: Mapping[SignalName, str],
    rules: ScoringPolicy,
) -> LadderPlace:
    """Return the rung that all evidence proves; an agent whose id is an address is a key agent."""
    evidence = {c.signal.value: c.evidence.data for c in collected}
    missing = frozenset(map(str, unavailable))
    return place(evidence, missing, rules.ladder, is_key_agent=is_address(agent_id))


def grade_score(
    agent_id: str,
    collected: Sequence[SignalResult],
    unavailable: Mapping[SignalName, str],
    rules: ScoringPolicy,
    selected: frozenset[SignalName] = frozenset(),
) -> Score:
    """Return the score under the ceiling of the rung that all evidence proves.

    The ceiling does not depend on the selected signals. Raises `EvidenceUnavailable` when not one
    selected signal could be collected.
    """
    found = place_of(agent_id, collected, unavailable, rules)
    return score(collected, unavailable, rules.weights, found, selected)


def rules_from(document: JsonObject) -> ScoringPolicy | None:
    """Parse the rules of `ScoringPolicy.document`; None if other code made it.

    Raises `ValueError` for an invalid document.
    """
    if document.get("rules") != RULES:
        return None
    weights, tiers, ladder = (document.get(name) for name in ("weights", "tiers", "ladder"))
    if not is_object(weights) or not is_array(tiers) or not is_object(ladder):
        raise ValueError("the policy of an evaluation is not whole")
    rows: list[TierRow] = [
        (float(str(row[0])), str(row[1]), str(row[2]), str(row[3]))
        for row in tiers
        if is_array(row) and len(row) == _CELLS
    ]
    numbers = {name: float(str(weight)) for name, weight in weights.items()}
    return ScoringPolicy(weights_from(numbers), tiers_from(rows), ladder_from(ladder))
