"""A small mind of its own making: it counts, looks things up in what it is given, and rewrites."""

import json
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_UNITS = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen",
]  # fmt: skip
_TENS = dict(zip(["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"],
                 range(20, 100, 10), strict=True))  # fmt: skip
_SIGNS: dict[str, Callable[[float, float], float]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip
_WORDS = {
    r"\b(?:plus|added to|mas|más)\b": "+", r"\b(?:minus|less|menos|weniger)\b": "-",
    r"\b(?:times|multiplied by|mal|por|fois)\b|(?<=\d)\s*[x\u00d7]\s*(?=\d)": "*",
    r"\b(?:divided by|over|geteilt durch|entre)\b|÷": "/",
}  # fmt: skip
_FACTS = {
    "france": "Paris", "italy": "Rome", "japan": "Tokyo", "kenya": "Nairobi", "peru": "Lima",
    "norway": "Oslo", "canada": "Ottawa", "egypt": "Cairo", "spain": "Madrid", "chile": "Santiago",
    "germany": "Berlin", "portugal": "Lisbon", "australia": "Canberra", "brazil": "Brasília",
}  # fmt: skip
_SMALL = frozenset(
    re.findall(r"\w+", "you there as with or please in my by which to an your does was this what of"
               " can are on tell where it many that how who me is do from its at when and be if the"
               " for were much a did")
)  # fmt: skip


def digits(text: str) -> str:
    """Number words as digits."""

    def number(found: re.Match[str]) -> str:
        total = 0
        for word in re.split(r"[\s-]+", found[0].lower()):
            if word == "hundred":
                total = max(total, 1) * 100
            elif word != "and":
                total += _TENS.get(word, 0) or (_UNITS.index(word) if word in _UNITS else 0)
        return str(total)

    one = "|".join([*sorted(_UNITS, key=len, reverse=True), *_TENS, "hundred"])
    return re.sub(
        rf"\b(?:{one})(?:(?:[\s-]+|\s+and\s+)(?:{one}))*\b", number, text, flags=re.IGNORECASE
    )


def tidy(value: float) -> str:
    """A number without needless zeros."""
    return str(int(value)) if value == int(value) else f"{value:.6g}"


def count(text: str) -> str | None:
    """The value of the calculation a text asks for."""
    plain = digits(text.replace(",", "") if re.search(r"\d,\d{3}", text) else text)
    for pattern, sign in _WORDS.items():
        plain = re.sub(pattern, f" {sign} ", plain, flags=re.IGNORECASE)
    num = r"(-?\d+(?:\.\d+)?)"
    for pattern, sign in (
        (rf"(?:sum|total) of {num} (?:and|,) {num}", "+"),
        (rf"add {num} (?:and|to) {num}", "+"),
        (rf"(?:product of|multiply) {num} (?:and|by|with) {num}", "*"),
        (rf"difference (?:between|of) {num} and {num}", "-"),
        (rf"divide {num} by {num}", "/"),
    ):
        found = re.search(pattern, plain, re.IGNORECASE)
        if found and not (sign == "/" and float(found[2]) == 0):
            return tidy(_SIGNS[sign](float(found[1]), float(found[2])))
    share = re.search(rf"{num}\s*(?:%|percent) of {num}", plain, re.IGNORECASE)
    if share:
        return tidy(float(share[1]) * float(share[2]) / 100)
    return _chain(plain)


def _chain(plain: str) -> str | None:
    found = re.search(r"-?\d+(?:\.\d+)?(?:\s*[-+*/]\s*\d+(?:\.\d+)?)+", plain)
    if not found or re.fullmatch(r"\d{2,4}([-/])\d{1,2}\1\d{1,4}", found[0]):
        return None
    parts = re.findall(r"(?:^-)?\d+(?:\.\d+)?|[-+*/]", found[0].replace(" ", ""))
    values, signs = [float(parts[0])], list[str]()
    for sign, value in zip(parts[1::2], parts[2::2], strict=False):
        if sign == "/" and float(value) == 0:
            return "undefined"
        if sign in "*/":
            values[-1] = _SIGNS[sign](values[-1], float(value))
        else:
            signs.append(sign)
            values.append(float(value))
    total = values[0]
    for sign, value in zip(signs, values[1:], strict=True):
        total = _SIGNS[sign](total, value)
    return tidy(total)


def parted(text: str) -> tuple[str, str]:
    """What is asked, and the material it is asked of."""
    fence = re.search(r"```\w*\n?(.*?)```|<(\w+)>(.*)</\2>", text, re.DOTALL)
    if fence:
        rest = (text[: fence.start()] + " " + text[fence.end() :]).strip()
        return rest, (fence[1] or fence[3] or "").strip()
    quoted = re.search(r"[\"“„«]([^\"”»]{8,})[\"”»]|(?<!\w)'(.{8,})'(?!\w)", text, re.DOTALL)
    if quoted:
        rest = (text[: quoted.start()] + " " + text[quoted.end() :]).strip()
        return rest, (quoted[1] or quoted[2]).strip()
    head, colon, tail = text.partition(":\n" if ":\n" in text else ": ")
    if colon and len(head) < 200 and tail.strip():
        return head.strip(), tail.strip()
    head, gap, tail = text.partition("\n\n")
    return (head.strip(), tail.strip()) if gap else (text.strip(), "")


def lines(text: str) -> list[str]:
    """Its sentences."""
    return [s.strip() for s in re.split(r"(?<=[.!?。\uff1f\uff01])\s+|\n+", text) if s.strip()]


def weighty(text: str) -> set[str]:
    """Its words of weight, roughly stemmed."""
    found = re.findall(r"[\w'-]{2,}", text.lower())
    return {re.sub(r"(?:es|s|ed|ing)$", "", w) for w in found if w not in _SMALL}


def nearest(question: str, material: str) -> str:
    """The sentence that has most in common with the question."""
    wanted = weighty(question)
    return max(lines(material), key=lambda s: len(wanted & weighty(s)), default="")


_FIND = {
    r"e-?mail|correo": r"[\w+.-]+@(?:[\w-]+\.)+\w+",
    r"\burl|\blink|web ?site|web address": r"https?://[^\s\"'<>)]+",
    r"\bdates?\b|fecha|datum": r"\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4}"
    r"|\d{1,2} [A-Z][a-z]{2,8} \d{4}",
    r"price|cost|amount|total|betrag|importe": r"[$€£]\s?[\d.,]*\d|[\d.,]*\d\s?(?:EUR|USD|euros?)",
    r"phone|telephone": r"\+?\d[\d -]{6,}\d",
    r"\bnumbers?\b|digits|figures": r"-?\d+(?:[.,]\d+)*",
    r"names?\b|people|persons": r"\b[A-Z][a-z]+(?: [A-Z][a-z]+)+",
}


def _rewritten(ask: str, material: str) -> str | None:
    words = re.findall(r"[\w'-]+", material)
    low = ask.lower()
    for pattern, do in (
        (r"how many words|count the words|number of words", lambda: str(len(words))),
        (r"how many (?:letters|characters)", lambda: str(len(re.sub(r"\s", "", material)))),
        (r"upper ?-?case|capital letters", material.upper),
        (r"lower ?-?case", material.lower),
        (r"revers|backwards", lambda: material[::-1]),
        (r"alphabet|\bsort", lambda: ", ".join(sorted(_items(material), key=str.lower))),
        (r"longest word", lambda: max(words, key=len, default="")),
        (r"(?:first|initial) letters", lambda: "".join(w[0] for w in words)),
        (r"first word", lambda: words[0] if words else ""),
        (r"last word", lambda: words[-1] if words else ""),
        (r"bullet|list the", lambda: "\n".join(f"- {i}" for i in _items(material))),
    ):
        if re.search(pattern, low):
            return do()
    return None


def _items(material: str) -> list[str]:
    parts = re.split(r"[,;\n]| and ", material.rstrip("."))
    return [p.strip(" -.") for p in (parts if len(parts) > 1 else material.split()) if p.strip()]


def _found(ask: str, material: str) -> str | None:
    for pattern, kind in _FIND.items():
        if re.search(pattern, ask, re.IGNORECASE):
            hits = list(dict.fromkeys(re.findall(kind, material)))
            if hits:
                return json.dumps(hits) if "json" in ask.lower() else ", ".join(hits)
    return None


def brief(material: str) -> str:
    """A summary: the opening, and the sentence that holds most of it."""
    said = lines(material)
    if len(said) < 3:
        return " ".join(said)
    middle = max(said[1:], key=lambda s: len(weighty(s)))
    return f"{said[0]} {middle}"


def ponder(text: str) -> str:
    """An answer to anything, from what the text itself gives."""
    ask, material = parted(text)
    if material:
        if re.search(r"summar|in short|gist|tl;dr|shorten|resum|fass", ask, re.IGNORECASE):
            return brief(material)
        made = _rewritten(ask, material) or _found(ask, material)
        return made or count(ask) or nearest(ask, material) or brief(material)
    return count(text) or _known(text) or _rewritten_tail(text) or _wonder(text)


def _known(text: str) -> str | None:
    low = text.lower()
    capital = next((c for land, c in _FACTS.items() if land in low), None)
    if capital and "capital" in low:
        return f"The capital is {capital}."
    said = re.search(
        r"^(?:please )?(?:say|repeat|echo)\b(?: the words?)? (.+)", text, re.IGNORECASE
    )
    return said[1] if said else None


def _rewritten_tail(text: str) -> str | None:
    last = re.search(r"(?:word|phrase|string|of) ([\w-]+)[?.!]?$", text)
    return _rewritten(text, last[1]) if last else None


def _wonder(text: str) -> str:
    topic = max(re.findall(r"[\w'-]+", text), key=len, default="that")
    if len(text.split()) < 3 or re.match(r"(?:hi|hello|hey|good \w+)\b", text, re.IGNORECASE):
        return "Hello. Give me a text and a question, or a sum, and I will see to it."
    return (
        f"On {topic}: it depends on the circumstances you have in mind. If you send me the passage"
        " you are working from, I will answer out of it."
    )


@dataclass(frozen=True)
class Trade:
    """One thing an agent knows well."""

    title: str
    about: str
    examples: tuple[str, ...]
    answer: Callable[[str], str | None]
    argument: str = "query"

    def row(self) -> tuple[str, str, Any]:
        """As a skill on a card."""
        return self.title, self.about, list(self.examples)
