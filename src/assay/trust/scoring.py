"""What signals are worth -> one score. Pure: the same evidence gives the same score anywhere.

    score = 50 + sum_i weight_i * confidence_i * (value_i - 50) + bonus, clamped to 0..100, capped

with weights normalised over the selected signals, so that the sum is the confidence-weighted mean
shrunk towards the prior by whatever is not known. A signal that could not be collected keeps its
weight and has no points: it pulls the score towards the prior, never towards zero.
Source: decisions, section 4; Efron & Morris 1975 for shrinkage towards a prior mean.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from assay.trust.model import Collected, Contribution, EvidenceUnavailable, Score, SignalName

PRIOR = 50.0
"""The score of an agent nobody knows anything about. Source: decisions, section 4."""

BASE_SIGNALS = frozenset(
    {SignalName.SANDBOX, SignalName.REGISTRY_8004, SignalName.WALLET, SignalName.SELF}
)
"""Signals that count without being asked for. Source: decisions, section 4."""

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
"""Source: decisions, section 4."""

BONUS: Mapping[str, float] = MappingProxyType({"orb": 8.0})
BONUS_OTHERWISE = 5.0
"""Points a proven human adds, by level: an orb's, and any other's.
Source: decisions, section 4; spec 5.5."""

_REASONS_MAX = 6


def weights_from(overrides: Mapping[str, float]) -> Mapping[SignalName, float]:
    """The default weights with `overrides` by signal name.

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
    collected: Sequence[Collected],
    unavailable: Mapping[SignalName, str],
    weights: Mapping[SignalName, float],
    selected: frozenset[SignalName] = frozenset(),
) -> Score:
    """The score of an evaluation over `selected` signals (empty: the base ones).

    Raises `EvidenceUnavailable` when not one selected signal could be collected.
    """
    chosen = selected or BASE_SIGNALS
    heard = sorted((c for c in collected if c.signal in chosen), key=lambda c: c.signal)
    missing = tuple(sorted(name for name in unavailable if name in chosen))
    if not heard:
        names = ", ".join(missing or sorted(chosen))
        raise EvidenceUnavailable(
            f"None of the selected trust signals could be collected now ({names}).",
            signals=list(missing or sorted(chosen)),
            retry_after_s=10,
        )
    total = sum(weights[c.signal] for c in heard) + sum(weights[name] for name in missing)
    contributions = tuple(_contribution(c, weights[c.signal] / total) for c in heard)
    caps = tuple(c.weighed.cap for c in heard if c.weighed.cap is not None)
    bonus, why = (0.0, ()) if SignalName.PERSONHOOD in chosen else _bonus(collected)
    value = min(100.0, max(0.0, PRIOR + sum(c.points for c in contributions) + bonus))
    value = min([value, *(cap.score for cap in caps)])
    return Score(
        value=round(value, 2),
        confidence=round(sum(c.weight * c.confidence for c in contributions), 4),
        contributions=contributions,
        unavailable=missing,
        caps=caps,
        bonus=bonus,
        reasons=_reasons(contributions, missing, unavailable, [*(c.reason for c in caps), *why]),
    )


def _bonus(collected: Sequence[Collected]) -> tuple[float, tuple[str, ...]]:
    """What a proven human adds, and the sentence that says so."""
    for one in collected:
        level = one.evidence.data.get("level") if one.signal is SignalName.PERSONHOOD else None
        if isinstance(level, str):
            points = BONUS.get(level, BONUS_OTHERWISE)
            return points, (f"A proven human behind the agent adds {points:g} points ({level}).",)
    return 0.0, ()


def _contribution(collected: Collected, weight: float) -> Contribution:
    weighed = collected.weighed
    return Contribution(
        signal=collected.signal,
        value=weighed.value,
        weight=round(weight, 6),
        confidence=weighed.confidence,
        points=round(weight * weighed.confidence * (weighed.value - PRIOR), 6),
        reasons=weighed.reasons,
    )


def _reasons(
    contributions: Sequence[Contribution],
    missing: Sequence[SignalName],
    unavailable: Mapping[SignalName, str],
    capped: Sequence[str],
) -> tuple[str, ...]:
    """Caps first, then the signals by how far they moved the score, then what was missing."""
    by_weight = sorted(contributions, key=lambda c: (-abs(c.points), c.signal))
    sentences = [
        *capped,
        *(reason for c in by_weight for reason in c.reasons),
        *(f"The {name} signal could not be collected: {unavailable[name]}" for name in missing),
    ]
    return tuple(dict.fromkeys(sentences))[:_REASONS_MAX]
