"""Secrets that somebody types or follows once: tokens in links, invitations, recovery codes.

How many links by mail may be asked for is counted by the codes that were issued.
"""

import hashlib
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from assay.accounts.api_keys import base62
from assay.accounts.credential_ports import AskedBy, CodeBound

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


DAY: Final = timedelta(days=1)

OWNER_RESETS: Final = 2
"""Reset links that are good at once, asked for from the owner's networks."""

OWNER_RESETS_DAY: Final = 20
STRANGER_RESETS: Final = 1
"""Reset links that are good at once, asked for from elsewhere."""

STRANGER_RESETS_DAY: Final = 3
"""Reset links of one account a day that one such network asks for."""

TERMINAL_RESETS: Final = 3
"""Reset links that are good at once, made by the service's owner."""

ACCOUNT_VERIFICATIONS_DAY: Final = 3
MAILBOX_VERIFICATIONS_DAY: Final = 6
NETWORK_VERIFICATIONS_DAY: Final = 10


def reset_bounds(asked_by: AskedBy, now: datetime) -> Sequence[CodeBound]:
    """What bounds reset links of one account."""
    alive, day = now - RESET_TTL, now - DAY
    of_class = ("operator_id", "asked_by")
    match asked_by:
        case AskedBy.TERMINAL:
            return [CodeBound(TERMINAL_RESETS, alive, of_class)]
        case AskedBy.OWNER:
            return [
                CodeBound(OWNER_RESETS, alive, of_class),
                CodeBound(OWNER_RESETS_DAY, day, of_class),
            ]
        case AskedBy.STRANGER:
            return [
                CodeBound(STRANGER_RESETS, alive, of_class),
                CodeBound(STRANGER_RESETS_DAY, day, (*of_class, "origin")),
            ]


def verification_bounds(now: datetime) -> Sequence[CodeBound]:
    """What bounds verification mails: by account, by network, and by mailbox."""
    day = now - DAY
    return [
        CodeBound(ACCOUNT_VERIFICATIONS_DAY, day, ("operator_id",)),
        CodeBound(NETWORK_VERIFICATIONS_DAY, day, ("origin",)),
        CodeBound(MAILBOX_VERIFICATIONS_DAY, day, ("mailbox",)),
    ]
