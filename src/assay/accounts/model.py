"""Operators, keys, plans, and the rules for texts of an account, as plain values.

Source: interface.md#operator-account, #api-key-record, #limits.
"""

import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from assay.common.errors import (
    Conflict,
    Forbidden,
    InvalidRequest,
    NotFound,
    Problem,
    TooMany,
    Unauthorized,
)

FREE_MONTHLY_ALLOWANCE = 100_000
"""Metered calls per UTC calendar month on the Free plan, for the whole account. Source:
interface.md#limits."""

API_KEY_PREFIX = "svc_op_"
"""The beginning of every full API key. Source: interface.md#api-key-record."""


class Role(StrEnum):
    """What an account may do beyond its own things (interface.md#enumerated-values)."""

    OPERATOR = "operator"
    ADMIN = "admin"


class Plan(StrEnum):
    """The plan that an account pays for (conventions.md#accounts)."""

    FREE = "free"
    PRO = "pro"


class Scope(StrEnum):
    """What an API key may be used for. Source: conventions.md#account-security."""

    EVALUATE = "evaluate"
    """Profiles, evaluations and every other read about agents."""
    GATE = "gate"
    WEBHOOKS = "webhooks"
    PROXY = "proxy"
    WRAPPERS = "wrappers"
    """Listing, creating, changing and deactivating wrappers, which includes who is paid."""


DEFAULT_SCOPES = frozenset(Scope) - {Scope.WRAPPERS}
"""The scopes of a key that names none: what every key could do before there were scopes."""


