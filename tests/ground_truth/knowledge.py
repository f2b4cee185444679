"""What the agents know: small domains with real answers, each a function of the question."""

import colorsys
import datetime as dt
import hashlib
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Answer = Callable[[str], str | None]

RATES = {"eur": 1.0, "usd": 1.09, "gbp": 0.86, "jpy": 163.2, "chf": 0.95, "sek": 11.4, "inr": 91.3}
LENGTHS = {
    "km": 1000, "kilometers": 1000, "m": 1, "meters": 1, "miles": 1609.344, "feet": 0.3048,
    "inches": 0.0254, "cm": 0.01, "yards": 0.9144,
}  # fmt: skip
CAPITALS = {
    "france": ("Paris", 68), "japan": ("Tokyo", 124), "kenya": ("Nairobi", 55),
    "peru": ("Lima", 34), "norway": ("Oslo", 5), "egypt": ("Cairo", 112),
    "canada": ("Ottawa", 40), "portugal": ("Lisbon", 10), "vietnam": ("Hanoi", 99),
    "germany": ("Berlin", 84), "brazil": ("Brasilia", 216), "australia": ("Canberra", 26),
    "italy": ("Rome", 59), "spain": ("Madrid", 48), "india": ("New Delhi", 1428),
}  # fmt: skip
ELEMENTS = {
    "hydrogen": (1, 1.008), "helium": (2, 4.003), "carbon": (6, 12.011), "oxygen": (8, 15.999),
    "sodium": (11, 22.99), "iron": (26, 55.845), "copper": (29, 63.546), "silver": (47, 107.868),
    "gold": (79, 196.967), "lead": (82, 207.2), "uranium": (92, 238.029), "neon": (10, 20.18),
    "zinc": (30, 65.38), "tin": (50, 118.71), "nitrogen": (7, 14.007),
}  # fmt: skip
DISHES = {
    "pancakes": "flour 60 g, milk 110 ml, half an egg, butter 8 g",
    "lasagne": "pasta sheets 80 g, minced beef 95 g, tomato 120 g, bechamel 90 ml",
    "gazpacho": "tomato 210 g, cucumber 60 g, pepper 45 g, olive oil 15 ml",
    "risotto": "arborio rice 75 g, stock 260 ml, parmesan 22 g, shallot 12 g",
    "curry": "chickpeas 120 g, coconut milk 90 ml, onion 40 g, turmeric 2 g",
}
ZONES = {
    "london": 0, "paris": 1, "berlin": 1, "cairo": 2, "nairobi": 3, "dubai": 4, "delhi": 5.5,
    "bangkok": 7, "tokyo": 9, "sydney": 10, "new york": -5, "chicago": -6, "denver": -7,
    "los angeles": -8, "lima": -5, "reykjavik": 0,
}  # fmt: skip
SYNONYMS = {
    "quick": "rapid, swift, brisk", "happy": "glad, cheerful, content", "large": "vast, sizeable",
    "cold": "chilly, frosty, bleak", "begin": "start, commence, open", "clever": "bright, astute",
    "silent": "mute, hushed, noiseless", "angry": "cross, irate, livid", "calm": "serene, placid",
}  # fmt: skip
SKY = ("clear", "overcast", "drizzle", "gusty", "fog patches", "snow showers", "haze", "thunder")


def numbers(text: str) -> list[float]:
    """The plain numbers of a text."""
    return [float(n) for n in re.findall(r"(?<![\w.#])-?\d+(?:\.\d+)?", text)]


def pick(seed: str, upto: int) -> int:
    """A number below `upto` that belongs to a word."""
    return int.from_bytes(hashlib.blake2b(seed.lower().encode()).digest()[:6], "big") % upto


def proper_names(text: str) -> list[str]:
    """Capitalised words that do not begin a sentence."""
    return re.findall(r"(?<=[a-z,:] )([A-Z][\w-]{2,})", text)


def _known(text: str, table: object) -> list[str]:
    low = text.lower()
    return [word for word in table if re.search(rf"\b{word}\b", low)]  # type: ignore[attr-defined]


def currency(text: str) -> str | None:
    found = re.findall(r"\b(eur|usd|chf|gbp|inr|jpy|sek)\b", text.lower())
    amounts = numbers(text)
    if len(found) < 2 or not amounts:
        return None
    value = amounts[0] / RATES[found[0]] * RATES[found[1]]
    return f"{amounts[0]:g} {found[0].upper()} = {value:.2f} {found[1].upper()} (mid rate)"


def length(text: str) -> str | None:
    found = re.findall(r"\b(" + "|".join(LENGTHS) + r")\b", text.lower())
    amounts = numbers(text)
    if len(found) < 2 or not amounts:
        return None
    return f"{amounts[0] * LENGTHS[found[0]] / LENGTHS[found[1]]:.4g} {found[1]}"


def weather(text: str) -> str | None:
    places = _known(text, ZONES) or [name.lower() for name in proper_names(text)]
    said = [
        f"{p.title()}: {pick(p, 38) - 6} degrees, {SKY[pick(p + 'sky', 8)]},"
        f" wind {pick(p + 'w', 60)} km/h"
        for p in places[:4]
    ]
    return "; ".join(said) or None


def country(text: str) -> str | None:
    said = [
        f"{c.title()}: {CAPITALS[c][0]}, {CAPITALS[c][1]} million people"
        for c in _known(text, CAPITALS)
    ]
    return "; ".join(said) or None


def element(text: str) -> str | None:
    said = [
        f"{e.title()} has atomic number {ELEMENTS[e][0]} and mass {ELEMENTS[e][1]} u"
        for e in _known(text, ELEMENTS)
    ]
    return ". ".join(said) or None


