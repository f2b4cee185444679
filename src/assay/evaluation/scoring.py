"""What signals are worth -> one score. Pure: the same evidence gives the same score anywhere.

    score = 50 + sum_i weight_i * confidence_i * (value_i - 50), then + bonus, clamped to 0..100,
    then at most the critical caps, then at most the ceiling of the rung that is proven

with weights normalised over the selected signals, so that the sum is the confidence-weighted mean
shrunk towards the prior by whatever is not known. A signal that could not be collected keeps its
weight and has no points: it pulls the score towards the prior, never towards zero.
Nothing else is subtracted, and the ceiling holds for every selection of signals.
Source: conventions.md#signals-and-score; ADR 0024; Efron & Morris 1975 for shrinkage towards a
prior mean.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from assay.evaluation.ladder import LadderPlace
from assay.evaluation.model import (
    Cap,
    Contribution,
    EvidenceUnavailable,
    Score,
    SignalName,
    SignalResult,
    SignalScore,
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
