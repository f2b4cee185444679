"""Reads the text of an OpenAPI document as data: JSON, or YAML whose scalars stay text.

Nothing is fetched and no type is built. An alias is the value that its anchor names, not a copy of
it, so a document takes no more memory than its text suggests.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import yaml

from assay.common.errors import InvalidRequest, Problem
from assay.common.json import JsonObject, JsonValue, has_values_beyond, is_nested_beyond, is_object

_UNTYPED: Final[Any] = yaml
"""The module, for functions whose stubs leave types out."""

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
DEPTH_MAX: Final = 100
SHOWN_CHARS_MAX: Final = 300
_CORE_TAGS: Final = "tag:yaml.org,2002:"
_MERGE: Final = "<<"
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})


@dataclass(frozen=True, slots=True)
class TextBounds:
    """The largest document that is read."""

    bytes_max: int
    values_max: int


REQUEST: Final = TextBounds(1024 * 1024, 100_000)
"""For a document in a request: it takes half a second of a thread at most."""

FILE: Final = TextBounds(32 * 1024 * 1024, 3_000_000)
"""For a file of the person who runs a command: the largest public documents have 12 MB."""


class BadDocument(InvalidRequest):
    """The document cannot be imported at all; `details` says why."""

    def __init__(self, reason: str) -> None:
        """Take the reason, whose subject is the document."""
        problem = Problem(("body", "document"), reason)
        super().__init__("The OpenAPI document cannot be imported.", details=[problem])


def shown(text: str) -> str:
    """Return text of the document as answers repeat it: printable and bounded."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text[:SHOWN_CHARS_MAX])


def read_document(text: str, bounds: TextBounds = REQUEST) -> JsonObject:
    """Return the document. Raises `BadDocument`."""
    data = text.encode("utf-8", "replace")
    if len(data) > bounds.bytes_max:
        raise BadDocument(f"has more than {bounds.bytes_max:,} bytes")
    root = _from_json(text, data, bounds) if text.lstrip("\ufeff \t\r\n")[:1] == "{" else None
    if root is None:
        root = _from_yaml(text, bounds.values_max)
    if not is_object(root):
        raise BadDocument("is not an object")
    return root


def _from_json(text: str, data: bytes, bounds: TextBounds) -> JsonValue:
    """Return the value; None if this is not JSON."""
    if is_nested_beyond(data, DEPTH_MAX):
        raise _too_deep()
    if has_values_beyond(data, bounds.values_max):
        raise _too_many(bounds.values_max)
    try:
        return json.loads(text.removeprefix("\ufeff"), object_pairs_hook=_without_twins)
    except ValueError:
        return None


def _without_twins(members: Sequence[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {}
    for name, value in members:
        if name in found:
            raise BadDocument(f"has the key {shown(name)} twice in one object")
        found[name] = value
    return found


def _from_yaml(text: str, values_max: int) -> JsonValue:
    tree = _YamlTree(values_max)
    try:
        for event in _UNTYPED.parse(text, Loader=_LOADER):
            tree.take(event)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = 1 if mark is None else mark.line + 1
        raise BadDocument(f"line {line}: is neither JSON nor YAML") from error
    except ValueError as error:
        raise BadDocument("is neither JSON nor YAML") from error
    return tree.root


class _OpenCollection(NamedTuple):
    """A collection before its end, with its items and their lines."""

    start: yaml.CollectionStartEvent
    line: int
    items: list[tuple[JsonValue, int]]


class _YamlTree:
    """Builds the values of a YAML document from the parser's events."""

    def __init__(self, values_max: int) -> None:
        self.root: JsonValue = None
        self._values_max = values_max
        self._values = 0
        self._documents = 0
        self._anchors: dict[str, JsonValue] = {}
        self._line = 1
        self._open: list[_OpenCollection] = []
        """The collections around the next event."""

    def take(self, event: yaml.Event) -> None:
        """Take the next event. Raises `BadDocument`."""
        self._line = event.start_mark.line + 1
        if isinstance(event, yaml.CollectionStartEvent):
            self._open.append(_OpenCollection(event, self._line, []))
            if len(self._open) > DEPTH_MAX:
                raise _too_deep()
        elif isinstance(event, yaml.CollectionEndEvent):
            self._end()
        elif isinstance(event, yaml.ScalarEvent):
            self._add(self._scalar(event), event)
        elif isinstance(event, yaml.AliasEvent):
            self._add(self._aliased(event), None)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise self._bad("begins a second document")

    def _end(self) -> None:
        start, self._line, items = self._open.pop()
        if isinstance(start, yaml.MappingStartEvent):
            self._add(self._mapping(items), start)
        else:
            self._add([value for value, _ in items], start)

    def _scalar(self, event: yaml.ScalarEvent) -> JsonValue:
        """Return the text; None for a plain null that is not a key."""
        top = self._open[-1] if self._open else None
        in_mapping = top is not None and isinstance(top.start, yaml.MappingStartEvent)
        is_key = top is not None and in_mapping and len(top.items) % 2 == 0
        is_null = event.value in _NULLS and event.implicit[0] and not is_key
        return None if is_null else event.value

    def _aliased(self, event: yaml.AliasEvent) -> JsonValue:
        if event.anchor not in self._anchors:
            raise self._bad("has an alias without a complete anchor")
        return self._anchors[event.anchor]

    def _add(
        self, value: JsonValue, node: yaml.ScalarEvent | yaml.CollectionStartEvent | None
    ) -> None:
        """Put a value where it belongs; `node` has its tag and anchor, unless it is an alias."""
        self._count(1)
        if node is not None and node.tag is not None and not node.tag.startswith(_CORE_TAGS):
            raise self._bad("has a tag, which is not accepted")
        if node is not None and node.anchor is not None:
            self._anchors[node.anchor] = value
        if self._open:
            self._open[-1].items.append((value, self._line))
        else:
            self.root = value

    def _mapping(self, items: Sequence[tuple[JsonValue, int]]) -> dict[str, JsonValue]:
        """Return the mapping; what it merges has the members that it does not name itself."""
        found: dict[str, JsonValue] = {}
        merged: list[JsonValue] = []
        for (key, line), (value, _) in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, str):
                raise BadDocument(f"line {line}: has a key that is not text")
            if key == _MERGE:
                given = value if isinstance(value, list) else [value]
                self._count(len(given))  # before it is copied
                merged += given
            elif key in found:
                raise BadDocument(f"line {line}: has the key {shown(key)} twice")
            else:
                found[key] = value
        for one in merged:
            if not is_object(one):
                raise BadDocument(f"line {items[0][1]}: merges what is not a mapping")
            self._count(len(one))
            for key, value in one.items():
                found.setdefault(key, value)
        return found

    def _bad(self, reason: str) -> BadDocument:
        return BadDocument(f"line {self._line}: {reason}")

    def _count(self, values: int) -> None:
        self._values += values
        if self._values > self._values_max:
            raise _too_many(self._values_max)


def _too_deep() -> BadDocument:
    return BadDocument(f"is nested more than {DEPTH_MAX} deep")


def _too_many(values_max: int) -> BadDocument:
    return BadDocument(f"has more than {values_max:,} values")
