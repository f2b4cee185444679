"""Time-based one-time codes: SHA-1, six digits, 30 seconds, as every authenticator takes them."""

import os
from datetime import datetime
from typing import Final

from cryptography.hazmat.primitives.constant_time import bytes_eq
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP

STEP_S: Final = 30
DIGITS: Final = 6
SECRET_BYTES: Final = 20
"""Source: RFC 4226, section 4, R6."""

ISSUER: Final = "Assay"

_NEIGHBOURS = (0, -1, 1)
"""Steps taken beside the present one. Source: RFC 6238, section 5.2."""


class TotpFactor:
    """Implements `accounts.credential_ports.SecondFactor`."""

    def new_secret(self) -> bytes:
        return os.urandom(SECRET_BYTES)

    def uri(self, secret: bytes, email: str) -> str:
        return _totp(secret).get_provisioning_uri(email, ISSUER)

    def step_of(self, secret: bytes, code: str, now: datetime) -> int | None:
        if len(code) != DIGITS or not (code.isascii() and code.isdecimal()):
            return None
        totp, present = _totp(secret), int(now.timestamp()) // STEP_S
        found = None
        for offset in _NEIGHBOURS:
            if bytes_eq(totp.generate((present + offset) * STEP_S), code.encode()):
                found = present + offset if found is None else found
        return found


def _totp(secret: bytes) -> TOTP:
    return TOTP(secret, DIGITS, SHA1(), STEP_S)  # noqa: S303 - HMAC-SHA1 is the standard's
