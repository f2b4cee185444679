"""Examples of an owner: values like them, addresses that hold values, and published inputs.

Finds documents that a page or an index links to. Pure. Sources: RFC 8288, RFC 8631.

Builds values like an owner's examples: another of the kind if we know one. Pure.

Parses addresses as calls: which parts of their paths and queries are values. Pure.

Sources: RFC 6570 (`{name}` in an address); RFC 2606 (names for examples).

Inputs that owners publish in their proof file: values by argument name, messages by skill.
"""

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import Final
from urllib.parse import parse_qsl, unquote, urljoin, urlsplit

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.net.egress.ports import EgressError, EgressResponse
from assay.probing.consent import binding_request
from assay.probing.function.acts import names_act
from assay.probing.function.formats import SHAPE_DEPTH_MAX, fits, other_figure
from assay.probing.function.text_variation import MATERIAL_WORDS_MIN, quoted_in, retold
from assay.probing.function.variation import (
    SKILL_EXAMPLES_MAX,
    does_act_in,
    relettered,
    skill_rows,
    values_like,
    varied,
)
from assay.probing.ports import ProbeSession
from assay.probing.probe_client import decode, same_site

TEXT_CHARS_MAX = 64 * 1024
DOCUMENTS_MAX = 3
NAMES_MAX = 100
"""Places in a text at which the name of a document is read."""

_NAME: Final = re.compile(r"(?:openapi|swagger|api-docs)[^\"'()\s<>]{0,100}+(?!\()", re.IGNORECASE)
_BEFORE_CHARS: Final = 300
_DELIMITER: Final = re.compile(r"[\"'()\s<>=]")
_SERVICE_DESC: Final = re.compile(r"<([^<>]{1,500})>\s*;[^,]{0,200}service-desc", re.IGNORECASE)
_NO_DOCUMENT: Final = re.compile(r"\.(?:js|css|png|svg|ico|html?|ya?ml|md)$|\.(?:js|css)\?|/ui")


def documents_linked(reply: EgressResponse, url: str) -> list[str]:
    """Return same-site addresses where a reply says that its OpenAPI document is."""
    text = reply.body[:TEXT_CHARS_MAX].decode("utf-8", "replace")
    found = _SERVICE_DESC.findall(reply.header("link") or "")
    found += [html.unescape(path) for path in _named_in(text)]
    urls = [absolute(url, path) for path in found if not _NO_DOCUMENT.search(path)]
    return list(dict.fromkeys(u for u in urls if same_site(u, url)))[:DOCUMENTS_MAX]


def _named_in(text: str) -> list[str]:
    """Return the addresses in a text that are named like a document."""
    found: list[str] = []
    for match in islice(_NAME.finditer(text), NAMES_MAX):
        before = text[max(0, match.start() - _BEFORE_CHARS) : match.start()]
        found.append(_DELIMITER.split(before)[-1] + match[0])
    return found


def absolute(url: str, path: str) -> str:
    """Return the address that a page at `url` means; empty if it is invalid."""
    try:
        return urljoin(url, path)
    except ValueError:
        return ""


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


def _is_placeholder(value: JsonValue) -> bool:
    """Return whether a shown value is only a placeholder."""
    return isinstance(value, str) and bool(_PLACEHOLDER.fullmatch(value.strip()))


def schema_like(values: Sequence[JsonValue], depth: int = 0) -> JsonObject:
    """Return the schema of shown values, with the values as its examples."""
    shown = [v for v in values if v is not None and not _is_placeholder(v)]
    first = shown[0] if shown else ""
    if (is_object(first) or is_array(first)) and (depth > SHAPE_DEPTH_MAX or not first):
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
    if len(value.split()) >= MATERIAL_WORDS_MIN:
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


def _can_vary(value: str) -> bool:
    """Return whether we know other values of a text's kind."""
    return bool(_others(value, Random(value)))  # noqa: S311 - only whether there is one


