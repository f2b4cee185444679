"""Single-use codes, time-based codes and recovery codes (RFC 6238).

Single-use codes are tokens in links, invitations and recovery codes. The number of links by mail is
bounded by counting the issued codes. Time-based codes use SHA-1, six digits and 30 seconds, as
every authenticator does.

Source: conventions.md#account-security.
"""

import hashlib
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography.hazmat.primitives.constant_time import bytes_eq
from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP

from assay.accounts.api_keys import base62
from assay.accounts.model import Operator, TotpConflict, TotpInvalid, TotpRequired
from assay.accounts.password_proof import PasswordProof
from assay.accounts.ports import AskedBy, Client, CodeBound, CredentialStore, LoginRecord
from assay.audit.service import TERMINAL, Actor, new_entry
from assay.common.clock import Clock
from assay.common.errors import Unavailable
from assay.common.keyring import SecretBox

RESET_TTL: Final = timedelta(minutes=30)
"""Lifetime of a reset link. Source: conventions.md#account-security."""

VERIFY_TTL: Final = timedelta(hours=24)
INVITE_TTL: Final = timedelta(days=7)

RECOVERY_CODES: Final = 10
TOKEN_CHARS_MAX: Final = 100
"""Longest token: longer ones are not ours and are not hashed."""

_TOKEN_BYTES = 32
_ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
"""Letters and digits without those that are easily confused."""
_RECOVERY_CHARS = 16
"""79 bits: too many to try offline, although a plain SHA-256 is stored."""


def new_token() -> str:
    """Return a token of 256 bits, for links and invitations."""
    return base62(secrets.token_bytes(_TOKEN_BYTES))


def _new_recovery_codes() -> list[str]:
    """Return ten codes of the form `ABCD-EFGH-JKMN-PQRS`."""
    return [_recovery_code() for _ in range(RECOVERY_CODES)]


def code_hash(code: str) -> str:
    """Return the SHA-256 under which a code is stored; 64 hex digits."""
    shown = code[:TOKEN_CHARS_MAX].strip()
    return hashlib.sha256(shown.encode("utf-8", "surrogatepass")).hexdigest()


def _recovery_hash(code: str) -> str:
    """Return the hash of a recovery code, also if it was typed in lower case or without hyphens."""
    typed = code[:TOKEN_CHARS_MAX].upper()
    return code_hash("".join(character for character in typed if character.isalnum()))


def _recovery_code() -> str:
    characters = [secrets.choice(_ALPHABET) for _ in range(_RECOVERY_CHARS)]
    return "-".join("".join(characters[at : at + 4]) for at in range(0, _RECOVERY_CHARS, 4))


DAY: Final = timedelta(days=1)

OWNER_RESETS: Final = 2
"""Valid reset links at one time that the owner's networks asked for."""

OWNER_RESETS_DAY: Final = 20
STRANGER_RESETS: Final = 1
"""Valid reset links at one time that other networks asked for."""

STRANGER_RESETS_DAY: Final = 3
"""Reset links of one account a day that one such network asks for."""

TERMINAL_RESETS: Final = 3
"""Valid reset links at one time that the operator of the service created."""

ACCOUNT_VERIFICATIONS_DAY: Final = 3
MAILBOX_VERIFICATIONS_DAY: Final = 6
NETWORK_VERIFICATIONS_DAY: Final = 10


def reset_bounds(asked_by: AskedBy, now: datetime) -> Sequence[CodeBound]:
    """Return the bounds of reset links of one account."""
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
    """Return the bounds of verification mails: by account, by network, and by mailbox."""
    day = now - DAY
    return [
        CodeBound(ACCOUNT_VERIFICATIONS_DAY, day, ("operator_id",)),
        CodeBound(NETWORK_VERIFICATIONS_DAY, day, ("origin",)),
        CodeBound(MAILBOX_VERIFICATIONS_DAY, day, ("mailbox",)),
    ]


STEP_S: Final = 30
DIGITS: Final = 6
SECRET_BYTES: Final = 20
"""Source: RFC 4226, section 4, R6."""

ISSUER: Final = "Assay"

_NEIGHBOURS = (0, -1, 1)
"""Steps that are accepted beside the present one. Source: RFC 6238, section 5.2."""


class TotpFactor:
    """Time-based one-time codes (RFC 6238)."""

    def new_secret(self) -> bytes:
        """Generate a secret for an authenticator."""
        return os.urandom(SECRET_BYTES)

    def uri(self, secret: bytes, email: str) -> str:
        """Return the `otpauth` address that an authenticator reads."""
        return _totp(secret).get_provisioning_uri(email, ISSUER)

    def step_of(self, secret: bytes, code: str, now: datetime) -> int | None:
        """Return the step that a code belongs to; None for a wrong code."""
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


@dataclass(frozen=True, slots=True)
class Enrolment:
    """What an authenticator application needs, shown once."""

    secret: bytes
    uri: str


