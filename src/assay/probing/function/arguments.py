"""Arguments for tools and operations, from what their owner documents. Pure.

Sources of a value, the best first: inputs the owner publishes for tests, enumerations, results of
other calls, examples (varied), names that say what they hold, plain types.
"""

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Final

from assay.kit.json import JsonObject, JsonValue, is_array, is_object
from assay.probing.function.domains import value_about, word_or_passage
from assay.probing.function.fitting import NAMES_PART, part_of
from assay.probing.function.formats import FORMATS, in_order, named_format, noted_values
from assay.probing.function.from_pattern import text_for
from assay.probing.function.known_values import named_value, topics
from assay.probing.function.material import WORDS_MIN, quoted_in, retold
from assay.probing.function.numbers_for import number_for, other_figure
from assay.probing.function.shapes import DEPTH_MAX, fits
from assay.probing.function.slots import relettered
from assay.probing.function.variation import values_like, varied

PROPERTIES_MAX = 12
"""Required arguments beyond which a tool is left alone."""

BETWEEN = re.compile(r"\s*(?:[,;/|\n]|\bor\b|\band\b)\s*")
POOL_MAX, LISTED_WORDS_MAX, ITEMS, DRAWS = 40, 2, 4, 8
_SHORT = re.compile(
    r"(?:^|_)(?:prefix|suffix|name|code|id|slug|tag|symbol|unit|kind|type|category)(?:$|_)",
    re.IGNORECASE,
)
"""Arguments that take no text of several sentences, whatever the description speaks of."""
EXAMPLE = re.compile(
    r"(?:e\.g\.|eg\.|for example|for instance|such as|examples?:|z\. ?b\.|zum beispiel|p\. ?ej\."
    r"|por ejemplo|por exemplo|par exemple|per esempio|ad esempio|örneğin|например|مثلا|مثال:"
    r"|예를 들면|예를 들어|예:|例えば|例如|例\uff1a|例:|比如|उदाहरण:)[,:、\uff0c]?\s*"
    r"['\"`“(]?([#\w][^'\"`”);\n]{0,79}?)(?=['\"`”);]|[.?!,。]?\s*$|[.?!。]\s)",
    re.IGNORECASE,
)
_BEGINS = re.compile(r"\bprefix\b|_prefix\b|(?:starts?|begins?|beginning) with", re.IGNORECASE)
_FIRST_LETTERS: Final = ("b", "c", "a", "s", "m", "p", "t", "l")
UNKNOWABLE = re.compile(
    r"(?:^|_)(?:url|uri|link|href|webhook|callback|email|phone|password|secret|token|key|address"
    r"|path|file|filename|recipient|amount)(?:$|_)",
    re.IGNORECASE,
)
"""Arguments that we have no honest value for."""

_NAMELESS: Final = frozenset({"result", "results", "data", "items", "list", "rows", "values"})

Pools = Mapping[str, Sequence[JsonValue]]
"""Values by argument name, from published test inputs and from results of other calls."""


