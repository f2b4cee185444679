"""Values that fit a documented format, and whether a value fits it. Pure.

Values of the formats that documents name, by JSON Schema or in words. Pure data.

Source: JSON Schema Validation 2020-12, section 7.3; RFC 3339.

Generates texts that match an untrusted regular expression, without running it.

It supports the common syntax of JSON Schema's `pattern`: characters, classes, groups, alternatives
and counts. For anything else it generates nothing.

Numbers with check digits, whose correctness we know.

A random number is almost never valid: a service that checks would give the same answer to all. So
another number is made from a valid one, valid or invalid as wanted. Sources: ISO 13616 (IBAN),
ISO/IEC 7812 (Luhn), GS1 General Specifications (GTIN, ISBN-13), ISO 2108 (ISBN-10), ISO 3297
(ISSN).

Chooses numbers for arguments, within their owner's bounds.

Checks whether a value has its documented shape.
"""

import re
import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from assay.common.json import JsonObject, JsonValue, is_array, is_object

FORMATS: Final[Mapping[str, Sequence[str]]] = {
    "date": ("2024-03-14", "2023-11-05", "2022-07-21", "2021-02-28"),
    "date-time": ("2024-03-14T09:30:00Z", "2023-11-05T18:45:00Z", "2022-07-21T12:00:00Z"),
    "local-date-time": ("2024-03-14T09:30", "2023-11-05T18:45", "2022-07-21T12:15"),
    "time": ("09:30:00", "18:45:00", "12:15:00"),
    "minutes": ("09:30", "18:45", "12:15"),
    "ipv4": ("8.8.8.8", "1.1.1.1", "9.9.9.9"),
}

_NAMED: Final = (
    (re.compile(r"YYYY-MM-DD[T ]HH:MM(?!:)", re.IGNORECASE), "local-date-time"),
    (re.compile(r"YYYY-MM-DD[T ]HH|RFC 3339", re.IGNORECASE), "date-time"),
    (re.compile(r"YYYY-MM-DD", re.IGNORECASE), "date"),
    (re.compile(r"\bHH:MM:SS\b", re.IGNORECASE), "time"),
    (re.compile(r"\bHH:MM\b", re.IGNORECASE), "minutes"),
)


def named_format(text: str) -> str | None:
    """Return the format that a description or a refusal spells out; None without one."""
    return next((form for words, form in _NAMED if words.search(text)), None)


