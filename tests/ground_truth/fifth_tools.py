"""What the fifth set's tools compute."""

import datetime as dt
import difflib
import heapq
import itertools
import math
import re
from collections import deque
from fnmatch import fnmatchcase
from string import ascii_lowercase
from typing import Any

# --- round robin ------------------------------------------------------------------------------


def fixtures(teams: list[str]) -> list[list[tuple[str, str]]]:
    """Rounds in which everybody meets everybody once (the circle method)."""
    ring = [*teams, ""] if len(teams) % 2 else list(teams)
    half, rounds = len(ring) // 2, []
    for turn in range(len(ring) - 1):
        pairs = [(ring[n], ring[-1 - n]) for n in range(half)]
        rounds.append([(b, a) if turn % 2 else (a, b) for a, b in pairs if a and b])
        ring = [ring[0], ring[-1], *ring[1:-1]]
    return rounds


# --- cron -------------------------------------------------------------------------------------

BOUNDS = (("minute", 0, 59), ("hour", 0, 23), ("day", 1, 31), ("month", 1, 12), ("weekday", 0, 6))
NAMES = {name: str(n) for n, name in enumerate(("sun", "mon", "tue", "wed", "thu", "fri", "sat"))}
MONTHS = {
    name: str(n)
    for n, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), 1
    )
}
SHORT = {"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@weekly": "0 0 * * 0",
         "@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *"}  # fmt: skip


def _one(field: str, low: int, high: int) -> set[int]:
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        start, dash, stop = span.partition("-")
        first = low if span == "*" else int(start)
        last = high if span == "*" or (step and not dash) else int(stop or start)
        if not low <= first <= last <= high + (high == 6):
            raise ValueError(f"{part!r} lies outside {low}-{high}")
        found |= set(range(first, last + 1, int(step or 1)))
    return {n % 7 for n in found} if high == 6 else found


def cron_sets(expression: str) -> dict[str, set[int]]:
    """The values of each of the five fields; ValueError says what is wrong."""
    fields = SHORT.get(expression.strip(), expression).lower().split()
    if len(fields) != len(BOUNDS):
        raise ValueError(f"five fields expected, got {len(fields)}")
    words = (fields[3], MONTHS), (fields[4], NAMES)
    for at, (field, table) in zip((3, 4), words, strict=True):
        fields[at] = re.sub(r"[a-z]{3}", lambda m, table=table: table.get(m[0], m[0]), field)
    return {name: _one(f, low, high) for f, (name, low, high) in zip(fields, BOUNDS, strict=True)}


def cron_next(expression: str, after: dt.datetime, count: int) -> list[str]:
    """The next times, by the minute, in the zone of `after`."""
    sets = cron_sets(expression)
    raw = SHORT.get(expression.strip(), expression).split()
    either = raw[2] != "*" and raw[4] != "*"
    found: list[str] = []
    day = after.replace(hour=0, minute=0, second=0, microsecond=0)
    for _ in range(366 * 8):
        by_day, by_week = day.day in sets["day"], (day.weekday() + 1) % 7 in sets["weekday"]
        if day.month in sets["month"] and ((by_day or by_week) if either else (by_day and by_week)):
            times = itertools.product(sorted(sets["hour"]), sorted(sets["minute"]))
            made = (day.replace(hour=h, minute=m) for h, m in times)
            found += [t.strftime("%Y-%m-%d %H:%M") for t in made if t > after]
        if len(found) >= count:
            break
        day += dt.timedelta(days=1)
    return found[:count]


# --- versions ---------------------------------------------------------------------------------

VERSION = re.compile(r"^v?(\d+)\.(\d+)\.(\d+)(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?$")


def version_key(text: str) -> tuple[Any, ...]:
    """Orders versions as semver.org 2.0.0 says; ValueError if it is not one."""
    made = VERSION.match(text.strip())
    if not made:
        raise ValueError(f"{text!r} is no semantic version")
    pre = made[4].split(".") if made[4] else []
    marks = [(0, int(p), "") if p.isdigit() else (1, 0, p) for p in pre]
    return (*map(int, made.groups()[:3]), not pre, marks)


def in_range(version: str, wanted: str) -> bool:
    """Whether a version is in a range: ^, ~, comparisons, with spaces between them."""
    here = version_key(version)
    return all(_holds(here, part) for part in wanted.split())


def _holds(here: tuple[Any, ...], part: str) -> bool:
    sign, number = re.match(r"(\^|~|>=|<=|>|<|=)?(.*)", part).groups()  # type: ignore[union-attr]
    there = version_key(number)
    major, minor, patch = there[:3]
    if sign == "^":
        top = (major + 1, 0, 0) if major else (0, minor + 1, 0) if minor else (0, 0, patch + 1)
        return there <= here and here[:3] < top
    if sign == "~":
        return there <= here and here[:3] < (major, minor + 1, 0)
    tests = {">=": here >= there, "<=": here <= there, ">": here > there, "<": here < there}
    return tests.get(sign or "=", here == there)


# --- triangles --------------------------------------------------------------------------------


def triangle(a: float, b: float, c: float) -> dict[str, Any] | str:
    """Angles and area from three sides."""
    a, b, c = sorted((a, b, c))
    if a <= 0 or a + b <= c:
        return "no triangle has these sides"
    angles = [
        math.degrees(math.acos((q * q + r * r - p * p) / (2 * q * r)))
        for p, q, r in ((a, b, c), (b, a, c), (c, a, b))
    ]
    half = (a + b + c) / 2
    area = math.sqrt(half * (half - a) * (half - b) * (half - c))
    sort = "right" if abs(angles[2] - 90) < 1e-6 else "obtuse" if angles[2] > 90 else "acute"
    return {"angles": [round(v, 2) for v in angles], "area": round(area, 3), "sort": sort}


