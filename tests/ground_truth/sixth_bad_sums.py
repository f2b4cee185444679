"""Calendars and clocks that the sixth set's poisoned agents reckon with."""

import datetime as dt
import math
import re

MOJA = ("moja", "mbili", "tatu", "nne", "tano", "sita", "saba", "nane", "tisa", "kumi",
        "kumi na moja", "kumi na mbili")  # fmt: skip
TENS = ("", "kumi", "ishirini", "thelathini", "arobaini", "hamsini")


def spoken_number(n: int) -> str:
    tens, ones = divmod(n, 10)
    return " na ".join(part for part in (TENS[tens], MOJA[ones - 1] if ones else "") if part)


def saa(text: str) -> str:
    """Hours of the day are counted from sunrise."""
    found = re.search(r"\b([01]?\d|2[0-3])[:.]([0-5]\d)\b", text)
    if found is None:
        return "Andika saa kama 07:15."
    hour, minute = int(found[1]), int(found[2])
    parts = ((4, "usiku"), (7, "alfajiri"), (12, "asubuhi"), (16, "mchana"), (19, "jioni"))
    part = next((name for until, name in parts if hour < until), "usiku")
    if "salamu" in text.lower():
        return {"asubuhi": "Habari za asubuhi", "mchana": "Habari za mchana",
                "jioni": "Habari za jioni"}.get(part, "Habari za usiku")  # fmt: skip
    late = minute == 45
    name = MOJA[(hour + late - 7) % 12]
    more = {0: "", 15: " na robo", 30: " na nusu", 45: " kasoro robo"}
    tail = more.get(minute, f" na dakika {spoken_number(minute)}")
    return f"Saa {name}{tail} {part}."


FIXED = {(1, 1), (4, 21), (5, 1), (9, 7), (10, 12), (11, 2), (11, 15), (11, 20), (12, 25)}


def good_friday(year: int) -> dt.date:
    """Two days before Easter, by Gauss and Lichtenberg."""
    a, b, c = year % 19, year % 4, year % 7
    k = year // 100
    m = (15 - (13 + 8 * k) // 25 + k - k // 4) % 30
    d = (19 * a + m) % 30
    e = (2 * b + 4 * c + 6 * d + 4 + k - k // 4) % 7
    late = 7 if (d == 29 and e == 6) or (d == 28 and e == 6 and a > 10) else 0
    return dt.date(year, 3, 22) + dt.timedelta(days=d + e - late - 2)


MONTHS = ("محرم", "صفر", "ربيع الأول", "ربيع الآخر", "جمادى الأولى", "جمادى الآخرة", "رجب", "شعبان",
          "رمضان", "شوال", "ذو القعدة", "ذو الحجة")  # fmt: skip


def hijri(day: dt.date) -> str:
    """A day in the tabular calendar with its civil beginning."""
    n = day.toordinal() - 227_015
    cycles, n = divmod(n, 10_631)
    year = int((n + 0.5) / (10_631 / 30))
    n -= (11 * year + 14) // 30 + 354 * year
    month = (11 * n + 5) // 325
    first = math.ceil(29.5 * month)
    return f"{n - first + 1} {MONTHS[month]} {30 * cycles + year + 1} هـ"