_NOTATIONS: Final = (
    (r"semantic\s+version|\bsemver\b|MAJOR\.MINOR", ("1.4.2", "2.0.0", "0.9.13", "3.11.7")),
    (r"version range|range of versions", ("^1.2.0", ">=1.0.0 <2.0.0", "~2.3.1", ">=0.9.0")),
    (r"\bTOML\b", ('title = "Tide"\ncount = 4', "[box]\nwide = 3\nhigh = 8", "on = true\nn = 12")),
    (r"\bYAML\b", ("title: Tide\ncount: 4", "box:\n  wide: 3\n  high: 8", "names:\n- Ada\n- Ben")),
    (r"\bCSV\b", ("hat,size\nbow,36\nfez,41", "day,rain\nMon,4\nTue,0\nWed,11", "a,b\n1,2\n7,9")),
    (r"\bXML\b", ("<box><wide>3</wide></box>", "<tide h='4'/>", "<a><b>1</b><b>2</b></a>")),
    (r"\bJSON\b", ('{"wide": 3, "high": 8}', "[4, 9, 16]", '{"name": "Ada", "age": 36}')),
    (r"\bMarkdown\b", ("# Tide\n\nIt *rises*.", "- one\n- two", "A **bold** word, a `code`.")),
    (r"\bHTML\b", ("<p>The tide <b>rises</b>.</p>", "<ul><li>one</li></ul>", "<h1>Rain</h1>")),
    (r"\bSQL\b", ("SELECT name FROM boats", "SELECT a, b FROM t WHERE a > 3", "SELECT 17 * 3")),
    (r"\bDNA\b|nucleotide|\bcodons?\b", ("ATGGCCTTTAAGTAA", "ATGTGGCATTAG", "ATGAAACGCGATTGA")),
    (r"\bRNA\b", ("AUGGCCUUUAAGUAA", "AUGUGGCAUUAG", "AUGAAACGCGAUUGA")),
    (r"amino acid|protein sequence", ("MKTAYIAK", "GAVLIPF", "MSTNPKPQR")),
    (r"\bcron(?:tabs?)?\b", ("*/15 * * * *", "0 9 * * 1-5", "30 4 1 * *", "0 0 * * 0")),
    (r"regular expression|\bregex", (r"\d+", "[a-c]+", "^T.*s$", "(ab)+")),
    (r"\bglob\b|wildcard", ("*.py", "src/*.txt", "docs/**", "*.md")),
    (r"file ?names?|\bpaths?\b", ("src/main.py", "docs/index.md", "notes.txt", "src/tide.txt")),
    (r"\bbase ?64\b", ("SGVsbG8=", "VGlkZQ==", "UmFpbg==")),
    (r"\bMorse\b", ("... --- ...", "- .. -.. .", ".-. .- .. -.")),
    (r"\bbinary\b", ("101101", "11001", "1110", "100000")),
    (r"\bhexadecimal\b", ("ff", "1a4", "7e0", "c3")),
    (r"\bRoman\s+numerals?\b", ("XIV", "MCMXC", "XLII", "CDXC")),
    (r"\bCIDR\b|\bsubnets?\b", ("10.0.0.0/24", "10.9.0.0/16", "172.16.8.0/30")),
    (r"MAC address", ("00:1a:2b:3c:4d:5e", "a4:5e:60:c8:11:02")),
    (r"\bUUIDs?\b", ("5f0c3a52-6d1b-4a77-9c1e-1b2f3c4d5e6f",)),
    (r"MIME type|media type", ("image/png", "text/html", "application/json")),
    (r"\bISO 8601 duration|\bdurations?\b", ("PT45M", "P3DT4H", "P2W", "PT1H30M")),
    (r"chess ?board|\bsquares? (?:such|from a1)|a1 to h8", ("e4", "b1", "h8", "c6", "d5")),
    (r"\bFEN\b", ("8/8/4k3/8/8/4K3/4P3/8 w - - 0 1", "8/5k2/8/8/3Q4/8/8/6K1 w - - 0 1")),
    (r"\bedges?\b.{0,40}\bA-B", ("A-B:4", "B-C:2", "A-C:9", "C-D:1")),
    (r"algebraic|\bpolynomial", ("x^2 - 5x + 6", "2x^2 + 3x - 2", "x^3 - 1")),
    (r"\bfractions?\b", ("3/8", "7/12", "22/7", "5/6")),
    (r"\bmatri(?:x|ces)\b", ("[[1, 2], [3, 4]]", "[[2, 0], [1, 5]]", "[[4, 7], [2, 6]]")),
    (r"time of day", ("09:30", "18:45", "23:05")),
    (r"coordinates", ("48.2, 16.4", "-33.9, 151.2", "59.9, 10.7")),
    (r"blood (?:group|type)s?|Blutgruppen?", ("A+", "0-", "B+", "AB-", "0+", "A-")),
    (r"chemical equation", ("H2 + O2 -> H2O", "Fe + O2 -> Fe2O3", "CH4 + O2 -> CO2 + H2O")),
    (r"\bISRC\b|\bISSN\b", ("0317-8471", "2049-3630", "1050-124X")),
    (r"\bboolean expression|propositions?|truth table", ("p and not q", "p or q", "not (p and q)")),
    (r"\bemojis?\b", ("🌧️", "🍎", "🚲")),
)  # fmt: skip
_NOTATION_PATTERNS: Final = tuple(
    (re.compile(words, re.IGNORECASE), values) for words, values in _NOTATIONS
)


def notation_values(text: str, random: Random) -> tuple[str, list[str]]:
    """Return the notation that a text names first, and values in it; else empty."""
    found = [
        (m.start(), m[0], values)
        for words, values in _NOTATION_PATTERNS
        if (m := words.search(text[:600]))
    ]
    if not found:
        return "", []
    _, named, values = min(found, key=lambda one: one[0])
    return named.casefold(), random.sample(values, len(values))


_ENDS: Final = (
    ("start", "end"), ("begin", "end"), ("from", "to"), ("since", "until"), ("min", "max"),
    ("low", "high"), ("check_in", "check_out"), ("checkin", "checkout"), ("opens", "closes"),
)  # fmt: skip


def in_order(given: JsonObject) -> JsonObject:
    """Return the same arguments, with the end of a range not before its beginning."""
    put = dict(given)
    for first, last in _ENDS:
        low = next((name for name in put if first in name.casefold()), None)
        high = next((name for name in put if last in name.casefold()), None)
        one, other = put.get(low or ""), put.get(high or "")
        if low and high and isinstance(one, str | int) and type(one) is type(other):
            put[low], put[high] = sorted((one, other), key=lambda v: (str(type(v)), v))
    return put


