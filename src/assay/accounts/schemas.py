"""Accounts, API keys, sessions, passwords and second factors in requests and responses.

Source: interface.md#operator-account, #api-key-record, #dashboard; conventions.md#account-security.
"""

import base64
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import AwareDatetime, ConfigDict, Field, model_validator

from assay.accounts.allowance import AllowanceUsage
from assay.accounts.model import (
    DEFAULT_SCOPES,
    PASSWORD_CHARS,
    TEXT_CHARS_MAX,
    ApiKey,
    DashboardSession,
    EndedCredentials,
    Operator,
    Scope,
)
from assay.accounts.second_factor import TOKEN_CHARS_MAX, Enrolment
from assay.common.clock import iso
from assay.server.schemas import PageResponse, Part, RequestModel, ResponseModel, Timestamp

Text = Annotated[str, Field(max_length=1000)]
"""A bounded text; the use case checks its content."""

BODY_BYTES_MAX = 16 * 1024
"""Longest body of a registration or log-in: everything in it has bounded characters."""

Name = Annotated[str, Field(min_length=1, max_length=TEXT_CHARS_MAX, examples=["Ada"])]


class RegisterRequest(RequestModel):
    """A new account."""

    email: Annotated[Text, Field(examples=["you@example.com"])]
    password: Annotated[
        str,
        Field(
            min_length=PASSWORD_CHARS.start,
            max_length=PASSWORD_CHARS.stop - 1,
            examples=["correct horse battery"],
        ),
    ]
    name: Name
    invite: Annotated[
        str | None,
        Field(max_length=TOKEN_CHARS_MAX, description="Where sign-up is by invitation."),
    ] = None


class LoginRequest(RequestModel):
    """Credentials for a dashboard token."""

    email: Annotated[Text, Field(examples=["you@example.com"])]
    password: Annotated[Text, Field(examples=["correct horse battery"])]
    code: Annotated[
        str | None,
        Field(
            max_length=TOKEN_CHARS_MAX,
            description="One-time or recovery code, for an account with a second factor.",
        ),
    ] = None
    name: Annotated[
        Text | None, Field(description="Ignored: the body of a registration logs in, too.")
    ] = None
    invite: Annotated[Text | None, Field(description="Ignored, as `name`.")] = None


class RenameRequest(RequestModel):
    """A new name."""

    name: Name


class RotateRequest(RequestModel):
    """The new key's label, scopes and end."""

    label: Name | None = None
    scopes: Annotated[
        list[Scope] | None,
        Field(
            strict=False,
            max_length=20,
            description="What the key may be used for; default: all but `wrappers`.",
        ),
    ] = None
    expires_at: Annotated[
        AwareDatetime | None, Field(strict=False, description="When the key ends.")
    ] = None
    expires_in_days: Annotated[
        int | None, Field(ge=1, le=3650, description="The same, from now on.")
    ] = None

    @model_validator(mode="after")
    def _one_end(self) -> "RotateRequest":
        if self.expires_at is not None and self.expires_in_days is not None:
            message = "name expiresAt or expiresInDays, not both"
            raise ValueError(message)
        return self

    def asked_scopes(self) -> frozenset[Scope]:
        """Return the scopes, with their default."""
        return DEFAULT_SCOPES if self.scopes is None else frozenset(self.scopes)

    def ends_at(self, now: datetime) -> datetime | None:
        """Return when the key ends; None: never."""
        if self.expires_in_days is not None:
            return now + timedelta(days=self.expires_in_days)
        return self.expires_at


class OperatorBrief(ResponseModel):
    """An account, in short."""

    id: str
    email: str
    name: str
    role: str


class Registered(ResponseModel):
    """The new account and its first API key, shown this once."""

    operator: OperatorBrief
    api_key: str


class LoggedIn(ResponseModel):
    """The account and a dashboard token for 12 hours."""

    operator: OperatorBrief
    token: str


class OperatorResponse(ResponseModel):
    """An account, with three names in snake_case (interface.md#operator-account)."""

    model_config = ConfigDict(alias_generator=None)

    id: str
    email: str
    name: str
    role: str
    plan: str
    fee_rate: str
    created_at: Timestamp
    updated_at: Timestamp


class AllowanceResponse(ResponseModel):
    """Metered calls of the current UTC month; `limit` is null if the plan has none."""

    used: int
    limit: int | None
    resets_at: Timestamp


class AccountSecurity(ResponseModel):
    """What protects the account."""

    email_verified: bool
    totp_enabled: bool
    recovery_codes_left: int


class Me(ResponseModel):
    """The account that asks, and its use of the monthly allowance."""

    ok: bool
    operator: OperatorResponse
    allowance: AllowanceResponse
    security: AccountSecurity


class KeyResponse(ResponseModel):
    """An API key record (interface.md#api-key-record)."""

    id: str
    key_prefix: str
    label: str | None
    revoked: bool
    last_used: Timestamp | None
    created_at: Timestamp
    scopes: list[Scope]
    expires_at: Timestamp | None


class Rotated(ResponseModel):
    """A new key, shown this once. The other keys stay valid."""

    key: str
    id: str
    label: str | None


class Revoked(ResponseModel):
    """The key is revoked."""

    ok: bool
    id: str
    revoked: bool


def brief(operator: Operator) -> OperatorBrief:
    """Return an account in short, as a response."""
    return OperatorBrief(
        id=operator.id, email=operator.email, name=operator.name, role=operator.role.value
    )


