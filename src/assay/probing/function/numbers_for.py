"""Chooses numbers for arguments, within their owner's bounds. Pure."""

import re
from random import Random
from typing import Final

from assay.common.json import JsonObject, JsonValue

_YEAR: Final = re.compile(r"(?:^|_)(?:year|anno|año|ano|jahr|jaar|ann[ée]e|rok|год|рік|年)(?:$|_)")


def other_figure(value: JsonValue, declared: JsonObject, kind: str, random: Random) -> JsonValue:
    """Return a number of an example's size, within its bounds; other values unchanged."""
    if kind not in {"integer", "number"} or not isinstance(value, int | float):
        return value
    low, high = sorted((value * 0.6, value * 1.4))
    least, most = declared.get("minimum"), declared.get("maximum")
    low = max(low, least) if isinstance(least, int | float) else low
    high = min(high, most) if isinstance(most, int | float) else high
    is_small = high - low < 1
    if random.random() < 1 / 3 or (is_small and kind == "integer"):
        return value
    number = random.uniform(low, high)
    if kind == "integer":
        return round(number)
    return float(f"{number:.3g}") if is_small else round(number, 2)


def number_for(name: str, declared: JsonObject, kind: str, random: Random) -> int | float:
    """Return a number for an argument of that name."""
    low, high = _bounds(name, declared)
    number = random.uniform(low, high)
    return round(number) if kind == "integer" else round(number, 2)


def _bounds(name: str, declared: JsonObject) -> tuple[float, float]:
    plain = name.casefold()
    is_degrees = plain in {"lat", "latitude", "lon", "lng", "longitude"}
    low, high = (-80.0, 80.0) if is_degrees else (2.0, 60.0)
    if _YEAR.search(plain):
        low, high = 1951.0, 2023.0
    minimum, maximum = declared.get("minimum"), declared.get("maximum")
    if isinstance(minimum, int | float):
        low, high = float(minimum), max(high, float(minimum) + 50)
    if isinstance(maximum, int | float):
        high = float(maximum)
        low = min(low, high)
    return low, high