PATTERN_CHARS_MAX = 200
TEXT_CHARS_MAX = 80
PATTERN_DEPTH_MAX = 6
PIECES_MAX = 500
"""Characters, classes and groups generated from one pattern, repetitions counted."""

MORE_MAX = 6
"""Repetitions beyond the least, if the bound is missing or high."""

_ANY: Final = string.ascii_lowercase + string.digits
_ESCAPED: Final = {
    "d": string.digits,
    "w": string.ascii_lowercase + string.digits,
    "s": " ",
}
_UNREAD: Final = frozenset("DWSBpPkAZz123456789xuc")
_SPECIAL: Final = frozenset("|)*+?{")


class _Unreadable(Exception):
    """The pattern uses unsupported syntax."""


def text_for(pattern: str, random: Random) -> str | None:
    """Return a matching text; None if the pattern is too long or unsupported."""
    if len(pattern) > PATTERN_CHARS_MAX:
        return None
    reader = _Reader(pattern, random)
    try:
        text = reader.alternatives(0)
    except (_Unreadable, IndexError, ValueError):
        return None
    return text if reader.at == len(pattern) and len(text) <= TEXT_CHARS_MAX else None


@dataclass(slots=True)
class _Reader:
    pattern: str
    random: Random
    at: int = 0
    pieces: int = 0

    def alternatives(self, depth: int) -> str:
        """Generate one of the alternatives up to the end of a group."""
        if depth > PATTERN_DEPTH_MAX:
            raise _Unreadable
        made = [self._sequence(depth)]
        while self._peek() == "|":
            self.at += 1
            made.append(self._sequence(depth))
        return self.random.choice(made)

    def _peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def _sequence(self, depth: int) -> str:
        text = ""
        while (char := self._peek()) and char not in "|)":
            start = self.at
            piece = self._piece(depth)
            count = self._count()
            after = self.at
            for number in range(count):
                self.at = start
                text += self._piece(depth) if number else piece
                if len(text) > TEXT_CHARS_MAX:
                    raise _Unreadable
            self.at = after
        return text

    def _piece(self, depth: int) -> str:
        """Generate one character, class or group."""
        self.pieces += 1
        if self.pieces > PIECES_MAX:
            raise _Unreadable
        char = self.pattern[self.at]
        self.at += 1
        if char in "^$":
            return ""
        if char == "(":
            return self._group(depth)
        if char == "[":
            return self.random.choice(self._class())
        if char == "\\":
            return self.random.choice(self._escape() or [""])
        if char in _SPECIAL:
            raise _Unreadable
        return self.random.choice(_ANY) if char == "." else char

    def _group(self, depth: int) -> str:
        if self._peek() == "?":
            opening = self.pattern[self.at : self.at + 40]
            if opening.startswith("?:"):
                self.at += 2
            elif opening.startswith(("?P<", "?<")) and opening[2:3] not in {"=", "!"}:
                self.at += opening.index(">") + 1
            else:
                raise _Unreadable
        made = self.alternatives(depth + 1)
        if self._peek() != ")":
            raise _Unreadable
        self.at += 1
        return made

    def _escape(self) -> str:
        """Return the characters that an escape stands for."""
        char = self.pattern[self.at]
        self.at += 1
        if char in _UNREAD:
            raise _Unreadable
        return "" if char == "b" else _ESCAPED.get(char, char)

    def _class(self) -> str:
        """Return the characters of a class."""
        if self._peek() == "^":
            raise _Unreadable
        found = ""
        while self._peek() != "]":
            char = self.pattern[self.at]
            self.at += 1
            if char == "\\":
                found += self._escape()
            elif self._peek() == "-" and self.pattern[self.at + 1] != "]":
                last = self.pattern[self.at + 1]
                self.at += 2
                found += "".join(map(chr, range(ord(char), min(ord(last), ord(char) + 100) + 1)))
            else:
                found += char
        self.at += 1
        if not found:
            raise _Unreadable
        return found

    def _count(self) -> int:
        """Return how often to repeat the piece before."""
        char = self._peek()
        low, high = {"?": (0, 1), "*": (0, MORE_MAX), "+": (1, MORE_MAX)}.get(char, (1, 1))
        if char == "{":
            inside, closed, _ = self.pattern[self.at + 1 :].partition("}")
            least, comma, most = inside.partition(",")
            if not closed:
                raise _Unreadable
            low = int(least or 0)
            high = (int(most) if most else low + MORE_MAX) if comma else low
            self.at += len(inside) + 1
        elif char not in {"?", "*", "+"} or not char:
            return 1
        self.at += 1
        if self._peek() in {"?", "+"}:
            self.at += 1
        return self.random.randint(low, min(high, low + MORE_MAX, TEXT_CHARS_MAX + 1))


