"""Chooses the next arguments of a tool or operation, from its earlier answers. Pure.

Reads what a refusal says about known values, and about how to ask.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

from assay.common.json import JsonObject, JsonValue, is_object
from assay.probing.function.arguments import (
    POOL_MAX,
    UNKNOWABLE,
    Pools,
    Way,
    arguments_for,
    stem_of,
    tied,
    way_of,
)
from assay.probing.function.examples import BETWEEN, EXAMPLE, values_at
from assay.probing.function.formats import named_format
from assay.probing.function.shown_calls import calls_shown
from assay.probing.function.variation import varied
from assay.probing.function.words import leaves, words_of
from assay.probing.probe_client import decode

OFFERED_CHARS_MAX, OFFERED_WORDS_MAX = 40, 4
_LEADS_TO_LIST = re.compile(
    r":\s|\b(?:one of|try|choose|among|are|sind|son|sont|sono"
    r"|são)\b",
    re.IGNORECASE,
)


def offered_in(said: str) -> list[str]:
    """Return the short names that a refusal lists, and its examples: values the service knows."""
    shown = [text.strip() for text in EXAMPLE.findall(said[:900])[:2]]
    listed = _LEADS_TO_LIST.split(said[:2000].strip(" .?!"))[-1]
    names = [name.strip("'\"` .") for name in BETWEEN.split(listed)]
    is_list = 1 < len(names) <= POOL_MAX and all(map(_is_name, names))
    return [name for name in (*shown, *(names if is_list else ())) if name]


_SENTENCE = re.compile(r"(?<=[?!.。\uff01\uff1f])\s*|\n")
_AND: Final = "and|or|und|oder|y|o|et|ou|e|en|of|i|lub|ve|veya|и|или|та|або"  # noqa: RUF001
_JOINS = re.compile(rf"\s*[,;、،\uff0c]\s*(?:(?:{_AND})\s+)?|\s+(?:{_AND})\s+")
LISTED_MIN, NAMES_MAX = 3, 6


def listed_in(said: str) -> list[str]:
    """Return the short names of the first list of three or more in an answer, in any language.

    The first name counts only after a colon: otherwise the words leading to the list are unknown.
    """
    for sentence in _SENTENCE.split(said[:1000]):
        _, colon, rest = sentence.rpartition(":")
        parts = [p.strip(" .!?。'\"`«»“”„") for p in _JOINS.split(rest if colon else sentence)]
        names = parts if colon else parts[1:]
        if len(parts) >= LISTED_MIN and all(p and _is_name(p) for p in names):
            return [name for name in names if not any(c.isdigit() for c in name)][:NAMES_MAX]
    return []


_QUOTED_DATA = re.compile(r"[`'\"“«„]([^`'\"“”«»„\n]{2,60})[`'\"”»“]")
_DATA = re.compile(
    r"(?<![\w#₹$€£])[#₹$€£]?(?=[^\s]*\d)[A-Za-z\d]+(?:[-/.:,+#@][A-Za-z\d]+)+%?(?![\w-])"
    r"|\b[A-Z]{1,4}\d{2,10}\b"
)


def notations_in(said: str) -> list[str]:
    """Return parts of a refusal or help text that show a notation: quoted, or with digits."""
    cut = said[:900]
    quoted = [q.strip() for q in _QUOTED_DATA.findall(cut)]
    data = [found[0].strip(".,:") for found in _DATA.finditer(cut)]
    return [*dict.fromkeys(text for text in (*quoted, *data) if text)][:SHOWN_MAX]


def shown_in(said: str) -> list[str]:
    """Return the requests that an answer shows as examples; few and short."""
    shown = [part for text in _HOW_TO_ASK.findall(said[:900]) for part in _EITHER.split(text)]
    shown = [*shown[:SHOWN_MAX], *_filled_in(said[:900])]
    return [*dict.fromkeys(text.strip(" .") for text in shown if text.strip(" ."))]


_STANDS_FOR = re.compile(r"(?<![\w#])#?(?:([A-Za-z])\1+|[-/.:]|\d+)+(?![\w])")
_RUN_OF = re.compile(r"([A-Za-z])\1+")
RUNS_MIN = 2


def _filled_in(said: str) -> list[str]:
    """Return values of the form that repeated letters stand for: `#rrggbb`, `AAA-nnn`.

    Small letters become digits, which most fields accept; capitals become letters.
    """
    random = Random(said)  # noqa: S311 - an example, varied before it is asked
    found = [m[0] for m in _STANDS_FOR.finditer(said) if len(_RUN_OF.findall(m[0])) >= RUNS_MIN]
    forms = [form for form in found if not named_format(form)]

    def filled(run: re.Match[str]) -> str:
        signs = "23456789" if run[0].islower() else "ABCDEFHK"
        return "".join(random.choice(signs) for _ in run[0])

    return [_RUN_OF.sub(filled, form) for form in dict.fromkeys(forms)][:1]


SHOWN_MAX = 3
_EITHER = re.compile(r"\s+(?:or|oder|ou|ofwel|lub|или|veya)\s+")
_HOW_TO_ASK = re.compile(
    r"(?:e\.g\.|for example|for instance|such as|examples?:"
    r"|(?:writt?en?|give|enter|put|spell) (?:(?:it|them|that|this|one|each \w+) )?(?:as|like)"
    r"|(?:be|looks?) (?:written |given )?(?:like|as)|in the (?:form|format|notation)(?: of)?"
    r"|schreib\w* (?:sie )?(?:es|sie|das) (?:als|wie|so)|écri\w+(?:-l[ea]s?)? comme"
    r"|escr[ií]b\w* como|scriv\w+ come|escreva\w*(?:-[oa])? como"
    r"|(?:напишите|запишите) как|(?:напишіть|запишіть) як"
    r"|z\. ?B\.|zum Beispiel|p\. ?ej\.|por ejemplo|por exemplo|par exemple|per esempio|ad esempio"
    r"|например|örneğin|例えば|例如)[:,\uff1a]?\s*['\"`“(]?([^\s'\"`”)][^\n]{0,118}?)"
    r"(?=['\"`”)]?(?:[.?!。]?\s*$|[.!。]\s))",
    re.IGNORECASE | re.MULTILINE,
)


def tells_known(said: str) -> bool:
    """Return whether a refusal says what is known, or within which bounds."""
    return bool(offered_in(said)) or _bounds_in(said) is not None


def _is_name(text: str) -> bool:
    return len(text) <= OFFERED_CHARS_MAX and len(text.split()) <= OFFERED_WORDS_MAX


def _bounds_in(said: str) -> tuple[int, int] | None:
    """Return the bounds in a short refusal: its only two numbers, the lower one first."""
    numbers = [
        int(n) for n in re.findall(r"(?<![\w.,-])\d{1,9}(?![\w,-]|\.\d)", said[:BOUNDS_CHARS])
    ]
    is_range = len(numbers) == 2 and numbers[0] < numbers[1]  # noqa: PLR2004 - from and to
    return (numbers[0], numbers[1]) if is_range and len(said) <= BOUNDS_CHARS else None


BOUNDS_CHARS = 200


DRAWS_MAX = 4


def asked_as(name: str, arguments: JsonObject) -> str:
    """Return how a call of a tool or operation is written in a transcript."""
    return f"{name} {json.dumps(arguments, ensure_ascii=False, sort_keys=True)}"


@dataclass(frozen=True, slots=True)
class Takes:
    """Something that takes arguments: a tool, an operation, a field of a query."""

    name: str
    schema: JsonObject
    about: str


def other_arguments(
    one: Takes, rows: Sequence[JsonObject], pools: Pools, random: Random
) -> JsonObject | None:
    """Return arguments that these rows do not have; None if one of them cannot be known.

    Values that a refusal names as known come first.
    """
    pools = _with_own(pools, one.name)
    had = {str(row["asked"]) for row in rows}
    mine = [row for row in rows if row.get("tool") == one.name[:200]]
    answers = [str(row.get("answer")) for row in mine if row["class"] == "not_found"]
    shown = _calls_described(one, [one.about, *dict.fromkeys(answers)])
    schema = _with_described(_as_refusals_say(one.schema, mine), shown)
    made: list[JsonObject | None] = []
    for _ in range(DRAWS_MAX):  # Of two known values, the second is drawn too.
        if any(a is not None and asked_as(one.name, a) not in had for a in made):
            break
        made = [arguments_for(schema, pools, random, one.about) for _ in range(8)]
    properties = one.schema.get("properties")
    declared: JsonObject = properties if is_object(properties) else {}
    whole = [given for given in shown if set(given) == set(declared)]
    if answers and (fresh := [a for a in whole if asked_as(one.name, a) not in had]):
        return fresh[0]
    refused = [str(row.get("answer")) for row in mine if _says_what_is_known(row)]
    made = [a if a is None else tied(a, declared, random, way=_way(mine, random)) for a in made]
    offered = _offered(refused, declared, made, random) if refused and not whole else []
    made = [a for a in offered if asked_as(one.name, a) not in had] or made
    only = next(iter(declared)) if len(declared) == 1 else ""
    if only and not UNKNOWABLE.search(only):
        made = [{only: text} for text in _like_answered(mine, random)] + made
    new = [a for a in made if a is not None and asked_as(one.name, a) not in had]
    if not any(row["class"] == "ok" for row in mine):
        before = [words_of(str(row["asked"])) for row in mine]
        return min(new, key=lambda a: _nearest(asked_as(one.name, a), before), default=None)
    answered = [words_of(str(row["asked"])) for row in mine if row["class"] == "ok"]
    # A service may use only one of several values of an example: the next request should differ
    # from what was answered, unless that was refused.
    choose = max if answered and mine[-1]["class"] == "not_found" else min
    return choose(new, key=lambda a: _nearest(asked_as(one.name, a), answered), default=None)


def _calls_described(one: Takes, texts: Sequence[str]) -> list[JsonObject]:
    """Return the arguments of its calls that a description or a refusal shows."""
    properties = one.schema.get("properties")
    names = properties.keys() if is_object(properties) else frozenset[str]()
    found: list[JsonObject] = []
    for text in texts[:REFUSALS_MAX] if one.name.startswith("/") else ():
        plain = _ORIGIN.sub("", text[:REFUSAL_CHARS])
        for call in calls_shown(plain.encode("utf-8", "replace"), "https://service.invalid/"):
            segments = call.raw.rstrip("/").split("/")[-one.name.count("/") :]
            at = values_at(one.name, "/".join(segments))
            given = {n: v for n, v in call.given.items() if call.places[n] != "path"}
            if at is not None and {*at, *given} <= names:
                found.append({n: v for n, v in {**at, **given}.items() if v is not None})
    return [given for given in found if given]


REFUSALS_MAX = 4
REFUSAL_CHARS = 2_000
_ORIGIN = re.compile(r"https?://[\w.:-]{1,200}(?=/)")


def _with_described(schema: JsonObject, described: Sequence[JsonObject]) -> JsonObject:
    """Return the schema, with the values of the owner's shown calls as examples."""
    properties = schema.get("properties")
    if not is_object(properties) or not described:
        return schema
    made: dict[str, JsonValue] = {}
    for name, declared in properties.items():
        values = [_of_type(given[name], declared) for given in described if name in given]
        known = [value for value in values if value is not None]
        is_open = is_object(declared) and not declared.keys() & {"enum", "const"}
        shown: JsonObject = {"examples": known} if known and is_open else {}
        made[name] = {**declared, **shown} if is_object(declared) else declared
    return {**schema, "properties": made}


