"""What the tools of the sixth set work out."""

import datetime as dt
import hashlib
import math
import random
import re
from collections.abc import Sequence

NEEDLES: Sequence[tuple[float, str, str]] = (
    (2.0, "0", "14"), (2.25, "1", "13"), (2.75, "2", "12"), (3.0, "-", "11"), (3.25, "3", "10"),
    (3.5, "4", "-"), (3.75, "5", "9"), (4.0, "6", "8"), (4.5, "7", "7"), (5.0, "8", "6"),
    (5.5, "9", "5"), (6.0, "10", "4"), (6.5, "10.5", "3"), (8.0, "11", "0"), (9.0, "13", "00"),
    (10.0, "15", "000"),
)  # fmt: skip
YARNS = {
    "lace": (800, "2.0-2.75"), "fingering": (420, "2.25-3.25"), "sport": (320, "3.25-3.75"),
    "dk": (240, "3.75-4.5"), "worsted": (200, "4.5-5.5"), "bulky": (120, "5.5-8.0"),
}  # fmt: skip
GARMENTS = {"hat": 200, "scarf": 400, "socks": 380, "mittens": 180, "shawl": 640, "jumper": 1300}
"""Metres at fingering weight."""


def needle(size: str, system: str) -> dict[str, str | float]:
    """The row of a needle in metric, US or UK size; ValueError where there is none."""
    wanted = size.strip().lower().removesuffix("mm").strip()
    for mm, american, british in NEEDLES:
        same = (
            wanted.replace(",", ".") in {f"{mm:g}", f"{mm:.1f}"} if system == "metric"
            else wanted == (american if system == "US" else british)
        )  # fmt: skip
        if same:
            return {"metric_mm": mm, "US": american, "UK": british}
    raise ValueError(f"no needle of size {size[:12]} in {system}")


def yarn_for(garment: str, weight: str, ball_g: int) -> dict[str, str | int]:
    """Metres and balls."""
    per_100g, needles = YARNS[weight]
    metres = round(GARMENTS[garment] * (0.55 + 0.45 * per_100g / 420))
    balls = math.ceil(metres / (per_100g * ball_g / 100))
    return {"metres": metres, "balls": balls, "needles_mm": needles}


FIELDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
FIELD_NAMES = ("minute", "hour", "day of month", "month", "day of week")


def cron_field(text: str, which: int) -> set[int]:
    low, high = FIELDS[which]
    found: set[int] = set()
    for piece in text.split(","):
        hit = re.fullmatch(r"(\*|\d+)(?:-(\d+))?(?:/(\d+))?", piece)
        if not hit:
            raise ValueError(f"{FIELD_NAMES[which]}: cannot read {piece!r}")
        first = low if hit[1] == "*" else int(hit[1])
        last = int(hit[2]) if hit[2] else high if hit[1] == "*" or hit[3] else first
        if first < low or last > high or first > last:
            raise ValueError(f"{FIELD_NAMES[which]}: {piece!r} is not within {low}-{high}")
        found |= set(range(first, last + 1, int(hit[3] or 1) or 1))
    return {n % 7 for n in found} if which == 4 else found


def cron(expression: str) -> list[set[int]]:
    parts = expression.split()
    if len(parts) != 5:
        raise ValueError(f"five fields are needed, {len(parts)} were given")
    return [cron_field(part, n) for n, part in enumerate(parts)]


def next_runs(expression: str, start: dt.datetime, count: int) -> list[dt.datetime]:
    minutes, hours, days, months, weekdays = cron(expression)
    parts = expression.split()
    either = parts[2] != "*" and parts[4] != "*"
    found: list[dt.datetime] = []
    day = start.date()
    for _ in range(366 * 8):
        on_day, on_week = day.day in days, day.isoweekday() % 7 in weekdays
        if day.month in months and (on_day or on_week if either else on_day and on_week):
            times = (dt.time(h, m) for h in sorted(hours) for m in sorted(minutes))
            runs = (dt.datetime.combine(day, time) for time in times)
            found += [run for run in runs if run > start]
        if len(found) >= count:
            break
        day += dt.timedelta(days=1)
    return found[:count]


