"""Groups the texts of documents by tool, each with the tool's purpose. Pure.

A tool's purpose is its name and the first sentence of its description: a person reads those before
trusting it. The texts of a tool, a skill or an operation are one group, whose demands are judged
together.
"""

import re
from collections.abc import Mapping, Sequence

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.probing.demands import TextInContext
from assay.probing.function.openapi import paths_of
from assay.probing.ports import McpTool

DEPTH_MAX = 24
ROWS_MAX = 200
"""Skills of a card, operations of a document."""

PURPOSE_MAX = 300
"""Characters of a tool's purpose: a longer text would cover everything."""

Group = Sequence[TextInContext]


def strings(value: JsonValue, depth: int = DEPTH_MAX) -> Sequence[str]:
    """Return every string of a JSON value, including the names of members."""
    if isinstance(value, str):
        return [value]
    if depth and is_object(value):
        return [text for name, one in value.items() for text in (name, *strings(one, depth - 1))]
    if depth and is_array(value):
        return [text for item in value for text in strings(item, depth - 1)]
    return []


def purpose(name: str, description: str) -> str:
    """Return the name in words, and the first sentence."""
    first = _END.split(description.strip()[: 2 * PURPOSE_MAX], maxsplit=1)[0]
    return f"{_WORDS.sub(' ', name)} {first}"[:PURPOSE_MAX]


_END = re.compile(
    r"(?<=[?!.])(?:\s|(?=[<\x1b\x9b]|[A-Z][a-z]{1,12}\s))|[\n\x1b\x9b\u3002\uff01\uff1f]"
)
_WORDS = re.compile(r"[_\-./]|(?<=[a-z])(?=[A-Z])")


def tool_group(tool: McpTool) -> Group:
    """Return a tool's description, its arguments' texts, and all else a model reads of it."""
    about = purpose(tool.name, tool.description)
    properties = tool.input_schema.get("properties")
    rows: JsonObject = properties if is_object(properties) else {}
    rest = {name: one for name, one in tool.input_schema.items() if name != "properties"}
    return [
        TextInContext(tool.description, about, says_purpose=True),
        *_arguments(rows, about),
        TextInContext(_joined([*strings(rest), *strings(tool.more)]), about),
    ]


def card_groups(card: JsonValue) -> Sequence[Group]:
    """Return a card's description, and each of its skills with tags and examples."""
    if not is_object(card):
        return []
    name, description = str(card.get("name", "")), str(card.get("description", ""))
    about = purpose(name, description)
    rest = {key: one for key, one in card.items() if key not in {"name", "description", "skills"}}
    general = TextInContext(description, about, says_purpose=True)
    groups: list[Group] = [[general, TextInContext(_joined(strings(rest)), about)]]
    for row in _rows(card.get("skills")):
        said = str(row.get("description", ""))
        own = f"{about} {purpose(str(row.get('name', '')), said)}"
        more = {key: one for key, one in row.items() if key not in {"id", "description"}}
        more_said = TextInContext(_joined(strings(more)), own)
        groups.append([TextInContext(said, own, says_purpose=True), more_said])
    return groups


def registration_groups(raw: JsonValue) -> Sequence[Group]:
    """Return the registration: its description, then the rest of it."""
    if not is_object(raw):
        return []
    description = str(raw.get("description", ""))
    about = purpose(str(raw.get("name", "")), description)
    rest = {key: one for key, one in raw.items() if key != "description"}
    return [
        [
            TextInContext(description, about, says_purpose=True),
            TextInContext(_joined(strings(rest)), about),
        ]
    ]


def openapi_groups(document: JsonObject) -> Sequence[Group]:
    """Return an OpenAPI document's general description, and operations with their parameters."""
    info = document.get("info")
    title = str(info.get("title", "")) if is_object(info) else ""
    general = str(info.get("description", "")) if is_object(info) else ""
    about = purpose(title, general)
    groups: list[Group] = [[TextInContext(general, about, says_purpose=True)]]
    for path, item in list(paths_of(document).items())[:ROWS_MAX]:
        rows = [one for one in item.values() if is_object(one)] if is_object(item) else []
        groups += [_operation(path, row, about) for row in rows]
    return groups[:ROWS_MAX]


def _operation(path: str, row: JsonObject, about: str) -> Group:
    texts = [str(row.get(key) or "") for key in ("summary", "description")]
    name = str(row.get("operationId") or path)
    own = f"{about} {purpose(name, texts[0] or texts[1])}"
    named = {str(p.get("name")): p for p in _rows(row.get("parameters"))}
    body = row.get("requestBody")
    return [
        *(TextInContext(text, own, says_purpose=True) for text in texts if text),
        *_arguments(named, own),
        TextInContext(_joined(strings(body)), own, is_argument=True),
        TextInContext(_joined(strings(row.get("responses"))), own),
    ]


def _arguments(rows: Mapping[str, JsonValue], about: str) -> list[TextInContext]:
    """Return the texts of each argument, with its defaults, choices and examples."""
    return [
        TextInContext(_joined(strings(row)), about, is_argument=True, name=name)
        for name, row in rows.items()
    ]


def _rows(value: JsonValue) -> Sequence[JsonObject]:
    return [row for row in value[:ROWS_MAX] if is_object(row)] if is_array(value) else []


def _joined(texts: Sequence[str]) -> str:
    return "\n".join(texts)


def own_words(card: JsonValue) -> Sequence[tuple[str, str]]:
    """Return the description of a card and of each of its skills, each with its parent."""
    if not is_object(card):
        return []
    rows = card.get("skills")
    skills = [row for row in rows[:ROWS_MAX] if is_object(row)] if is_array(rows) else []
    names = " ".join([str(card.get("name")), *(str(row.get("name")) for row in skills)])
    whole = str(card.get("description", ""))
    return [(whole, names), *((str(row.get("description", "")), names + whole) for row in skills)]


def demanded(tool: McpTool) -> Sequence[TextInContext]:
    """Return a tool's description, and the texts of its arguments."""
    about = f"{tool.name} {tool.description}"
    properties = tool.input_schema.get("properties")
    rows = [r for r in properties.values() if is_object(r)] if is_object(properties) else []
    texts = ("\n".join(strings(row)) for row in rows)
    return [
        TextInContext(tool.description, tool.name),
        *(TextInContext(t, about, is_argument=True) for t in texts),
    ]


def described(tool: McpTool) -> Sequence[str]:
    """Return every text of a tool."""
    return [
        tool.name,
        tool.description,
        *strings(tool.input_schema),
        *strings(tool.more),
    ]