# --- texts side by side -----------------------------------------------------------------------


def compared(before: str, after: str) -> str:
    """What changed from one text to the other, by line."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "before", "after",
                                 lineterm="")  # fmt: skip
    return "\n".join(lines) or "No difference."


# --- globs ------------------------------------------------------------------------------------


def globbed(pattern: str, paths: list[str]) -> list[str]:
    """Those paths that a pattern means; `**` spans folders, `*` does not."""
    return [path for path in paths if _match(pattern.split("/"), path.split("/"))]


def _match(pattern: list[str], path: list[str]) -> bool:
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(_match(pattern[1:], path[n:]) for n in range(len(path) + 1))
    return bool(path) and fnmatchcase(path[0], pattern[0]) and _match(pattern[1:], path[1:])


# --- routes -----------------------------------------------------------------------------------

EDGE = re.compile(r"\s*(.+?)\s*(?:-|--|<->|\u2013)\s*(.+?)\s*[:=]\s*(\d+(?:\.\d+)?)\s*$")


def route(edges: list[str], start: str, goal: str) -> str:
    """A cheapest way through edges like `A-B: 4`."""
    near: dict[str, list[tuple[str, float]]] = {}
    for edge in edges:
        made = EDGE.match(edge)
        if not made:
            return f"cannot read the edge {edge[:40]!r}; write it as A-B: 4"
        near.setdefault(made[1], []).append((made[2], float(made[3])))
        near.setdefault(made[2], []).append((made[1], float(made[3])))
    heap: list[tuple[float, list[str]]] = [(0.0, [start])]
    seen: set[str] = set()
    while heap:
        cost, path = heapq.heappop(heap)
        if path[-1] == goal and goal in near:
            return f"{' > '.join(path)} ({cost:g})"
        if path[-1] not in seen:
            seen.add(path[-1])
            for there, more in near.get(path[-1], []):
                heapq.heappush(heap, (cost + more, [*path, there]))
    return f"no way from {start} to {goal}"


# --- word ladders -----------------------------------------------------------------------------

LISTED = (
    "cold cord card ward warm word wood good food fool foot boot boat coat goat moat most post past"
    " pant part cart care core cove love live line lane land hand hard hare hate have cave gave"
    " game same some come home hope rope role mole mold gold bold bolt boll ball bell belt bent"
    " tent test rest best beat heat head heal teal tell tall tail mail main rain ruin lead load"
    " road read bead bean lean loan mean meal seal seat boar bear dear deer door poor pool fort"
    " form farm harm harp sharp lark dark dare fare fire five dive dine wine wind wand sand"
    " band bank tank task mask mark park pork cork corn born barn bare wire wore wake lake like"
    " hike hide side site size mice rice race face fact pace pale pile pine sing king ring rind"
    " mind mint mist list lost cost cast last fast fist fish dish wish wash"
)
FOUR = set(LISTED.split())


def ladder(start: str, goal: str) -> list[str]:
    """Fewest steps of one letter each; empty where there are none."""
    words = {w for w in FOUR if len(w) == 4} | {start, goal}
    came, queue = {start: ""}, deque([start])
    while queue and goal not in came:
        here = queue.popleft()
        for n, letter in itertools.product(range(4), ascii_lowercase):
            there = here[:n] + letter + here[n + 1 :]
            if there in words and there not in came:
                came[there] = here
                queue.append(there)
    path = [goal] if goal in came else []
    while path and came[path[-1]]:
        path.append(came[path[-1]])
    return path[::-1]


# --- Elo --------------------------------------------------------------------------------------


def elo(rating: float, opponent: float, score: float, k: float = 20) -> tuple[float, float]:
    """The score that was expected, and the new rating."""
    expected = 1 / (1 + 10 ** ((opponent - rating) / 400))
    return round(expected, 4), round(rating + k * (score - expected), 1)


# --- Italian tax codes ------------------------------------------------------------------------

COMUNI = {"roma": "H501", "milano": "F205", "torino": "L219", "napoli": "F839", "bologna": "A944",
          "firenze": "D612", "venezia": "L736", "genova": "D969", "palermo": "G273",
          "bari": "A662", "verona": "L781", "trieste": "L424", "cagliari": "B354",
          "catania": "C351", "padova": "G224"}  # fmt: skip
ODD = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)


def _letters(name: str, *, given: bool) -> str:
    plain = name.upper().translate(str.maketrans("ÀÈÉÌÒÙ", "AEEIOU"))
    hard = re.sub(r"[^A-Z]|[AEIOU]", "", plain)
    if given and len(hard) > 3:
        hard = hard[0] + hard[2:]
    return (hard + re.sub(r"[^AEIOU]", "", plain) + "XXX")[:3]


def codice(surname: str, name: str, born: dt.date, sex: str, town: str) -> str:
    """The sixteen characters (D.M. 23/12/1976); KeyError for a town that is not known."""
    day = born.day + (40 if sex.upper() == "F" else 0)
    head = (
        f"{_letters(surname, given=False)}{_letters(name, given=True)}{born.year % 100:02d}"
        f"{'ABCDEHLMPRST'[born.month - 1]}{day:02d}{COMUNI[town.strip().lower()]}"
    )
    worth = [ord(c) - (48 if c.isdigit() else 65) for c in head]
    total = sum(ODD[v] if n % 2 == 0 else v for n, v in enumerate(worth))
    return head + chr(65 + total % 26)