def arguments_for(
    schema: JsonObject, pools: Pools, random: Random, about: str = ""
) -> JsonObject | None:
    """A value for every required argument; None where one of them cannot be known.

    `about` is what the owner says of the whole tool or operation.
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
        declared = _told(properties.get(name), about if len(names) == 1 else "")
        value = _value(name, declared, root, pools, random)
        if value is None and NAMES_PART.search(name):
            value = part_of(chosen, random)
        if value is None:
            return None
        chosen[name] = value
    return in_order(chosen)


def pools_of(
    results: Sequence[tuple[str, JsonValue]], published: JsonValue
) -> dict[str, list[JsonValue]]:
    """What earlier results, each with what it was asked of, and published inputs offer.

    By the names values stand under; what has no name of its own, by the last word of what was
    asked: `list_articles` gives articles.
    """
    pools: dict[str, list[JsonValue]] = {}
    named = published if is_object(published) else None
    for asked, value in (("", named), *results):
        last = re.split(r"[^A-Za-z0-9]+|(?<=[a-z])(?=[A-Z])", asked.strip("/"))[-1]
        _gather(value, last, pools, 0)
    return pools


def _gather(value: JsonValue, name: str, pools: dict[str, list[JsonValue]], depth: int) -> None:
    if depth > 2 * DEPTH_MAX:
        return
    if is_object(value):
        for key, item in list(value.items())[:POOL_MAX]:
            _gather(item, name if key in _NAMELESS else key, pools, depth + 1)
    elif is_array(value):
        for item in value[:POOL_MAX]:
            _gather(item, name, pools, depth + 1)
    elif isinstance(value, str | int) and not isinstance(value, bool) and len(str(value)) < 100:  # noqa: PLR2004
        pool = pools.setdefault(stem_of(name), [])
        if value not in pool and len(pool) < POOL_MAX:
            pool.append(value)


def stem_of(name: str) -> str:
    """One key for `city`, `cities` and `City`."""
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
    shown = _shown(declared, kind, random)
    if shown is not None:
        return shown
    if kind in {"array", "object"}:
        return _composite(name, declared, root, pools, random, depth)
    return _plain(name, declared, kind, random)


def _plain(name: str, declared: JsonObject, kind: str, random: Random) -> JsonValue:
    if kind == "string":
        return _string(name, declared, random)
    if kind in {"integer", "number"}:
        return number_for(name, declared, kind, random)
    return random.random() < 1 / 2 if kind == "boolean" else None


def _composite(
    name: str, declared: JsonObject, root: JsonValue, pools: Pools, random: Random, depth: int
) -> JsonValue:
    """A list of a few, or an object; one of no named members gets some."""
    if depth >= DEPTH_MAX:
        return None
    about = f"{name.replace('_', ' ')}. {declared.get('description') or ''}"
    if _type(declared) == "array":
        one = _about(declared.get("items"), about)
        drawn = [_value("", one, root, pools, random, depth + 1) for _ in range(DRAWS)]
        return None if None in drawn else _different(drawn)
    if is_object(declared.get("properties")):
        whole = {**declared, "$defs": root} if root else declared
        return arguments_for(whole, pools, random)
    one = _about(declared.get("additionalProperties"), about)
    names = topics(random, ITEMS - 1)
    made = {key: _value("", one, root, pools, random, depth + 1) for key in names}
    return None if None in made.values() else made


def _different(drawn: Sequence[JsonValue]) -> list[JsonValue]:
    """A few of these, those that differ first."""
    found: list[JsonValue] = []
    for value in drawn:
        found += [value] if value not in found else []
    return [*found, *drawn][:ITEMS]


def _about(declared: JsonValue, about: str) -> JsonObject:
    """The schema of members, which are what is said of all of them together."""
    schema: JsonObject = declared if is_object(declared) else {}
    return schema if schema.get("description") else {**schema, "description": about}


def _told(declared: JsonValue, about: str) -> JsonValue:
    """The only argument of a tool is what the tool's description speaks of."""
    if not about or not is_object(declared):
        return declared
    return {**declared, "description": f"{declared.get('description') or ''}. {about}"}


def _resolved(declared: JsonValue, root: JsonValue) -> JsonObject:
    """A schema behind one reference or the first of its alternatives that is not null."""
    if not is_object(declared):
        return {}
    for _ in range(DEPTH_MAX):
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
    """Values under the argument's own name; ids under `id` too."""
    stem = stem_of(name)
    found = pools.get(stem) or ()
    if not found and stem.endswith("id"):
        return pools.get("id") or ()
    return found


def _shown(declared: JsonObject, kind: str, random: Random) -> JsonValue:
    """An example of the owner's, another value of its kind where we know one."""
    examples = declared.get("examples")
    given = list(examples) if is_array(examples) else []
    given += [declared[m] for m in ("example", "default") if declared.get(m) is not None]
    told = EXAMPLE.findall(str(declared.get("description") or "")[:900])
    if kind == "string":
        given += [part for text in told[:4] for part in _listed_in(text) or [text.strip()]]
        given = quoted_in(str(declared.get("description") or "")) or given
    fitting = [v for v in given if fits(v, kind) and v != ""]
    if not fitting:
        return None
    value = random.choice(fitting)
    if isinstance(value, str) and random.random() < (1 / 3 if len(fitting) == 1 else 5 / 6):
        return value
    if not isinstance(value, str):
        return other_figure(value, declared, kind, random)
    if len(value.split()) >= WORDS_MIN:
        return retold(value, random)
    like = values_like(value, random), relettered(value, random), varied(value, random)
    known = [changed for changed in like if changed is not None]
    if "pattern" in declared:  # its own examples say how long a value that fits is
        known = [changed for changed in known if len(changed) == len(value)]
    return random.choice(known) if known else value if random.random() < 1 / 3 else None


def _listed_in(text: str) -> list[str]:
    """The members of a list of short names; none of anything else."""
    parts = BETWEEN.split(text.strip())
    is_list = len(parts) > 1 and all(0 < len(part.split()) <= LISTED_WORDS_MAX for part in parts)
    return parts if is_list else []


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
    noted = noted_values(f"{name}. {about}".replace("_", " "), random)[1]
    text = noted[0] if noted else word_or_passage(name, random, about)
    text = text or named_value(name, random, about)
    text = text or value_about(f"{name}. {about}", random, texts=not _SHORT.search(name))
    text = text or topics(random, 1, about)[0]
    bound = declared.get("maxLength")
    return text[:bound] if isinstance(bound, int) else text
