"""Recognises operations that take a message in words, by name and arguments. Pure."""

import re
from typing import Final

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.probing.function.acts import names_act
from assay.probing.function.words import words_of

_SPLIT: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\-./]")
_TALKS_TEXT: Final = (
    "chat ask question questions query answer answers talk prompt assistant converse"
    " conversation frage fragen pregunta preguntar demander chiedi pergunta"
)
_TALKS: Final = frozenset({*_TALKS_TEXT.split(), "completions"})
_MESSAGE: Final = re.compile(
    r"^(?:user_?|chat_?)?(?:messages?|question|query|prompt|input|text|content|utterance|msg|q|ask"
    r"|frage|pregunta|domanda|pergunta)$",
    re.IGNORECASE,
)
LIST = "messages"
"""Takes a list of messages with roles, like chat completions."""


def is_for_talk(path: str, about: str) -> bool:
    """Return whether a path ends like one that takes a message, and nothing says that it acts."""
    last = words_of(_SPLIT.sub(" ", path.rstrip("/").rpartition("/")[2]))
    return bool(last) and last[-1] in _TALKS and not names_act(path) and not names_act(about)


def message_in(schema: JsonObject) -> str:
    """Return the required argument that takes the message; empty without one."""
    properties, needed = schema.get("properties"), schema.get("required")
    declared: JsonObject = properties if is_object(properties) else {}
    required = [str(name) for name in needed] if is_array(needed) else []
    texts = [name for name in required if _is_text(declared.get(name), name)]
    named = [name for name in texts if _MESSAGE.match(name)]
    return next(iter(named), texts[0] if len(texts) == len(required) == 1 else "")


def _is_text(declared: JsonValue, name: str) -> bool:
    if not is_object(declared) or declared.keys() & {"enum", "const", "format", "pattern"}:
        return False
    kind = declared.get("type")
    return kind == "string" or (kind == "array" and name == LIST)
