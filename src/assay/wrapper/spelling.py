"""One path out of all its spellings, as lenient upstreams read them. Pure.

Servers differ in what they take for the same path: letter case (Express), `;` parameters (Spring),
doubled slashes, a slash, dots or spaces at the end (Windows), percent-encoding once more than
needed. What two paths have in common after all of that is their folded form.
"""

import re
import unicodedata
from functools import lru_cache
from urllib.parse import unquote_to_bytes

DECODINGS_MAX = 8
"""How often a path is percent-decoded; one that goes on changing is nobody's honest path."""

_ENCODED_PERCENT = re.compile(rb"%(?:25)+")
_WIDE = re.compile(rb"%[uU]00([0-9a-fA-F]{2})")
"""`%u0041`, which IIS reads."""

_OVERLONG = re.compile(rb"[\xc0\xc1][\x80-\xbf]")
"""An ASCII character in two bytes of UTF-8, which is no UTF-8 (RFC 3629, section 3)."""

_END = re.compile(r"[?#]")


class Unfoldable(ValueError):
    """A path that is still encoded after any number of decodings a server would do."""


@lru_cache(maxsize=2000)
def folded(path: str) -> tuple[str, ...]:
    """The segments that all spellings of a path have in common; none are empty.

    `path` is as it came, percent-encoded, without its query. Raises `Unfoldable`.
    """
    data = path.encode("latin-1", "replace")
    for _ in range(DECODINGS_MAX):
        decoded = unquote_to_bytes(_WIDE.sub(rb"%\1", _ENCODED_PERCENT.sub(b"%", data)))
        if decoded == data:
            return _segments(_OVERLONG.sub(_in_one_byte, data))
        data = decoded
    raise Unfoldable


def _in_one_byte(found: re.Match[bytes]) -> bytes:
    first, second = found[0]
    return bytes([(first & 1) << 6 | second & 0x3F])


def _segments(data: bytes) -> tuple[str, ...]:
    text = data.decode("utf-8", "replace")
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    text = _END.split(text, maxsplit=1)[0].casefold().replace("\\", "/")
    found: list[str] = []
    for part in text.split("/"):
        name = part.partition(";")[0].rstrip(" ")
        if name == "..":
            del found[-1:]
        elif core := name.rstrip(". "):
            found.append(core)
    return tuple(found)
