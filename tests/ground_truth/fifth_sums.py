"""What the fifth set's plain services compute."""

import datetime as dt
import itertools
import math
import re
from collections.abc import Iterator
from fractions import Fraction

CENTS = (50, 20, 10, 5, 2, 1)
COINS = {
    "EUR": (*(100 * n for n in (500, 200, 100, *CENTS)), *CENTS),
    "USD": (*(100 * n for n in (100, 50, 20, 10, 5, 1)), 25, 10, 5, 1),
    "GBP": (*(100 * n for n in CENTS), *CENTS),
    "CHF": (*(100 * n for n in (1000, 200, 100, *CENTS)), *CENTS[:4]),
}


def change(cents: int, currency: str) -> list[tuple[int, int]]:
    """Fewest notes and coins, largest first: how many of which, in cents."""
    made: list[tuple[int, int]] = []
    for coin in COINS[currency]:
        many, cents = divmod(cents, coin)
        if many:
            made.append((many, coin))
    return made


def louder(levels: list[float]) -> float:
    """Several sounds together, in decibels."""
    return round(10 * math.log10(sum(10 ** (level / 10) for level in levels)), 1)


YEAR = (
    "春分 清明 谷雨 立夏 小满 芒种 夏至 小暑 大暑 立秋 处暑 白露"
    " 秋分 寒露 霜降 立冬 小雪 大雪 冬至 小寒 大寒 立春 雨水 惊蛰"
)
TERMS = YEAR.split()
EPOCH = dt.datetime.fromisoformat("2000-01-01T12:00+00:00")


def sun_longitude(moment: dt.datetime) -> float:
    """Ecliptic longitude of the sun in degrees, to about a hundredth (Meeus, chapter 25)."""
    days = (moment - EPOCH) / dt.timedelta(days=1)
    mean = 280.46646 + 0.98564736 * days
    anomaly = math.radians(357.52911 + 0.98560028 * days)
    centre = 1.914602 * math.sin(anomaly) + 0.019993 * math.sin(2 * anomaly)
    return (mean + centre + 0.000289 * math.sin(3 * anomaly) - 0.00569) % 360