def _listed_in(text: str) -> list[str]:
    """Return the members of a list of short names; none for anything else."""
    parts = BETWEEN.split(text.strip())
    is_list = len(parts) > 1 and all(0 < len(part.split()) <= LISTED_WORDS_MAX for part in parts)
    return parts if is_list else []


PAIRS_MAX = 8
SEGMENTS_MAX = 12
VALUES_MAX = 6
"""Values of a path that are varied."""

_SEGMENT: Final = re.compile(r"^(?:\{(\w{1,40})\}|<(?:\w{1,20}:)?(\w{1,40})>|:(\w{1,40}))$")
_SUFFIXES: Final = re.compile(r"\.(?:js|css|png|svg|ico|html?|jpe?g|gif|woff2?|webp|txt|xml)$")
_VERSION: Final = re.compile(r"v\d{1,2}(?:[.]\d{1,2})?", re.IGNORECASE)
_HOLDERS_TEXT: Final = (
    "agent agents bot bots user users u account accounts tenant tenants t org orgs app apps"
    " service services profile profiles project workspace"
)
_HOLDERS: Final = frozenset(_HOLDERS_TEXT.split())
"""Path segments whose next segment belongs to a person: another value belongs to another person."""

_ANY_HOST: Final = re.compile(
    r"(?:https?://)?(?:\$\{?\w{1,40}\}?|\{\w{1,40}\}|<[\w .-]{1,40}>|localhost"
    r"|127\.0\.0\.1|0\.0\.0\.0|(?:[\w-]{1,40}\.){0,3}example(?:\.(?:com|org|net))?|your[\w.-]{0,60}|(?=:\d{0,5}(?:/|$)))"
    r"(?::\d{1,5}|:)?(?=[/?]|$)",
    re.IGNORECASE,
)
"""Hosts that stand for the reader's own."""


@dataclass(frozen=True, slots=True)
class AddressTemplate:
    """An address in its parts."""

    path: str
    """The path with `{name}` for each value."""
    given: JsonObject
    """The values by name; None if none is shown."""
    places: JsonObject
    raw: str
    """The original path."""


def own_address(shown: str, url: str) -> str:
    """Return the address of an example shown at `url`: a placeholder host means its own."""
    place = _ANY_HOST.match(shown)
    if place is not None:
        return absolute(url, shown[place.end() :] or "/")
    own = urlsplit(url)
    is_bare = shown.startswith(own.netloc) and shown[len(own.netloc) :][:1] in {"/", "?"}
    return absolute(url, f"{own.scheme}://{shown}" if is_bare else shown)


def called(address: str) -> AddressTemplate | None:
    """Return the call that an address makes; None if it is not a call of a service."""
    try:
        parts = urlsplit(address)
        pairs = parse_qsl(parts.query, keep_blank_values=True, max_num_fields=64)
    except ValueError:
        return None
    if _SUFFIXES.search(parts.path):
        return None
    raw = unquote(parts.path)
    path, given = _template(raw)
    places: dict[str, JsonValue] = dict.fromkeys(given, "path")
    for name, value in by_name(pairs[:PAIRS_MAX]).items():
        given.setdefault(name, value)
        places.setdefault(name, "query")
    return AddressTemplate(path, given, places, raw)


def by_name(pairs: Sequence[tuple[str, str]]) -> dict[str, JsonValue]:
    """Return values by name: for a name that occurs more than once, a list."""
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    shown = {name: [v for v in rows if not _is_placeholder(v)] for name, rows in found.items()}
    return {
        name: None if not shown[name] else shown[name] if len(rows) > 1 else rows[0]
        for name, rows in found.items()
    }


