"""Decides which header or query parameter may be deposited as a credential. Pure.

A deposit must not become a way to send other headers in our name: names are of an allowed kind, and
values are one line of printable ASCII. Source: RFC 9110, section 5.5; ADR 0039.
"""

import re
from typing import Final, Literal

from assay.net.egress.fields import REQUEST_FIELDS
from assay.net.egress.redaction import SECRET_CHARS_MIN, secrets_in

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