def _of_type(value: JsonValue, declared: JsonValue) -> JsonValue:
    """Return a value of an address in its declared type, such as a number."""
    kind = declared.get("type") if is_object(declared) else None
    if kind not in {"integer", "number"} or not isinstance(value, str):
        return value
    return decode(value.encode())


def _as_refusals_say(schema: JsonObject, rows: Sequence[JsonObject]) -> JsonObject:
    """Return the schema with the refusals' texts added to each argument's description."""
    properties = schema.get("properties")
    refused = [row for row in rows if row["class"] == "not_found"]
    refusals = {str(row.get("answer"))[:200]: _given(row) for row in refused}
    if not is_object(properties) or not refusals:
        return schema
    described: dict[str, JsonValue] = {}
    for name, declared in properties.items():
        of_it = [
            said
            for said in sorted(refusals)
            if _names(said, name) or _quotes(said, refusals[said].get(name))
        ]
        described[name] = _described(declared, of_it) if of_it and is_object(declared) else declared
    return {**schema, "properties": described}


def _way(rows: Sequence[JsonObject], random: Random) -> Way:
    """Return how arguments are taken from one another.

    As in a call that found something if others found nothing; by turns while none did; at random at
    first, and while all do.
    """
    found: list[Way] = [way_of(_given(row)) for row in rows if row["class"] == "ok"]
    ways: list[Way] = found or [_TURNS[len(rows) % 2]]
    if not any(row["class"] == "not_found" for row in rows):
        ways = [*_TURNS, "apart", "apart"]
    return random.choice(ways)


