"""Builds arguments for tools and operations from their documentation. Pure.

Requests and values for services that show none, chosen by the words of their descriptions.

An agent whose card gives no example, and a tool whose argument has no known name, still describe
themselves in a sentence. A row has words of such sentences, a question, and its values.

Makes arguments of one call consistent: what one names occurs in another.

A way leads between points of the network, a key is one of the record's, a word is searched in the
given text: independent values for each argument find nothing.

Sources of a value, the best first: inputs the owner publishes for tests, enumerations, results of
other calls, examples (varied), names that tell their content, plain types.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, Literal

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.probing.function.examples import shown_value, with_examples
from assay.probing.function.formats import (
    FORMATS,
    SHAPE_DEPTH_MAX,
    fits,
    in_order,
    named_format,
    notation_values,
    number_for,
    text_for,
)
from assay.probing.function.generated_texts import passage, some_date
from assay.probing.function.known_values import (
    ADJECTIVES,
    CITIES,
    COINS,
    COUNTRIES,
    DISHES,
    ELEMENTS,
    KNOWN_FIRST,
    PLANETS,
    PLANTS,
    THINGS,
    TICKERS,
    named_value,
    topics,
)
from assay.probing.function.variation import figures_varied
from assay.probing.function.words import leaves

DESCRIPTION_CHARS_MAX = 600


def _one_of(known: tuple[str, ...]) -> Callable[[Random], str]:
    return lambda random: random.choice(known[:KNOWN_FIRST])


def _money(random: Random) -> str:
    base, quote = random.sample(("USD", "EUR", "GBP", "JPY"), 2)
    return f"{random.randint(11, 980)} {base} in {quote}"


def _loan(random: Random) -> str:
    months = 12 * random.randint(2, 20)
    return f"{1000 * random.randint(5, 90)} over {months} months at {random.randint(20, 69) / 10} %"


def _length(random: Random) -> str:
    one, other = random.sample(("km", "miles", "feet", "meters"), 2)
    return f"{random.randint(3, 80)} {one} in {other}"


def _odd(random: Random) -> str:
    return str(2 * random.randint(20, 400) + 1)


def _radius(random: Random) -> str:
    return str(random.randint(2, 60))


def _hex(random: Random) -> str:
    return f"#{random.randrange(16**6):06x}"


@dataclass(frozen=True, slots=True)
class SubjectArea:
    """A topic that a service may have."""

    words: tuple[str, ...]
    question: str
    value: Callable[[Random], str]


_TEXTS: Final = (
    "summar",
    "condens",
    "extract",
    "sentiment",
    "keyword",
    "text",
    "document",
    "letter",
    "sentence",
    "paragraph",
    "passage",
    "article",
    "prompt",
    "spam",
    "readability",
    "prose",
)

_SUBJECTS: Final = (
    SubjectArea(("synonym", "thesaurus", "antonym"), "Which words mean the same as {}?",
            _one_of(ADJECTIVES)),
    SubjectArea(("circle", "radius", "sphere"), "What do you get for a radius of {}?", _radius),
    SubjectArea(("loan", "mortgage", "annuity"), "What do you get for {}?", _loan),
    SubjectArea(("colour", "color", "palette", "hexadecimal"), "What is {} as numbers?", _hex),
    SubjectArea(("weather", "forecast", "temperature", "climate", "town", "city"),
            "How is it in {} now?", _one_of(CITIES)),
    SubjectArea(("currenc", "exchange rate", "forex"), "What does {} come to?", _money),
    SubjectArea(("time zone", "timezone", "local time", "world clock"), "What time is it in {}?",
            _one_of(CITIES)),
    SubjectArea(("ticker", "stocks", "stock price", "equities"), "What do you know about {}?",
            _one_of(TICKERS)),
    SubjectArea(("crypto", "token price", "coin"), "What do you know about {}?", _one_of(COINS)),
    SubjectArea(("countr", "nation", "capital"), "What do you know about {}?", _one_of(COUNTRIES)),
    SubjectArea(("chemical", "periodic", "atomic", "element"), "What do you know about {}?",
            _one_of(ELEMENTS)),
    SubjectArea(("planet", "orbit", "solar system", "astronom"), "What do you know about {}?",
            _one_of(PLANETS)),
    SubjectArea(("plant", "garden", "watered", "flower"), "What does a {} need?", _one_of(PLANTS)),
    SubjectArea(("recipe", "ingredient", "dish", "cook"), "What is needed for {}?",
            _one_of(DISHES)),
    SubjectArea(("weekday", "calendar", "date"), "Which day was {}?", some_date),
    SubjectArea(("metric", "imperial", "length", "distance"), "What does {} come to?", _length),
    SubjectArea(("prime", "divisor", "factor"), "What do you find for {}?", _odd),
    SubjectArea(("translat", "dictionary", "language"), "What is '{}' in French?",
            _one_of(THINGS)),
    SubjectArea(_TEXTS, "What does the following say? {}", passage),
)  # fmt: skip


def _subjects_of(text: str) -> list[SubjectArea]:
    """Return the topics that a description names, in order."""
    plain = text[:DESCRIPTION_CHARS_MAX].casefold()
    found = [(min(_places(plain, row)), n, row) for n, row in enumerate(_SUBJECTS)
             if _places(plain, row)]  # fmt: skip
    return [row for _, _, row in sorted(found, key=lambda entry: entry[:2])]


def reads_texts(about: str) -> bool:
    """Return whether a skill of this description processes a text."""
    return bool(_places(about[:DESCRIPTION_CHARS_MAX].casefold(), _SUBJECTS[-1]))


def _places(plain: str, row: SubjectArea) -> list[int]:
    return [place for word in row.words if (place := plain.find(word)) >= 0]


def questions_about(text: str, random: Random) -> Iterator[tuple[str, str]]:
    """Yield (topic, question) for each topic of a description, with three values each."""
    for row in _subjects_of(text)[:2]:
        for _ in range(3):
            yield row.words[0], row.question.format(row.value(random))


def _value_about(text: str, random: Random, *, texts: bool = True) -> str | None:
    """Return a value that a service of this description may know; None if its words tell none.

    `texts`: whether it may be a text of several sentences.
    """
    found = [row for row in _subjects_of(text) if texts or row.words is not _TEXTS][:3]
    return random.choice(found).value(random) if found else None


_CONTACT = re.compile(r"\be-?mail|\bphone|personal (?:data|info)|\bPII\b", re.IGNORECASE)


def _word_or_passage(name: str, random: Random, about: str = "") -> str | None:
    """Return a passage for an argument that takes one, by its name.

    It includes a person's address and number if the description mentions such.
    """
    plain = name.casefold()
    takes = ("text", "content", "document", "passage", "paragraph", "body", "article", "sentence")
    if not any(word in plain for word in takes):
        return None
    return passage(random, with_contact=bool(_CONTACT.search(about)))


WORDS_MIN = 4
"""A word is taken only from texts with at least this many words; shorter ones are values
themselves."""

_PARTS: Final = re.compile(r"[^\W_]+")
_FIXED: Final = frozenset({"enum", "const", "format", "pattern"})


Way = Literal["whole", "parts", "apart"]
"""How short texts are taken from the call's other arguments; `apart`: they are not."""