def operator(found: Operator) -> OperatorResponse:
    """Return an account as a response."""
    return OperatorResponse(
        id=found.id,
        email=found.email,
        name=found.name,
        role=found.role.value,
        plan=found.plan.value,
        fee_rate=str(found.fee_rate),
        created_at=iso(found.created_at),
        updated_at=iso(found.updated_at),
    )


def me(found: Operator, usage: AllowanceUsage, codes_left: int) -> Me:
    """Return the account that asks as a response."""
    return Me(
        ok=True,
        operator=operator(found),
        allowance=allowance(usage),
        security=security(found, codes_left),
    )


def allowance(usage: AllowanceUsage) -> AllowanceResponse:
    """Return the use of the month's allowance as a response."""
    return AllowanceResponse(used=usage.used, limit=usage.limit, resets_at=iso(usage.resets_at))


def security(found: Operator, codes_left: int) -> AccountSecurity:
    """Return what protects an account, as a response."""
    return AccountSecurity(
        email_verified=found.email_verified_at is not None,
        totp_enabled=found.totp_enabled,
        recovery_codes_left=codes_left,
    )


def key(record: ApiKey) -> KeyResponse:
    """Return a key record as a response."""
    return KeyResponse(
        id=record.id,
        key_prefix=record.prefix,
        label=record.label,
        revoked=record.revoked,
        last_used=None if record.last_used is None else iso(record.last_used),
        created_at=iso(record.created_at),
        scopes=sorted(record.scopes),
        expires_at=None if record.expires_at is None else iso(record.expires_at),
    )


NewPassword = Annotated[
    str,
    Field(
        min_length=PASSWORD_CHARS.start,
        max_length=PASSWORD_CHARS.stop - 1,
        examples=["another horse battery"],
    ),
]
Password = Annotated[Text, Field(examples=["correct horse battery"])]
TotpCode = Annotated[
    str, Field(max_length=TOKEN_CHARS_MAX, description="One-time code.", examples=["123456"])
]
Token = Annotated[
    str, Field(max_length=TOKEN_CHARS_MAX, description="From the fragment of a link.")
]
RevokeKeys = Annotated[bool, Field(description="Revoke every API key as well.")]


class PasswordChangeRequest(RequestModel):
    """The present password and a new one."""

    password: Password
    new_password: NewPassword
    revoke_keys: RevokeKeys = False


class ResetLinkRequest(RequestModel):
    """The account whose password is to be reset."""

    email: Annotated[Text, Field(examples=["you@example.com"])]


class PasswordResetRequest(RequestModel):
    """A reset token and a new password."""

    token: Token
    new_password: NewPassword
    revoke_keys: RevokeKeys = False


class VerifyEmailRequest(RequestModel):
    """A verification token."""

    token: Token


class PasswordRequest(RequestModel):
    """The present password."""

    password: Password


class TotpConfirmRequest(RequestModel):
    """A code of the enrolled secret."""

    code: TotpCode


class SecondFactorRequest(RequestModel):
    """The present password and a one-time or recovery code."""

    password: Password
    code: TotpCode


class DeleteAccountRequest(RequestModel):
    """The present password, and a one-time or recovery code if a log-in needs one."""

    password: Password
    code: TotpCode | None = None


class Done(ResponseModel):
    """It is done."""

    ok: bool = True


class PasswordChanged(ResponseModel):
    """The password is changed; `keysLeft` API keys still work."""

    ok: bool = True
    sessions_ended: int
    keys_revoked: int
    keys_left: int


class SessionResponse(ResponseModel):
    """A dashboard session; `current` marks the one that asks."""

    id: str
    created_at: Timestamp
    last_used: Timestamp
    expires_at: Timestamp
    user_agent: str
    address: str
    current: bool


class SessionsResponse(PageResponse):
    """The account's sessions, newest first."""

    items: list[SessionResponse]


class SessionsEnded(ResponseModel):
    """How many sessions have ended."""

    ok: bool = True
    ended: int


class DashboardSessionEnded(ResponseModel):
    """The session has ended."""

    ok: bool = True
    id: str


class TotpEnrolment(ResponseModel):
    """Data for an authenticator application, shown this once; in force after confirmation."""

    secret: Annotated[str, Field(description="Base32.")]
    uri: Annotated[str, Field(description="`otpauth://`, for a QR code.")]


class RecoveryCodes(ResponseModel):
    """Codes that each replace a one-time code once. Shown this once."""

    recovery_codes: list[str]


def password_changed(ended: EndedCredentials) -> PasswordChanged:
    """Return what a new password has ended, as a response."""
    return PasswordChanged(
        sessions_ended=ended.sessions,
        keys_revoked=ended.keys_revoked,
        keys_left=ended.keys_left,
    )


def session(found: DashboardSession, current: str | None) -> SessionResponse:
    """Return a session as a response."""
    return SessionResponse(
        id=found.id,
        created_at=iso(found.created_at),
        last_used=iso(found.used_at),
        expires_at=iso(found.expires_at),
        user_agent=found.user_agent,
        address=found.client_address,
        current=found.id == current,
    )


def sessions(part: Part[DashboardSession], current: str | None) -> SessionsResponse:
    """Return a page of the account's sessions as a response."""
    return SessionsResponse(
        items=[session(one, current) for one in part.items],
        total=part.total,
        limit=part.limit,
        offset=part.offset,
        next_cursor=part.next_cursor,
    )


def enrolment(made: Enrolment) -> TotpEnrolment:
    """Return a new secret as a response."""
    secret = base64.b32encode(made.secret).decode().rstrip("=")
    return TotpEnrolment(secret=secret, uri=made.uri)
