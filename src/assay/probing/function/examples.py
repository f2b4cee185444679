"""Builds values like an owner's examples: another of the kind if we know one. Pure."""

import re
from collections.abc import Sequence
from random import Random
from typing import Final

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.probing.function.material import WORDS_MIN, quoted_in, retold
from assay.probing.function.numbers_for import other_figure
from assay.probing.function.shapes import DEPTH_MAX, fits
from assay.probing.function.slots import relettered
from assay.probing.function.variation import values_like, varied

EXAMPLES_MAX: Final = 8
MEMBERS_MAX: Final = 12
LISTED_MAX, LISTED_LIKE_LONG = 6, 4
"""Lists are as long as the one shown; shorter if that is long."""

LISTED_WORDS_MAX: Final = 2
BETWEEN = re.compile(r"\s*(?:[,;/|\n]|\bor\b|\band\b)\s*")
EXAMPLE = re.compile(
    r"(?:e\.g\.|eg\.|for example|for instance|such as|examples?:|z\. ?b\.|zum beispiel|p\. ?ej\."
    r"|por ejemplo|por exemplo|par exemple|per esempio|ad esempio|örneğin|например|مثلا|مثال:"
    r"|예를 들면|예를 들어|예:|例えば|例如|例\uff1a|例:|比如|उदाहरण:)[,:、\uff0c]?\s*"
    r"['\"`“(]?([#\w][^'\"`”);\n]{0,79}?)(?=['\"`”);]|[.?!,。]?\s*$|[.?!。]\s)",
    re.IGNORECASE,
)
_PLACEHOLDER: Final = re.compile(r"[{<\[][\w .-]{1,40}[}>\]]|:[A-Za-z]\w{0,39}|\.{0,3}|…")
_MARK: Final = re.compile(r"[,;|]")


def is_placeholder(value: JsonValue) -> bool:
    """Return whether a shown value is only a placeholder."""
    return isinstance(value, str) and bool(_PLACEHOLDER.fullmatch(value.strip()))


def schema_like(values: Sequence[JsonValue], depth: int = 0) -> JsonObject:
    """Return the schema of shown values, with the values as its examples."""
    shown = [v for v in values if v is not None and not is_placeholder(v)]
    first = shown[0] if shown else ""
    if (is_object(first) or is_array(first)) and (depth > DEPTH_MAX or not first):
        return {"enum": [*shown[:EXAMPLES_MAX]]}
    if is_object(first):
        rows = [value for value in shown if is_object(value)]
        names = list(first)[:MEMBERS_MAX]
        members = {n: schema_like([row.get(n) for row in rows], depth + 1) for n in names}
        return {"type": "object", "properties": members, "required": [*names]}
    if is_array(first):
        items = [item for value in shown if is_array(value) for item in value]
        length = len(first) if len(first) <= LISTED_MAX else LISTED_LIKE_LONG
        one = schema_like(items, depth + 1)
        return {"type": "array", "items": one, "minItems": length, "maxItems": length}
    kind = "boolean" if isinstance(first, bool) else "string"
    if isinstance(first, int | float) and not isinstance(first, bool):
        kind = "integer" if all(isinstance(v, int) for v in shown) else "number"
    plain = [value for value in shown if isinstance(value, str | int | float)]
    return {"type": kind, "examples": [*dict.fromkeys(plain)][:EXAMPLES_MAX]}


def with_examples(declared: JsonObject) -> JsonObject:
    """Return the schema of a list or an object, its parts with what whole examples show of them."""
    given = [v for v in _given(declared) if (is_object(v) or is_array(v)) and v]
    learned: JsonObject = schema_like(given) if given else {}
    items, properties = learned.get("items"), learned.get("properties")
    own, own_items = declared.get("properties"), declared.get("items")
    if is_object(items):
        one = {**items, **own_items} if is_object(own_items) else items
        return {**learned, **declared, "items": one}
    if not is_object(properties):
        return declared
    declares: JsonObject = own if is_object(own) else {}
    members = {**properties, **declares}
    for name, shown in properties.items():
        said = declares.get(name)
        members[name] = {**shown, **said} if is_object(said) and is_object(shown) else members[name]
    return {"required": learned["required"], **declared, "properties": members}


def _given(declared: JsonObject) -> list[JsonValue]:
    examples = declared.get("examples")
    given = list(examples) if is_array(examples) else []
    return given + [declared[m] for m in ("example", "default") if declared.get(m) is not None]


def shown_value(declared: JsonObject, kind: str, random: Random) -> JsonValue:
    """Return an example of the owner, or another value of its kind if we know one."""
    given = _given(declared)
    given_texts = EXAMPLE.findall(str(declared.get("description") or "")[:900])
    if kind == "string":
        given += [part for text in given_texts[:4] for part in _listed_in(text) or [text.strip()]]
        given = [*quoted_in(str(declared.get("description") or ""))] or given
    fitting = [v for v in given if fits(v, kind) and v != ""]
    if not fitting:
        return None
    value = random.choice(fitting)
    if not isinstance(value, str):
        return other_figure(value, declared, kind, random)
    if random.random() < (1 / 3 if len(fitting) == 1 else 5 / 6):
        return value
    if len(value.split()) >= WORDS_MIN:
        return retold(value, random)
    known = _others(value, random)
    if "pattern" in declared:  # Its own examples show the length of a fitting value.
        known = [changed for changed in known if len(changed) == len(value)]
    return random.choice(known) if known else value if random.random() < 1 / 3 else None


def _others(value: str, random: Random) -> list[str]:
    """Return other values of a text's kind; for a list without spaces, lists of such."""
    like = values_like(value, random), relettered(value, random), varied(value, random)
    known = [changed for changed in like if changed is not None]
    if known or " " in value:
        return known
    if value.islower():
        large = values_like(value.upper(), random)
        return [large.lower()] if large is not None else _of_list(value, random)
    return _of_list(value, random)


def _of_list(value: str, random: Random) -> list[str]:
    marks, parts = _MARK.findall(value), _MARK.split(value)
    if not marks or len(parts) > LISTED_MAX:
        return []
    made = [(_others(part, random) or [part])[0] if part else part for part in parts]
    joined = "".join(part + mark for part, mark in zip(made, [*marks, ""], strict=True))
    return [joined] if joined != value else []


def can_vary(value: str) -> bool:
    """Return whether we know other values of a text's kind."""
    return bool(_others(value, Random(value)))  # noqa: S311 - only whether there is one


def _listed_in(text: str) -> list[str]:
    """Return the members of a list of short names; none for anything else."""
    parts = BETWEEN.split(text.strip())
    is_list = len(parts) > 1 and all(0 < len(part.split()) <= LISTED_WORDS_MAX for part in parts)
    return parts if is_list else []
