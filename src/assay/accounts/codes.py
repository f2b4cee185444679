"""Secrets that somebody types or follows once: tokens in links, invitations, recovery codes."""

import hashlib
import secrets
from datetime import timedelta
from typing import Final

from assay.accounts.api_keys import base62

RESET_TTL: Final = timedelta(minutes=30)
"""Lifetime of a reset link. Source: conventions.md#account-security."""

VERIFY_TTL: Final = timedelta(hours=24)
INVITE_TTL: Final = timedelta(days=7)

RECOVERY_CODES: Final = 10
TOKEN_CHARS_MAX: Final = 100
"""Longer ones are not ours; nothing is hashed for them."""

_TOKEN_BYTES = 32
_ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
"""Without characters that are read for another."""
_RECOVERY_CHARS = 16
"""79 bits: too many to try offline, though a plain SHA-256 is kept."""


def new_token() -> str:
    """A token of 256 bits, for links and invitations."""
    return base62(secrets.token_bytes(_TOKEN_BYTES))


def new_recovery_codes() -> list[str]:
    """Ten codes of the form `ABCD-EFGH-JKMN-PQRS`."""
    return [_recovery_code() for _ in range(RECOVERY_CODES)]


def code_hash(code: str) -> str:
    """The SHA-256 under which a code is kept; 64 hex digits."""
    shown = code[:TOKEN_CHARS_MAX].strip()
    return hashlib.sha256(shown.encode("utf-8", "surrogatepass")).hexdigest()


def recovery_hash(code: str) -> str:
    """The same of a recovery code, however it was typed: in lower case, or without hyphens."""
    typed = code[:TOKEN_CHARS_MAX].upper()
    return code_hash("".join(character for character in typed if character.isalnum()))


def _recovery_code() -> str:
    characters = [secrets.choice(_ALPHABET) for _ in range(_RECOVERY_CHARS)]
    return "-".join("".join(characters[at : at + 4]) for at in range(0, _RECOVERY_CHARS, 4))