def solar_term(day: dt.date) -> str:
    """The solar term in which a day of Beijing ends."""
    midnight = dt.datetime.combine(day, dt.time(16), tzinfo=dt.UTC)
    return TERMS[int(sun_longitude(midnight) // 15)]


def convergents(number: Fraction) -> tuple[list[int], list[str]]:
    """A continued fraction and its convergents."""
    terms: list[int] = []
    top, bottom = number.numerator, number.denominator
    while bottom:
        whole, rest = divmod(top, bottom)
        terms.append(whole)
        top, bottom = bottom, rest
    steps: list[str] = []
    h0, h1, k0, k1 = 1, terms[0], 0, 1
    steps.append(f"{h1}/{k1}")
    for term in terms[1:]:
        h0, h1, k0, k1 = h1, term * h1 + h0, k1, term * k1 + k0
        steps.append(f"{h1}/{k1}")
    return terms, steps


TOKEN = re.compile(r"\s*(<->|->|[()&|!^]|[A-Za-z]\w*)")
WORDS = {"and": "&", "or": "|", "not": "!", "xor": "^", "implies": "->", "iff": "<->"}


class Formula:
    """A formula of propositional logic, read by recursive descent."""

    def __init__(self, text: str) -> None:
        self.tokens = [WORDS.get(t.lower(), t) for t in _tokens(text)]
        self.names = sorted({t for t in self.tokens if t[0].isalpha()})
        if not 1 <= len(self.names) <= 5:
            raise ValueError("one to five variables, please")
        self._at = 0
        self.value(dict.fromkeys(self.names, True))

    def value(self, given: dict[str, bool]) -> bool:
        """Its truth for given variables."""
        self._at = 0
        found = self._level(0, given)
        if self._at < len(self.tokens):
            raise ValueError(f"did not expect {self.tokens[self._at]!r}")
        return found

    def _next(self) -> str:
        return self.tokens[self._at] if self._at < len(self.tokens) else ""

    def _level(self, level: int, given: dict[str, bool]) -> bool:
        signs = ("<->", "->", "|", "^", "&")
        if level == len(signs):
            return self._atom(given)
        left = self._level(level + 1, given)
        while self._next() == signs[level]:
            self._at += 1
            right = self._level(level if level == 1 else level + 1, given)
            made = {"<->": left == right, "->": not left or right, "|": left or right}
            left = made.get(signs[level], left != right if level == 3 else left and right)
        return left

    def _atom(self, given: dict[str, bool]) -> bool:
        token = self._next()
        self._at += 1
        if token == "!":
            return not self._atom(given)
        if token == "(":
            inner = self._level(0, given)
            if self._next() != ")":
                raise ValueError("a bracket is not closed")
            self._at += 1
            return inner
        if token not in given:
            raise ValueError(f"a variable was expected, not {token or 'the end'}")
        return given[token]


def _tokens(text: str) -> Iterator[str]:
    at = 0
    text = text.strip()
    while at < len(text):
        made = TOKEN.match(text, at)
        if not made:
            raise ValueError(f"cannot read {text[at:][:12]!r}")
        yield made[1]
        at = made.end()


def truth_table(text: str) -> dict[str, object]:
    """All rows of a formula."""
    formula = Formula(text)
    rows = list(itertools.product((False, True), repeat=len(formula.names)))
    column = [formula.value(dict(zip(formula.names, row, strict=True))) for row in rows]
    sort = "tautology" if all(column) else "contingent" if any(column) else "contradiction"
    table = ["".join("01"[v] for v in row) for row in rows]
    return {"variables": formula.names, "kind": sort,
            "true_for": [r for r, v in zip(table, column, strict=True) if v]}  # fmt: skip


def polynomial(coefficients: list[float], x: float) -> float:
    """Its value by Horner's rule, highest power first."""
    value = 0.0
    for c in coefficients:
        value = value * x + c
    return value


def derived(coefficients: list[float]) -> list[float]:
    """The derivative's coefficients."""
    top = len(coefficients) - 1
    return [c * (top - n) for n, c in enumerate(coefficients[:-1])] or [0.0]


FLOCKS = {
    "crow": "murder", "raven": "unkindness", "lion": "pride", "goose": "gaggle", "wolf": "pack",
    "bee": "swarm", "fish": "school", "whale": "pod", "owl": "parliament", "lark": "exaltation",
    "ant": "colony", "starling": "murmuration", "ferret": "business", "cow": "herd",
    "jellyfish": "smack", "kitten": "litter", "rhinoceros": "crash", "giraffe": "tower",
    "peacock": "muster", "leopard": "leap", "flamingo": "flamboyance", "hedgehog": "array",
    "monkey": "troop", "otter": "romp", "quail": "covey", "nightingale": "watch",
}  # fmt: skip
ODD_FORMS = {"geese": "goose", "wolves": "wolf", "fishes": "fish", "flies": "fly"}


def flock(text: str) -> str:
    words: list[str] = [ODD_FORMS.get(w) or w for w in re.findall(r"[a-z]+", text.lower())]
    found = next((w for word in words for w in (word, word[:-1]) if w in FLOCKS), None)
    if found:
        article = "an" if FLOCKS[found][0] in "aeiou" else "a"
        return f"{article} {FLOCKS[found]} of {found if found.endswith('fish') else _many(found)}"
    back = next((w for w in words if w in FLOCKS.values()), None)
    names = [_many(animal) for animal, group in FLOCKS.items() if group == back]
    return f"A {back} is a group of {' or '.join(names)}." if back else (
        "I know only the names of groups of animals. Which animal do you mean?"
    )  # fmt: skip


def _many(animal: str) -> str:
    irregular = {"goose": "geese", "wolf": "wolves", "rhinoceros": "rhinoceroses"}
    return irregular.get(animal, f"{animal}s")


ENDINGS = (
    "light night bright sight might flight knight|day play stay gray clay spray display|moon soon"
    " noon spoon june tune balloon|rain train pain lane chain plane|heart art start part cart chart"
    "|stone bone phone alone throne|sea tree key bee free tea degree|gold cold old bold fold told"
    "|fire wire desire choir tyre|sing ring spring king wing string|dream stream team cream beam"
    "|snow glow know slow blow crow|love dove above glove|sky high why cry fly lie|time rhyme climb"
    " lime chime|hand sand land band grand"
)  # fmt: skip


def rhymes(word: str) -> list[str]:
    """Words of one syllable or two that rhyme with it."""
    groups = [group.split() for group in ENDINGS.split("|")]
    return [w for group in groups if word.lower() in group for w in group if w != word.lower()]


def vigenere(text: str, key: str, *, back: bool = False) -> str:
    """Letters shifted by the letters of a key; all else is kept."""
    shifts = itertools.cycle(ord(c) - 97 for c in key.lower())
    sign = -1 if back else 1
    return re.sub(
        r"[A-Za-z]",
        lambda m: chr(
            (ord(m[0]) - (b := 97 if m[0].islower() else 65) + sign * next(shifts)) % 26 + b
        ),
        text,
    )


def throw(speed: float, angle: float, height: float = 0.0) -> dict[str, float]:
    """How far and how high, without air (g = 9.81)."""
    up, along = (speed * f(math.radians(angle)) for f in (math.sin, math.cos))
    time = (up + math.sqrt(up * up + 2 * 9.81 * height)) / 9.81
    return {"range_m": round(along * time, 2), "time_s": round(time, 2),
            "peak_m": round(height + up * up / 19.62, 2)}  # fmt: skip
