"""What the seventh set's agents know of house, garden and kitchen."""

import math
import re
from collections.abc import Mapping, Sequence
from datetime import date, timedelta


def worked_evenly(stitches: int, change: int) -> list[str]:
    """One row of knitting that loses (below zero) or gains stitches evenly."""
    count, less = abs(change), change < 0
    plain = stitches - 2 * count if less else stitches
    if count == 0 or plain < 0:
        raise ValueError(f"{count} is too many for {stitches} stitches")
    base, more = divmod(plain, count)
    action = "k2tog" if less else "m1"

    def block(knit: int, times: int) -> str:
        inner = f"k{knit}, {action}" if knit else action
        return f"*{inner}* {times} times" if times > 1 else inner

    parts = [block(base + 1, more)] if more else []
    parts += [block(base, count - more)] if count > more else []
    return [f"Row: {', then '.join(parts)}.", f"You end with {stitches + change} stitches."]


def cast_on(gauge: float, per_cm: float, width: float, repeat: int) -> int:
    """Stitches for a width, rounded to a whole repeat."""
    return round(gauge / per_cm * width / repeat) * repeat


def litres(length: float, width: float, height: float) -> float:
    """What a tank of these centimetres holds."""
    return length * width * height / 1000


HEATERS = (25, 50, 75, 100, 150, 200, 300)


def heater(water: float, room: float, wanted: float) -> str:
    """The smallest heater sold that keeps the water warm, or two of them."""
    need = water * max(0.0, wanted - room) * 0.1
    fitting = [watts for watts in HEATERS if watts >= need]
    return f"{fitting[0]} W" if fitting else f"2 x {math.ceil(need / 100) * 50} W"


WOOD = {"björk": 1300, "bok": 1450, "ek": 1450, "gran": 970, "tall": 1070, "al": 980, "asp": 950}
"""Kilowatt-hours of a cubic metre, stacked and dry."""
STACKED = {"stjälpt": 0.65, "travat": 1.0, "fast": 1 / 0.65}
"""Stacked cubic metres in one of each kind."""


def firewood(amount: float, kind: str, wood: str) -> dict[str, float]:
    """The same wood in all three measures, and its energy."""
    stacked = amount * STACKED[kind]
    return {name: round(stacked / one, 2) for name, one in STACKED.items()} | {
        "kwh": round(stacked * WOOD[wood])
    }


def u_value(layers: Sequence[tuple[float, float]], inside: float, outside: float) -> float:
    """Of layers given in millimetres and W/mK, between two surface resistances."""
    return 1 / (inside + outside + sum(mm / 1000 / conducts for mm, conducts in layers))


def channel(value: int) -> float:
    """A colour's channel, linear."""
    share = value / 255
    return share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4


def colour(text: str) -> tuple[int, int, int]:
    """Red, green and blue of #abc or #aabbcc."""
    found = re.fullmatch(r"#?([\da-fA-F]{3}|[\da-fA-F]{6})", text.strip())
    if not found:
        raise ValueError(f"not a hex colour: {text[:20]}")
    code = found[1] if len(found[1]) == 6 else "".join(2 * c for c in found[1])
    return int(code[:2], 16), int(code[2:4], 16), int(code[4:], 16)


def contrast(one: str, two: str) -> float:
    """WCAG's ratio of two colours."""
    lights = sorted(
        0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b)
        for r, g, b in (colour(one), colour(two))
    )
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def cut_list(board: int, pieces: Sequence[int], kerf: int) -> list[list[int]]:
    """Which piece comes from which board: the longest first, each where it fits tightest."""
    boards: list[list[int]] = []
    left: list[int] = []
    for piece in sorted(pieces, reverse=True):
        fits = [n for n, rest in enumerate(left) if rest >= piece]
        if fits:
            n = min(fits, key=lambda one: left[one])
        else:
            n = len(boards)
            boards.append([])
            left.append(board)
        boards[n].append(piece)
        left[n] = max(0, left[n] - piece - kerf)
    return boards


def heating(
    total: float, base_share: float, flats: Mapping[str, tuple[float, float]]
) -> dict[str, float]:
    """Each flat's part: by area for the base, by units used for the rest; no cent is lost."""
    area, units = sum(a for a, _ in flats.values()), sum(u for _, u in flats.values())
    exact = {
        name: 100 * total * (base_share * a / area + (1 - base_share) * u / units)
        for name, (a, u) in flats.items()
    }
    cents = {name: int(value) for name, value in exact.items()}
    missing = round(100 * total) - sum(cents.values())
    for name in sorted(exact, key=lambda n: cents[n] - exact[n])[:missing]:
        cents[name] += 1
    return {name: value / 100 for name, value in cents.items()}


STREETS = {"mill lane": (1, 0), "station road": (1, 1), "orchard close": (2, 0),
           "high street": (3, 1), "ferry quay": (3, 0), "church walk": (4, 1)}  # fmt: skip
"""Weekday from Monday = 0, and whether paper goes in even or odd weeks."""


def collections(street: str, after: date, count: int) -> list[tuple[date, str]]:
    """The next collections of a street from a day on."""
    weekday, parity = STREETS[street]
    day = after + timedelta(days=(weekday - after.weekday()) % 7)
    rows: list[tuple[date, str]] = []
    for _ in range(count):
        even = day.isocalendar().week % 2 == 0
        rows.append((day, "paper and glass" if even == (parity == 0) else "general waste"))
        day += timedelta(days=7)
    return rows


CROPS = {
    "tomato": (-8, 2, 75), "courgette": (-3, 1, 55), "lettuce": (-6, -2, 50),
    "runner bean": (-3, 1, 70), "leek": (-10, 0, 120), "pumpkin": (-3, 2, 105),
    "beetroot": (None, -2, 60), "carrot": (None, -3, 80), "sweetcorn": (-4, 2, 85),
}  # fmt: skip
"""Weeks from the last frost to sowing indoors and to the bed; days from there to the harvest."""


def crop_dates(crop: str, frost: date) -> dict[str, str]:
    """When to sow, plant and pick."""
    indoors, bed, days = CROPS[crop]
    out = frost + timedelta(weeks=bed)
    first = {"sow_indoors": (frost + timedelta(weeks=indoors)).isoformat()} if indoors else {}
    key = "plant_out" if indoors else "sow_outdoors"
    ready = out + timedelta(days=days)
    return first | {key: out.isoformat(), "harvest_from": ready.isoformat()}


def strike_temp(ratio: float, grain: float, mash: float) -> float:
    """How hot brewing water has to be, for litres a kilogram and two temperatures."""
    return 0.41 / ratio * (mash - grain) + mash


def bitterness(grams: float, alpha: float, minutes: float, litre: float, gravity: float) -> float:
    """IBU of one hop addition, by Tinseth."""
    big = 1.65 * 0.000125 ** (gravity - 1)
    boil = (1 - math.exp(-0.04 * minutes)) / 4.15
    return big * boil * alpha / 100 * grams * 1000 / litre


WATER = {"tomate": 5.0, "pimiento": 4.5, "lechuga": 3.5, "fresa": 4.0, "olivo": 2.0, "vid": 2.2}
"""Millimetres a day in July."""
SEASON = (0.25, 0.35, 0.5, 0.65, 0.8, 0.95, 1.0, 0.92, 0.7, 0.48, 0.3, 0.22)


def irrigation(crop: str, area: float, month: int, flow: float) -> tuple[float, float]:
    """Litres a day, and minutes at a flow in litres an hour."""
    need = WATER[crop] * SEASON[month - 1] * area
    return need, need / flow * 60