_TURNS: Final[tuple[Way, Way]] = ("whole", "parts")


def _says_what_is_known(row: JsonObject) -> bool:
    """Return whether a refusal names what is known, besides what it was given."""
    said = str(row.get("answer"))
    if row["class"] != "not_found" or not tells_known(said):
        return False
    names = offered_in(said)
    asked = frozenset(words_of(str(row["asked"])))
    return not names or not all(asked.issuperset(words_of(name)) for name in names)


def _described(declared: JsonObject, refusals: Sequence[str]) -> JsonObject:
    """Return an argument's schema with refusals' texts, and its elements with shown values."""
    about = ". ".join([str(declared.get("description") or ""), *refusals])
    shown: list[JsonValue] = [text for said in refusals for text in shown_in(said)]
    items = declared.get("items")
    if shown and is_object(items):
        return {**declared, "items": {**items, "examples": shown}}
    described: JsonObject = {**declared, **_type_said(declared, refusals), "description": about}
    return {**described, "examples": shown} if shown else described


def _names(said: str, name: str) -> bool:
    return stem_of(name) in {stem_of(word) for word in words_of(said)}


def _type_said(declared: JsonObject, said: Sequence[str]) -> JsonObject:
    """Declare an argument of unknown type as a number if refusals say so."""
    is_known = declared.keys() & {"enum", "const", "format", "pattern"} or declared.get("examples")
    is_typed = "type" in declared and declared.get("examples") != []
    if is_known or is_typed or not any(map(_NUMBERS.search, said)):
        return {}
    return {"type": "integer"}


