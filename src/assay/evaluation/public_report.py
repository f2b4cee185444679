"""What anybody may read of an evaluation: the public part of a grade. Pure.

Signals of paid plans count in the score, and nothing else is said of them: their points are added
to those of the wallet, and what would raise them is left out. Nobody learns who asked.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal

from assay.chains.model import Network
from assay.common.json import JsonObject, is_array, is_object
from assay.evaluation.behaviour import findings
from assay.evaluation.causes import fix_of
from assay.evaluation.demands import RUNGS, Demand
from assay.evaluation.explanations import Improvement
from assay.evaluation.listing import ListedAgent
from assay.evaluation.model import Evaluation, Score, SignalName, SignalResult, Snapshot
from assay.evaluation.scoring import PRIOR
from assay.evaluation.signals.registry_8004 import judgement, naive_mean
from assay.probing.ports import Probe
from assay.reputation.rules import ReputationValue

PAID: Final = frozenset({SignalName.SELF, SignalName.PERSONHOOD, SignalName.ATTESTATION})
"""Signals of paid plans. Source: docs/grades.md#from-signals-to-a-score."""

CLUSTERS_SHOWN = 20
PartName = Literal["start", "behaviour", "reputation", "wallet_and_people", "cap", "ceiling"]

_HIDDEN_CAUSES: Final = frozenset(
    {*(str(name.value) for name in (*PAID, SignalName.WALLET)), "personhood_bonus"}
)
"""What the wallet alone is worth would show what the people are worth, by subtraction."""

_CLAUSE: Final = re.compile(r"[;:]\s")
_VOUCHERS = "vouchers"
_LISTS_VOUCHERS = "; there are:"


@dataclass(frozen=True, slots=True)
class ScorePart:
    """One step of the sum that makes the score, in points."""

    name: PartName
    points: float
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PublicCheck:
    """One check and its result. `asked`, `seen` and `fix` are empty where nothing is to be said."""

    name: str
    family: str
    severity: str
    outcome: str
    """`pass`, `fail` or `not_tested`."""
    note: str
    asked: str
    seen: str
    fix: str


@dataclass(frozen=True, slots=True)
class PublicReputation:
    """What customers say, weighed by what they paid, beside the plain mean."""

    weighed: ReputationValue
    plain_average: float
    ratings: int
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PublicReport:
    """Everything that the public report of one agent shows."""

    agent: ListedAgent
    network: Network
    evaluation: Evaluation
    """Without its evidence."""
    snapshot: Snapshot
    valid_until: datetime
    score: Score | None
    """None for an evaluation that is older than the ladder: only score and tier are known."""
    parts: tuple[ScorePart, ...]
    ceiling_reason: str
    demands: tuple[Demand, ...]
    checks: tuple[PublicCheck, ...]
    improve: tuple[Improvement, ...]
    reputation: PublicReputation | None


def parts_of(score: Score) -> tuple[ScorePart, ...]:
    """Return the steps from the prior to the score; rounded, they add up to it within 0.02."""
    by_signal = {c.signal: c for c in score.contributions}
    found = [ScorePart("start", PRIOR)]
    others = score.bonus
    for signal, name in _SHOWN_ALONE.items():
        one = by_signal.pop(signal, None)
        found.append(ScorePart(name, one.points if one else 0.0, one.reasons if one else ()))
    others += sum(one.points for one in by_signal.values())
    found.append(ScorePart("wallet_and_people", others))
    capped = score.before_ceiling - sum(one.points for one in found)
    reasons = tuple(cap.reason for cap in score.caps)
    if reasons or abs(capped) >= _LEAST:
        found.append(ScorePart("cap", capped, reasons or (_BOUNDED,)))
    held = score.value - score.before_ceiling
    if held < 0:
        found.append(ScorePart("ceiling", held))
    return tuple(replace(one, points=round(one.points, 2) + 0.0) for one in found)


_LEAST: Final = 0.01
_BOUNDED = "A score is between 0 and 100."

_SHOWN_ALONE: Final[Mapping[SignalName, PartName]] = {
    SignalName.SANDBOX: "behaviour",
    SignalName.REGISTRY_8004: "reputation",
}


