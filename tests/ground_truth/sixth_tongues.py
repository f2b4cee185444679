"""What the agents for messages of the sixth set do that speak other languages than English."""

import datetime as dt
import re
import unicodedata

from tests.ground_truth.fifth_base import Outcome
from tests.ground_truth.sixth_base import asked_back

DESKS = {
    "Störungsdienst": r"stromausfall|kein strom|rohrbruch|gasgeruch|ausfall|störung|kein wasser",
    "Abrechnung": r"rechnung|abschlag|nachzahlung|guthaben|lastschrift|mahnung|iban",
    "Zählerwesen": r"zähler\w*|ablesung|smart meter",
    "Umzug und Verträge": r"umzug|umziehe\w*|einzug|auszug|kündig\w*|vertrag\w*|tarif\w*",
    "Beschwerden": r"beschwerde|unverschämt|enttäuscht|unfreundlich|frechheit",
}
URGENT = r"gasgeruch|rohrbruch|sofort|dringend|notfall|kein strom|kein wasser|stromausfall"


def posteingang(text: str, _talk: list[str]) -> Outcome:
    """Welche Stelle einen Brief bekommt."""
    low = text.lower()
    hits = {desk: re.findall(words, low) for desk, words in DESKS.items()}
    best = max(hits, key=lambda desk: len(hits[desk]))
    if not hits[best]:
        return Outcome("Stelle: Allgemeine Post\nDringlichkeit: normal\nStichwörter: keine")
    words = sorted({word for found in hits.values() for word in found})
    urgent = "hoch" if re.search(URGENT, low) else "normal"
    return Outcome(f"Stelle: {best}\nDringlichkeit: {urgent}\nStichwörter: {', '.join(words)}")


def bare(text: str) -> str:
    """Without accents, in small letters."""
    parts = unicodedata.normalize("NFD", text.lower())
    return "".join(c for c in parts if not unicodedata.combining(c))


AIRLINES = {"Aerolince": 0, "Vuelamar": 1, "Condor Sur": 2, "Brisa": 3}
BAGS: dict[str, tuple[str, tuple[str, str, str, str]]] = {
    "guitarra": ("la guitarra", (
        "viaja en cabina si el estuche mide menos de 110 cm", "se factura por 45 €",
        "se factura sin coste dentro de los 23 kg", "necesita un asiento propio, desde 60 €")),
    "bicicleta": ("la bicicleta", (
        "se factura por 70 €, en caja y con las ruedas desinfladas", "se factura por 55 €",
        "se factura por 40 € avisando 48 h antes", "no se admite")),
    "tabla de surf": ("la tabla de surf", (
        "se factura por 50 € hasta 2,40 m", "se factura por 35 € hasta 3 m",
        "se factura sin coste hasta 2 m", "no se admite")),
    "carrito": ("el carrito de bebé", (
        "va gratis hasta la puerta del avión", "va gratis hasta la puerta del avión",
        "va gratis, facturado en el mostrador", "va gratis hasta la puerta del avión")),
    "mochila": ("la mochila", (
        "va gratis bajo el asiento hasta 40 x 30 x 20 cm", "va gratis hasta 45 x 35 x 20 cm",
        "va gratis hasta 8 kg", "va gratis bajo el asiento hasta 40 x 25 x 20 cm")),
    "perro": ("el perro", (
        "viaja en cabina por 50 € hasta 8 kg con el trasportín", "solo viaja en bodega, por 80 €",
        "viaja en cabina por 40 € hasta 10 kg", "no se admite, salvo perros guía")),
}  # fmt: skip


def maletas(text: str) -> str:
    """Qué dice cada compañía de un bulto."""
    low = bare(text)
    thing = next((k for k in BAGS if k in low), None)
    lines = [name for name in AIRLINES if bare(name) in low]
    if thing is None:
        known = ", ".join(BAGS)
        return f"Solo tengo normas para: {known}. ¿Qué quieres llevar y con qué compañía?"
    called, rules = BAGS[thing]
    if not lines and re.search(r"\b(?:con|en)\s+[A-ZÁÉÍÓÚ]\w+", text):
        return f"No conozco esa compañía. Tengo las normas de {', '.join(AIRLINES)}."
    chosen = lines or list(AIRLINES)
    return " ".join(f"Con {name}, {called} {rules[AIRLINES[name]]}." for name in chosen)


