"""What the seventh set's agents know of music, games and sport."""

import math
import random
import re
from collections import deque
from collections.abc import Sequence
from fractions import Fraction

SHARPS = ("C", "C#", "D", "D#", "E", "F", "F#", "G", "G#", "A", "A#", "B")
FLATS = ("C", "Db", "D", "Eb", "E", "F", "Gb", "G", "Ab", "A", "Bb", "B")
CHORD = re.compile(
    r"^([A-G][#b]?)((?:maj|min|m|M|dim|aug|sus|add|\+|°)?\d{0,2}(?:sus[24]|b5|#9)?)(?:/([A-G][#b]?))?$"
)


def pitch(name: str) -> int:
    """The semitone above C."""
    return (SHARPS if name in SHARPS else FLATS).index(name) if name in {*SHARPS, *FLATS} else (
        SHARPS.index(name[0]) + (1 if name[1:] == "#" else -1)
    ) % 12  # fmt: skip


def moved(chord: str, steps: int, *, flats: bool) -> str:
    """One chord, so many semitones higher."""
    found = CHORD.match(chord)
    if not found:
        return chord
    names = FLATS if flats else SHARPS
    root, kind, bass = found.groups()
    made = names[(pitch(root) + steps) % 12] + kind
    return made + ("/" + names[(pitch(bass) + steps) % 12] if bass else "")


def transposed(lines: Sequence[str], steps: int, *, flats: bool = False) -> list[str]:
    """Lines of a song sheet; those that hold chords are moved, the others stay."""
    made: list[str] = []
    for line in lines:
        tokens = line.split()
        chords = [t for t in tokens if CHORD.match(t)]
        if len(chords) * 2 > len([t for t in tokens if t.strip("|-:.,x")]):
            line = re.sub(r"\S+", lambda m: moved(m[0], steps, flats=flats), line)  # noqa: PLW2901
        made.append(line)
    return made


def knight_path(start: str, end: str) -> list[str]:
    """A shortest way of a knight over an empty board."""
    jumps = [(a, b) for a in (-2, -1, 1, 2) for b in (-2, -1, 1, 2) if abs(a) != abs(b)]
    came: dict[str, str] = {start: ""}
    queue = deque([start])
    while queue and end not in came:
        here = queue.popleft()
        for a, b in jumps:
            file, rank = chr(ord(here[0]) + a), int(here[1]) + b
            there = f"{file}{rank}"
            if file in "abcdefgh" and 1 <= rank <= 8 and there not in came:
                came[there] = here
                queue.append(there)
    path = [end]
    while came[path[-1]]:
        path.append(came[path[-1]])
    return path[::-1]


def fixtures(teams: Sequence[str]) -> list[list[tuple[str, str]]]:
    """Everyone meets everyone once; who starts where is drawn by lot."""
    ring = list(teams)
    random.shuffle(ring)
    ring += [""] if len(ring) % 2 else []
    rounds: list[list[tuple[str, str]]] = []
    for n in range(len(ring) - 1):
        half = len(ring) // 2
        pairs = list(zip(ring[:half], ring[:half - 1:-1], strict=True))  # fmt: skip
        rounds.append([p[::-1] if n % 2 else p for p in pairs if all(p)])
        ring.insert(1, ring.pop())
    return rounds


def dice(spec: str) -> dict[int, Fraction]:
    """The chance of every total of a throw such as 2d6+3."""
    found = re.fullmatch(r"\s*(\d{0,2})[dDwW](\d{1,3})\s*([+-]\s*\d{1,3})?\s*", spec)
    if not found or not 1 <= int(found[1] or 1) <= 20 or int(found[2]) < 2:
        raise ValueError(f"cannot read {spec!r}: write e.g. 3d6 or 2d10+4, at most 20 dice")
    count, sides = int(found[1] or 1), int(found[2])
    plus = int((found[3] or "0").replace(" ", ""))
    totals = {plus: Fraction(1)}
    for _ in range(count):
        longer: dict[int, Fraction] = {}
        for total, chance in totals.items():
            for side in range(1, sides + 1):
                longer[total + side] = longer.get(total + side, Fraction(0)) + chance / sides
        totals = longer
    return totals


def hunt(bells: int) -> list[str]:
    """Plain hunt, from rounds to rounds."""
    names = "1234567890ET"
    row = list(range(bells))
    rows = [row]
    for n in range(2 * bells):
        row = row.copy()
        for place in range(n % 2, bells - 1, 2):
            row[place], row[place + 1] = row[place + 1], row[place]
        rows.append(row)
    return ["".join(names[bell] for bell in one) for one in rows]


def gears(rings: Sequence[int], cogs: Sequence[int], wheel_mm: float) -> list[dict[str, float]]:
    """Development and gear inches of every pair, from the hardest to the easiest."""
    rows = [
        {"ring": ring, "cog": cog, "ratio": round(ring / cog, 2),
         "metres": round(ring / cog * wheel_mm / 1000, 2),
         "inches": round(ring / cog * wheel_mm / math.pi / 25.4, 1)}
        for ring in rings for cog in cogs
    ]  # fmt: skip
    return sorted(rows, key=lambda row: -row["metres"])


LOWEST = {3: (1, -2.0), 4: (1, -1.0), 5: (1, 0.0), 6: (2, -1.0), 7: (2, 0.0), 8: (2, 0.0),
          9: (3, 0.0), 10: (3, 0.0), 11: (3, 0.0), 12: (4, 0.0), 13: (4, 0.0), 14: (4, 0.0),
          15: (5, 0.0), 16: (5, 0.0), 17: (6, 0.0), 18: (6, 0.0), 19: (7, 0.0)}  # fmt: skip
"""How many of the best differentials count, and what is added, by how many there are."""


def handicap(rounds: Sequence[tuple[float, float, int]]) -> tuple[float, list[float]]:
    """The World Handicap System's index of score, rating and slope, and the differentials."""
    given = [round(113 / slope * (score - rating), 1) for score, rating, slope in rounds][-20:]
    count, more = LOWEST.get(len(given), (8, 0.0))
    best = sorted(given)[:count]
    return min(54.0, round(sum(best) / count + more, 1)), given


def series(races: Sequence[Sequence[str]], discards: int) -> list[tuple[str, int, list[int]]]:
    """Low-point standings; who is not in a race scores one more than there are boats."""
    boats = {boat for race in races for boat in race}
    rows: list[tuple[str, int, list[int]]] = []
    for boat in boats:
        scores = [r.index(boat) + 1 if boat in r else len(boats) + 1 for r in races]
        kept = sorted(scores)[: max(1, len(scores) - discards)]
        rows.append((boat, sum(kept), scores))
    return sorted(rows, key=lambda row: (row[1], sorted(row[2]), row[2][::-1], row[0]))