class Feature(StrEnum):
    """Features that only the Pro plan has. Signal names: interface.md#enumerated-values."""

    PERSONHOOD = "personhood"
    ATTESTATION = "attestation"
    SELF = "self"
    PROXY = "proxy"


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator account (interface.md#operator-account)."""

    id: str
    email: str
    """As given, without surrounding blanks; unique by its lower-case form."""
    name: str
    role: Role
    plan: Plan
    fee_rate: Decimal
    created_at: datetime
    updated_at: datetime
    suspended_at: datetime | None = None
    """When the account was suspended: no login, key or wrapper of it works."""
    email_verified_at: datetime | None = None
    """When the owner of the e-mail address confirmed it; None: never."""
    totp_enabled: bool = False
    """Whether a log-in needs a one-time code as well."""
    deleted_at: datetime | None = None
    """When everything personal was erased. A deleted account is suspended for good."""

    @property
    def is_suspended(self) -> bool:
        """Return whether the account is suspended."""
        return self.suspended_at is not None


@dataclass(frozen=True, slots=True)
class AccountChange:
    """What an admin changes of an account; None leaves a field as it is."""

    plan: Plan | None = None
    role: Role | None = None
    fee_rate: Decimal | None = None
    suspended: bool | None = None


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key record; the key itself is never stored, only its SHA-256.

    Source: interface.md#api-key-record.
    """

    id: str
    operator_id: str
    prefix: str
    """The first characters of the full key, enough to distinguish keys."""
    label: str | None
    revoked: bool
    last_used: datetime | None
    created_at: datetime
    scopes: frozenset[Scope] = DEFAULT_SCOPES
    expires_at: datetime | None = None
    """When the key ends; None: never."""
    gate_policies: str = ""
    """The gate's policies as JSON, which the gate checks and reads; empty: none."""


@dataclass(frozen=True, slots=True)
class DashboardSession:
    """A log-in that has not ended. Its id is the `jti` of its token."""

    id: str
    operator_id: str
    created_at: datetime
    used_at: datetime
    expires_at: datetime
    user_agent: str
    """What the browser sent, shortened and without control characters."""
    client_address: str


@dataclass(frozen=True, slots=True)
class EndedCredentials:
    """What a change of credentials has ended."""

    sessions: int
    keys_revoked: int
    keys_left: int
    """API keys that still work."""


class InvalidCredentials(Unauthorized):
    """The credentials are missing, unknown or revoked; the error does not say which."""

    code = "unauthorized"


class TotpRequired(Unauthorized):
    """The password is right, but a one-time code must come with it."""

    code = "totp_required"


class TotpInvalid(Unauthorized):
    """The one-time or recovery code is wrong, or was used before."""

    code = "totp_invalid"


class TotpEnrolmentRequired(Forbidden):
    """This service requires a second factor of admins, and this one has none."""

    code = "totp_enrolment_required"


class TotpConflict(Conflict):
    """A second factor exists already, or does not exist."""

    code = "totp_conflict"


class PasswordWrong(Forbidden):
    """The present password, which was asked for again, is wrong."""

    code = "password_wrong"


class TokenInvalid(InvalidRequest):
    """The reset or verification token is unknown, spent or expired."""

    code = "token_invalid"


class MailDisabled(Forbidden):
    """This service sends no mail."""

    code = "mail_disabled"


class SignUpClosed(Forbidden):
    """Nobody can register here, or nobody without an invitation."""

    code = "sign_up_closed"


class InviteInvalid(Forbidden):
    """The invitation is unknown, spent, expired, or for another address."""

    code = "invite_invalid"


class InsufficientScope(Forbidden):
    """The API key is valid, but was not issued for this; `scope` names what it lacks."""

    code = "insufficient_scope"


class KeyLimitReached(Conflict):
    """The account has as many API keys as it may have."""

    code = "key_limit_reached"


class SessionNotFound(NotFound):
    """This operator has no dashboard session with this id."""

    code = "session_not_found"


class LastAdmin(Conflict):
    """Without this account nobody could administer the service."""

    code = "last_admin"


class AccountSuspended(Forbidden):
    """An admin has suspended the account."""

    code = "account_suspended"


class OwnAccount(Conflict):
    """An admin must not lock itself out."""

    code = "conflict"


class EmailTaken(Conflict):
    """Another account has this e-mail address."""

    code = "email_taken"


class PlanRequired(Forbidden):
    """The plan does not include this; `signal` or `feature` and `upgradeUrl` say which does."""

    code = "plan_required"


class ApiKeyNotFound(NotFound):
    """This operator has no key with this id."""

    code = "key_not_found"


class OperatorNotFound(NotFound):
    """There is no such account."""

    code = "operator_not_found"


class MonthlyLimitExceeded(TooMany):
    """The Free plan's monthly allowance is used up (interface.md#allowance-errors)."""

    code = "MONTHLY_REQUEST_LIMIT_EXCEEDED"


def require_active(operator: Operator) -> Operator:
    """Return the account; raises `AccountSuspended` if it is suspended."""
    if operator.is_suspended:
        raise AccountSuspended("This account is suspended: ask the service's administrator.")
    return operator


PASSWORD_CHARS = range(12, 257)
"""Least and largest length. Source: conventions.md#accounts."""

EMAIL_CHARS_MAX = 254
"""Source: RFC 5321, section 4.5.3.1.3, without the angle brackets."""

TEXT_CHARS_MAX = 100

_EMAIL = re.compile(r"[^\s@<>()\[\]\\,;:\"]{1,64}@[^\s@<>()\[\]\\,;:\"]+\.[^\s@.]{1,63}")


def email_address(text: str) -> str:
    """Return the address without surrounding blanks; raises `InvalidRequest`."""
    email = text.strip()
    if len(email) <= EMAIL_CHARS_MAX and _EMAIL.fullmatch(email) and _printable(email):
        return email
    raise _problem("email", "email must be an address such as you@example.com")


def password(text: str) -> str:
    """Return the password unchanged; raises `InvalidRequest`."""
    if len(text) in PASSWORD_CHARS:
        return text
    raise _problem("password", "password must have 12 to 256 characters")


def short_text(name: str, text: str) -> str:
    """Return a name or label without surrounding blanks; raises `InvalidRequest` naming `name`."""
    stripped = text.strip()
    if 1 <= len(stripped) <= TEXT_CHARS_MAX and _printable(stripped):
        return stripped
    message = f"{name} must have 1 to {TEXT_CHARS_MAX} characters and no control characters"
    raise _problem(name, message)


def _printable(text: str) -> bool:
    """Return whether a text has no characters of Unicode categories C* (control, format, ...)."""
    return not any(unicodedata.category(character).startswith("C") for character in text)


def _problem(field: str, message: str) -> InvalidRequest:
    return InvalidRequest(message, details=[Problem(("body", field), message)])
