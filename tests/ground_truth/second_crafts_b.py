"""Trades of the second set: ferries, food, holidays, music, check digits, loans, networks."""

import heapq
import ipaddress
import re
from datetime import date, timedelta

from tests.ground_truth.second_crafts_a import MONTHS, NUMBER, Craft, number, plain

_TOWNS = """Varn Osterby 14,Varn Kells 22,Osterby Lunde 9,Lunde Marrick 17,Kells Marrick 11,
Kells Tovey 30,Marrick Pell 8,Pell Sund 25,Tovey Sund 12,Sund Arvika 19,Arvika Holm 7,Holm Lunde 33,
Holm Dunmore 16,Dunmore Eskby 21,Eskby Tovey 18,Eskby Rathen 13,Rathen Varn 40,Dunmore Quill 6"""


def _roads() -> dict[str, list[tuple[str, int]]]:
    made: dict[str, list[tuple[str, int]]] = {}
    for row in _TOWNS.replace("\n", "").split(","):
        a, b, minutes = row.split()
        made.setdefault(a, []).append((b, int(minutes)))
        made.setdefault(b, []).append((a, int(minutes)))
    return made


ROADS = _roads()


def shortest(start: str, end: str) -> tuple[int, list[str]]:
    """Minutes and stops of the quickest way."""
    queue, seen = [(0, [start])], set[str]()
    while queue:
        minutes, way = heapq.heappop(queue)
        if way[-1] == end:
            return minutes, way
        if way[-1] not in seen:
            seen.add(way[-1])
            for town, more in ROADS[way[-1]]:
                heapq.heappush(queue, (minutes + more, [*way, town]))
    return 0, []


def ferry(text: str) -> str | None:
    """The quickest way between two quays."""
    low = text.lower()
    found = sorted((low.find(t.lower()), t) for t in ROADS if t.lower() in low)
    if len(found) == 1:
        near = ", ".join(f"{t} ({m} min)" for t, m in sorted(ROADS[found[0][1]]))
        return f"Boats from {found[0][1]} go to {near}."
    if len(found) < 2:
        return None
    start, end = found[0][1], found[1][1]
    if re.search(rf"to {start.lower()}.*from {end.lower()}", low):
        start, end = end, start
    minutes, way = shortest(start, end)
    return f"{' - '.join(way)}: {minutes} minutes, {len(way) - 2} changes."


FERRIES = Craft(
    "Ferry routes",
    "Quickest ferry connections among fifteen quays of the archipelago.",
    ("How do I get from Varn to Sund?", "Route from Quill to Marrick", "Which boats leave Kells?"),
    ferry,
)

_FOODS = """lentils 352 24.6 63.4 1.1,rice 365 7.1 80 0.7,oats 379 13.2 67.7 6.5,
chickpeas 378 20.5 63 6,bread 265 9 49 3.2,pasta 371 13 75 1.5,potato 77 2 17 0.1,
carrot 41 0.9 9.6 0.2,broccoli 34 2.8 6.6 0.4,spinach 23 2.9 3.6 0.4,tomato 18 0.9 3.9 0.2,
onion 40 1.1 9.3 0.1,apple 52 0.3 13.8 0.2,banana 89 1.1 22.8 0.3,orange 47 0.9 11.8 0.1,
pear 57 0.4 15.2 0.1,grapes 69 0.7 18.1 0.2,avocado 160 2 8.5 14.7,
almonds 579 21.2 21.6 49.9,walnuts 654 15.2 13.7 65.2,salmon 208 20.4 0 13.4,
tuna 132 28 0 1.3,chicken 165 31 0 3.6,beef 250 26 0 15,egg 143 12.6 0.7 9.5,
milk 61 3.2 4.8 3.3,yoghurt 61 3.5 4.7 3.3,cheddar 403 24.9 1.3 33.1,
butter 717 0.9 0.1 81.1,honey 304 0.3 82.4 0,tofu 76 8 1.9 4.8"""
FOODS = {
    row.split()[0]: tuple(float(v) for v in row.split()[1:])
    for row in _FOODS.replace("\n", "").split(",")
}


def eaten(text: str) -> str | None:
    """What is in so much of something."""
    low = text.lower()
    food = next((f for f in FOODS if re.search(rf"\b{f.rstrip('s')}", low)), None)
    if food is None:
        return None
    given = re.search(rf"({NUMBER})\s*(kg|g|oz)\b", low)
    scale = {"kg": 1000, "g": 1, "oz": 28.35}
    grams = number(given[1]) * scale[given[2]] if given else 100
    energy, protein, starch, fat = (plain(v * grams / 100, 1) for v in FOODS[food])
    return (
        f"{plain(grams, 1)} g of {food}: {energy} kcal, {protein} g protein, {starch} g"
        f" carbohydrate, {fat} g fat."
    )


