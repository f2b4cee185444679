"""Reads the text of an OpenAPI document as data: JSON, or YAML whose scalars stay text.

Nothing is fetched and no type is built. An alias is the value that its anchor names, not a copy of
it, so a document takes no more memory than its text suggests.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

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
"""For a file of whoever runs a command: the largest public documents have 12 MB."""


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


class _YamlTree:
    """Builds the values of a YAML document from the parser's events."""

    def __init__(self, values_max: int) -> None:
        self.root: JsonValue = None
        self._values_max = values_max
        self._values = 0
        self._documents = 0
        self._anchors: dict[str, JsonValue] = {}
        self._open: list[tuple[Any, list[tuple[JsonValue, int]]]] = []
        """The collections around the next event, each with its items and their lines."""

    def take(self, event: Any) -> None:
        """Take the next event. Raises `BadDocument`."""
        line = event.start_mark.line + 1
        tag = getattr(event, "tag", None)
        if tag is not None and not tag.startswith(_CORE_TAGS) and tag != "!":
            raise BadDocument(f"line {line}: has a tag, which is not accepted")
        if isinstance(event, yaml.CollectionStartEvent):
            self._open.append((event, []))
            if len(self._open) > DEPTH_MAX:
                raise _too_deep()
        elif isinstance(event, yaml.CollectionEndEvent):
            start, items = self._open.pop()
            is_mapping = isinstance(start, yaml.MappingStartEvent)
            value = self._mapping(items) if is_mapping else [item for item, _ in items]
            self._add(value, start.anchor, start.start_mark.line + 1)
        elif isinstance(event, yaml.ScalarEvent):
            self._add(self._scalar(event), event.anchor, line)
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in self._anchors:
                raise BadDocument(f"line {line}: has an alias without a complete anchor")
            self._add(self._anchors[event.anchor], None, line)
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise BadDocument(f"line {line}: begins a second document")

    def _scalar(self, event: Any) -> JsonValue:
        """Return the text; None for a plain null that is not a key."""
        if self._open and isinstance(self._open[-1][0], yaml.MappingStartEvent):
            is_key = len(self._open[-1][1]) % 2 == 0
        else:
            is_key = False
        is_null = event.value in _NULLS and event.implicit[0] and not is_key
        return None if is_null else event.value

    def _add(self, value: JsonValue, anchor: str | None, line: int) -> None:
        self._count(1)
        if anchor is not None:
            self._anchors[anchor] = value
        if self._open:
            self._open[-1][1].append((value, line))
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
                merged += value if isinstance(value, list) else [value]
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

    def _count(self, values: int) -> None:
        self._values += values
        if self._values > self._values_max:
            raise _too_many(self._values_max)


def _too_deep() -> BadDocument:
    return BadDocument(f"is nested more than {DEPTH_MAX} deep")


def _too_many(values_max: int) -> BadDocument:
    return BadDocument(f"has more than {values_max:,} values")