_LETTERED: Final = re.compile(r"(?<![\w-])[A-Z][A-Z]\d\d(?:[- ]?[\dA-Z]{2,4}){3,9}(?![\w-])")
_DIGITS: Final = re.compile(r"(?<![\w.,/:-])\d(?:[- ]?\d){6,18}[- ]?[\dXx](?![\w/:-]|[.,]\d)")
_NO_ISSN: Final = re.compile(r"\d+(?:-\d+){2,}|\d+ .*|\d{7}-.")
"""Dates and telephone numbers have eight digits too."""
_CHECKING: Final = re.compile(
    r"valid|check|verif|whether|correct|\bright\b|genuine|gültig|richtig|prüf|válid|correct|vérif"
    r"|controll|geldig|ważn|popraw|sprawdz|geçerli|doğru|действ|провер|верн|правильн|перевір|дійсн"
    r"|校验|有效|正しい|有効|検証|صحيح|صالح|유효",
    re.IGNORECASE,
)


def checks_numbers(text: str) -> bool:
    """Return whether a request or description is about validity, and not a look-up."""
    return bool(_CHECKING.search(text))


def checked_number(text: str) -> str | None:
    """Return the first number in a text whose check digits are valid; None without one."""
    cut = text[:600]
    found = _LETTERED.findall(cut) or _DIGITS.findall(cut)
    return next((number for number in found if is_right(number)), None)


def another(number: str, random: Random, *, right: bool) -> str:
    """Return another number of the same form, with valid or invalid check digits as wanted.

    `number` must be valid itself.
    """
    rule = _rule_of(number)
    if rule is None:
        return number
    for _ in range(4):
        made = _other_body(number, random)
        fixed = _fixed(made, rule)
        if fixed is not None and fixed != number:
            return fixed if right else _spoilt(fixed, random)
    return number if right else _spoilt(number, random)


def is_right(number: str) -> bool:
    """Return whether check digits of a known kind are valid."""
    return _rule_of(number) is not None


def _plain(number: str) -> str:
    return re.sub(r"[ -]", "", number).upper()


def _values(plain: str) -> str:
    """Convert letters to numbers from 10 on."""
    return "".join(str(int(char, 36)) for char in plain)


def _iban(plain: str) -> bool:
    return plain[:2].isalpha() and int(_values(plain[4:] + plain[:4])) % 97 == 1


def _luhn(plain: str) -> bool:
    digits = [int(char) for char in reversed(plain)]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[1::2]]
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


def _gtin(plain: str) -> bool:
    digits = [int(char) for char in reversed(plain)]
    return (sum(digits[::2]) + 3 * sum(digits[1::2])) % 10 == 0


def _mod_11(plain: str) -> bool:
    digits = [10 if char == "X" else int(char) for char in reversed(plain)]
    return sum(place * digit for place, digit in enumerate(digits, 1)) % 11 == 0


_Rule = Callable[[str], bool]
_BY_LENGTH: Final[dict[int, tuple[_Rule, ...]]] = {
    8: (_mod_11, _gtin),
    10: (_mod_11,),
    12: (_gtin,),
    13: (_gtin,),
    14: (_gtin,),
    15: (_luhn,),
    16: (_luhn,),
}


def _rule_of(number: str) -> _Rule | None:
    """Return the rule that a number satisfies; the first of those for its length."""
    plain = _plain(number)
    if not plain.isascii() or not plain.isalnum():
        return None
    if plain[:2].isalpha():
        return _iban if _iban(plain) else None
    if not (plain[:-1].isdigit() and plain[-1] in string.digits + "X"):
        return None
    rules = _BY_LENGTH.get(len(plain), ())
    if len(plain) == 8 and _NO_ISSN.fullmatch(number):  # noqa: PLR2004 - of an ISSN
        return None
    is_lettered = plain[-1] == "X"
    return next((r for r in rules if (not is_lettered or r is _mod_11) and r(plain)), None)


def _other_body(number: str, random: Random) -> str:
    """Return the number with other digits in the middle: its beginning is the origin."""
    places = [place for place, char in enumerate(number) if char.isdigit()]
    kept = set(places[:4]) | set(places[-1:])
    return "".join(
        str(random.randint(0, 9)) if place in places and place not in kept else char
        for place, char in enumerate(number)
    )