_NUMBERS = re.compile(r"\b(?:integers?|ints?|numbers?|numeric|floats?)\b", re.IGNORECASE)


def _given(row: JsonObject) -> JsonObject:
    """Return the arguments of a call."""
    found = decode(str(row["asked"])[len(str(row.get("tool"))) :].encode())
    return found if is_object(found) else {}


def _quotes(said: str, value: JsonValue) -> bool:
    return any(len(leaf) > 1 and leaf in said for leaf in leaves(value))


def _with_own(pools: Pools, name: str) -> Pools:
    """Add pools for an operation's own name, from values listed under a word of that name.

    `/stops/{name}` takes what is listed under `stops`.
    """
    words = re.split(r"[^A-Za-z0-9]+|(?<=[a-z])(?=[A-Z])", name)
    own = next((pools[stem_of(w)] for w in reversed(words) if w and stem_of(w) in pools), None)
    return pools if own is None else {**dict.fromkeys(_NAMING, own), **pools}


_NAMING = ("name", "id", "key", "code", "slug", "title", "q", "query")


def _offered(
    refused: Sequence[str],
    declared: JsonObject,
    made: Sequence[JsonObject | None],
    random: Random,
) -> list[JsonObject]:
    """Return arguments from values that refusals name as known, or within their bounds.

    The newest refusal that names some counts. Of several texts, all are replaced at first, and one
    of them later.
    """
    if not refused:
        return []
    said_last = refused[-1]
    free = [n for n in declared if not UNKNOWABLE.search(n)]
    said = [stem_of(word) for word in words_of(said_last)]
    texts = [n for n in free if _kind(declared[n]) == "string"]
    texts = [n for n in texts if stem_of(n) in said] or texts
    numbers = [n for n in free if _kind(declared[n]) in {"integer", "number"}]
    names, bounds = offered_in(said_last), _bounds_in(said_last)
    if len(declared) == len(texts) == 1:
        return [{texts[0]: name} for name in names]
    known = [a for a in made if a is not None]
    if names and texts:
        groups = [texts] if len(refused) < BATCH_MAX else [[n] for n in texts]
        return [
            {**a, **{n: random.choice(names) for n in group}} for a in known for group in groups
        ]
    if bounds is not None and len(numbers) == 1:
        return [{**a, numbers[0]: random.randint(*bounds)} for a in known]
    return []


BATCH_MAX = 3
"""Refusals after which a named value is taken to be for only one of the texts."""


def _kind(declared: JsonValue) -> str:
    """Return the type of an argument with any value of its type; empty for others."""
    if not is_object(declared) or declared.keys() & {"enum", "const", "format", "pattern"}:
        return ""
    return str(declared.get("type") or "string")


def _like_answered(rows: Sequence[JsonObject], random: Random) -> list[str]:
    """Return what was answered, if other things were refused, with another value of its kind."""
    if not rows or rows[-1]["class"] != "not_found":
        return []
    answered = [_given(row) for row in rows if row["class"] == "ok"]
    values = [next(iter(given.values())) for given in answered if given]
    made = [varied(value, random) for value in values[:2] if isinstance(value, str)]
    return [text for text in made if text is not None]


def _nearest(asked: str, before: Sequence[Sequence[str]]) -> float:
    """Return how much of a request occurs in an earlier one, 0 to 1."""
    words = set(words_of(asked))
    return max((len(words & set(row)) / len(words | set(row)) for row in before), default=0.0)