def _template(path: str) -> tuple[str, dict[str, JsonValue]]:
    """Return the path with a name for each value in it, and the values."""
    made: list[str] = []
    given: dict[str, JsonValue] = {}
    before = ""
    for segment in path.split("/"):
        marked = _SEGMENT.match(segment)
        name = next(g for g in marked.groups() if g) if marked else ""
        if not marked and len(given) < VALUES_MAX and _is_value(segment, before):
            name = f"{before or 'path'} {chr(97 + len(given))}"
        if name:
            given[name] = None if marked else segment
            made.append("{" + name + "}")
        else:
            made.append(segment)
            before = segment
    return "/".join(made), given


def _is_value(segment: str, before: str) -> bool:
    """Return whether a segment is a number, a date, a code or another value of a known kind.

    `before` is the last segment that was not a value.
    """
    if before.casefold() in _HOLDERS or _VERSION.fullmatch(segment):
        return False
    return (bool(before) or any(map(str.isdigit, segment))) and _can_vary(segment)


def values_at(template: str, path: str) -> JsonObject | None:
    """Return a path's values for the names of a template; None if it does not match."""
    wanted, had = template.strip("/").split("/"), path.strip("/").split("/")
    if len(wanted) != len(had) or len(wanted) > SEGMENTS_MAX:
        return None
    given: dict[str, JsonValue] = {}
    for one, other in zip(wanted, had, strict=True):
        if one.startswith("{") and one.endswith("}"):
            if not other or _is_placeholder(other):
                return None
            given[one[1:-1]] = other
        elif one != other:
            return None
    return given


def fixed_part(address: str) -> str:
    """Return the path of an address before its first value, where another call may begin."""
    one = called(address)
    return "" if one is None else one.path.partition("/{")[0].rstrip("/")


MESSAGES = "messages"
"""Key of messages of no particular skill."""


async def published_inputs(visit: ProbeSession, url: str) -> JsonValue:
    """Return `testInputs` of the host's proof file, the owner's test inputs; None without any.

    Customers do not read the file, so unannounced visits do not either.
    """
    if not visit.announced:
        return None
    try:
        reply = await visit.http.send(binding_request(url))
    except EgressError:
        return None
    document = decode(reply.body)
    return document.get("testInputs") if is_object(document) else None


def with_published(card: JsonObject, published: JsonValue) -> JsonObject:
    """Return the card with published messages among its examples. Pure.

    Those of no particular skill become examples of the first skill that does not act.
    """
    by_skill: JsonObject = published if is_object(published) else {MESSAGES: published}
    skills = skill_rows(card) or [{"name": card.get("name"), "description": ""}]
    plain = next((n for n, skill in enumerate(skills) if not does_act_in(skill)), 0)
    rows: list[JsonValue] = []
    for number, skill in enumerate(skills):
        own = _messages(by_skill.get(str(skill.get("id"))))
        own += _messages(by_skill.get(MESSAGES)) if number == plain else []
        shown = skill.get("examples")
        listed = list(shown) if is_array(shown) else []
        rows.append({**skill, "examples": [*own, *listed]} if own else skill)
    return card if rows == skills else {**card, "skills": rows}


def is_offered(schema: JsonObject, published: JsonValue, name: str, about: str) -> bool:
    """Return whether an owner offers a tool's arguments for tests, and the tool does not act.

    All its required arguments have values in `testInputs`. That permits calling it, so its own
    words need not describe it.
    """
    required = schema.get("required")
    names = [str(one) for one in required] if is_array(required) else []
    offered: JsonObject = published if is_object(published) else {}
    is_whole = bool(names) and all(is_array(offered.get(one)) for one in names)
    return is_whole and not names_act(name) and not names_act(about)


def messages_in(published: JsonValue) -> frozenset[str]:
    """Return all messages that an owner publishes, of any skill."""
    by_skill: JsonObject = published if is_object(published) else {MESSAGES: published}
    return frozenset(str(text) for listed in by_skill.values() for text in _messages(listed))


def _messages(listed: JsonValue) -> list[JsonValue]:
    texts: list[JsonValue] = [t for t in listed if isinstance(t, str)] if is_array(listed) else []
    return texts[: SKILL_EXAMPLES_MAX // 2]
