"""What agents and tools say in an answer, and what they say of themselves. Pure."""

import re

from assay.kit.json import JsonValue, is_array, is_object
from assay.probing.asking import said
from assay.probing.function.words import leaves


def parts_said(answer: JsonValue) -> list[str]:
    """What an agent itself said: its texts together, then its data, without what is empty."""
    data = "\n".join(_data(answer))
    return [part for part in (said(answer), data) if part]


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