def tied(given: JsonObject, declared: JsonObject, random: Random, *, way: Way) -> JsonObject:
    """Return the same call with its short texts taken from its other arguments.

    They are members of a list whole or in part, keys of an object, words of a text. Texts that may
    be one of a few stay.
    """
    whole, parts = _atoms(given)
    if not whole or way == "apart":
        return given
    of = (way == "parts" and parts) or whole
    return {
        name: random.choice(of) if _is_free(name, value, declared) else value
        for name, value in given.items()
    }


def way_of(given: JsonObject) -> Way:
    """Return how the short texts of a call were taken from its other arguments."""
    whole, parts = _atoms(given)
    short = [value for name, value in given.items() if _is_free(name, value, {})]
    if not short or not any(value in whole or value in parts for value in short):
        return "apart"
    return "whole" if all(value in whole for value in short) else "parts"


def _part_of(given: JsonObject, random: Random) -> str | None:
    """Return a key of an object or a member of a list in the input; None without one."""
    named = [value for value in given.values() if not isinstance(value, str)]
    whole, _ = _atoms({str(n): value for n, value in enumerate(named)})
    return random.choice(whole) if whole else None


NAMES_PART: Final = re.compile(r"^(?:key|path|field|member)(?:_?name)?$", re.IGNORECASE)
"""Arguments that name a part of another one, if there is one with parts."""


