"""Cleans texts and addresses of a registration file for display and for calls. Pure."""

import re
import unicodedata

from assay.common.json import JsonValue

TEXT_CHARS_MAX = 2000
URL_CHARS_MAX = 2048

_PLACEHOLDER = re.compile(
    r"(?:tbd|tba|todo|n/?a|none|null|undefined|nil|placeholder|coming[ _-]soon|-+|\.+|[a-z]+://)|"
    r".*(?:[{}<>]|\$\().*",
    re.IGNORECASE | re.DOTALL,
)


def text_of(value: JsonValue) -> str:
    """Remove control, format and bidirectional characters (Unicode categories C*); cut to size."""
    if not isinstance(value, str):
        return ""
    return "".join(c for c in value[:TEXT_CHARS_MAX] if c in "\n\t" or _shows(c)).strip()


def url_of(value: JsonValue) -> str:
    """Return a URL unchanged, or nothing if it is too long or has non-visible characters."""
    if not isinstance(value, str):
        return ""
    stripped = value.strip()
    if len(stripped) > URL_CHARS_MAX:
        return ""
    return stripped if all(_shows(c) and not c.isspace() for c in stripped) else ""


def is_placeholder(text: str) -> bool:
    """Return whether a text is a placeholder that its author meant to replace."""
    return _PLACEHOLDER.fullmatch(text.strip()) is not None


def _shows(character: str) -> bool:
    return not unicodedata.category(character).startswith("C")
