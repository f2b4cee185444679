"""What the fourth set's language agents share: numbers in words, dates, manners, refusals."""

import datetime as dt
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
TENS = [*["twenty", "thirty", "forty", "fifty"], *["sixty", "seventy", "eighty", "ninety"]]
WORDS = {word: n for n, word in enumerate(ONES)} | {w: 20 + 10 * n for n, w in enumerate(TENS)}
MONTHS = re.findall(
    r"\w+",
    "january february march april may june july august september october november december",
)
NUMBER = r"(\d+(?:[.,]\d+)?)"
PAIRS = (("\u201c", "\u201d"), ("\u201e", "\u201c"), ("\u00ab", "\u00bb"), ("\u300c", "\u300d"),
         ("\u201e", "\u201d"), ("\u2018", "\u2019"), ('"', '"'))  # fmt: skip


def digits(text: str) -> str:
    """The text with English number words written in digits."""
    tens, ones = "|".join(TENS), "|".join(ONES)
    text = re.sub(
        rf"\b({tens})[- ]({'|'.join(ONES[1:10])})\b",
        lambda m: str(WORDS[m[1].lower()] + WORDS[m[2].lower()]),
        text,
        flags=re.IGNORECASE,
    )
    text = re.sub(
        rf"\b({tens}|{ones})\b", lambda m: str(WORDS[m[1].lower()]), text, flags=re.IGNORECASE
    )
    text = re.sub(r"\b(?:a )?hundred\b", "100", text, flags=re.IGNORECASE)
    text = re.sub(r"\b(?:a )?dozen\b", "12", text, flags=re.IGNORECASE)
    return re.sub(r"([0-9]),(?=[0-9]{3}\b)", r"\1", text)


def value(number: str) -> float:
    """A number with either decimal sign."""
    return float(number.replace(",", "."))


def short(number: float, places: int = 2) -> str:
    """A number without needless zeros."""
    said = f"{number:.{places}f}"
    return said.rstrip("0").rstrip(".") if "." in said else said


def has(text: str, *stems: str) -> bool:
    """Whether a word of the text begins with one of these."""
    return any(re.search(rf"(?<!\w){stem}", text, re.IGNORECASE) for stem in stems)


def material(text: str) -> str:
    """What was handed over with a request: in quotation marks, below it, or behind a colon."""
    head, blank, rest = text.partition("\n")
    below = rest.strip() if blank and len(head) < 160 else ""
    if not below:
        head, _, rest = text.partition(": ")
        below = rest.strip() if len(head) < 160 else ""
    spans = [(text.find(first), text.rfind(last)) for first, last in PAIRS]
    inner = re.search(r"(?<!\w)'(.+)'(?!\w)", text, re.DOTALL)
    spans += [(inner.start(), inner.end() - 1)] if inner else []
    for start, end in spans:
        # A few quoted words inside a longer text are not the text.
        if -1 < start < end - 1 and (not below or end - start > 0.4 * len(text)):
            return text[start + 1 : end].strip()
    return below


def sentences(text: str) -> list[str]:
    """Its sentences."""
    return [s.strip() for s in re.split(r"(?<=[.!?\u3002])\s+|\n+", text) if s.strip()]


def days(text: str) -> list[dt.date]:
    """Every date it names: ISO, 14 March 2026, March 14, 2026, 14/03/2026."""
    names = "|".join(f"{m[:3]}(?:{m[3:]})?" for m in MONTHS)
    dated = rf"({names})"
    found = [
        (m.start(), (int(m[1]), int(m[2]), int(m[3])))
        for m in re.finditer(r"\b(\d{4})-(\d\d?)-(\d\d?)\b", text)
    ]
    found += [
        (m.start(), (int(m[3]), month(m[2]), int(m[1])))
        for m in re.finditer(
            rf"\b(\d\d?)(?:st|nd|rd|th)?(?: of)? {dated}\.?,? (\d{{4}})", text, re.IGNORECASE
        )
    ]
    found += [
        (m.start(), (int(m[3]), month(m[1]), int(m[2])))
        for m in re.finditer(
            rf"\b{dated}\.? (\d\d?)(?:st|nd|rd|th)?,? (\d{{4}})", text, re.IGNORECASE
        )
    ]
    found += [
        (m.start(), (int(m[3]), int(m[2]), int(m[1])))
        for m in re.finditer(r"\b(\d\d?)[./](\d\d?)[./](\d{4})\b", text)
    ]
    made: list[dt.date] = []
    for _, (year, number, day) in sorted(found):
        try:
            made.append(dt.date(year, number, day))
        except ValueError:
            continue
    return made


def month(name: str) -> int:
    """The number of an English month."""
    return next(n for n, m in enumerate(MONTHS, 1) if m.startswith(name[:3].lower()))


HELLO = (r"(hello|hi|hey|good (morning|day|evening)|hallo|guten tag|bonjour|salut|hola|buenas"
         r"|ciao|hoi|goedendag|\u043f\u0440\u0438\u0432\u0435\u0442"
         r"|\u3053\u3093\u306b\u3061\u306f)")  # fmt: skip
ABOUT = (r"what (can|do) you do|who are you|how (can|do) you help|what are you( for)?\?"
         r"|^help\W*$|was kannst du|que (peux|sais)-tu|qu\u00e9 (sabes|puedes) hacer"
         r"|cosa sai fare")  # fmt: skip


@dataclass(frozen=True)
class Mind:
    """A narrow trade: what it can do, tried in turn, and manners around it."""

    can: str
    example: str
    skills: Sequence[Callable[[str], str | None]]
    hello: Sequence[str] = (
        "Hello! I {can}. You could ask me: {example}",
        "Hi, nice to hear from you. I {can}. Try: {example}",
    )
    sorry: Sequence[str] = (
        "I'm afraid that is outside my trade. I {can}. A question I can take: {example}",
        "Sorry, I can't help with that one; I only {can}. For example: {example}",
        "Not a thing I do. I {can}, so do ask me something like: {example}",
    )

    def think(self, text: str) -> str:
        """What it says to one message."""
        bare = text.strip()
        is_about_me = len(bare) < 160 and re.search(ABOUT, bare, re.IGNORECASE)
        if is_about_me or re.match(rf"(?i){HELLO}\W*(there|all|team)?\W*$", bare):
            return self.phrase(self.hello)
        for skill in self.skills:
            said = skill(bare)
            if said:
                return said
        return self.phrase(self.sorry)

    def phrase(self, ways: Sequence[str]) -> str:
        """One of several ways to say it."""
        return random.choice(ways).format(can=self.can, example=self.example)

    def __call__(self, heard: Any) -> str:
        return self.think(heard.text)


def one_of(*ways: str) -> str:
    """People phrase things differently from day to day; so do models."""
    return random.choice(ways)
