"""Reads the content of answers and self-descriptions of agents and tools. Pure."""

import re
from collections.abc import Iterator
from itertools import islice

from assay.common.json import JsonValue, is_array, is_object
from assay.probing.function.words import leaves
from assay.probing.probe_client import said


def parts_said(answer: JsonValue) -> list[str]:
    """Return an agent's own words: its texts together, then its data, without empty ones."""
    data = "\n".join(_data(answer))
    return [part for part in (said(answer), data) if part]


def named_data(answer: JsonValue) -> str:
    """Return an answer's data line by line, each after its member names: a name can be an order."""
    data = answer.get("structuredContent") if is_object(answer) else None
    return "\n".join(islice(_named(data, (), _DEPTH_MAX), _LINES_MAX))


def _named(value: JsonValue, names: tuple[str, ...], depth: int) -> Iterator[str]:
    if is_object(value) and depth:
        for name, one in value.items():
            yield from _named(one, (*names, name)[-_NAMES_MAX:], depth - 1)
    elif is_array(value) and not isinstance(value, str) and depth:
        for one in value:
            yield from _named(one, names, depth - 1)
    elif isinstance(value, str):
        yield f"{' '.join(names)}: {value}"


_DEPTH_MAX = 24
_NAMES_MAX = 3
_LINES_MAX = 2_000


def _data(answer: JsonValue) -> list[str]:
    """Return the texts of an answer's data parts and of a tool's structured content."""
    if is_array(answer):
        return [text for item in answer for text in _data(item)]
    if not is_object(answer):
        return []
    own = [one for name in ("data", "structuredContent") for one in leaves(answer.get(name))]
    rest = [v for k, v in answer.items() if k not in {"history", "data", "structuredContent"}]
    return own + [text for one in rest for text in _data(one)]


def says_it_fetches(text: str) -> bool:
    """Return whether a tool or an agent says that it fetches addresses; generous."""
    return _FETCHES.search(text) is not None


_FETCHES = re.compile(
    r"fetch|download|retriev|brows|crawl|scrap|visit|open|load|request|read|get|navigat|search|"
    r"preview|render|screenshot|ping|monitor|check",
    re.IGNORECASE,
)
"""Words in the name or description of a tool that fetches an address."""


def says_it_shares(text: str) -> bool:
    """Return whether something says that its callers' inputs are public."""
    return _SHARES.search(text) is not None


_SHARES = re.compile(
    r"guest ?book|(?:message|notice|bulletin|pin) ?board|chat ?room|visible to (?:all|every|other)"
    r"|(?:public|shared|common) (?:wall|feed|timeline|board|list|notes?|whiteboard|diary)",
    re.IGNORECASE,
)
