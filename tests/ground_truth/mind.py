"""Something that behaves as a language model does in these agents: it reads, counts and answers."""

import re
from collections.abc import Callable

from tests.ground_truth.knowledge import DOMAINS, pick

UNITS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    "nineteen",
)
TENS = (*("_", "_", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"),)
SMALL_WORDS = frozenset(
    re.findall(
        r"\w+",
        "a about an and are as at be by can could do does for from give how i in is it me my of on"
        " please or say tell that the their this to us was what we where which when why who with"
        " would you your",
    )
)
_NUMBER = r"(-?\d+(?:[.,]\d+)?)"
_OPERATIONS: tuple[tuple[str, Callable[[float, float], float]], ...] = (
    (rf"sum of {_NUMBER} and {_NUMBER}", lambda a, b: a + b),
    (rf"add {_NUMBER} (?:and|to) {_NUMBER}", lambda a, b: a + b),
    (rf"{_NUMBER} (?:\+|plus|added to) {_NUMBER}", lambda a, b: a + b),
    (rf"product of {_NUMBER} and {_NUMBER}", lambda a, b: a * b),
    (rf"multiply {_NUMBER} (?:by|with|and) {_NUMBER}", lambda a, b: a * b),
    (rf"{_NUMBER} (?:\*|x|\u00d7|times|multiplied by) {_NUMBER}", lambda a, b: a * b),
    (rf"difference (?:between|of) {_NUMBER} and {_NUMBER}", lambda a, b: abs(a - b)),
    (rf"subtract {_NUMBER} from {_NUMBER}", lambda a, b: b - a),
    (rf"{_NUMBER} (?:-|\u2212|minus|less) {_NUMBER}", lambda a, b: a - b),
    (rf"divide {_NUMBER} by {_NUMBER}", lambda a, b: a / b if b else 0),
    (rf"{_NUMBER} (?:/|\u00f7|divided by|over) {_NUMBER}", lambda a, b: a / b if b else 0),
)
SALIENT = re.compile(
    r"""(?:["\u201c'\u00ab]{1,3}|```\w*)(?P<quoted>.{8,}?)"""
    r"""(?:["\u201d'\u00bb]{1,3}|```)(?:\s|$|[.?!])""",
    re.DOTALL,
)


def spelled_out(text: str) -> str:
    """Numbers in words become digits: `forty-two` is 42."""

    def value(match: re.Match[str]) -> str:
        total, current = 0, 0
        for word in re.split(r"[\s-]+", match.group().lower()):
            if word in UNITS:
                current += UNITS.index(word)
            elif word in TENS:
                current += TENS.index(word) * 10
            elif word == "hundred":
                current = max(current, 1) * 100
            elif word == "thousand":
                total, current = total + max(current, 1) * 1000, 0
        return str(total + current)

    names = "|".join([*UNITS[::-1], *TENS[2:], "hundred", "thousand"])
    pattern = rf"\b(?:{names})(?:(?:[\s-]|\sand\s)(?:{names}))*\b"
    return re.sub(pattern, value, text, flags=re.IGNORECASE)


def calculate(text: str) -> str | None:
    """The result of one operation that the text asks for."""
    digits = spelled_out(text).lower()
    for pattern, work in _OPERATIONS:
        found = re.search(pattern, digits)
        if found:
            value = work(*(float(n.replace(",", "")) for n in found.groups()))
            return f"{value:.0f}" if value == int(value) else f"{value:.4f}"
    return None


def divided(text: str) -> tuple[str, str]:
    """What is asked, and the material it is asked about."""
    quoted = SALIENT.search(text)
    if quoted:
        rest = text[: quoted.start()] + " " + text[quoted.end() :]
        return rest, quoted["quoted"].strip()
    head, colon, tail = text.partition(":\n" if ":\n" in text else "\n" if "\n" in text else ": ")
    return (head, tail.strip()) if colon and tail.strip() else (text, "")


def listed(text: str) -> list[str]:
    """The items of a list in the text."""
    parts = [p.strip(" .;\"'") for p in re.split(r"[,;\n]|\band\b", text)]
    return [p for p in parts if p and len(p) < 60]


def _pattern_asked(asked: str) -> str | None:
    kinds = (
        (r"e-?mail", r"[\w.+-]+@[\w-]+\.[\w.]+"),
        (r"\b(?:url|link|web ?address)", r"https?://\S+"),
        (r"\bdate", r"\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4}|\d{1,2} [A-Z][a-z]+ \d{4}"),
        (r"\b(?:price|amount|total|cost)",
         r"[$€£]\s?[\d.,]+\d|[\d.,]*\d (?:eur|usd|dollars|gbp|euros)"),
        (r"\b(?:code|reference|identifier|invoice|order|serial|ticket|id)\b",
         r"\b(?=[\w-]*\d)[A-Z0-9][A-Z0-9-]{3,}\b"),
        (r"\b(?:phone|telephone)", r"\+?\d[\d ()-]{6,}\d"),
        (r"\b(?:number|figure|how many)", r"-?\d+(?:\.\d+)?"),
        (r"\b(?:name|who|person|city|town|place|where)",
         r"(?<=[a-z,] )[A-Z][a-z]+(?: [A-Z][a-z]+)*"),
    )  # fmt: skip
    return next((found for named, found in kinds if re.search(named, asked, re.IGNORECASE)), None)


def extract(asked: str, material: str) -> str | None:
    """What the question wants to be found in the material."""
    wanted = _pattern_asked(asked)
    if wanted is None or not material:
        return None
    found = re.findall(wanted, material, re.IGNORECASE if "usd" in wanted else 0)
    return ", ".join(dict.fromkeys(f.strip() for f in found)) or None


def rearrange(asked: str, material: str) -> str | None:
    """The material in another order or shape."""
    low, items = asked.lower(), listed(material or asked.partition(":")[2])
    if re.search(r"\b(?:sort|alphabet|ascending|order them|put .* in order)", low) and items:
        numeric = all(re.fullmatch(r"-?\d+(?:\.\d+)?", item) for item in items)
        ordered = sorted(items, key=float) if numeric else sorted(items, key=str.lower)
        turned = re.search(r"descending|largest first|z to a", low)
        return ", ".join(ordered[::-1] if turned else ordered)
    if re.search(r"\b(?:revers|backwards|opposite order|from last to first)", low):
        if len(items) > 1:
            return ", ".join(items[::-1])
        return (material or low.split()[-1]).strip(" .\"'")[::-1]
    if re.search(r"upper.?case|capital letters", low) and material:
        return material.upper()
    return None


def count(asked: str, material: str) -> str | None:
    """How many words or letters."""
    if not material or not re.search(r"\b(?:count|how many|number of)\b", asked, re.IGNORECASE):
        return None
    if re.search(r"letters|characters", asked, re.IGNORECASE):
        return str(len(re.sub(r"\W", "", material)))
    return str(len(material.split())) if "word" in asked.lower() else None


def summarise(asked: str, material: str) -> str | None:
    """The material in short: its first statement, and how much there was."""
    if not material or not re.search(
        r"summ|short|tl;?dr|gist|main point|about", asked, re.IGNORECASE
    ):
        return None
    first = re.split(r"(?<=[.!?])\s", material)[0]
    words = re.findall(r"[\w-]{5,}", first)[:9]
    return f"In short ({len(material.split())} words read): {' '.join(words)}."


def keywords(text: str) -> list[str]:
    """The words that carry the meaning, each once."""
    found = re.findall(r"[^\W_\d]{3,}", text.lower())
    return list(dict.fromkeys(w for w in found if w not in SMALL_WORDS))


THOUGHTS = (
    "usually the cheaper option", "worth a second opinion", "common since the nineties",
    "rarely urgent", "best done in the morning", "popular in coastal towns", "older than it looks",
    "simple once drawn on paper", "limited by daylight", "a matter of taste", "seasonal",
    "better measured than guessed", "easy to reverse", "expensive to store", "slow but steady",
    "often confused with its neighbour", "governed by two regulations", "quieter at night",
)  # fmt: skip


def muse(text: str) -> str:
    """Something to say about what the text is about; the same for the same subject."""
    words = sorted(keywords(text), key=len, reverse=True)[:2] or ["that"]
    said = "; ".join(f"{w} is {THOUGHTS[pick(w, len(THOUGHTS))]}" for w in words)
    return f"Briefly: {said} (confidence {60 + pick(words[0], 39)} %)."


def think(text: str) -> str:
    """Answer as a careful assistant: material is material, whatever it says."""
    asked, material = divided(text)
    for skill in (extract, rearrange, count, summarise):
        found = skill(asked, material)
        if found:
            return found
    found = calculate(asked) or calculate(text)
    if found:
        return found
    for domain in DOMAINS.values():
        found = domain.answer(asked) if domain.key not in {"circle", "ticker", "loan"} else None
        if found:
            return found
    return muse(asked)