def _fixed(number: str, rule: _Rule) -> str | None:
    """Return the number with valid check digits, if digits alone allow that."""
    if rule is _iban:
        tries = (number[:2] + f"{check:02}" + number[4:] for check in range(2, 99))
    else:
        tries = (number[:-1] + char for char in string.digits)
    return next((one for one in tries if rule(_plain(one))), None)


def _spoilt(number: str, random: Random) -> str:
    """Return the number with another last digit, so that it is invalid."""
    others = [number[:-1] + char for char in string.digits if char != number[-1]]
    return random.choice([one for one in others if not is_right(one)] or [number])


_YEAR: Final = re.compile(r"(?:^|_)(?:year|anno|año|ano|jahr|jaar|ann[ée]e|rok|год|рік|年)(?:$|_)")


def other_figure(value: JsonValue, declared: JsonObject, kind: str, random: Random) -> JsonValue:
    """Return a number of an example's size, within its bounds; other values unchanged."""
    if kind not in {"integer", "number"} or not isinstance(value, int | float):
        return value
    low, high = sorted((value * 0.6, value * 1.4))
    least, most = declared.get("minimum"), declared.get("maximum")
    low = max(low, least) if isinstance(least, int | float) else low
    high = min(high, most) if isinstance(most, int | float) else high
    is_small = high - low < 1
    if random.random() < 1 / 3 or (is_small and kind == "integer"):
        return value
    number = random.uniform(low, high)
    if kind == "integer":
        return round(number)
    return float(f"{number:.3g}") if is_small else round(number, 2)


def number_for(name: str, declared: JsonObject, kind: str, random: Random) -> int | float:
    """Return a number for an argument of that name."""
    low, high = _bounds(name, declared)
    number = random.uniform(low, high)
    return round(number) if kind == "integer" else round(number, 2)


def _bounds(name: str, declared: JsonObject) -> tuple[float, float]:
    plain = name.casefold()
    is_degrees = plain in {"lat", "latitude", "lon", "lng", "longitude"}
    low, high = (-80.0, 80.0) if is_degrees else (2.0, 60.0)
    if _YEAR.search(plain):
        low, high = 1951.0, 2023.0
    minimum, maximum = declared.get("minimum"), declared.get("maximum")
    if isinstance(minimum, int | float):
        low, high = float(minimum), max(high, float(minimum) + 50)
    if isinstance(maximum, int | float):
        high = float(maximum)
        low = min(low, high)
    return low, high


SHAPE_DEPTH_MAX = 3
_ITEMS_MAX = 40


def fits(value: JsonValue, kind: str) -> bool:
    """Return whether a value is of a JSON Schema type; a boolean is not a number."""
    types: Mapping[str, type | tuple[type, ...]] = {
        "string": str,
        "integer": int,
        "number": (int, float),
        "array": list,
        "object": dict,
        "boolean": bool,
    }
    expected = types.get(kind, str)
    return isinstance(value, expected) and (kind == "boolean" or not isinstance(value, bool))


def is_valid(value: JsonValue, schema: JsonValue, root: JsonValue = None, depth: int = 0) -> bool:
    """Return whether a value has the documented shape: types, required members, enums, items.

    Patterns are ignored: they are untrusted regular expressions.
    """
    if not is_object(schema) or depth > 2 * SHAPE_DEPTH_MAX:
        return True
    root = root or schema.get("$defs")
    if "$ref" in schema or "anyOf" in schema or "oneOf" in schema or "allOf" in schema:
        return True
    if "enum" in schema and not (is_array(schema["enum"]) and value in schema["enum"]):
        return False
    kind = schema.get("type")
    if isinstance(kind, str) and kind != "null" and not fits(value, kind):
        return False
    if is_object(value):
        return _members_valid(value, schema, root, depth)
    items = schema.get("items")
    return not is_array(value) or all(
        is_valid(v, items, root, depth + 1) for v in value[:_ITEMS_MAX]
    )


def _members_valid(value: JsonObject, schema: JsonObject, root: JsonValue, depth: int) -> bool:
    required, properties = schema.get("required"), schema.get("properties")
    if is_array(required) and any(str(name) not in value for name in required):
        return False
    if not is_object(properties):
        return True
    return all(
        is_valid(value[name], declared, root, depth + 1)
        for name, declared in list(properties.items())[:_ITEMS_MAX]
        if name in value and value[name] is not None
    )
