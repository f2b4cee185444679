"""Texts and addresses of a registration file as they may be shown and called. Pure."""

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
    """Without control, format and bidirectional characters (Unicode categories C*), cut to size."""
    if not isinstance(value, str):
        return ""
    return "".join(c for c in value[:TEXT_CHARS_MAX] if c in "\n\t" or _shows(c)).strip()


def url_of(value: JsonValue) -> str:
    """A URL as it stands; one that is too long, or has anything but visible characters, is none."""
    if not isinstance(value, str):
        return ""
    stripped = value.strip()
    if len(stripped) > URL_CHARS_MAX:
        return ""
    return stripped if all(_shows(c) and not c.isspace() for c in stripped) else ""


def is_placeholder(text: str) -> bool:
    """Whether a text stands where its author meant to put something else."""
    return _PLACEHOLDER.fullmatch(text.strip()) is not None


def _shows(character: str) -> bool:
    return not unicodedata.category(character).startswith("C")
