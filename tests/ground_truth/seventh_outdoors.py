"""What the seventh set's agents know of water, wind and ways."""

import itertools
import math
import re
from datetime import date, timedelta

EARTH_KM = 6371.0088
CLOCK = r"(\d{1,2})[:.h](\d{2})"


def minutes(hour: str, minute: str) -> int:
    """Minutes since midnight."""
    return int(hour) * 60 + int(minute)


def clock(value: float) -> str:
    """A time of day from minutes."""
    whole = round(value) % 1440
    return f"{whole // 60:02d}:{whole % 60:02d}"


MARK = re.compile(
    rf"\b(HW|LW|high water|low water)\b\D{{0,6}}{CLOCK}\D{{1,8}}?(\d+(?:[.,]\d+)?)\s*m\b",
    re.IGNORECASE,
)


def tide_marks(text: str) -> list[tuple[str, int, float]]:
    """High and low waters named in a text: kind, minute, metres."""
    rows: list[tuple[str, int, float]] = []
    for kind, hour, minute, metres in MARK.findall(text):
        high = kind.lower().startswith("h")
        height = float(metres.replace(",", "."))
        rows.append(("HW" if high else "LW", minutes(hour, minute), height))
    return rows


def tide_height(marks: list[tuple[str, int, float]], when: int) -> float | None:
    """Metres at a minute between two marks, on a cosine; None outside them."""
    (_, start, from_m), (_, end, to_m) = marks[:2]
    end += 1440 if end < start else 0
    moment = when + (1440 if when < start else 0)
    if not start <= moment <= end or start == end:
        return None
    share = (moment - start) / (end - start)
    return (from_m + to_m) / 2 + (from_m - to_m) / 2 * math.cos(math.pi * share)


def tide_time(marks: list[tuple[str, int, float]], metres: float) -> int | None:
    """The minute at which the water stands at a height; None where it never does."""
    (_, start, from_m), (_, end, to_m) = marks[:2]
    end += 1440 if end < start else 0
    if not min(from_m, to_m) <= metres <= max(from_m, to_m) or from_m == to_m:
        return None
    share = math.acos((2 * metres - from_m - to_m) / (from_m - to_m)) / math.pi
    return round(start + share * (end - start))


def apparent(boat: float, wind: float, angle: float) -> tuple[float, float]:
    """Speed and angle of the wind felt on board."""
    off = math.radians(angle)
    ahead, across = wind * math.cos(off) + boat, wind * math.sin(off)
    return math.hypot(ahead, across), math.degrees(math.atan2(across, ahead))


def beaufort(knots: float) -> int:
    """The force on Beaufort's scale."""
    return min(12, round((knots * 0.514444 / 0.836) ** (2 / 3)))


def sun(lat: float, lon: float, day: date) -> dict[str, str]:
    """Rise, noon and set in UTC, by the equation of time and the declination."""
    turn = 2 * math.pi / 365 * (day.timetuple().tm_yday - 1)
    late = 229.18 * (
        0.000075 + 0.001868 * math.cos(turn) - 0.032077 * math.sin(turn)
        - 0.014615 * math.cos(2 * turn) - 0.040849 * math.sin(2 * turn)
    )  # fmt: skip
    tilt = (
        0.006918 - 0.399912 * math.cos(turn) + 0.070257 * math.sin(turn)
        - 0.006758 * math.cos(2 * turn) + 0.000907 * math.sin(2 * turn)
    )  # fmt: skip
    noon = 720 - 4 * lon - late
    where = math.radians(lat)
    reach = math.cos(math.radians(90.833)) / (math.cos(where) * math.cos(tilt)) - math.tan(
        where
    ) * math.tan(tilt)
    if abs(reach) > 1:
        return {"noon": clock(noon), "note": "polar night" if reach > 1 else "midnight sun"}
    half = 4 * math.degrees(math.acos(reach))
    length = timedelta(minutes=round(2 * half))
    return {
        "sunrise": clock(noon - half), "noon": clock(noon), "sunset": clock(noon + half),
        "daylight": f"{length.seconds // 3600} h {length.seconds % 3600 // 60} min",
    }  # fmt: skip


Spot = tuple[float, float]


def apart_km(one: Spot, two: Spot) -> float:
    """The great circle between two places."""
    lat1, lon1, lat2, lon2 = (math.radians(v) for v in (*one, *two))
    chord = (
        math.sin((lat2 - lat1) / 2) ** 2
        + math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
    )
    return 2 * EARTH_KM * math.asin(math.sqrt(min(1.0, chord)))


def bearing(one: Spot, two: Spot) -> float:
    """The course to set out on."""
    lat1, lon1, lat2, lon2 = (math.radians(v) for v in (*one, *two))
    east = math.sin(lon2 - lon1) * math.cos(lat2)
    north = math.cos(lat1) * math.sin(lat2) - math.sin(lat1) * math.cos(lat2) * math.cos(
        lon2 - lon1
    )
    return math.degrees(math.atan2(east, north)) % 360


def between(one: Spot, two: Spot, share: float) -> Spot:
    """A place on the great circle."""
    whole = apart_km(one, two) / EARTH_KM
    if whole == 0:
        return one
    lat1, lon1, lat2, lon2 = (math.radians(v) for v in (*one, *two))
    a, b = (
        math.sin((1 - share) * whole) / math.sin(whole),
        math.sin(share * whole) / math.sin(whole),
    )
    x = a * math.cos(lat1) * math.cos(lon1) + b * math.cos(lat2) * math.cos(lon2)
    y = a * math.cos(lat1) * math.sin(lon1) + b * math.cos(lat2) * math.sin(lon2)
    z = a * math.sin(lat1) + b * math.sin(lat2)
    return (
        round(math.degrees(math.atan2(z, math.hypot(x, y))), 4),
        round(math.degrees(math.atan2(y, x)), 4),
    )


POINT = re.compile(
    r'<trkpt\s+lat="(-?[\d.]+)"\s+lon="(-?[\d.]+)"\s*(?:/>|>(.*?)</trkpt>)', re.DOTALL
)


def track(gpx: str) -> dict[str, float | int]:
    """Length and climb of a GPX track; heights change by less than 2 m by chance only."""
    spots: list[Spot] = []
    heights: list[float] = []
    for lat, lon, inner in POINT.findall(gpx):
        spots.append((float(lat), float(lon)))
        height = re.search(r"<ele>\s*(-?[\d.]+)", inner or "")
        if height:
            heights.append(float(height[1]))
    length = sum(apart_km(a, b) for a, b in itertools.pairwise(spots))
    up = down = 0.0
    level = heights[0] if heights else 0.0
    for height in heights:
        if abs(height - level) >= 2:
            up, down = up + max(0.0, height - level), down + max(0.0, level - height)
            level = height
    hours = length / 4 + up / 400
    return {"points": len(spots), "km": round(length, 2), "up_m": round(up),
            "down_m": round(down), "walking_h": round(hours, 1)}  # fmt: skip
