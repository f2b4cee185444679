"""Turns figures into what templates draw: bars, a chart, rungs, words for times. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Final

from assay.evaluation.schemas_public import (
    HistoryEntryResponse,
    PublicReportResponse,
    ScorePartResponse,
)

TONES: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("AAA", "AA", "A"), "good"),
        **dict.fromkeys(("BAA", "BA"), "fair"),
        **dict.fromkeys(("B", "CAA", "CA", "C"), "bad"),
    }
)
"""The colour of a tier. A word always says the same."""

WORDS: Mapping[str, str] = MappingProxyType(
    {"GREEN": "low risk", "YELLOW": "some risk", "RED": "high risk"}
)

PARTS: Mapping[str, str] = MappingProxyType(
    {
        "start": "Every agent starts at",
        "behaviour": "Behaviour",
        "reputation": "Reputation",
        "wallet_and_people": "Wallet and people",
        "cap": "Cap",
        "ceiling": "Ceiling of the rung",
    }
)

RUNG_NAMES: Final = ("unproven", "functional", "steady", "used", "vouched")
RUNG_MEANS: Final = (
    "nothing is proven yet",
    "does what it says, under proven control",
    "steady over days, watched unannounced too",
    "used by many who paid",
    "others stand in for it",
)

CHART_WIDTH, CHART_HEIGHT = 640, 120


@dataclass(frozen=True, slots=True)
class Bar:
    """One row of the sum: a bar from `x` on, in percent of the row's width."""

    label: str
    points: str
    x: float
    width: float
    tone: str


def bars(parts: Sequence[ScorePartResponse]) -> list[Bar]:
    """Return the rows; each bar begins where the one before ended."""
    found: list[Bar] = []
    at = 0.0
    for part in parts:
        after = at + part.points
        low, high = sorted((min(max(at, 0.0), 100.0), min(max(after, 0.0), 100.0)))
        is_start = part.name == "start"
        tone = "start" if is_start else "more" if part.points >= 0 else "less"
        found.append(
            Bar(
                PARTS.get(part.name, part.name),
                f"{part.points:.1f}" if is_start else signed(part.points),
                round(low, 2),
                round(max(high - low, 0.0), 2),
                tone,
            )
        )
        at = after
    return found


def signed(points: float) -> str:
    """Return points with a sign, one decimal, and a real minus."""
    shown = f"{abs(points):.1f}"
    if float(shown) == 0:
        return "0.0"
    return f"+{shown}" if points > 0 else f"−{shown}"  # noqa: RUF001 - a minus, not a hyphen


@dataclass(frozen=True, slots=True)
class Chart:
    """A line of scores over evaluations, oldest first."""

    points: str
    last: tuple[float, float]
    label: str


def chart(newest_first: Sequence[HistoryEntryResponse]) -> Chart | None:
    """Return the line; None for fewer than two evaluations."""
    entries = list(reversed(newest_first))
    if len(entries) < 2:  # noqa: PLR2004 - a line has two ends
        return None
    step = (CHART_WIDTH - 20) / (len(entries) - 1)
    places = [
        (round(10 + place * step, 1), round(CHART_HEIGHT * (1 - one.score / 100), 1))
        for place, one in enumerate(entries)
    ]
    first, last = figure(entries[0].score), figure(entries[-1].score)
    label = (
        f"Score over {len(entries)} evaluations, from {first} on"
        f" {day(entries[0].evaluated_at)} to {last} on"
        f" {day(entries[-1].evaluated_at)}"
    )
    return Chart(" ".join(f"{x},{y}" for x, y in places), places[-1], label)


@dataclass(frozen=True, slots=True)
class Gain:
    """Something that would raise the score."""

    points: float
    action: str
    detail: str


def gains(found: PublicReportResponse) -> list[Gain]:
    """Return what would raise the score; all that the next rung asks for is one entry."""
    ladder = found.ladder
    asked = {one.name for one in ladder.next_rung} if ladder is not None else set[str]()
    listed: list[Gain] = []
    for one in found.improve:
        if one.slug not in asked or ladder is None:
            detail = "" if one.action.startswith(one.finding) else one.finding
            listed.append(Gain(one.points, one.action, detail))
        elif not any(gain.action.startswith(_MEET) for gain in listed):
            after = figure(one.score_after)
            action = f"{_MEET} rung {ladder.rung + 1} asks for, as listed above."
            listed.append(Gain(one.points, action, f"The score would then be {after} at most."))
    return listed


_MEET: Final = "Meet everything that"


@dataclass(frozen=True, slots=True)
class LogRow:
    """One row of the history: a change, or evaluations in a row that changed nothing."""

    at: str
    tier: str
    tier_before: str | None
    score: float
    said: str


def log(newest_first: Sequence[HistoryEntryResponse]) -> list[LogRow]:
    """Return the history with evaluations that changed nothing taken together."""
    rows: list[LogRow] = []
    same = 0
    for one in newest_first:
        if one.reasons:
            said, same = " ".join(one.reasons), 0
        else:
            same += 1
            said = "Nothing changed." if same == 1 else f"Nothing changed in {same} evaluations."
        row = LogRow(one.evaluated_at, one.tier, one.tier_before, one.score, said)
        if same > 1:
            rows[-1] = replace(rows[-1], said=said)
        else:
            rows.append(row)
    return rows


def figure(number: float) -> str:
    """Return a number with as many of two decimals as it needs."""
    return f"{number:.2f}".rstrip("0").rstrip(".")


def day(text: str) -> str:
    """Return the day of an ISO time: `26 Nov 2026`."""
    moment = datetime.fromisoformat(text)
    return f"{moment.day} {moment:%b %Y}"


def minute(text: str) -> str:
    """Return the minute of an ISO time: `26 Nov 2026, 09:30 UTC`."""
    return f"{day(text)}, {datetime.fromisoformat(text):%H:%M} UTC"


def brief(text: str, head: int = 8, tail: int = 6) -> str:
    """Return an address or a hash with its middle left out."""
    return text if len(text) <= head + tail + 1 else f"{text[:head]}…{text[-tail:]}"
