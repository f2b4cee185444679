"""What the seventh set's agents know of goods, mail and travel."""

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

SIZE = re.compile(
    r"(?:(\d{1,3})\s*(?:x|\u00d7|times|pcs|parcels?(?: of)?|boxes(?: of)?)\s*)?"
    r"(\d+(?:\.\d+)?)\s*[x\u00d7*]\s*(\d+(?:\.\d+)?)\s*[x\u00d7*]\s*(\d+(?:\.\d+)?)", re.IGNORECASE,
)  # fmt: skip
DIVISORS = {"air": 5.0, "express": 5.0, "road": 4.0, "sea": 1.0}


@dataclass(frozen=True)
class Parcel:
    """One kind of box."""

    count: int
    sides: tuple[float, float, float]

    @property
    def cubic_m(self) -> float:
        a, b, c = self.sides
        return self.count * a * b * c / 1_000_000

    @property
    def girth(self) -> float:
        longest, b, c = sorted(self.sides, reverse=True)
        return longest + 2 * (b + c)


def parcels(text: str) -> list[Parcel]:
    """Boxes named in a text, in centimetres."""
    return [
        Parcel(int(n or 1), (float(a), float(b), float(c))) for n, a, b, c in SIZE.findall(text)
    ]


DUTY = {
    "0901": (7.5, "coffee, roasted"), "4202": (3.7, "cases and bags"), "6109": (12.0, "T-shirts"),
    "6403": (8.0, "shoes, leather"), "6912": (5.0, "tableware, ceramic"),
    "8471": (0.0, "computers"), "8712": (14.0, "bicycles"), "9207": (3.7, "electric instruments"),
    "9403": (0.0, "furniture"), "9506": (2.7, "sports gear"),
}  # fmt: skip
FREE = {"NO", "CH", "IS", "TR", "GB", "MA"}
VAT = {"DE": 19.0, "FR": 20.0, "NL": 21.0, "IE": 23.0, "SE": 25.0, "PL": 23.0}


def landed(code: str, value: float, freight: float, origin: str, into: str) -> dict[str, Any]:
    """What a consignment costs at the border."""
    rate, what = DUTY[code[:4]]
    rate = 0.0 if origin in FREE else rate
    base = value + freight
    duty = round(base * rate / 100, 2)
    vat = round((base + duty) * VAT[into] / 100, 2)
    return {"goods": what, "duty_rate": rate, "duty": duty, "vat": vat,
            "total": round(base + duty + vat, 2)}  # fmt: skip


UNITS = {"g": ("kg", 0.001), "kg": ("kg", 1.0), "ml": ("l", 0.001), "cl": ("l", 0.01),
         "l": ("l", 1.0), "pcs": ("piece", 1.0), "m": ("m", 1.0),
         "sheets": ("sheet", 1.0)}  # fmt: skip


