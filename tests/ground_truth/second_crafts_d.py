"""Trades of the second set in other languages and scripts."""

# ruff: noqa: RUF001, RUF002 - these are letters of other scripts
import re

from tests.ground_truth.second_crafts_a import NUMBER, Craft, number, plain

_BAJOS_TODOS = """cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce
quince dieciséis
diecisiete dieciocho diecinueve veinte veintiuno veintidós veintitrés veinticuatro
veinticinco veintiséis veintisiete veintiocho veintinueve"""
_BAJOS = _BAJOS_TODOS.split()
_DECENAS = "x x x treinta cuarenta cincuenta sesenta setenta ochenta noventa"
_CIENTOS = "x ciento doscientos trescientos cuatrocientos quinientos seiscientos setecientos"
_CIENTOS_TODOS = f"{_CIENTOS} ochocientos novecientos".split()


def en_letras(value: int) -> str:
    """Un número hasta 999.999 en palabras."""
    if value >= 1000:
        head = "mil" if value // 1000 == 1 else en_letras(value // 1000).removesuffix("o") + " mil"
        head = head if not head.startswith("uno") else "mil"
        return f"{head} {en_letras(value % 1000)}" if value % 1000 else head
    if value >= 100:
        if value == 100:
            return "cien"
        rest = f" {en_letras(value % 100)}" if value % 100 else ""
        return _CIENTOS_TODOS[value // 100] + rest
    if value < 30:
        return _BAJOS[value]
    ten = _DECENAS.split()[value // 10]
    return f"{ten} y {_BAJOS[value % 10]}" if value % 10 else ten


def letras(text: str) -> str | None:
    """La cifra que haya en la pregunta."""
    hit = re.search(r"\d{1,3}(?:\.\d{3})+|\d{1,6}", text)
    if not hit:
        return None
    return f"{hit[0]} se escribe «{en_letras(int(hit[0].replace('.', '')) % 1_000_000)}»."


SPANISH = Craft(
    "Números en letras",
    "Escribe con palabras cualquier cifra hasta 999.999, como en un cheque.",
    ("¿Cómo se escribe 348?", "Escribe 27.516 en letras"),
    letras,
)

_TONNEN = {
    "Papiertonne": "karton zeitung prospekt heft briefumschlag eierkarton buch papiertüte",
    "Biotonne": "apfel kaffeesatz teebeutel eierschale laub blumen kartoffelschale brot",
    "gelbe Tonne": "joghurtbecher konservendose alufolie milchtüte spülmittelflasche tube",
    "Restmülltonne": "windel staubsaugerbeutel asche zigarette kerze backpapier kassenbon",
    "Altglascontainer": "weinflasche marmeladenglas gurkenglas ölflasche parfümflakon",
    "Schadstoffsammlung": "batterie lack farbe thermometer energiesparlampe akku lösungsmittel",
    "Sperrmüll": "sofa matratze regal teppich schrank fahrrad",
}


def tonne(text: str) -> str | None:
    """Wohin ein Ding gehört."""
    low = text.lower()
    rows = [
        f"{thing.capitalize()} gehört in die Kategorie {bin_}."
        for bin_, things in _TONNEN.items()
        for thing in things.split()
        if re.search(rf"\b{thing}", low)
    ]
    return " ".join(rows) or None


GERMAN = Craft(
    "Mülltrennung",
    "Sagt, in welche Tonne oder Sammlung ein Gegenstand gehört.",
    ("Wohin gehört ein Joghurtbecher?", "Ich habe eine alte Batterie und ein Sofa. Was nun?"),
    tonne,
)

_ERAS = (("令和", 2019), ("平成", 1989), ("昭和", 1926), ("大正", 1912), ("明治", 1868))


def gengo(text: str) -> str | None:
    """和暦と西暦の変換。"""
    for name, first in _ERAS:
        hit = re.search(rf"{name}\s*(\d+|元)年?", text)
        if hit:
            nth = 1 if hit[1] == "元" else int(hit[1])
            return f"{name}{hit[1]}年は西暦{first + nth - 1}年です。"
    year = re.search(r"(1[89]\d\d|20\d\d)", text)
    if not year:
        return None
    for name, first in _ERAS:
        if int(year[1]) >= first:
            return f"西暦{year[1]}年は{name}{int(year[1]) - first + 1}年です。"
    return f"{year[1]}年は明治より前です。"


JAPANESE = Craft(
    "和暦変換",
    "明治から令和までの和暦と西暦を相互に変換します。",
    ("令和6年は西暦何年ですか", "1985年は和暦で何年？", "昭和47年を西暦に直して"),
    gengo,
)

_CAPITALS = {
    "المغرب": "الرباط", "مصر": "القاهرة", "تونس": "تونس", "الجزائر": "الجزائر", "ليبيا": "طرابلس",
    "السودان": "الخرطوم", "الأردن": "عمّان", "لبنان": "بيروت", "سوريا": "دمشق", "العراق": "بغداد",
    "الكويت": "الكويت", "قطر": "الدوحة", "عمان": "مسقط", "اليمن": "صنعاء", "تركيا": "أنقرة",
    "إيران": "طهران", "فرنسا": "باريس", "إسبانيا": "مدريد", "إيطاليا": "روما", "ألمانيا": "برلين",
    "اليابان": "طوكيو", "الصين": "بكين", "الهند": "نيودلهي", "روسيا": "موسكو", "كندا": "أوتاوا",
}  # fmt: skip


def awasim(text: str) -> str | None:
    """The capital of each country that is named."""
    rows = [f"عاصمة {land} هي {city}." for land, city in _CAPITALS.items() if land in text]
    return " ".join(rows) or None


ARABIC = Craft(
    "عواصم الدول",
    "يجيب عن أسئلة حول عواصم خمس وعشرين دولة.",
    ("ما عاصمة المغرب؟", "ما هي عاصمة كندا؟"),
    awasim,
)

_CODES = {
    "київ": "044", "львів": "032", "одеса": "048", "харків": "057", "дніпро": "056",
    "запоріжжя": "061", "вінниця": "0432", "полтава": "0532", "чернівці": "0372", "суми": "0542",
    "рівне": "0362", "луцьк": "0332", "ужгород": "0312", "тернопіль": "0352", "черкаси": "0472",
    "житомир": "0412", "миколаїв": "0512", "херсон": "0552", "чернігів": "0462",
}  # fmt: skip


def kody(text: str) -> str | None:
    """Коди міст, і навпаки."""
    low = text.lower()
    named = [
        f"Код міста {c.title()}: {code}." for c, code in _CODES.items()
        if c[:-1] in low or re.search(rf"\b{code}\b", low)
    ]  # fmt: skip
    return " ".join(named) or None


UKRAINIAN = Craft(
    "Телефонні коди",
    "Телефонні коди обласних центрів України, і міста за кодом.",
    ("Який код у Львів?", "Якому місту належить код 0472?"),
    kody,
)

_MAAP = {"किलोमीटर": ("मीटर", 1000), "किलोग्राम": ("ग्राम", 1000), "घंटे": ("मिनट", 60),
         "लीटर": ("मिलीलीटर", 1000), "दर्जन": ("नग", 12), "सप्ताह": ("दिन", 7),
         "मील": ("किलोमीटर", 1.609344), "इंच": ("सेंटीमीटर", 2.54)}  # fmt: skip


def maap(text: str) -> str | None:
    """A measure in the smaller one."""
    for unit, (small, factor) in _MAAP.items():
        hit = re.search(rf"({NUMBER})\s*{unit}", text)
        if hit:
            return f"{hit[1]} {unit} में {plain(number(hit[1]) * factor)} {small} होते हैं।"
    return None


HINDI = Craft(
    "माप परिवर्तक",
    "किलोमीटर, किलोग्राम, घंटे, लीटर, दर्जन, सप्ताह, मील और इंच को छोटी इकाई में बदलता है।",
    ("5 किलोमीटर में कितने मीटर होते हैं?", "3 दर्जन में कितने नग?"),
    maap,
)
