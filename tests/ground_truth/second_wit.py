"""A mind that answers everyday questions in prose, each time in slightly other words."""

import random
import re
from collections.abc import Callable, Sequence

from tests.ground_truth.second_crafts_a import CALENDAR, ELEMENTS, MEASURES, ZONES, dates_in, plain
from tests.ground_truth.second_crafts_b import LOANS, MUSIC, NETWORKS, NUTRITION

_UP_TO_NINETEEN = (
    "zero,one,two,three,four,five,six,seven,eight,nine,ten,eleven,twelve,thirteen,fourteen,fifteen,"
    "sixteen,seventeen,eighteen,nineteen"
)
_ONES = _UP_TO_NINETEEN.split(",")
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
VALUES = {w: n for n, w in enumerate(_ONES)} | {w: 20 + 10 * n for n, w in enumerate(_TENS)}
_WORD = "|".join([*sorted(VALUES, key=len, reverse=True), "hundred", "thousand"])
_SPELT = re.compile(rf"\b(?:{_WORD})(?:(?:[ -]| and )(?:{_WORD}))*\b", re.IGNORECASE)
_LOOSE = random.SystemRandom()


def spelt(words: str) -> int:
    """`four hundred and twelve` as a number."""
    total = part = 0
    for word in re.findall(r"[a-z]+", words.lower().replace(" and ", " ")):
        if word == "thousand":
            total, part = total + max(part, 1) * 1000, 0
        elif word == "hundred":
            part = max(part, 1) * 100
        else:
            part += VALUES[word]
    return total + part


LONGEST = 6000
_FORMAT = r"(?:please )?(?:only |just )?(?:repl|answer|respon|give|use|write|be |keep|in one|no )"


def divide(text: str) -> tuple[str, str]:
    """What is asked, and what is given along with it; of very long texts the beginning."""
    text = text[:LONGEST]
    for form in (r"```(.+)```", r"<<<(.+)>>>", r"<(\w+)>(.+)</\1>", r"\u201c(.+)\u201d", r'"(.+)"',
                 r"(?:^|[\s:(])'(.+)'"):  # fmt: skip
        hit = re.search(form, text, re.DOTALL)
        if hit and hit[hit.lastindex or 1].strip():
            return (text[: hit.start()] + " " + text[hit.end() :]).strip(), hit[hit.lastindex or 1]
    head, mark, tail = text.partition("\n\n" if "\n\n" in text else ": ")
    if not mark and "\n" in text:
        head, mark, tail = text.partition("\n")
    if not mark or len(tail.strip()) < 3:
        head, mark, tail = text.partition("? ")
        mark = "" if re.match(_FORMAT, tail.lower()) else mark
    return (head.strip(), tail.strip()) if mark and len(tail.strip()) > 2 else (text, "")


def sentences(text: str) -> list[str]:
    """A text's sentences and lines."""
    return [s.strip() for s in re.split(r"(?<=[.!?])\s+|\n+", text) if s.strip()]


def items(text: str) -> list[str]:
    """Members of a list in prose."""
    rows = re.split(r"\s*[,;\n]\s*(?:and\s+)?|\s+and\s+", text.strip(" ."))
    return [r for r in rows if r] if len(rows) > 1 else text.split()


_SIGNS = (
    (r"plus|add|sum|total|together|\+", lambda a, b: a + b),
    (r"minus|subtract|take away|\btake\b|less|difference|\d\s+[-\u2212]\s*\d", lambda a, b: a - b),
    (r"times|multipl|product|[*\u00d7]|\d\s*x\s*\d", lambda a, b: a * b),
    (r"divided|over|quotient|split|[/\u00f7]", lambda a, b: a / b if b else 0),
)


def arithmetic(text: str) -> str | None:
    """Two or more numbers and what is to be done with them, one step after the other."""
    low = _SPELT.sub(lambda m: str(spelt(m[0])), text.lower())
    share = re.search(r"([\d.]+) ?(?:%|percent|per cent) of ([\d.]+)", low)
    if share:
        return plain(float(share[1].strip(".")) * float(share[2].strip(".")) / 100)
    first, *rest = re.split(r",? (?:and )?then |,? and (?=subtract|add|multipl|divid|double)", low)
    value = _step(first)
    for more in rest:
        if value is not None:
            value = value * 2 if "double" in more else _step(f"{value} {more}")
    return None if value is None else plain(value)