NUTRITION = Craft(
    "Nutrition table",
    "Energy, protein, carbohydrate and fat of thirty common foods, for any weight.",
    ("What is in 180 g of lentils?", "Calories of 2 oz cheddar", "Nutrients in broccoli"),
    eaten,
)

_FIXED = {
    "germany": "01-01 New Year,05-01 Labour Day,10-03 Unity Day,12-25 Christmas,12-26 Boxing Day",
    "poland": "01-01 New Year,01-06 Epiphany,05-01 Labour Day,05-03 Constitution Day,08-15 Army"
    " Day,11-01 All Saints,11-11 Independence Day,12-25 Christmas,12-26 Second Christmas Day",
    "france": "01-01 New Year,05-01 Labour Day,05-08 Victory Day,07-14 Bastille Day,08-15"
    " Assumption,11-01 All Saints,11-11 Armistice,12-25 Christmas",
    "italy": "01-01 New Year,01-06 Epiphany,04-25 Liberation,05-01 Labour Day,06-02 Republic Day,"
    "08-15 Ferragosto,11-01 All Saints,12-08 Immaculate Conception,12-25 Christmas,12-26 Stephen",
    "norway": "01-01 New Year,05-01 Labour Day,05-17 Constitution Day,12-25 Christmas,12-26"
    " Second Christmas Day",
}
_MOVING = {
    "germany": {-2: "Good Friday", 1: "Easter Monday", 39: "Ascension", 50: "Whit Monday"},
    "poland": {0: "Easter", 1: "Easter Monday", 60: "Corpus Christi"},
    "france": {1: "Easter Monday", 39: "Ascension", 50: "Whit Monday"},
    "italy": {1: "Easter Monday"},
    "norway": {-3: "Maundy Thursday", -2: "Good Friday", 1: "Easter Monday", 39: "Ascension"},
}