class SecondFactors:
    """Enrols, checks and removes second factors."""

    def __init__(
        self,
        store: CredentialStore,
        factor: TotpFactor,
        secrets: SecretBox,
        proof: PasswordProof,
        clock: Clock,
    ) -> None:
        self._store = store
        self._factor = factor
        self._secrets = secrets
        self._proof = proof
        self._clock = clock

    async def enrol(self, operator: Operator, password: str, client: Client) -> Enrolment:
        """Return a new secret, in force once a code of it is confirmed.

        It replaces an unconfirmed one. Raises `PasswordWrong`, `TooMany`, and `TotpConflict` if one
        is in force.
        """
        await self._proof.confirm(operator, password, client)
        secret = self._factor.new_secret()
        sealed = self._secrets.seal(secret, _place(operator.id))
        if not await self._store.begin_totp(operator.id, sealed):
            raise TotpConflict("A second factor is in force already: remove it first.")
        return Enrolment(secret, self._factor.uri(secret, operator.email))

    async def confirm(self, operator: Operator, code: str, actor: Actor) -> Sequence[str]:
        """Put the enrolled secret in force; return the recovery codes, shown once.

        Raises `TotpInvalid`, `TooMany`, and `TotpConflict` if nothing was enrolled.
        """
        record = await self._store.login_of(operator.id)
        if record is None or record.sealed_totp is None or record.operator.totp_enabled:
            raise TotpConflict("There is no second factor to confirm: enrol one first.")
        attempt = self._proof.throttle.begin_code(operator.email)
        step = self._step(record, code)
        if step is None:
            raise TotpInvalid("The one-time code is wrong: check the clock of your device.")
        self._proof.throttle.succeeded(attempt)
        codes = _new_recovery_codes()
        entry = new_entry(self._clock, actor, "totp.enabled", operator.id)
        hashed = [_recovery_hash(one) for one in codes]
        if not await self._store.confirm_totp(
            operator.id, record.sealed_totp, step, hashed, self._clock.now(), entry
        ):
            raise TotpConflict("There is no second factor to confirm: enrol one first.")
        return codes

    async def require(self, record: LoginRecord, code: str | None, actor: Actor) -> None:
        """Check the second factor of an account whose password was right; a code counts once.

        Raises `TotpRequired` without a code, `TotpInvalid` for a wrong or spent one, and `TooMany`
        during the delay after wrong ones.
        """
        if not record.operator.totp_enabled:
            return
        if code is None:
            raise TotpRequired("A one-time code is needed as well: send it as `code`.")
        attempt = self._proof.throttle.begin_code(record.operator.email)
        if not await self._take(record, code, actor):
            raise TotpInvalid("The one-time code is wrong, or was used before.")
        self._proof.throttle.succeeded(attempt)

    async def replace_recovery_codes(
        self, operator: Operator, password: str, code: str, client: Client, actor: Actor
    ) -> Sequence[str]:
        """Return new recovery codes, shown once; earlier ones become invalid.

        Raises like `disable`.
        """
        await self._prove(operator, password, code, client, actor)
        codes = _new_recovery_codes()
        entry = new_entry(self._clock, actor, "recovery_codes.issued", operator.id)
        await self._store.set_recovery_codes(
            operator.id, [_recovery_hash(one) for one in codes], entry
        )
        return codes

    async def disable(
        self, operator: Operator, password: str, code: str, client: Client, actor: Actor
    ) -> None:
        """Remove the second factor and its recovery codes.

        Raises `PasswordWrong`, `TotpInvalid`, `TooMany`, and `TotpConflict` if none is in force.
        """
        await self._prove(operator, password, code, client, actor)
        await self._store.end_totp(
            operator.id, new_entry(self._clock, actor, "totp.disabled", operator.id)
        )

    async def disable_for_admin(self, operator_id: str, actor: Actor = TERMINAL) -> bool:
        """Remove an account's second factor without a code; return False if it had none."""
        entry = new_entry(self._clock, actor, "totp.disabled", operator_id)
        return await self._store.end_totp(operator_id, entry)

    async def recovery_codes_left(self, operator_id: str) -> int:
        """Return how many recovery codes the account has left."""
        return await self._store.recovery_codes_left(operator_id)

    async def reseal(self, operator_id: str, actor: Actor = TERMINAL) -> int:
        """Seal secrets again that an older key of the ring sealed; return how many there were."""
        record = await self._store.login_of(operator_id)
        old = record.sealed_totp if record else None
        if old is None or self._secrets.is_current(old):
            return 0
        place = _place(operator_id)
        sealed = self._secrets.seal(self._secrets.open(old, place), place)
        entry = new_entry(self._clock, actor, "totp.resealed", operator_id)
        await self._store.reseal_totp(operator_id, old, sealed, entry)
        return 1

    async def _prove(
        self, operator: Operator, password: str, code: str, client: Client, actor: Actor
    ) -> None:
        record = await self._proof.confirm(operator, password, client)
        if not record.operator.totp_enabled:
            raise TotpConflict("There is no second factor in force.")
        await self.require(record, code, actor)

    async def _take(self, record: LoginRecord, code: str, actor: Actor) -> bool:
        """Spend a one-time or recovery code; return whether it was valid."""
        operator_id = record.operator.id
        step = self._step(record, code)
        if step is not None:
            return await self._store.take_totp_step(operator_id, step)
        entry = new_entry(self._clock, actor, "recovery_code.used", operator_id)
        return await self._store.take_recovery_code(operator_id, _recovery_hash(code), entry)

    def _step(self, record: LoginRecord, code: str) -> int | None:
        if record.sealed_totp is None:
            return None
        try:
            secret = self._secrets.open(record.sealed_totp, _place(record.operator.id))
        except ValueError as error:
            raise Unavailable(
                "Second factors cannot be checked now.", detail=str(error), retry_after_s=60
            ) from error
        return self._factor.step_of(secret, code, self._clock.now())


def _place(operator_id: str) -> bytes:
    return b"totp/" + operator_id.encode()