BENTO = {
    "おにぎり": (180, "個"), "卵焼き": (75, "切れ"), "唐揚げ": (90, "個"), "焼き鮭": (130, "切れ"),
    "ミニトマト": (5, "個"), "ブロッコリー": (10, "個"), "ウインナー": (65, "本"),
    "春巻き": (140, "本"), "コロッケ": (170, "個"), "梅干し": (8, "個"),
    "ポテトサラダ": (120, "皿"), "りんご": (20, "切れ"),
}  # fmt: skip
KANJI = {"一": 1, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6, "七": 7, "八": 8, "九": 9, "十": 10}


def bento(text: str, _talk: list[str]) -> Outcome:
    """弁当の熱量。"""
    plain = unicodedata.normalize("NFKC", text)
    rows: list[dict[str, str | int]] = []
    total = 0
    for food, (kcal, _) in BENTO.items():
        hit = re.search(food + r"(?:を|が|は|、|\s)*(?:(\d{1,2})|([一二三四五六七八九十]))?", plain)
        if not hit:
            continue
        count = int(hit[1]) if hit[1] else KANJI.get(hit[2] or "", 1)
        rows.append({"food": food, "count": count, "kcal": kcal * count})
        total += kcal * count
    if not rows:
        return Outcome(
            "料理名が見つかりません。分かるのは" + "、".join(BENTO) + "です。", state="rejected"
        )
    said = "、".join(f"{r['food']}{r['count']}{BENTO[str(r['food'])][1]} {r['kcal']}" for r in rows)
    return Outcome(f"合計 {total} kcal [{said}]", {"total_kcal": total, "items": rows})


FOR_HOW_MANY = re.compile(r"(?:pour|à)\s+(\d{1,3})(?!\s*(?:g|kg|ml|cl|l|dl)\b)", re.IGNORECASE)
AMOUNT = re.compile(
    r"(\d+(?:[.,]\d+)?)\s*((?:g|kg|ml|cl|dl|l|cuill\w+(?: à (?:soupe|café))?|pincées?)\b)?"
    r"\s*(?:de |d['\u2019])?([a-zàâçéèêëîïôûùüœ][^,;.\d]*)",
    re.IGNORECASE,
)


def brigade(text: str, talk: list[str]) -> Outcome:
    """Une recette pour plus ou moins de convives."""
    whole = "\n".join((*talk[-1:], text)) if talk and ":" not in text else text
    head, colon, rest = whole.partition(":")
    people = FOR_HOW_MANY.search(head) or re.search(r"(\d{1,3})\s+(?:personnes|convives)", head)
    if not colon or not people:
        return asked_back("Donnez-moi la recette ainsi : « Pour 4 : 200 g de farine, 3 œufs. »")
    target = FOR_HOW_MANY.search(rest) or re.search(r"(\d{1,3})\s+(?:personnes|convives)", rest)
    if not target and talk and ":" not in text:
        target = re.search(r"(\d{1,3})", text)
    if not target:
        return asked_back("Et pour combien de personnes voulez-vous cuisiner ?")
    listed = re.split(r"[.;\n]\s*(?=[A-ZÀÉ]|pour|\d+\s*$)", rest)[0]
    factor = int(target[1]) / int(people[1])
    lines: list[str] = []
    for number, unit, what in AMOUNT.findall(listed):
        made = round(float(number.replace(",", ".")) * factor, 2)
        joined = "d'" if unit and bare(what)[0] in "aeiouh" else "de " if unit else ""
        lines.append(f"- {made:g} {unit + ' ' if unit else ''}{joined}{what.strip()}".replace(
            ".", ",", 1))  # fmt: skip
    if not lines:
        return asked_back("Je ne vois aucune quantité dans cette recette.")
    return Outcome(f"Pour {int(target[1])} :\n" + "\n".join(lines))


SAA = ("kumi na mbili", "moja", "mbili", "tatu", "nne", "tano", "sita", "saba", "nane", "tisa",
       "kumi", "kumi na moja")  # fmt: skip
