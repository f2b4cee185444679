"""Deposited credentials: where one may go, and how it is removed from a response. Pure.

Removes a secret from a response, in the encodings that servers commonly use.

A party that has the secret can always hide it, for example by encryption. This removes what servers
repeat by habit or on purpose from evidence and logs. Source: ADR 0039.

Decides which header or query parameter may be deposited as a credential.

A deposit must not become a way to send other headers in our name: names are of an allowed kind, and
values are one line of printable ASCII. Source: RFC 9110, section 5.5; ADR 0039.
"""

import base64
import html
import json
import re
from collections.abc import Iterable, Sequence
from typing import Final, Literal
from urllib.parse import quote, quote_plus, unquote_to_bytes

from assay.net.egress.credentials import REQUEST_FIELDS

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


Place = Literal["header", "query"]

NAME_CHARS_MAX: Final = 64
VALUE_CHARS_MAX: Final = 4096
"""As long as the longest tokens that common servers accept in one header."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_PARAMETER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_VALUE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_PARAMETER_VALUE: Final = re.compile(r"[\x21-\x7e]+")
_CREDENTIAL_LIKE: Final = re.compile(r"auth|key|token|secret|session|cookie|passw|credential")
"""Substrings of the names of headers that carry credentials."""

_NEVER: Final = frozenset(
    {b"mcp-session-id", b"idempotency-key", b"access-control-request-headers"}
    | {b"www-authenticate", b"authentication-info", b"set-cookie", b"sec-websocket-key"}
)
"""Header names with a meaning in the protocols spoken to an agent, or in responses."""

_PAYMENT: Final = re.compile(r"payment\b", re.IGNORECASE)


def name_problem(place: Place, name: str) -> str | None:
    """Return why a credential cannot be sent under this name, or None."""
    if len(name) > NAME_CHARS_MAX:
        return f"is longer than {NAME_CHARS_MAX} characters"
    if place == "query":
        return None if _PARAMETER.fullmatch(name) else "is not the name of a query parameter"
    if not _NAME.fullmatch(name):
        return "is not the name of a header"
    octets = name.lower().encode()
    if octets in _NEVER or not REQUEST_FIELDS.passes(octets):
        return "is a header that belongs to the connection, to a proxy or to this service"
    if not _CREDENTIAL_LIKE.search(name.lower()):
        return "does not name a credential: Authorization, Cookie, X-API-Key and the like do"
    return None


def value_problem(place: Place, name: str, value: str) -> str | None:
    """Return why a value is not accepted as a credential, or None. Never repeats the value."""
    if len(value) > VALUE_CHARS_MAX:
        return f"is longer than {VALUE_CHARS_MAX} characters"
    if not (_VALUE if place == "header" else _PARAMETER_VALUE).fullmatch(value):
        return "must be printable ASCII on one line, without spaces around it"
    if name.lower() == "authorization" and _PAYMENT.match(value):
        return "is a payment, which is never made by a visit"
    parts = [part for part in secrets_in(value) if " " not in part]
    # A word would also be redacted in honest texts, and could hide what a service says.
    if not any(re.search(r"[0-9]", p) and re.search(r"[A-Za-z]", p) for p in parts):
        return f"must hold {SECRET_CHARS_MIN} characters or more without spaces, letters and digits"
    return None