def _atoms(given: JsonObject) -> tuple[list[str], list[str]]:
    """Return the contents of lists, objects and texts, and those parts that are words."""
    whole: list[str] = []
    for value in given.values():
        if is_object(value):
            whole += list(value)
        elif is_array(value) and not isinstance(value, str):
            whole += leaves(value)
        elif isinstance(value, str) and len(value.split()) >= WORDS_MIN:
            whole += [word for word in _PARTS.findall(value) if len(word) >= WORDS_MIN]
    parts = [part for one in whole for part in _PARTS.findall(one)]
    return whole, [part for part in parts if not part.isdigit()]


def _is_free(name: str, value: JsonValue, declared: JsonObject) -> bool:
    schema = declared.get(name)
    is_fixed = is_object(schema) and bool(_FIXED & schema.keys())
    return isinstance(value, str) and len(value.split()) < WORDS_MIN and not is_fixed


PROPERTIES_MAX = 12
"""A tool with more required arguments is skipped."""

POOL_MAX, ITEMS, ITEMS_MAX, DRAWS = 40, 4, 8, 8
_SHORT = re.compile(
    r"(?:^|_)(?:prefix|suffix|name|code|id|slug|tag|symbol|unit|kind|type|category)(?:$|_)",
    re.IGNORECASE,
)
"""Arguments that never take a text of several sentences, whatever the description says."""
CHARS_MAX, PUBLISHED_CHARS_MAX = 100, 4_000
"""Longest text of a result used as a value for other calls; of a published one."""
_BEGINS = re.compile(r"\bprefix\b|_prefix\b|(?:starts?|begins?|beginning) with", re.IGNORECASE)
_FIRST_LETTERS: Final = ("b", "c", "a", "s", "m", "p", "t", "l")
UNKNOWABLE = re.compile(
    r"(?:^|_)(?:url|uri|link|href|webhook|callback|email|phone|password|secret|token|key|address"
    r"|path|file|filename|recipient|amount)(?:$|_)",
    re.IGNORECASE,
)
"""Arguments for which we have no honest value."""

_WRITTEN: Final = re.compile(r"(?:expression|expr|formula|pattern|notation|spec|rule|line)s?")
"""Arguments written in the notation that the whole tool is about."""

_NAMELESS: Final = frozenset({"result", "results", "data", "items", "list", "rows", "values"})

Pools = Mapping[str, Sequence[JsonValue]]
"""Values by argument name, from published test inputs and from results of other calls."""


def arguments_for(
    schema: JsonObject, pools: Pools, random: Random, about: str = ""
) -> JsonObject | None:
    """Return a value for every required argument; None if one of them cannot be known.

    `about` is the owner's description of the whole tool or operation.
    """
    properties = schema.get("properties")
    required = schema.get("required")
    if not is_object(properties):
        return {}
    names = [str(name) for name in required] if is_array(required) else []
    if not names:
        names = [name for name in properties if not UNKNOWABLE.search(name)][:1]
    if len(names) > PROPERTIES_MAX:
        return None
    chosen: dict[str, JsonValue] = {}
    defined = schema.get("$defs") or schema.get("definitions")
    root = {**properties, **(defined if is_object(defined) else {})}
    for name in sorted(names, key=lambda name: bool(NAMES_PART.search(name))):
        is_only = len(names) == 1 or _WRITTEN.fullmatch(name)
        declared = _described(properties.get(name), about if is_only else "")
        value = _value(name, declared, root, pools, random)
        if value is None and NAMES_PART.search(name):
            value = _part_of(chosen, random)
        if value is None:
            return None
        chosen[name] = value
    return in_order(chosen)