def per_unit(offers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Offers by price of the base unit, the cheapest first."""
    rows: list[dict[str, Any]] = []
    for offer in offers:
        unit, factor = UNITS[str(offer["unit"]).lower()]
        amount = float(offer["amount"]) * factor * float(offer.get("packs", 1))
        rows.append({
            "label": offer["label"], "per": unit, "unit_price": round(offer["price"] / amount, 4),
        })  # fmt: skip
    if len({row["per"] for row in rows}) > 1:
        raise ValueError("these are sold by different measures and cannot be compared")
    return sorted(rows, key=lambda row: row["unit_price"])


LINES = {
    "R1": (("Aarhaven", 0), ("Brink", 9), ("Calder Junction", 21), ("Dunmoor", 40)),
    "R2": (("Eskmouth", 0), ("Calder Junction", 14), ("Foxley", 26), ("Gorse Hill", 38)),
    "S5": (("Dunmoor", 0), ("Foxley", 17), ("Harbour Pier", 31)),
}
FIRST, LAST, EVERY = 5 * 60 + 10, 23 * 60, {"R1": 30, "R2": 60, "S5": 40}
CHANGE_MIN = 4
PLACES = sorted({stop for line in LINES.values() for stop, _ in line})
Hop = tuple[int, int, str, str, str]


def hops() -> list[Hop]:
    """Every ride from stop to stop: departure, arrival, from, to, line; both ways."""
    rows: list[Hop] = []
    for name, stops in LINES.items():
        back = tuple((stop, stops[-1][1] - minute) for stop, minute in reversed(stops))
        for way in (stops, back):
            for start in range(FIRST, LAST, EVERY[name]):
                rows += [
                    (start + t1, start + t2, a, b, name)
                    for (a, t1), (b, t2) in itertools.pairwise(way)
                ]
    return sorted(rows)


def journey(start: str, end: str, after: int) -> list[Hop]:
    """The earliest arrival, by a scan over all rides; empty where there is none."""
    best: dict[str, tuple[int, Hop | None]] = {start: (after, None)}
    for hop in hops():
        leaves, arrives, here, there, line = hop
        if here not in best:
            continue
        ready, came = best[here]
        wait = 0 if came is None or came[4] == line else CHANGE_MIN
        if leaves >= ready + wait and arrives < best.get(there, (99999, None))[0]:
            best[there] = arrives, hop
    path: list[Hop] = []
    here = end
    while here in best and here != start:
        hop = best[here][1]
        assert hop is not None
        path.append(hop)
        here = hop[2]
    return path[::-1]


LETTERS = ((20, 24.5, 1.10), (100, 25.0, 1.75), (250, 35.3, 2.60), (500, 35.3, 3.45),
           (1000, 35.3, 5.20), (2000.0, 35.3, 7.05))  # fmt: skip
"""Grams, longest side in centimetres, price at home."""
ZONES = {"home": 1.0, "europe": 1.6, "world": 2.3}


def postage(grams: float, longest: float, zone: str) -> float:
    """The stamp of a letter."""
    for most, side, price in LETTERS:
        if grams <= most and longest <= side:
            return round(price * ZONES[zone] / 0.05) * 0.05
    raise ValueError("this is a parcel, not a letter")


def check_digit(digits: str) -> int:
    """The thirteenth figure of an EAN."""
    return -sum(int(d) * (3 if n % 2 else 1) for n, d in enumerate(digits[:12])) % 10


LEFT = ("0001101", "0011001", "0010011", "0111101", "0100011", "0110001", "0101111", "0111011",
        "0110111", "0001011")  # fmt: skip
PARITY = ("LLLLLL", "LLGLGG", "LLGGLG", "LLGGGL", "LGLLGG", "LGGLLG", "LGGGLL", "LGLGLG",
          "LGLGGL", "LGGLGL")  # fmt: skip


def bars(code: str) -> str:
    """The 95 modules of an EAN-13."""
    right = [row.translate(str.maketrans("01", "10")) for row in LEFT]
    odd = {"L": LEFT, "G": [row[::-1] for row in right]}
    first = "".join(odd[p][int(d)] for p, d in zip(PARITY[int(code[0])], code[1:7], strict=True))
    return "101" + first + "01010" + "".join(right[int(d)] for d in code[7:]) + "101"


def easter(year: int) -> date:
    """Easter Sunday, by Meeus, Jones and Butcher."""
    century, rest = divmod(year, 100)
    golden = year % 19
    skipped = century - century // 4 - (century - (century + 8) // 25 + 1) // 3
    moon = (19 * golden + skipped + 15) % 30
    week = (32 + 2 * (century % 4) + 2 * (rest // 4) - moon - rest % 4) % 7
    late = (golden + 11 * moon + 22 * week) // 451
    month, day = divmod(moon + week - 7 * late + 114, 31)
    return date(year, month, day + 1)


FIXED = {(1, 1), (4, 21), (5, 1), (9, 7), (10, 12), (11, 2), (11, 15), (11, 20), (12, 25)}


def holiday_br(day: date) -> bool:
    """A national holiday of Brazil, or one of the days banks rest."""
    moved = {easter(day.year) + timedelta(days=n) for n in (-48, -47, -2, 60)}
    return (day.month, day.day) in FIXED or day in moved


def business_day(start: date, count: int) -> date:
    """The day that is so many working days later."""
    day, left = start, count
    while left:
        day += timedelta(days=1)
        left -= day.weekday() < 5 and not holiday_br(day)
    return day


ERAS = (("令和", date(2019, 5, 1)), ("平成", date(1989, 1, 8)), ("昭和", date(1926, 12, 25)),
        ("大正", date(1912, 7, 30)), ("明治", date(1868, 10, 23)))  # fmt: skip


def in_era(day: date) -> str:
    """A day's year in Japan's calendar."""
    for name, first in ERAS:
        if day >= first:
            year = day.year - first.year + 1
            return f"{name}{'元' if year == 1 else year}年"
    raise ValueError("明治より前の日付は扱えません")


def rests(shifts: Sequence[tuple[datetime, datetime]]) -> list[dict[str, Any]]:
    """Pauses between shifts that are below eleven hours."""
    rows = sorted(shifts)
    gaps = [(a[1], b[0]) for a, b in itertools.pairwise(rows)]
    return [
        {"after": end.isoformat(timespec="minutes"), "before": start.isoformat(timespec="minutes"),
         "rest_h": round((start - end).total_seconds() / 3600, 2)}
        for end, start in gaps if start - end < timedelta(hours=11)
    ]  # fmt: skip