def easter(year: int) -> date:
    """By Butcher's rule."""
    a, b, c = year % 19, year // 100, year % 100
    h = (19 * a + b - b // 4 - (b - (b + 8) // 25 + 1) // 3 + 15) % 30
    k = (32 + 2 * (b % 4) + 2 * (c // 4) - h - c % 4) % 7
    m = (a + 11 * h + 22 * k) // 451
    month, day = divmod(h + k - 7 * m + 114, 31)
    return date(year, month, day + 1)


def holidays(country: str, year: int) -> list[tuple[date, str]]:
    """All of one year, in order."""
    rows = [r.split(" ", 1) for r in _FIXED[country].split(",")]
    made = [(date(year, int(d[:2]), int(d[3:])), name) for d, name in rows]
    made += [(easter(year) + timedelta(days=d), n) for d, n in _MOVING[country].items()]
    return sorted(made)


def days_off(text: str) -> str | None:
    """Holidays of a country and a year, perhaps of one month."""
    low = text.lower()
    country = next((c for c in _FIXED if c in low), None)
    year = re.search(r"\b(19|20|21)\d\d\b", low)
    if year and not country and "easter" in low:
        return f"Easter Sunday of {year[0]} is {easter(int(year[0])).isoformat()}."
    if not country:
        return None
    rows = holidays(country, int(year[0]) if year else 2027)
    month = next(
        (n for n, m in enumerate(MONTHS, 1) if m in low and (m != "may" or " may" in low)), 0
    )
    rows = [r for r in rows if not month or r[0].month == month]
    shown = "; ".join(f"{d.isoformat()} {name}" for d, name in rows)
    return (
        f"{country.title()}: {shown}" if rows else f"No public holiday in {country.title()} then."
    )


HOLIDAYS = Craft(
    "Holiday calendar",
    "National public holidays of Germany, Poland, France, Italy and Norway, with movable feasts.",
    ("Public holidays in Poland in May 2027", "When is Easter in 2031?", "Norway holidays 2028"),
    days_off,
)

_NOTES = ("C", "C#", "D", "Eb", "E", "F", "F#", "G", "Ab", "A", "Bb", "B")
_ALIKE = {"Db": "C#", "D#": "Eb", "Gb": "F#", "G#": "Ab", "A#": "Bb"}
_CHORDS = {"maj7": (0, 4, 7, 11), "m7": (0, 3, 7, 10), "dim": (0, 3, 6), "aug": (0, 4, 8),
           "sus4": (0, 5, 7), "6": (0, 4, 7, 9), "7": (0, 4, 7, 10), "m": (0, 3, 7), "": (0, 4, 7),
           }  # fmt: skip
_SCALES = {"major": "0 2 4 5 7 9 11", "minor": "0 2 3 5 7 8 10", "dorian": "0 2 3 5 7 9 10",
           "phrygian": "0 1 3 5 7 8 10", "lydian": "0 2 4 6 7 9 11", "mixolydian":
           "0 2 4 5 7 9 10", "pentatonic": "0 2 4 7 9", "blues": "0 3 5 6 7 10"}  # fmt: skip


def _from(root: str, steps: tuple[int, ...]) -> str:
    start = _NOTES.index(_ALIKE.get(root, root))
    return " ".join(_NOTES[(start + step) % 12] for step in steps)


def harmony(text: str) -> str | None:
    """Notes of scales and chords."""
    scale = re.search(rf"\b([A-G][#b]?)[ -]({'|'.join(_SCALES)})\b", text)
    if scale:
        steps = tuple(int(n) for n in _SCALES[scale[2]].split())
        return f"{scale[1]} {scale[2]}: {_from(scale[1], steps)}"
    chord = re.search(
        r"(?<![A-Za-z])([B-G][#b]?|A[#b]?(?! ))(maj7|m7|dim|aug|sus4|6|7|m|)(?![A-Za-z])", text
    )
    if chord and _ALIKE.get(chord[1], chord[1]) in _NOTES:
        return f"{chord[0]}: {_from(chord[1], _CHORDS[chord[2]])}"
    return None


MUSIC = Craft(
    "Scales and chords",
    "The notes of scales (eight modes) and of chords in all keys.",
    ("Which notes are in Ebm7?", "Notes of D dorian", "Spell the chord F#dim"),
    harmony,
)


def _luhn(digits: str) -> bool:
    rows = [int(d) * (1 + n % 2) for n, d in enumerate(reversed(digits))]
    return sum(r - 9 if r > 9 else r for r in rows) % 10 == 0


def checked(text: str) -> str | None:
    """IBANs, article numbers and card-like numbers."""
    iban = re.search(r"\b([A-Z]{2}\d{2}(?: ?[A-Z0-9]{2,4}){3,8})\b", text)
    if iban:
        bare = iban[1].replace(" ", "")
        digits = "".join(str(int(c, 36)) for c in bare[4:] + bare[:4])
        fine = int(digits) % 97 == 1
        return f"IBAN {bare}: check digits {'are right' if fine else 'do not fit'}."
    plain_digits = re.search(r"\d(?:[ -]?\d){6,18}", text)
    if not plain_digits:
        return None
    bare = re.sub(r"\D", "", plain_digits[0])
    if len(bare) in {8, 13}:
        total = sum(int(d) * (3 if n % 2 else 1) for n, d in enumerate(reversed(bare)))
        return f"EAN {bare}: {'valid' if total % 10 == 0 else 'wrong check digit'}."
    return f"{bare}: the Luhn sum is {'right' if _luhn(bare) else 'wrong'}."


CHECKS = Craft(
    "Check digits",
    "Verifies the check digits of IBANs, EAN barcodes and Luhn numbers.",
    ("Is GB82 WEST 1234 5698 7654 32 a valid IBAN?", "Check EAN 4006381333931", "Luhn 79927398713"),
    checked,
)


def network(text: str) -> str | None:
    """What an address range spans."""
    found = re.search(r"\b(\d{1,3}(?:\.\d{1,3}){3})/(\d{1,2})\b", text)
    if not found:
        return None
    try:
        net = ipaddress.ip_network(found[0], strict=False)
    except ValueError:
        return f"{found[0]} is no IPv4 range."
    hosts = max(net.num_addresses - 2, 1)
    return f"{net}: {net[0]} to {net[-1]}, mask {net.netmask}, {hosts} hosts."


NETWORKS = Craft(
    "Subnet calculator",
    "First and last address, mask and number of hosts of an IPv4 range.",
    ("Describe 192.168.4.0/22", "How many hosts are in 10.20.30.64/27?"),
    network,
)


def annuity(text: str) -> str | None:
    """The monthly rate of a loan."""
    share = re.search(rf"({NUMBER}) ?(?:%|percent|per cent)", text.lower())
    time = re.search(r"(\d{1,3}) ?(month|year)", text.lower())
    rest = text.lower().replace(share[0], "") if share else ""
    sums = [number(s.replace(",", "")) for s in re.findall(r"\d[\d,]*(?:\.\d+)?", rest)]
    if not share or not time or not sums or max(sums) < 100:
        return None
    months = int(time[1]) * (12 if time[2] == "year" else 1)
    rate, total = number(share[1]) / 1200, max(sums)
    if not months:
        return None
    monthly = total * rate / (1 - (1 + rate) ** -months) if rate else total / months
    paid = f"{monthly:.2f} a month for {months} months, {monthly * months - total:.2f} of interest"
    return f"A loan of {plain(total, 2)} at {share[1]} % costs {paid}."


LOANS = Craft(
    "Loan calculator",
    "Monthly payment and total interest of an annuity loan.",
    (
        "Loan of 12,000 at 5.2 % over 36 months",
        "What does 250000 at 3.1% for 20 years cost a month?",
    ),
    annuity,
)
