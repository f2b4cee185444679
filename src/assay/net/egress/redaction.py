"""Removes a secret from a response, in the encodings that servers commonly use. Pure.

A party that has the secret can always hide it, for example by encryption. This removes what servers
repeat by habit or on purpose from evidence and logs. Source: ADR 0039.
"""

import base64
import html
import json
import re
from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import quote, quote_plus, unquote_to_bytes

HIDDEN: Final = "[credential]"
"""Replaces a secret."""

SECRET_CHARS_MIN: Final = 12
"""Shorter parts of a credential are words that also occur in honest texts."""

_ROUNDS: Final = 2
"""Levels of nested escapes that are undone."""

_BASIC: Final = re.compile(r"basic +([A-Za-z0-9+/=_-]+)", re.IGNORECASE)
_BETWEEN: Final = re.compile(r"[\s;,=\"]+")
_ESCAPED: Final = re.compile(rb"\\(?:u00([0-9a-fA-F]{2})|x([0-9a-fA-F]{2})|([/\"\\']))")
_ENTITY: Final = re.compile(rb"&(?:#([0-9]{1,3})|#[xX]([0-9a-fA-F]{1,2})|(amp|lt|gt|quot|apos));")
_NAMED: Final = {b"amp": b"&", b"lt": b"<", b"gt": b">", b"quot": b'"', b"apos": b"'"}


def secrets_in(value: str) -> tuple[str, ...]:
    """Return the secret parts of a credential: the whole, its tokens, and a Basic password."""
    found = [value, *_BETWEEN.split(value)]
    if basic := _BASIC.fullmatch(value.strip()):
        pair = _decoded(basic[1])
        found += [pair, pair.partition(":")[2]]
    return tuple(dict.fromkeys(part for part in found if len(part) >= SECRET_CHARS_MIN))


class Redaction:
    """Hides secrets in responses, in time linear in their size."""

    def __init__(self, secrets: Iterable[str]) -> None:
        """Accept ASCII secrets of at least `SECRET_CHARS_MIN` characters; ignore others."""
        kept = [s for s in dict.fromkeys(secrets) if len(s) >= SECRET_CHARS_MIN and s.isascii()]
        forms = {form.encode() for secret in kept for form in _forms(secret)}
        self._forms = sorted(forms, key=len, reverse=True)
        self._plain = [secret.lower().encode() for secret in kept]

    def clean(self, data: bytes, *, is_cut: bool = False) -> bytes:
        """Return the data without the secrets; hide all of it if they occur in mixed escapes.

        `is_cut`: the data continues beyond its end, where a secret may have begun.
        """
        for form in self._forms:
            if form in data:
                data = data.replace(form, HIDDEN.encode())
        if self._plain:
            plain = _undone(data)
            if any(secret in plain for secret in self._plain):
                return HIDDEN.encode()
        return self._without_beginning(data) if is_cut else data

    def text(self, text: str) -> str:
        """Return a text without the secrets."""
        data = text.encode("utf-8", "surrogatepass")
        return self.clean(data).decode("utf-8", "surrogatepass")

    def _without_beginning(self, data: bytes) -> bytes:
        """Remove an end that may be the beginning of a secret."""
        for form in self._forms:
            for size in range(min(len(form) - 1, len(data)), 3, -1):
                if data.endswith(form[:size]):
                    return data[:-size]
        return data


def _forms(secret: str) -> Sequence[str]:
    """Return the secret as written in URLs, JSON, HTML, base64 and hexadecimal."""
    octets = secret.encode()
    quoted = [quote(secret, safe=""), quote(secret), quote_plus(secret)]
    escaped = json.dumps(secret)[1:-1]
    return [
        *(secret, secret.lower(), secret.upper(), secret[::-1]),
        *quoted,
        *(re.sub(r"%..", lambda m: m[0].lower(), one) for one in quoted),
        *(escaped, escaped.replace("/", "\\/"), html.escape(secret)),
        *(octets.hex(), octets.hex().upper()),
        *_in_base64(octets),
    ]


def _in_base64(octets: bytes) -> list[str]:
    """Return its middle in both base64 alphabets, at each of the three possible offsets."""
    found: list[str] = []
    for before in range(3):
        # Characters that also encode bits of adjacent text are left out.
        text = base64.b64encode(bytes(before) + octets).decode()
        end = (before + len(octets)) // 3 * 4
        core = text[-(-before * 8 // 6) : end]
        found += [core, core.replace("+", "-").replace("/", "_")]
    return found


def _undone(data: bytes) -> bytes:
    """Return the data in lower case, with escapes of URLs, JSON and HTML undone."""
    for _ in range(_ROUNDS):
        if b"%" in data:
            data = unquote_to_bytes(data)
        if b"\\" in data:
            data = _ESCAPED.sub(_unescaped, data)
        if b"&" in data:
            data = _ENTITY.sub(_entity, data)
    return data.lower()


def _unescaped(found: re.Match[bytes]) -> bytes:
    number = found[1] or found[2]
    return bytes([int(number, 16)]) if number else found[3]


def _entity(found: re.Match[bytes]) -> bytes:
    if found[3]:
        return _NAMED[found[3]]
    number = int(found[1]) if found[1] else int(found[2], 16)
    return bytes([number]) if number < 256 else b""  # noqa: PLR2004 - a byte


def _decoded(text: str) -> str:
    try:
        padded = text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=False).decode("ascii")
    except ValueError:
        return ""