def recipe(text: str) -> str | None:
    found, wanted = _known(text, DISHES), numbers(text)
    if not found:
        return None
    people = wanted[0] if wanted else 1

    def scaled(match: re.Match[str]) -> str:
        return f"{float(match.group()) * people:g}"

    return f"For {people:g}: " + re.sub(r"\d+", scaled, DISHES[found[0]])


def loan(text: str) -> str | None:
    found = sorted(numbers(text), reverse=True)
    if len(found) < 3:
        return None
    amount, months, percent = found[0], found[1], found[2]
    rate = percent / 1200 or 1e-9
    return f"Monthly payment {amount * rate / (1 - (1 + rate) ** -months):.2f}"


def local_time(text: str) -> str | None:
    found = _known(text, ZONES)
    clock = re.search(r"\b(\d{1,2})[:h](\d{2})\b", text)
    if not found:
        return None
    if clock is None or len(found) < 2:
        return "; ".join(f"{c.title()} is UTC{ZONES[c]:+g}" for c in found)
    minutes = int(clock[1]) * 60 + int(clock[2]) + (ZONES[found[1]] - ZONES[found[0]]) * 60
    return f"{int(minutes // 60 % 24):02}:{int(minutes % 60):02} in {found[1].title()}"


def ticker(text: str) -> str | None:
    found = re.findall(r"\b[A-Z]{3,5}\b", text)
    said = [
        f"{t}: price/earnings {5 + pick(t, 400) / 10:.1f}, yield {pick(t + 'y', 70) / 10:.1f} %"
        for t in found[:4]
    ]
    return "; ".join(said) or None


def days(text: str) -> str | None:
    found = re.findall(r"\b(\d{4})-(\d{2})-(\d{2})\b", text)
    try:
        dates = [dt.date(int(y), int(m), int(d)) for y, m, d in found]
    except ValueError:
        return None
    if not dates:
        return None
    if len(dates) == 1:
        return f"A {dates[0]:%A}, day {dates[0]:%j} of its year, ISO week {dates[0]:%V}."
    return f"{abs((dates[1] - dates[0]).days)} days apart."


def synonym(text: str) -> str | None:
    return "; ".join(f"{w}: {SYNONYMS[w]}" for w in _known(text, SYNONYMS)) or None


def colour(text: str) -> str | None:
    found = re.search(r"#((?:[\da-fA-F]{2}){3})\b", text)
    if found is None:
        return None
    red, green, blue = (int(found[1][i : i + 2], 16) for i in (0, 2, 4))
    hue, light, sat = colorsys.rgb_to_hls(red / 255, green / 255, blue / 255)
    return f"rgb({red}, {green}, {blue}), hsl({hue * 360:.0f}, {sat:.0%}, {light:.0%})"


def circle(text: str) -> str | None:
    found = numbers(text)
    if not found:
        return None
    r = found[0]
    ball = 4 / 3 * math.pi * r**3
    return f"Circle: area {math.pi * r * r:.3f}, around {2 * math.pi * r:.3f}; ball {ball:.3f}"


@dataclass(frozen=True)
class Domain:
    """A subject with its skill, its examples and its answers."""

    key: str
    title: str
    summary: str
    examples: Sequence[str]
    answer: Answer
    argument: str
    """What a tool's one argument is called."""


DOMAINS = {
    d.key: d
    for d in (
        Domain("currency", "Exchange", "Converts amounts between seven currencies at mid rates.",
               ["Convert 20 EUR to USD", "How much is 75 GBP in JPY?"], currency, "question"),
        Domain("length", "Measures", "Converts lengths between metric and imperial.",
               ["12 km in miles", "How many feet are 3 meters?"], length, "expression"),
        Domain("weather", "Skywatch", "Current conditions for towns around the world.",
               ["Conditions in Nairobi", "Is it windy in Oslo and Lima?"], weather, "place"),
        Domain("country", "Atlas", "Capital and population of a country.",
               ["Capital of Peru", "What of Norway?"], country, "country"),
        Domain("element", "Periodic", "Atomic number and mass of a chemical element.",
               ["Atomic mass of copper", "Compare gold and lead"], element, "element"),
        Domain("recipe", "Kitchen", "Ingredients of a dish, scaled to so many guests.",
               ["Pancakes for 4", "What goes into risotto for 2 guests?"], recipe, "dish"),
        Domain("loan", "Lender's calculator", "Monthly payment of a loan.",
               ["20000 over 60 months at 4.5 percent", "150000, 240 months, 3.2 %"], loan, "terms"),
        Domain("zone", "Meridian", "Local times between towns.",
               ["When it is 14:30 in London, what is it in Tokyo?", "Offset of Denver"],
               local_time, "question"),
        Domain("ticker", "Fundamentals", "Ratios of listed companies by ticker.",
               ["Ratios of ACME and INIT", "What does QRSX yield?"], ticker, "symbols"),
        Domain("days", "Almanac", "Weekdays and spans between dates.",
               ["Days from 2025-03-01 to 2025-04-15", "Which weekday was 1999-12-31?"],
               days, "dates"),
        Domain("synonym", "Thesaurus", "Synonyms of common adjectives and verbs.",
               ["Another word for quick", "Synonyms of calm and cold"], synonym, "word"),
        Domain("colour", "Palette", "Converts colours from hexadecimal.",
               ["#3366cc in rgb", "What is #ffaa00 in hsl?"], colour, "colour"),
        Domain("circle", "Rounds", "Area and circumference of a circle from its radius.",
               ["radius 4", "A circle with radius 2.5"], circle, "radius"),
    )
}  # fmt: skip