def pools_of(
    results: Sequence[tuple[str, JsonValue]], published: JsonValue, random: Random | None = None
) -> dict[str, list[JsonValue]]:
    """Return the values offered by earlier results, each with its request, and published inputs.

    Values are listed by their names; unnamed ones by the last word of the request: `list_articles`
    gives articles. With `random`, published dates, times and fractions get neighbours: a service
    prepared only for published values does not know them.
    """
    pools: dict[str, list[JsonValue]] = {}
    named: JsonObject = published if is_object(published) else {}
    for name, values in list(named.items())[:POOL_MAX]:
        for value in values[:POOL_MAX] if is_array(values) else ():
            is_text = isinstance(value, str) and len(value) <= PUBLISHED_CHARS_MAX
            if is_text or is_object(value) or is_array(value):
                pools.setdefault(stem_of(name), []).append(value)
            if random is not None:
                pools.setdefault(stem_of(name), []).extend(_beside(value, random))
    for asked, value in (("", named), *results):
        last = re.split(r"[^A-Za-z0-9]+|(?<=[a-z])(?=[A-Z])", asked.strip("/"))[-1]
        if is_object(value) or is_array(value):
            _gather(value, last, pools, 0)
    return pools


_MOMENT: Final = re.compile(r"\d{4}(?:-\d\d){2}|\d?\d:\d\d")


def _beside(value: JsonValue, random: Random) -> list[JsonValue]:
    """Return a neighbour of a date, a time or a fraction, which have many; none for others."""
    if isinstance(value, float):
        return [float(f"{value * random.uniform(0.6, 1.4):.3g}")]
    changed = None
    if isinstance(value, str) and _MOMENT.fullmatch(value):
        changed = figures_varied(value, random)
    return [changed] if changed is not None else []


def _gather(value: JsonValue, name: str, pools: dict[str, list[JsonValue]], depth: int) -> None:
    if depth > 2 * SHAPE_DEPTH_MAX:
        return
    if is_object(value):
        # A text under an uninformative name is an answer, not a list.
        rows = [(k, v) for k, v in value.items() if k not in _NAMELESS or not isinstance(v, str)]
        for key, item in rows[:POOL_MAX]:
            _gather(item, name if key in _NAMELESS else key, pools, depth + 1)
    elif is_array(value):
        for item in value[:POOL_MAX]:
            _gather(item, name, pools, depth + 1)
    elif _is_plain(value):
        pool = pools.setdefault(stem_of(name), [])
        if value not in pool and len(pool) < POOL_MAX:
            pool.append(value)


def _is_plain(value: JsonValue) -> bool:
    is_one = isinstance(value, str | int | float) and not isinstance(value, bool)
    return is_one and len(str(value)) < CHARS_MAX


def stem_of(name: str) -> str:
    """Return one key for `city`, `cities` and `City`."""
    plain = re.sub(r"(?:_|-)", "", name.casefold())
    return plain[:-3] + "y" if plain.endswith("ies") else plain.removesuffix("s")


def _value(
    name: str, declared: JsonValue, root: JsonValue, pools: Pools, random: Random, depth: int = 0
) -> JsonValue:
    declared = _resolved(declared, root)
    fixed = _listed(declared)
    if fixed:
        return random.choice(fixed)
    kind = _type(declared)
    pooled = [v for v in _pooled(name, pools) if fits(v, kind)]
    if pooled:
        return random.choice(pooled)
    if kind in {"array", "object"}:
        return _composite(name, with_examples(declared), root, pools, random, depth)
    shown = shown_value(declared, kind, random)
    if shown is not None:
        return shown
    return _plain(name, declared, kind, random)


def _plain(name: str, declared: JsonObject, kind: str, random: Random) -> JsonValue:
    if kind == "string":
        return _string(name, declared, random)
    if kind in {"integer", "number"}:
        return number_for(name, declared, kind, random)
    return random.random() < 1 / 2 if kind == "boolean" else None


def _composite(
    name: str,
    declared: JsonObject,
    root: JsonValue,
    pools: Pools,
    random: Random,
    depth: int,
) -> JsonValue:
    """Return a short list, or an object; one without named members gets some."""
    if depth >= SHAPE_DEPTH_MAX:
        return None
    about = f"{name.replace('_', ' ')}. {declared.get('description') or ''}"
    if _type(declared) == "array":
        one = _about(declared.get("items"), about)
        drawn = [_value("", one, root, pools, random, depth + 1) for _ in range(DRAWS)]
        return None if None in drawn else _different(drawn, _count(declared))
    if is_object(declared.get("properties")):
        whole = {**declared, "$defs": root} if root else declared
        return arguments_for(whole, pools, random)
    one = _about(declared.get("additionalProperties"), about)
    names = topics(random, ITEMS - 1)
    made = {key: _value("", one, root, pools, random, depth + 1) for key in names}
    return None if None in made.values() else made