def _step(low: str) -> float | None:
    found = [float(n.replace(",", "")) for n in re.findall(r"-?\b\d+(?:,\d{3})*(?:\.\d+)?", low)]
    hit = next((do for form, do in _SIGNS if re.search(form, low)), None)
    if hit is None or len(found) < 2:
        return None
    if re.search(r"^\W*(?:subtract|take) \d+.* from", low):
        found.reverse()
    value = found[0]
    for other in found[1:]:
        value = hit(value, other)
    return value


def _sorted(ask: str, rows: list[str]) -> str:
    back = bool(re.search(r"descend|reverse|z to a|largest first|longest first|backward", ask))
    if "length" in ask or "longest" in ask or "shortest" in ask:
        return ", ".join(sorted(rows, key=len, reverse=back))
    if all(re.fullmatch(r"-?[\d.]+", r) for r in rows):
        return ", ".join(sorted(rows, key=float, reverse=back))
    return ", ".join(sorted(rows, key=str.lower, reverse=back))


_MONEY = r"(?:[$\u20ac\u00a3]|USD|EUR) ?[\d.,]*\d|\d[\d.,]* ?(?:USD|EUR|GBP|euros?|dollars?)"
_FINDS = (
    (r"e-?mail", r"[\w.+-]+@[\w-]+\.[\w.]*\w"),
    (r"url|link|web ?address", r"https?://\S+"),
    (r"phone", r"\+?\d[\d ()-]{6,}\d"),
    (r"time", r"\b\d{1,2}[:.]\d{2}\b"),
    (r"amount|price|cost|sum|paid|much", _MONEY),
    (
        r"code|reference|order|invoice|number|ticket|serial|\bid\b",
        r"\b(?=[\w-]*\d)[A-Z0-9]+(?:-[A-Z0-9]+)+\b|\b(?=[A-Z]*\d)(?=\d*[A-Z])[A-Z0-9]{4,}\b",
    ),
    (r"number|digits", r"\b\d[\d.,]*\b"),
    (r"\bname|\bwho\b|person", r"\b[A-Z][a-z]+(?: [A-Z][a-z]+)+\b|(?<=[a-z] )[A-Z][a-z]+\b"),
)
_DATES = r"\d{4}-\d\d-\d\d|\d{1,2}(?:st|nd|rd|th)? [A-Z][a-z]+ \d{4}|[A-Z][a-z]+ \d{1,2}, \d{4}"


def extract(ask: str, given: str) -> str | None:
    """One kind of thing out of a text."""
    if re.search(r"\bdates?\b|\bwhen\b", ask):
        hit = re.search(_DATES, given)
        if hit or dates_in(given):
            return hit[0] if hit else dates_in(given)[0].isoformat()
    for wanted, form in _FINDS:
        if re.search(wanted, ask) and (hits := re.findall(form, given)):
            return ", ".join(dict.fromkeys(hits))
    return None


_DULL = """a about an and are did do does for from how in is it me of please say says tell text
that the this to was where with what were which when who"""


def keywords(text: str) -> set[str]:
    """Words that carry something."""
    return {w for w in re.findall(r"[\w'-]{3,}", text.lower()) if w not in _DULL.split()}


def gist(given: str, count: int = 1) -> str:
    """The sentences that share most words with the rest."""
    rows = sentences(given)
    often = re.findall(r"[\w'-]{4,}", given.lower())
    rank = [sum(often.count(w) for w in keywords(s)) / (len(s) + 40) / (n + 4)
            for n, s in enumerate(rows)]  # fmt: skip
    best = [s for _, s in sorted(zip(rank, rows, strict=True), reverse=True)]
    return " ".join(r for r in rows if r in best[:count])


def about(ask: str, given: str) -> str:
    """The sentence of a text that a question is about."""
    wanted = keywords(ask)
    return max(sentences(given), key=lambda s: len(keywords(s) & wanted), default=given)


def _counted(ask: str, given: str) -> str | None:
    if "how many" not in ask and not re.search(r"\bcount\b|number of", ask):
        return None
    letter = re.search(r"letters? ['\u2018\"]?([a-z])\b(?! w)|how many ([a-z])'?s\b", ask)
    if letter:
        return str(given.lower().count(letter[1] or letter[2]))
    if "vowel" in ask:
        return str(sum(c in "aeiou" for c in given.lower()))
    counts = (
        ("letter", sum(c.isalpha() for c in given)), ("character", len(given)),
        ("sentence", len(sentences(given))), ("line", len(given.splitlines())),
        ("item", len(items(given))), ("word", len(given.split())),
    )  # fmt: skip
    return next((str(n) for what, n in counts if what in ask), None)


