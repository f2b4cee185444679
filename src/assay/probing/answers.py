"""What agents and tools say in an answer, and what they say of themselves. Pure."""

import re
from collections.abc import Iterator
from itertools import islice

from assay.common.json import JsonValue, is_array, is_object
from assay.probing.function.words import leaves
from assay.probing.probe_client import said


def parts_said(answer: JsonValue) -> list[str]:
    """What an agent itself said: its texts together, then its data, without what is empty."""
    data = "\n".join(_data(answer))
    return [part for part in (said(answer), data) if part]


def named_data(answer: JsonValue) -> str:
    """An answer's data line by line, each after the names it is kept under: a name can order."""
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
    """The texts of an answer's data parts and of a tool's structured content."""
    if is_array(answer):
        return [text for item in answer for text in _data(item)]
    if not is_object(answer):
        return []
    own = [one for name in ("data", "structuredContent") for one in leaves(answer.get(name))]
    rest = [v for k, v in answer.items() if k not in {"history", "data", "structuredContent"}]
    return own + [text for one in rest for text in _data(one)]


def says_it_fetches(text: str) -> bool:
    """Whether a tool or an agent says that it goes to addresses; generous."""
    return _FETCHES.search(text) is not None


_FETCHES = re.compile(
    r"fetch|download|retriev|brows|crawl|scrap|visit|open|load|request|read|get|navigat|search|"
    r"preview|render|screenshot|ping|monitor|check",
    re.IGNORECASE,
)
"""What a tool that goes to an address says of itself, in its name or description."""


def says_it_shares(text: str) -> bool:
    """Whether something says that what callers tell it is there for all to read."""
    return _SHARES.search(text) is not None


_SHARES = re.compile(
    r"guest ?book|(?:message|notice|bulletin|pin) ?board|chat ?room|visible to (?:all|every|other)"
    r"|(?:public|shared|common) (?:wall|feed|timeline|board|list|notes?|whiteboard|diary)",
    re.IGNORECASE,
)
