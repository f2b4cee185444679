"""What the specialists of the fresh set know."""

import re
from string import ascii_lowercase, digits

from tests.ground_truth.fresh_mind import Trade

_ROMAN = [(1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"),
          (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")]  # fmt: skip


def to_roman(value: int) -> str:
    """A number in Roman numerals."""
    made = ""
    for size, sign in _ROMAN:
        made += sign * (value // size)
        value %= size
    return made


def _roman(text: str) -> str | None:
    number = re.search(r"\b(\d{1,4})\b", text)
    if number and 0 < int(number[1]) < 3999 + 1:
        return f"{number[1]} is {to_roman(int(number[1]))}"
    for word in re.findall(r"\b[MDCLXVI]+\b", text):
        for value in range(1, 3999 + 1):
            if to_roman(value) == word:
                return f"{word} is {value}"
    return None


_MORSE = dict(zip(ascii_lowercase + digits, re.findall(r"\S+",
    ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- -. --- .--. --.- .-. ... - ..- ...- .--"
    " -..- -.-- --.. ----- .---- ..--- ...-- ....- ..... -.... --... ---.. ----."),
    strict=True))  # fmt: skip


def _operand(text: str) -> str:
    quoted = re.search(r"[\"'“](.+?)[\"'”]", text)
    return quoted[1] if quoted else (re.findall(r"[\w-]+", text) or [""])[-1]


def _morse(text: str) -> str | None:
    word = _operand(text).lower()
    return " ".join(_MORSE[c] for c in word if c in _MORSE) or None


_SPELL = re.findall(
    r"\S+",
    "Alfa Bravo Charlie Delta Echo Foxtrot Golf Hotel India Juliett Kilo Lima Mike November Oscar"
    " Papa Quebec Romeo Sierra Tango Uniform Victor Whiskey X-ray Yankee Zulu",
)


def _spelling(text: str) -> str | None:
    by = {w[0].lower(): w for w in _SPELL}
    return " ".join(by[c] for c in _operand(text).lower() if c in by) or None


def _pace(text: str) -> str | None:
    found = re.search(r"([\d.]+)\s*km\D+?(\d+)\s*(?:min|h)", text)
    if not found or not float(found[1]):
        return None
    seconds = int(found[2]) * (3600 if re.search(r"\d\s*h", text) else 60) / float(found[1])
    return f"{int(seconds // 60)}:{int(seconds % 60):02d} min/km"


def _bits(text: str) -> str | None:
    number = re.search(r"\b\d{1,12}\b", text)
    if not number:
        return None
    value = int(number[0])
    return f"{value} = 0b{value:b} = 0o{value:o} = 0x{value:X}"


_RATES = {"germany": 19, "deutschland": 19, "france": 20, "spain": 21, "italy": 22, "sweden": 25,
          "hungary": 27, "austria": 20, "poland": 23, "ireland": 23, "luxembourg": 17}  # fmt: skip


def _vat(text: str) -> str | None:
    land = next((name for name in _RATES if name in text.lower()), None)
    if land is None:
        return None
    net = re.search(r"\d+(?:\.\d+)?", text)
    rate = _RATES[land]
    if net is None:
        return f"The standard rate in {land.title()} is {rate} %."
    return f"{float(net[0]) * (1 + rate / 100):.2f} with {rate} % tax in {land.title()}"


_PLANETS = {"mercury": (0.39, 88), "venus": (0.72, 225), "mars": (1.52, 687),
            "jupiter": (5.2, 4333), "saturn": (9.58, 10759), "uranus": (19.2, 30687),
            "neptune": (30.05, 60190), "earth": (1.0, 365)}  # fmt: skip


def _planet(text: str) -> str | None:
    name = next((p for p in _PLANETS if p in text.lower()), None)
    if name is None:
        return None
    far, year = _PLANETS[name]
    return f"{name.title()} is {far} AU from the Sun and takes {year} days to go around it."


_PLANTS = {"fern": "every 3 days, half shade", "cactus": "every 3 weeks, full sun",
           "basil": "daily, warm and bright", "ivy": "every 5 days, shade",
           "orchid": "weekly, from below", "tomato": "daily, full sun",
           "monstera": "every 9 days, bright but no sun", "lavender": "every 12 days, full sun",
           "aloe": "every 2 weeks, full sun", "mint": "daily, half shade"}  # fmt: skip


def _plant(text: str) -> str | None:
    name = next((p for p in _PLANTS if p in text.lower()), None)
    return f"{name.title()}: {_PLANTS[name]}." if name else None


def _leap(text: str) -> str | None:
    found = re.search(r"\b\d{4}\b", text)
    if not found:
        return None
    year = int(found[0])
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return f"{year} {'is' if leap else 'is not'} a leap year; February has {28 + leap} days."


def _isbn(text: str) -> str | None:
    found = re.search(r"\d{3}-?(?:\d-?){9}", text)
    if not found:
        return None
    body = re.sub(r"\D", "", found[0])[:12]
    check = -sum(int(d) * (1 + 2 * (n % 2)) for n, d in enumerate(body)) % 10
    return f"The check digit is {check}: {body}{check}"


TRADES = {
    "roman": Trade("Roman numerals", "Turns numbers into Roman numerals and back.",
                   ("Write 1987 in Roman numerals", "What is XLII?", "MMXXVI"), _roman, "number"),
    "morse": Trade("Morse key", "Spells a word in Morse code.",
                   ("Morse code for 'lantern'", "How do I key 'harbour'?"), _morse, "word"),
    "spelling": Trade("Radio spelling", "Spells a word as radio operators do, by NATO's list.",
                      ("Spell 'kiwi' for the radio", "Spell 'quartz'"), _spelling, "word"),
    "pace": Trade("Running pace", "Pace per kilometre from a distance and a time.",
                  ("10 km in 52 min", "21.1 km in 110 min"), _pace, "run"),
    "bits": Trade("Number bases", "Writes a number in binary, octal and hexadecimal.",
                  ("What is 300 in hex?", "77 in binary"), _bits, "number"),
    "vat": Trade("Sales tax in Europe", "Adds a country's standard rate to a net amount.",
                 ("120 net in Spain", "Rate in Sweden?"), _vat, "amount"),
    "planet": Trade("Orrery", "Distance from the Sun and length of the year of each planet.",
                    ("How far away is Saturn?", "How long is a year on Mars?"), _planet, "planet"),
    "plant": Trade("Watering can", "How often and where a house plant wants to be watered.",
                   ("How often do I water a fern?", "Where does an orchid like to stand?"),
                   _plant, "plant"),
    "leap": Trade("Calendar oddities", "Whether a year is a leap year.",
                  ("Is 2100 a leap year?", "February 2028"), _leap, "year"),
    "isbn": Trade("Book numbers", "The check digit of an ISBN of thirteen digits.",
                  ("Check digit for 978-0-306-40615", "978316148410"), _isbn, "isbn"),
}  # fmt: skip
