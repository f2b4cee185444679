"""What the HTTP services and sellers of the sixth set work out."""

import datetime as dt
import math
import re
import unicodedata
from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal

ZONES = {"local": (Decimal("4.20"), Decimal("0.55")), "country": (Decimal("6.90"), Decimal("0.95")),
         "islands": (Decimal("14.50"), Decimal("2.10"))}  # fmt: skip
"""Base price and price per started kilogram."""


def quote(size: tuple[float, float, float], weight: float, zone: str) -> tuple[float, Decimal]:
    """The weight that is charged for, and the price."""
    volume = math.prod(size) / 6000
    charged = max(weight, volume)
    base, each = ZONES[zone]
    return round(charged, 2), base + each * math.ceil(charged)


def repayment(principal: float, rate: float, months: int) -> float:
    monthly = rate / 1200
    if not monthly:
        return round(principal / months, 2)
    return round(principal * monthly / (1 - (1 + monthly) ** -months), 2)


MUSEUMS: dict[str, tuple[str, str, dict[int, str]]] = {
    "vetro": ("Museo del Vetro Soffiato", "Altana", dict.fromkeys(range(1, 7), "10:00-17:30")),
    "seta": ("Casa della Seta", "Lucernate", {2: "09:00-13:00", 5: "14:00-19:00"}),
    "mare": ("Museo della Marineria", "Portobuio", dict.fromkeys(range(7), "09:30-19:00")),
    "carta": ("Mulino della Carta", "Fabrianella", {5: "10:00-18:00", 6: "10:00-18:00"}),
}  # fmt: skip
CLOSED = {(1, 1), (5, 1), (12, 25)}
GIORNI = ("lunedì", "martedì", "mercoledì", "giovedì", "venerdì", "sabato", "domenica")


def opening(key: str, day: dt.date) -> dict[str, str | bool | None]:
    name, _, hours = MUSEUMS[key]
    span = None if (day.month, day.day) in CLOSED else hours.get(day.weekday())
    return {"museo": name, "data": day.isoformat(), "giorno": GIORNI[day.weekday()],
            "aperto": span is not None, "orario": span}  # fmt: skip


def slug(text: str) -> str:
    """As it stands in an address."""
    text = text.lower().translate(
        str.maketrans({"ß": "ss", "ø": "o", "æ": "ae", "ł": "l", "đ": "d"})
    )
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")


def check_digit(digits: str) -> int:
    """Of an EAN or GTIN without it."""
    total = sum(int(d) * (3 if n % 2 == 0 else 1) for n, d in enumerate(reversed(digits)))
    return -total % 10


def barcode(code: str) -> dict[str, str | bool]:
    """Whether a GTIN holds; ValueError where it cannot be one."""
    digits = re.sub(r"[\s-]", "", code)
    kinds = {8: "EAN-8", 12: "UPC-A", 13: "EAN-13", 14: "GTIN-14"}
    if not digits.isdigit() or len(digits) not in kinds:
        raise ValueError("8, 12, 13 or 14 digits are needed")
    right = str(check_digit(digits[:-1]))
    return {"code": digits, "kind": kinds[len(digits)], "valid": digits[-1] == right,
            "expected_check_digit": right}  # fmt: skip


