"""What may stand in an account: e-mail address, password, name, key label."""

import re
import unicodedata

from assay.common.errors import InvalidRequest, Problem

PASSWORD_CHARS = range(12, 257)
"""Source: decisions, section 12."""

EMAIL_CHARS_MAX = 254
"""Source: RFC 5321, section 4.5.3.1.3, less the angle brackets."""

TEXT_CHARS_MAX = 100

_EMAIL = re.compile(r"[^\s@<>()\[\]\\,;:\"]{1,64}@[^\s@<>()\[\]\\,;:\"]+\.[^\s@.]{1,63}")


def email_address(text: str) -> str:
    """The address without surrounding blanks; raises `InvalidRequest`."""
    email = text.strip()
    if len(email) <= EMAIL_CHARS_MAX and _EMAIL.fullmatch(email) and _printable(email):
        return email
    raise _problem("email", "email must be an address such as you@example.com")


def password(text: str) -> str:
    """The password as it is; raises `InvalidRequest`."""
    if len(text) in PASSWORD_CHARS:
        return text
    raise _problem("password", "password must have 12 to 256 characters")


def short_text(name: str, text: str) -> str:
    """A name or label without surrounding blanks; raises `InvalidRequest` naming `name`."""
    stripped = text.strip()
    if 1 <= len(stripped) <= TEXT_CHARS_MAX and _printable(stripped):
        return stripped
    message = f"{name} must have 1 to {TEXT_CHARS_MAX} characters and no control characters"
    raise _problem(name, message)


def _printable(text: str) -> bool:
    """No control, format, surrogate or unassigned characters (Unicode categories C*)."""
    return not any(unicodedata.category(character).startswith("C") for character in text)


def _problem(field: str, message: str) -> InvalidRequest:
    return InvalidRequest(message, details=[Problem(("body", field), message)])