def ceiling_reason(score: Score) -> str:
    """Return in sentences what bounds the score, and what the next rung needs first."""
    place = score.place
    said = [
        f"{cap.reason.rstrip('.')}: this holds the score at {cap.score:g}." for cap in score.caps
    ]
    if place.rung == len(RUNGS) - 1:
        return " ".join([*said, "The highest rung is proven, so no rung bounds the score."])
    proven = (
        f"Rung {place.rung} ({place.name}) is proven" if place.rung else "Nothing is proven yet"
    )
    held = "holds it at" if score.before_ceiling > place.ceiling else "allows at most"
    said.append(f"{proven}, which {held} {place.ceiling:g}.")
    missing = [_briefly(one.asks) for one in demands_of(score)]
    if missing:
        others = len(missing) - 1
        more = f", and {others} other demand{'s' if others > 1 else ''}" if others else ""
        said.append(f"Missing for rung {place.rung + 1}: {missing[0]}{more}.")
    return " ".join(said)


def _briefly(asks: str) -> str:
    """Return the beginning of a demand, which says what it is about."""
    first = _CLAUSE.split(asks, maxsplit=1)[0].rstrip(".")
    return first[:1].lower() + first[1:]


def demands_of(score: Score) -> tuple[Demand, ...]:
    """Return what the next rung asks for, without naming who vouches for the agent."""
    return tuple(
        replace(one, asks=_without_vouchers(one.asks)) if one.name == _VOUCHERS else one
        for one in score.place.next_demands
    )


def improvements_of(listed: Sequence[Improvement]) -> tuple[Improvement, ...]:
    """Return what would raise the score, without what would show a signal of a paid plan."""
    found: list[Improvement] = []
    for one in listed:
        cause = one.cause
        if cause.slug in _HIDDEN_CAUSES:
            continue
        if cause.slug == _VOUCHERS:
            cause = replace(
                cause,
                finding=_without_vouchers(cause.finding),
                action=_without_vouchers(cause.action),
            )
        found.append(replace(one, cause=cause))
    return tuple(found)


def _without_vouchers(text: str) -> str:
    begin, found, rest = text.partition(_LISTS_VOUCHERS)
    return f"{begin}.{rest.partition('.')[2]}" if found else text


def checks_of(evaluation: Evaluation, probes: Mapping[str, Probe]) -> tuple[PublicCheck, ...]:
    """Return every check that applies: failures first, then what was not tested, then passes."""
    seen = behaviour_of(evaluation)
    if seen is None:
        return ()
    listed = seen.evidence.data.get("findings")
    rows = {str(r.get("check")): r for r in (listed if is_array(listed) else ()) if is_object(r)}
    found = [
        PublicCheck(
            name=one.name,
            family=one.family,
            severity=one.severity.value,
            outcome=one.finding.outcome,
            note=one.finding.note,
            asked=_asked(rows.get(one.name)),
            seen=_text(rows.get(one.name), "bytes"),
            fix=_fix(one.name, one.finding.note, rows) if one.finding.outcome == "fail" else "",
        )
        for one in findings(seen.evidence, probes)
    ]
    return tuple(sorted(found, key=lambda one: (_ORDER[one.outcome], _GRAVE[one.severity])))


_ORDER: Final = {"fail": 0, "not_tested": 1, "pass": 2}
_GRAVE: Final = {"critical": 0, "major": 1, "minor": 2, "info": 3}


def _fix(name: str, note: str, rows: Mapping[str, JsonObject]) -> str:
    said = _text(rows.get(name), "fix")
    return fix_of(name, note) if said.startswith("See ") or not said else said


def _asked(row: JsonObject | None) -> str:
    """Return the request of a finding; one that only repeats the check's name says nothing."""
    said = _text(row, "request")
    return "" if said == _text(row, "check") else said


def _text(row: JsonObject | None, member: str) -> str:
    value = None if row is None else row.get(member)
    return value if isinstance(value, str) else ""


def reputation_of(evaluation: Evaluation) -> PublicReputation | None:
    """Return what customers say; None without any opinion, or by earlier rules."""
    name = SignalName.REGISTRY_8004
    found = next((c for c in evaluation.collected if c.signal is name), None)
    weighed = None if found is None else judgement(found.evidence)
    if found is None or weighed is None:
        return None
    votes = found.evidence.data.get("votes")
    return PublicReputation(
        weighed=weighed,
        plain_average=naive_mean(found.evidence.data),
        ratings=len(votes) if is_object(votes) else 0,
        reasons=found.weighed.reasons,
    )


def behaviour_of(evaluation: Evaluation) -> SignalResult | None:
    """Return the behavioural signal of an evaluation, if it was collected."""
    return next((c for c in evaluation.collected if c.signal is SignalName.SANDBOX), None)