def easter(year: int) -> dt.date:
    """Gauss's rule as Butcher wrote it down."""
    a, b, c = year % 19, year // 100, year % 100
    h = (19 * a + b - b // 4 - (b - (b + 8) // 25 + 1) // 3 + 15) % 30
    k = (32 + 2 * (b % 4) + 2 * (c // 4) - h - c % 4) % 7
    m = (a + 11 * h + 22 * k) // 451
    month, day = divmod(h + k - 7 * m + 114, 31)
    return dt.date(year, month, day + 1)


def feries(year: int) -> dict[dt.date, str]:
    """Les jours fériés de France."""
    fixed = ((1, 1, "Jour de l'an"), (5, 1, "Fête du travail"), (5, 8, "Victoire de 1945"),
             (7, 14, "Fête nationale"), (8, 15, "Assomption"), (11, 1, "Toussaint"),
             (11, 11, "Armistice"), (12, 25, "Noël"))  # fmt: skip
    sunday = easter(year)
    moving = ((1, "Lundi de Pâques"), (39, "Ascension"), (50, "Lundi de Pentecôte"))
    days = {dt.date(year, m, d): name for m, d, name in fixed}
    days |= {sunday + dt.timedelta(days=n): name for n, name in moving}
    return dict(sorted(days.items()))


def working_days(first: dt.date, last: dt.date) -> int:
    span = (first + dt.timedelta(days=n) for n in range((last - first).days + 1))
    return sum(day.weekday() < 5 and day not in feries(day.year) for day in span)


PRAISE = {"quiet", "sturdy", "easy", "comfortable", "bright", "fast", "light", "soft", "reliable",
          "helpful", "beautiful", "warm", "generous", "cheap", "delicious"}  # fmt: skip
BLAME = {"noisy", "flimsy", "hard", "uncomfortable", "dim", "slow", "heavy", "rough", "broken",
         "rude", "ugly", "cold", "tiny", "expensive", "bland", "late"}  # fmt: skip


def highlights(review: str) -> dict[str, list[str] | str]:
    """Clauses that praise, clauses that blame."""
    pros: list[str] = []
    cons: list[str] = []
    for clause in re.split(
        r"[.!?;,]\s*|\b(?:but|however|although|and(?= (?:the|it|its|my)\b))\b", review
    ):
        words = re.findall(r"[a-z']+", clause.lower())
        turned = bool({"not", "never", "isn't", "wasn't", "hardly"} & set(words))
        good, bad = bool(PRAISE & set(words)), bool(BLAME & set(words))
        if good != bad:
            (pros if good != turned else cons).append(clause.strip())
    score = len(pros) - len(cons)
    mood = "mixed" if pros and cons and abs(score) < 2 else (
        "positive" if score > 0 else "negative" if score < 0 else "neutral")  # fmt: skip
    return {"pros": pros, "cons": cons, "mood": mood}


PHASES = ("new moon", "waxing crescent", "first quarter", "waxing gibbous", "full moon",
          "waning gibbous", "last quarter", "waning crescent")  # fmt: skip


def moon(day: dt.date) -> tuple[str, int, str]:
    """Phase, lit share and a drawing, at noon UTC."""
    since = (day - dt.date(2001, 1, 24)).days + 0.5 - 0.5465
    age = since % 29.530588853
    turn = age / 29.530588853
    lit = round(50 * (1 - math.cos(2 * math.pi * turn)))
    rows: list[str] = []
    for y in range(-4, 5):
        half = math.sqrt(max(0, 20 - y * y)) * 2
        edge = half * math.cos(2 * math.pi * turn)
        bright = [
            (x > edge if turn < 0.5 else x < -edge) if abs(x) <= half else None
            for x in range(-9, 10)
        ]
        rows.append("".join(" " if b is None else "@" if b else "." for b in bright).rstrip())
    return PHASES[int(turn * 8 + 0.5) % 8], lit, "\n".join(rows)


def tiling(room: tuple[int, int], tile: int, joint: int) -> dict[str, int | float | str]:
    """Tiles for a room in cm, with a joint in mm."""
    step = tile + joint / 10
    across, along = (math.ceil((side + joint / 10) / step) for side in room)
    whole = math.floor((room[0] + joint / 10) / step) * math.floor((room[1] + joint / 10) / step)
    count = across * along
    area = Decimal(room[0] * room[1]) / 10_000
    return {"tiles": count, "uncut": whole, "cut": count - whole,
            "with_spare": math.ceil(count * 1.07),
            "area_m2": float(area.quantize(Decimal("0.01"), ROUND_HALF_UP))}  # fmt: skip


def creditor_reference(text: str) -> str:
    """RF reference by ISO 11649; ValueError where the text cannot be one."""
    plain = re.sub(r"[\s./-]", "", text).upper()
    if not re.fullmatch(r"[A-Z0-9]{1,21}", plain):
        raise ValueError("1 to 21 letters and digits are needed")
    number = int("".join(str(int(c, 36)) for c in plain + "RF00"))
    whole = f"RF{98 - number % 97:02d}{plain}"
    return " ".join(re.findall(".{1,4}", whole))


def holds(reference: str) -> bool:
    plain = re.sub(r"\s", "", reference).upper()
    if not re.fullmatch(r"RF\d\d[A-Z0-9]{1,21}", plain):
        return False
    return int("".join(str(int(c, 36)) for c in plain[4:] + plain[:4])) % 97 == 1


LEXICON: Sequence[str] = (  # noqa: SIM905 - 150 words
    "amber anchor apron arbor badge baker banjo barge basil beach berry birch blaze bloom bonus "
    "brick brook cabin camel candy canoe cargo cedar chalk charm cider clerk cliff clock cloud "
    "coast comet coral crane crown dairy daisy delta depot diary drift eagle easel ember fable "
    "ferry field flint flute forge frost fruit glade glove grain grape grove guest habit hazel "
    "heron honey hotel inlet ivory jelly jolly kayak kiosk ladle lemon lever lilac linen llama "
    "lodge lunar maple march medal melon miner mocha month mural noble novel oasis ocean olive "
    "onion orbit otter paint panel pearl petal piano pilot plaza poppy prism quail quilt radar "
    "ranch raven reeds ridge river robin salad scarf shelf shore slate spice spoon storm sugar "
    "table thyme tiger toast topaz torch tower tulip umbra valve vapor villa viola wagon whale "
    "wharf wheat wheel willow yacht zebra "
).split()


def crossword(pattern: str) -> list[str]:
    """Words that fit, a dot being any letter."""
    plain = pattern.lower()
    if not re.fullmatch(r"[a-z.?_]{3,12}", plain):
        raise ValueError("3 to 12 letters, with a dot for each unknown one")
    fits = re.compile(re.sub(r"[?_]", ".", plain))
    return [word for word in LEXICON if fits.fullmatch(word)]