Handler = Callable[[str, str], str | None]


def _shaped(ask: str, given: str) -> str | None:
    if re.search(r"upper ?case|capital letters", ask):
        return given.upper()
    if re.search(r"lower ?case", ask):
        return given.lower()
    if re.search(r"\bsort|alphabet|a to z|ascend|\border (?:these|the|by)|in order", ask):
        return _sorted(ask, items(given))
    if re.search(r"revers|backward", ask):
        rows = items(given)
        return ", ".join(rows[::-1]) if len(rows) > 1 and "letter" not in ask else given[::-1]
    return None


def _worth(row: str) -> float:
    hit = re.search(r"-?\d+(?:\.\d+)?", row.replace(",", ""))
    return float(hit[0]) if hit else 0.0


def _picked(ask: str, given: str) -> str | None:
    rows = items(given)
    ranks: Sequence[tuple[str, Callable[[], str]]] = (
        (r"longest", lambda: max(rows, key=len)),
        (r"shortest", lambda: min(rows, key=len)),
        (r"largest|biggest|highest|greatest|maximum", lambda: max(rows, key=_worth)),
        (r"smallest|lowest|least|minimum", lambda: min(rows, key=_worth)),
        (r"second (?:word|item|one)", lambda: rows[1 if len(rows) > 1 else 0]),
        (r"third (?:word|item|one)", lambda: rows[min(2, len(rows) - 1)]),
        (r"\blast (?:word|item|one)", lambda: rows[-1]),
        (r"\bfirst (?:word|item|one)", lambda: rows[0]),
    )
    return next((do() for form, do in ranks if rows and re.search(form, ask)), None)


def _briefly(ask: str, given: str) -> str | None:
    if re.search(r"summar|gist|short(?:en)?|sum up|main point|tl;?dr|in (?:a|one) sentence", ask):
        return gist(given, 1 if len(given) < 500 else 2)
    return None


HANDLERS: Sequence[Handler] = (_counted, _shaped, _picked, _briefly, extract)
KNOWN = (CALENDAR, ZONES, MEASURES, NUTRITION, LOANS, NETWORKS, ELEMENTS, MUSIC)
_OPEN = ("", "", "Sure. ", "Happy to help: ", "Here it is: ", "Of course. ", "Right, ")
_CLOSE = ("", "", "", " Anything else?", " Let me know if you need more.", " Hope that helps.")


def vary(said: str) -> str:
    """The same in slightly other words."""
    return _LOOSE.choice(_OPEN) + said + _LOOSE.choice(_CLOSE)


_OWN = (
    r"(?:your|system|hidden|initial) (?:\w+ )?"
    r"(?:prompt|instruction|rule|key|password|token|secret|configuration)"
)


def _private(ask: str) -> str | None:
    if re.search(_OWN, ask):
        return "that stays with me, but I gladly say what I can do for you."
    if re.search(r"https?://", ask) and re.search(
        r"open|fetch|visit|read|load|download|look at", ask
    ):
        return "I cannot open links. Paste the text here and I will work with it."
    if re.search(r"\bwho are you|what are you for|\bhello\b|^hi\b|introduce yourself", ask):
        return "I answer everyday questions, work with short texts and calculate."
    return None


def _of_material(low: str, given: str) -> str:
    said = next((made for handler in HANDLERS if (made := handler(low, given))), None)
    if not said and len(given) < 60 and not keywords(low):
        said = arithmetic(given)
    return said or arithmetic(low) or about(low, given)


def reason(text: str) -> str:
    """The bare answer, without manners."""
    ask, given = divide(text)
    low = ask.lower()
    if said := _private(low):
        return said
    if given:
        return _of_material(low, given)
    if re.search(r"largest|smallest|biggest|lowest|highest", low) and (said := _picked(low, text)):
        return said
    known = next((made for craft in KNOWN if (made := craft.answer(text))), None)
    return known or arithmetic(ask) or unsure(text)


def unsure(text: str) -> str:
    """What it says where it knows nothing."""
    topic = ", ".join(sorted(keywords(text), key=len, reverse=True)[:3]) or "this"
    return f"I am not certain enough about {topic}. With a source text I can do more."


def chat(text: str) -> str:
    """A polite answer to anything."""
    return vary(reason(text))
