"""Trades of the second set: measures, clocks, calendars, elements."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta


@dataclass(frozen=True)
class Craft:
    """Something an agent is good at. `answer` is None for what it is not asked for."""

    title: str
    about: str
    examples: Sequence[str]
    answer: Callable[[str], str | None]

    def say(self, text: str) -> str:
        """The answer, or a polite no."""
        made = self.answer(text)
        return made or f"Sorry, I only do this: {self.about} You could ask: {self.examples[0]}"


NUMBER = r"-?\d+(?:[.,]\d+)?"


def number(text: str) -> float:
    """A number with a point or a comma."""
    return float(text.replace(",", "."))


def plain(value: float, digits: int = 4) -> str:
    """Without zeros that say nothing."""
    return f"{value:.{digits}f}".rstrip("0").rstrip(".") if "." in f"{value:.{digits}f}" else "0"


_SIZES: dict[str, dict[str, float]] = {
    "length": {"mm": 0.001, "cm": 0.01, "m": 1, "km": 1000, "inch": 0.0254,
               "foot": 0.3048, "feet": 0.3048, "ft": 0.3048, "yard": 0.9144, "yd": 0.9144,
               "mile": 1609.344, "mi": 1609.344, "fathom": 1.8288, "furlong": 201.168},
    "mass": {"mg": 1e-6, "g": 0.001, "kg": 1, "tonne": 1000, "ounce": 0.028349523, "oz":
             0.028349523, "pound": 0.45359237, "lb": 0.45359237, "stone": 6.35029318},
    "volume": {"ml": 0.001, "cl": 0.01, "dl": 0.1, "l": 1, "litre": 1, "liter": 1, "pint":
               0.56826125, "gallon": 4.54609, "cup": 0.24, "tablespoon": 0.015, "teaspoon": 0.005},
    "speed": {"kmh": 1 / 3.6, "km/h": 1 / 3.6, "mph": 0.44704, "knot": 0.514444, "m/s": 1},
    "area": {"m2": 1, "hectare": 10000, "ha": 10000, "acre": 4046.8564, "km2": 1e6},
    "time": {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800, "fortnight":
             1209600},
    "energy": {"joule": 1, "j": 1, "kj": 1000, "kcal": 4184, "calorie": 4.184, "kwh": 3.6e6},
    "pressure": {"pa": 1, "kpa": 1000, "bar": 1e5, "psi": 6894.757, "atm": 101325, "mmhg": 133.322},
    "data": {"bit": 0.125, "byte": 1, "kb": 1000, "mb": 1e6, "gb": 1e9, "kib": 1024, "mib":
             1048576, "gib": 1073741824, "tb": 1e12},
}  # fmt: skip
_NAMES = {
    "metre": "m", "meter": "m", "kilometre": "km", "kilometer": "km", "centimetre": "cm",
    "centimeter": "cm", "millimetre": "mm", "millimeter": "mm", "kilogram": "kg", "kilo": "kg",
    "gram": "g", "milligram": "mg", "inche": "inch", "millilitre": "ml", "milliliter": "ml",
    "decilitre": "dl", "gigabyte": "gb", "megabyte": "mb", "kilobyte": "kb", "gibibyte": "gib",
    "foot": "feet", "lbs": "lb", "hr": "hour", "min": "minute", "sec": "second",
    "pounds": "pound", "terabyte": "tb", "kilojoule": "kj", "kilocalorie": "kcal",
}  # fmt: skip
_HEAT = {"c": "c", "celsius": "c", "centigrade": "c", "f": "f", "fahrenheit": "f", "k": "k",
         "kelvin": "k"}  # fmt: skip
_UNIT = r"[a-zA-Z°µ]+(?:/[a-zA-Z]+)?2?"


def _unit(word: str) -> str | None:
    word = word.lower().strip("°")
    forms = (word, word.removesuffix("s"), word.removesuffix("es"))
    for form in (_NAMES.get(f, f) for f in forms):
        if form in _HEAT or any(form in table for table in _SIZES.values()):
            return form
    return None


def _warmth(value: float, old: str, new: str) -> float:
    kelvin = {"c": value + 273.15, "f": (value - 32) / 1.8 + 273.15, "k": value}[_HEAT[old]]
    return {"c": kelvin - 273.15, "f": (kelvin - 273.15) * 1.8 + 32, "k": kelvin}[_HEAT[new]]


def convert(text: str) -> str | None:
    """`12 miles in km`, however it is put."""
    first = re.search(rf"({NUMBER})\s*({_UNIT})", text)
    if not first or not (old := _unit(first[2])):
        return None
    rest = re.findall(_UNIT, text[first.end() :]) + re.findall(_UNIT, text[: first.start()])[::-1]
    value = number(first[1])
    for new in filter(None, map(_unit, rest)):
        if old in _HEAT and new in _HEAT:
            return f"{plain(value, 2)} {first[2]} is {plain(_warmth(value, old, new), 2)} {new}."
        for kind, table in _SIZES.items():
            if old in table and new in table and old != new:
                made = value * table[old] / table[new]
                shown = plain(made) if abs(made) > 0.01 else f"{made:.4g}"
                return f"{plain(value)} {first[2]} = {shown} {new} ({kind})."
    return None


MEASURES = Craft(
    "Unit conversion",
    "Converts lengths, masses, volumes, speeds, areas, times, energies, pressures, data sizes and"
    " temperatures.",
    ("Convert 26.2 miles to km", "How many pints are 3 litres?", "What is 350 F in Celsius?"),
    convert,
)

OFFSETS = {
    "honolulu": -600, "anchorage": -540, "vancouver": -480, "denver": -420, "chicago": -360,
    "mexico city": -360, "bogota": -300, "lima": -300, "toronto": -300, "caracas": -240,
    "halifax": -240, "st john's": -210, "sao paulo": -180, "montevideo": -180, "nuuk": -120,
    "reykjavik": 0, "accra": 0, "lisbon": 0, "london": 0, "lagos": 60, "oslo": 60, "vienna": 60,
    "warsaw": 60, "tunis": 60, "athens": 120, "cairo": 120, "helsinki": 120, "nairobi": 180,
    "istanbul": 180, "doha": 180, "tehran": 210, "dubai": 240, "kabul": 270, "karachi": 300,
    "mumbai": 330, "colombo": 330, "kathmandu": 345, "dhaka": 360, "yangon": 390, "hanoi": 420,
    "jakarta": 420, "singapore": 480, "perth": 480, "manila": 480, "seoul": 540, "osaka": 540,
    "darwin": 570, "brisbane": 600, "noumea": 660, "suva": 720, "auckland": 720, "apia": 780,
}  # fmt: skip


def _offset(minutes: int) -> str:
    sign = "-" if minutes < 0 else "+"
    return f"UTC{sign}{abs(minutes) // 60}:{abs(minutes) % 60:02d}"


def world_clock(text: str) -> str | None:
    """An hour here is which hour there, by standard time."""
    low = text.lower()
    found = sorted((low.find(c), c) for c in OFFSETS if re.search(rf"\b{re.escape(c)}\b", low))
    names = [name for _, name in found]
    clock = re.search(r"\b(\d{1,2})[:.h](\d{2})\b", low) or re.search(r"\b(\d{1,2})\s?([ap])m", low)
    if not names:
        return None
    if len(names) == 1 or not clock:
        rows = [f"{n.title()} keeps {_offset(OFFSETS[n])}" for n in names]
        if len(names) > 1:
            gap = (OFFSETS[names[1]] - OFFSETS[names[0]]) / 60
            rows.append(f"that is a gap of {plain(gap, 2)} hours")
        return "; ".join(rows) + " (standard time)."
    if clock[2] in {"a", "p"}:
        minutes = (int(clock[1]) % 12 + 12 * (clock[2] == "p")) * 60
    else:
        minutes = int(clock[1]) * 60 + int(clock[2])
    here = min(names, key=lambda n: abs(low.find(n) - clock.start()))
    rows = []
    for there in (n for n in names if n != here):
        day, rest = divmod(minutes + OFFSETS[there] - OFFSETS[here], 1440)
        when = {-1: ", the day before", 1: ", the next day"}.get(day, "")
        rows.append(f"{rest // 60:02d}:{rest % 60:02d} in {there.title()}{when}")
    shown = f"{minutes // 60:02d}:{minutes % 60:02d}"
    return f"{shown} in {here.title()} is " + " and ".join(rows) + " (standard time)."


ZONES = Craft(
    "World clock",
    "Tells what an hour in one of fifty cities is in another, and how far apart their clocks are.",
    ("When it is 14:30 in Osaka, which hour has Lagos?", "Time difference of Lima and Oslo"),
    world_clock,
)

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september",
          "october", "november", "december")  # fmt: skip


def dates_in(text: str) -> list[date]:
    """All dates in the forms that people write."""
    found: list[tuple[int, date]] = []
    month = "|".join(MONTHS)
    forms = (
        (r"(\d{4})-(\d{1,2})-(\d{1,2})", (1, 2, 3)),
        (rf"(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({month})[, ]+(\d{{4}})", (3, 2, 1)),
        (rf"({month}) (\d{{1,2}})(?:st|nd|rd|th)?[, ]+(\d{{4}})", (3, 1, 2)),
    )
    for form, (y, m, d) in forms:
        for hit in re.finditer(form, text.lower()):
            name = hit[m]
            try:
                moon = int(name) if name.isdigit() else MONTHS.index(name) + 1
                found.append((hit.start(), date(int(hit[y]), moon, int(hit[d]))))
            except ValueError:
                continue
    return [day for _, day in sorted(found)]


def _long(day: date) -> str:
    return f"{DAYS[day.weekday()]}, {day.day} {MONTHS[day.month - 1].title()} {day.year}"


def _shifted(day: date, count: int, unit: str) -> date:
    if unit.startswith(("month", "year")):
        total = day.year * 12 + day.month - 1 + count * (12 if unit.startswith("year") else 1)
        year, month = divmod(total, 12)
        last = (date(year + month // 11, (month + 1) % 12 + 1, 1) - timedelta(days=1)).day
        return date(year, month + 1, min(day.day, last))
    return day + timedelta(days=count * (7 if unit.startswith("week") else 1))


def almanac(text: str) -> str | None:
    """Weekdays, spans and shifts of dates."""
    days, low = dates_in(text), text.lower()
    if not days:
        year = re.search(r"\b(\d{4})\b", low)
        if not year or "leap" not in low:
            return None
        leap = int(year[1]) % 4 == 0 and (int(year[1]) % 100 != 0 or int(year[1]) % 400 == 0)
        return f"{year[1]} is {'a' if leap else 'not a'} leap year."
    if len(days) > 1:
        span = abs((days[1] - days[0]).days)
        weeks = f"{span // 7} weeks and {span % 7} days"
        return f"From {_long(days[0])} to {_long(days[1])} are {span} days ({weeks})."
    step = re.search(r"(\d{1,4}) (day|week|month|year)s?", low)
    if step:
        back = re.search(r"\bbefore\b|\bago\b|\bminus\b|\bsubtract\b|\bearlier\b", low)
        try:
            made = _shifted(days[0], int(step[1]) * (-1 if back else 1), step[2])
        except (ValueError, OverflowError):
            return "That lies outside the years 1 to 9999."
        return f"{step[0]} {'before' if back else 'after'} {_long(days[0])} is {_long(made)}."
    week = days[0].isocalendar()
    nth = days[0].timetuple().tm_yday
    return f"{_long(days[0])}: day {nth} of the year, in ISO week {week.week} of {week.year}."


CALENDAR = Craft(
    "Calendar arithmetic",
    "Weekdays, week numbers, days from date to date, and dates some days, weeks or months away.",
    ("Which weekday was 20 July 1969?", "How many days from 2026-03-14 to 2026-12-01?",
     "What date is 45 days after 3 February 2027?"),
    almanac,
)  # fmt: skip

_ATOMS = """H Hydrogen 1.008,He Helium 4.0026,Li Lithium 6.94,Be Beryllium 9.0122,B Boron 10.81,
C Carbon 12.011,N Nitrogen 14.007,O Oxygen 15.999,F Fluorine 18.998,Ne Neon 20.180,
Na Sodium 22.990,Mg Magnesium 24.305,Al Aluminium 26.982,Si Silicon 28.085,P Phosphorus 30.974,
S Sulfur 32.06,Cl Chlorine 35.45,Ar Argon 39.95,K Potassium 39.098,Ca Calcium 40.078,
Sc Scandium 44.956,Ti Titanium 47.867,V Vanadium 50.942,Cr Chromium 51.996,Mn Manganese 54.938,
Fe Iron 55.845,Co Cobalt 58.933,Ni Nickel 58.693,Cu Copper 63.546,Zn Zinc 65.38,Ga Gallium 69.723,
Ge Germanium 72.630,As Arsenic 74.922,Se Selenium 78.971,Br Bromine 79.904,Kr Krypton 83.798,
Rb Rubidium 85.468,Sr Strontium 87.62,Y Yttrium 88.906,Zr Zirconium 91.224,Nb Niobium 92.906,
Mo Molybdenum 95.95,Tc Technetium 98,Ru Ruthenium 101.07,Rh Rhodium 102.91,Pd Palladium 106.42,
Ag Silver 107.87,Cd Cadmium 112.41,In Indium 114.82,Sn Tin 118.71,Sb Antimony 121.76,
Te Tellurium 127.60,I Iodine 126.90,Xe Xenon 131.29"""
ATOMS = {
    row.split()[0]: (n, row.split()[1], float(row.split()[2]))
    for n, row in enumerate(_ATOMS.replace("\n", "").split(","), 1)
}


def _weighed(formula: str) -> float | None:
    while group := re.search(r"\(([A-Za-z0-9]{1,40})\)(\d{0,3})", formula):
        formula = formula.replace(group[0], group[1] * int(group[2] or 1), 1)
    parts = re.findall(r"([A-Z][a-z]?)(\d*)", formula)
    if "".join(a + n for a, n in parts) != formula or any(a not in ATOMS for a, _ in parts):
        return None
    return sum(ATOMS[a][2] * int(n or 1) for a, n in parts)


def chemist(text: str) -> str | None:
    """An element, or what a mole of a formula weighs."""
    for _, (n, name, mass) in sorted(ATOMS.items()):
        if name.lower() in re.findall(r"[a-z]+", text.lower()):
            symbol = next(s for s, row in ATOMS.items() if row[0] == n)
            return f"{name} ({symbol}) has atomic number {n} and a standard mass of {mass} u."
    numbered = re.search(r"(?:number|no\.?|z ?=) ?(\d{1,2})\b", text.lower())
    if numbered and 1 <= int(numbered[1]) <= len(ATOMS):
        symbol = list(ATOMS)[int(numbered[1]) - 1]
        return f"Number {numbered[1]} is {ATOMS[symbol][1]} ({symbol})."
    for word in re.findall(r"\b[A-Z][A-Za-z0-9()]*", text):
        if (mass := _weighed(word)) and (len(word) > 2 or word in ATOMS):
            return f"A mole of {word} weighs {mass:.3f} g."
    return None


ELEMENTS = Craft(
    "Periodic table",
    "Elements from hydrogen to xenon by name or number, and molar masses of formulas.",
    (
        "Tell me about molybdenum",
        "What is the molar mass of Ca(OH)2?",
        "Which element is number 47?",
    ),
    chemist,
)