def _different(drawn: Sequence[JsonValue], count: int) -> list[JsonValue]:
    """Return `count` of these, different ones first."""
    found: list[JsonValue] = []
    for value in drawn:
        found += [value] if value not in found else []
    return [*found, *drawn][:count]


def _about(declared: JsonValue, about: str) -> JsonObject:
    """Return the members' schema, with the description of all of them together."""
    schema: JsonObject = declared if is_object(declared) else {}
    return schema if schema.get("description") else {**schema, "description": about}


def _count(declared: JsonObject) -> int:
    """Return a list's length, equal in every call, so that counts of members prove nothing."""
    least, most = declared.get("minItems"), declared.get("maxItems")
    low = least if isinstance(least, int) else 0
    high = most if isinstance(most, int) else ITEMS
    return max(1, min(max(ITEMS, low), high, ITEMS_MAX))


def _described(declared: JsonValue, about: str) -> JsonValue:
    """Describe a tool's only argument by the tool's own description."""
    if not about or not is_object(declared):
        return declared
    return {**declared, "description": f"{declared.get('description') or ''}. {about}"}


def _resolved(declared: JsonValue, root: JsonValue) -> JsonObject:
    """Return the schema behind one reference, or its first alternative that is not null."""
    if not is_object(declared):
        return {}
    for _ in range(SHAPE_DEPTH_MAX):
        reference = declared.get("$ref")
        if isinstance(reference, str) and is_object(root):
            found = root.get(reference.rpartition("/")[2])
            declared = found if is_object(found) else {}
            continue
        options = declared.get("anyOf") or declared.get("oneOf")
        rows = [o for o in options if is_object(o)] if is_array(options) else []
        useful = [row for row in rows if row.get("type") != "null"]
        if not useful:
            break
        declared = {
            **useful[0],
            **{k: v for k, v in declared.items() if k in {"examples", "description"}},
        }
    return declared


def _type(declared: JsonObject) -> str:
    kind = declared.get("type")
    if is_array(kind):
        kind = next((k for k in kind if k != "null"), None)
    if isinstance(kind, str):
        return kind
    return "object" if "properties" in declared else "string"


def _listed(declared: JsonObject) -> Sequence[JsonValue]:
    if "const" in declared:
        return [declared["const"]]
    values = declared.get("enum")
    return [v for v in values if v is not None][:POOL_MAX] if is_array(values) else []


def _pooled(name: str, pools: Pools) -> Sequence[JsonValue]:
    """Return values under the argument's own name; ids also under `id`."""
    stem = stem_of(name)
    found = pools.get(stem) or ()
    if not found and stem.endswith("id"):
        return pools.get("id") or ()
    return found


def _string(name: str, declared: JsonObject, random: Random) -> str | None:
    form = declared.get("format")
    if isinstance(form, str) and form in FORMATS:
        return random.choice(FORMATS[form])
    if UNKNOWABLE.search(name) or form in {"uri", "email", "uuid"}:
        return None
    pattern = declared.get("pattern")
    if isinstance(pattern, str):
        return text_for(pattern, random)
    if _BEGINS.search(f"{name} {declared.get('description') or ''}"):
        return random.choice(_FIRST_LETTERS)
    about = str(declared.get("description") or "")
    named = named_format(f"{name} {about}") or ("date" if "date" in name.casefold() else None)
    if named is not None:
        return random.choice(FORMATS[named])
    values_given = notation_values(f"{name}. {about}".replace("_", " "), random)[1]
    text = values_given[0] if values_given else _word_or_passage(name, random, about)
    text = text or named_value(name, random, about)
    text = text or _value_about(f"{name}. {about}", random, texts=not _SHORT.search(name))
    text = text or topics(random, 1, about)[0]
    bound = declared.get("maxLength")
    return text[:bound] if isinstance(bound, int) else text