MASKS = (
    ("EMAIL", r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"),
    ("IBAN", r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b"),
    ("CARD", r"\b(?:\d{4}[ -]?){3}\d{4}\b"),
    ("IP", r"\b\d{1,3}(?:\.\d{1,3}){3}\b"),
    ("PHONE", r"(?<![.\w])\+?\d[\d /()-]{7,}\d\b"),
)


def masked(text: str, keep: Sequence[str] = ()) -> tuple[str, dict[str, int]]:
    """The text with personal data replaced, and how often."""
    counts: dict[str, int] = {}
    for name, pattern in MASKS:
        if name in keep:
            continue
        text, number = re.subn(pattern, f"[{name}]", text)
        if number:
            counts[name] = number
    return text, counts


def rota(
    days: Sequence[str], staff: Sequence[tuple[str, Sequence[str]]], per_day: int
) -> dict[str, list[str]]:
    """Who works when, evenly; ValueError where a day stays short."""
    worked = dict.fromkeys([name for name, _ in staff], 0)
    plan: dict[str, list[str]] = {}
    for day in days:
        free = [name for name, cannot in staff if day.lower() not in {c.lower() for c in cannot}]
        if len(free) < per_day:
            raise ValueError(f"{day}: {per_day} needed, only {len(free)} can come")
        chosen = sorted(free, key=lambda name: worked[name])[:per_day]
        for name in chosen:
            worked[name] += 1
        plan[day] = chosen
    return plan


SWATCHES = {
    "brick": "9c3b2e", "coral": "f2705c", "apricot": "f6b26b", "mustard": "d2a517",
    "lemon": "fff44f", "olive": "6b7a2a", "moss": "4f7942", "mint": "98e2c6", "teal": "127475",
    "sky": "87bde8", "cobalt": "1f49b6", "ink": "1b2238", "lilac": "b89be0", "plum": "6b2d5c",
    "rose": "e59aae", "sand": "dcc9a3", "cocoa": "5b3a29", "slate": "64707d", "snow": "fbfbfa",
    "coal": "17181a",
}  # fmt: skip


def rgb(colour: str) -> tuple[int, int, int]:
    plain = colour.strip().lstrip("#").lower()
    plain = SWATCHES.get(plain, plain)
    if re.fullmatch(r"[0-9a-f]{3}", plain):
        plain = "".join(c * 2 for c in plain)
    if not re.fullmatch(r"[0-9a-f]{6}", plain):
        raise ValueError(f"{colour[:20]!r} is neither #rrggbb nor one of our names")
    return int(plain[:2], 16), int(plain[2:4], 16), int(plain[4:], 16)


def nearest(colour: str) -> str:
    one = rgb(colour)
    return min(SWATCHES, key=lambda name: math.dist(one, rgb(name)))


def luminance(colour: str) -> float:
    parts = [c / 255 for c in rgb(colour)]
    red, green, blue = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, two: str) -> float:
    low, high = sorted((luminance(one), luminance(two)))
    return round((high + 0.05) / (low + 0.05), 2)


def cheapest(prices: Sequence[float], hours: int) -> tuple[int, float]:
    """First hour and mean of the cheapest stretch."""
    sums = [sum(prices[n : n + hours]) for n in range(len(prices) - hours + 1)]
    first = min(range(len(sums)), key=lambda n: sums[n])
    return first, round(sums[first] / hours, 3)


def draw(names: Sequence[str], couples: Sequence[Sequence[str]]) -> dict[str, str] | None:
    """Who gives to whom, by chance; None where no draw is found."""
    barred = {frozenset(pair) for pair in couples}
    for _ in range(500):
        given = random.sample(names, len(names))
        pairs = list(zip(names, given, strict=True))
        if all(a != b and frozenset((a, b)) not in barred for a, b in pairs):
            return dict(pairs)
    return None


def syllables(word: str) -> int:
    groups = len(re.findall(r"[aeiouy]+", word.lower()))
    silent = bool(re.search(r"[^aeiouyl]e$|[^aeiou]es$", word.lower())) and groups > 1
    return max(1, groups - silent)


def readability(text: str) -> dict[str, float | int] | None:
    words = re.findall(r"[A-Za-z']+", text)
    if not words:
        return None
    sentences = max(1, len(re.findall(r"[.!?]+(?:\s|$)", text)))
    sounds = sum(syllables(word) for word in words)
    ease = 206.835 - 1.015 * len(words) / sentences - 84.6 * sounds / len(words)
    grade = 0.39 * len(words) / sentences + 11.8 * sounds / len(words) - 15.59
    return {"words": len(words), "sentences": sentences, "syllables": sounds,
            "flesch_reading_ease": round(ease, 1), "grade_level": round(grade, 1),
            "reading_seconds": round(len(words) / 3.8)}  # fmt: skip


def ics(title: str, start: dt.datetime, minutes: int, place: str, every: str) -> str:
    """An event as iCalendar text."""
    escaped = [re.sub(r"([,;\\])", r"\\\1", text) for text in (title, place)]
    uid = hashlib.blake2s(f"{title}{start}".encode(), digest_size=8).hexdigest()
    rows = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//Weekday//Event maker//EN", "BEGIN:VEVENT",
            f"UID:{uid}@weekday", f"DTSTART:{start:%Y%m%dT%H%M%S}", f"DURATION:PT{minutes}M",
            f"SUMMARY:{escaped[0]}"]  # fmt: skip
    rows += [f"LOCATION:{escaped[1]}"] if place else []
    rows += [f"RRULE:FREQ={every.upper()}"] if every != "never" else []
    return "\r\n".join([*rows, "END:VEVENT", "END:VCALENDAR"])