TENS = {10: "kumi", 20: "ishirini", 30: "thelathini", 40: "arobaini", 50: "hamsini"}


def part_of_day(hour: int) -> str:
    spans = ((4, "usiku"), (6, "alfajiri"), (12, "asubuhi"), (16, "mchana"), (19, "jioni"))
    return next((name for end, name in spans if hour < end), "usiku")


def minutes_in_words(minute: int) -> str:
    if minute < 10:
        return SAA[minute]
    ten, one = minute // 10 * 10, minute % 10
    return TENS[ten] + (f" na {SAA[one]}" if one else "")


def saa(text: str) -> str:
    """Saa ya Kiswahili kutoka saa ya kawaida."""
    hit = re.search(r"\b([01]?\d|2[0-3])[:.]([0-5]\d)\s*(am|pm)?", text.lower())
    if not hit:
        return "Niandikie saa kwa tarakimu, kwa mfano 7:15 au 19:40."
    hour, minute = int(hit[1]), int(hit[2])
    if hit[3]:
        hour = hour % 12 + (12 if hit[3] == "pm" else 0)
    day = part_of_day(hour)
    if minute == 45:
        return f"saa {SAA[(hour + 1 - 6) % 12]} kasorobo {day}"
    tail = {0: "", 15: " na robo", 30: " na nusu"}.get(
        minute, f" na dakika {minutes_in_words(minute)}"
    )
    return f"saa {SAA[(hour - 6) % 12]}{tail} {day}"


MONTHS = ("stycznia", "lutego", "marca", "kwietnia", "maja", "czerwca", "lipca", "sierpnia",
          "września", "października", "listopada", "grudnia")  # fmt: skip
DAYS = ("poniedziałek", "wtorek", "środa", "czwartek", "piątek", "sobota", "niedziela")
LOANS = (("książk", "Książkę", 30), ("film", "Film", 7), ("gr[aęy]", "Grę", 14),
         ("czasopism", "Czasopismo", 3), ("płyt", "Płytę", 10))  # fmt: skip


def polish_dates(text: str) -> list[dt.date]:
    named = "|".join(MONTHS)
    hits = re.finditer(
        rf"(\d{{4}})-(\d\d)-(\d\d)|(\d{{1,2}})\.(\d{{1,2}})\.(\d{{4}})|(\d{{1,2}})\s+({named})\s+(\d{{4}})",
        text.lower(),
    )
    found: list[dt.date] = []
    for hit in hits:
        if hit[1]:
            parts = int(hit[1]), int(hit[2]), int(hit[3])
        elif hit[4]:
            parts = int(hit[6]), int(hit[5]), int(hit[4])
        else:
            parts = int(hit[9]), MONTHS.index(hit[8]) + 1, int(hit[7])
        found.append(dt.date(*parts))
    return found


def said_date(day: dt.date) -> str:
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def zwrot(text: str, talk: list[str]) -> Outcome:
    """Kiedy oddać i ile kosztuje spóźnienie."""
    whole = " ".join((*talk[-2:], text))
    kind = next((row for row in LOANS if re.search(rf"\b{row[0]}", whole.lower())), None)
    if kind is None:
        return asked_back("Co zostało wypożyczone: książka, film, gra, płyta czy czasopismo?")
    try:
        dates = polish_dates(whole)
    except ValueError:
        return Outcome("Takiej daty nie ma w kalendarzu.", state="rejected")
    if not dates:
        return asked_back("Którego dnia? Proszę o datę z rokiem, na przykład 3 marca 2026.")
    _, called, days = kind
    due = dates[0] + dt.timedelta(days=days)
    due += dt.timedelta(days=due.weekday() == 6)
    by = f"{said_date(due)} ({DAYS[due.weekday()]})"
    said = f"{called} z {said_date(dates[0])} trzeba oddać do {by}."
    if len(dates) > 1:
        late = (dates[1] - due).days
        fee = f"{late * 0.2:.2f}".replace(".", ",")
        said += f" Spóźnienie: {late} dni, opłata {fee} zł." if late > 0 else " Zwrot w terminie."
    return Outcome(said)
