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
    EMAIL_CHARS_MAX,
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
from assay.server.schemas import (
    ClientAddress,
    Count,
    Count0,
    DisplayName,
    EmailText,
    Off,
    PageResponse,
    Part,
    RateText,
    RecordId,
    RequestModel,
    ResponseModel,
    Timestamp,
)

Text = Annotated[str, Field(max_length=1000)]
"""A bounded text; the use case checks its content."""

BODY_BYTES_MAX = 16 * 1024
"""Longest body of a registration or log-in: everything in it has bounded characters."""

Email = Annotated[
    Text, Field(examples=["you@example.com"], json_schema_extra={"maxLength": EMAIL_CHARS_MAX})
]
Name = Annotated[str, Field(min_length=1, max_length=TEXT_CHARS_MAX, examples=["Ada"])]


class RegisterRequest(RequestModel):
    """A new account."""

    email: Email
    """The account's e-mail address, at most 254 characters; unique."""
    password: Annotated[
        str,
        Field(
            min_length=PASSWORD_CHARS.start,
            max_length=PASSWORD_CHARS.stop - 1,
            examples=["correct horse battery"],
        ),
    ]
    """The account's present password."""
    name: Name
    """The operator's name, 1 to 100 printable characters."""
    invite: Annotated[
        str | None,
        Field(max_length=TOKEN_CHARS_MAX, description="Where sign-up is by invitation."),
    ] = None


class LoginRequest(RequestModel):
    """Credentials for a dashboard token."""

    email: Email
    """The account's e-mail address, at most 254 characters."""
    password: Annotated[Text, Field(examples=["correct horse battery"])]
    """The account's present password."""
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
    """The operator's new name, 1 to 100 printable characters."""


class RotateRequest(RequestModel):
    """The new key's label, scopes and end."""

    label: Name | None = None
    """Your name for the new key, 1 to 100 characters; absent: none."""
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
    gate_policies_of: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=64,
            description="Id of a key whose gate policies the new key gets too.",
        ),
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

    id: RecordId
    """Its id, a UUID."""
    email: EmailText
    """The account's e-mail address, at most 254 characters."""
    name: DisplayName
    """The operator's name."""
    role: Annotated[str, Field(examples=["operator"])]
    """`operator` or `admin`."""


class Registered(ResponseModel):
    """The new account and its first API key, shown this once."""

    operator: OperatorBrief
    """The account."""
    api_key: Annotated[str, Field(examples=["svc_op_0123456789abcdef"])]
    """The key, shown this once: `svc_op_` and its secret part."""


class LoggedIn(ResponseModel):
    """The account and a dashboard token for 12 hours."""

    operator: OperatorBrief
    """The account."""
    token: Annotated[str, Field(examples=["eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln"])]
    """A dashboard token for 12 hours, sent as `Authorization: Bearer`."""


class OperatorResponse(ResponseModel):
    """An account, with three names in snake_case (interface.md#operator-account)."""

    model_config = ConfigDict(alias_generator=None)

    id: RecordId
    """Its id, a UUID."""
    email: EmailText
    """The account's e-mail address, at most 254 characters."""
    name: DisplayName
    """A name for people."""
    role: Annotated[str, Field(examples=["operator"])]
    """`operator` or `admin`."""
    plan: Annotated[str, Field(examples=["free"])]
    """`free` or `pro`."""
    fee_rate: RateText
    """The platform's share of each payment, a decimal from 0 to 1."""
    created_at: Timestamp
    """When it was created."""
    updated_at: Timestamp
    """When it was changed last."""


class AllowanceResponse(ResponseModel):
    """Metered calls of the current UTC month; `limit` is null if the plan has none."""

    used: Count
    """Metered calls since the month began."""
    limit: Count | None
    """Metered calls the plan includes a month; null: unlimited."""
    resets_at: Timestamp
    """When the next month begins, in UTC."""


class AccountSecurity(ResponseModel):
    """What protects the account."""

    email_verified: bool
    """Whether the e-mail address is confirmed."""
    totp_enabled: bool
    """Whether a log-in needs a one-time code as well."""
    recovery_codes_left: Count
    """Unused recovery codes."""


class Me(ResponseModel):
    """The account that asks, and its use of the monthly allowance."""

    ok: bool
    """Always true in a success."""
    operator: OperatorResponse
    """The account that asks."""
    allowance: AllowanceResponse
    """Metered calls of this month."""
    security: AccountSecurity
    """Whether the e-mail address is confirmed, and a second factor is on."""


class KeyResponse(ResponseModel):
    """An API key record (interface.md#api-key-record)."""

    id: RecordId
    """Its id, a UUID."""
    key_prefix: Annotated[str, Field(examples=["svc_op_4f2a"])]
    """The key's first characters, to recognise it by."""
    label: Annotated[str, Field(examples=["production"])] | None
    """The operator's name for it; null if it has none."""
    revoked: Off
    """Whether it is revoked."""
    last_used: Timestamp | None
    """When it was used last; null before the first use."""
    created_at: Timestamp
    """When it was created."""
    scopes: list[Scope]
    """What the key may be used for."""
    expires_at: Timestamp | None
    """When the key ends; null: never."""


class Rotated(ResponseModel):
    """A new key, shown this once. The other keys stay valid."""

    key: Annotated[str, Field(examples=["svc_op_0123456789abcdef"])]
    """The key, shown this once: `svc_op_` and its secret part."""
    id: RecordId
    """The key's id."""
    label: Annotated[str, Field(examples=["production"])] | None
    """The operator's name for it; null if it has none."""


class Revoked(ResponseModel):
    """The key is revoked."""

    ok: bool
    """Always true in a success."""
    id: RecordId
    """The key's id."""
    revoked: bool
    """Always true."""


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
        description="The new password, 12 to 256 characters.",
        examples=["another horse battery"],
    ),
]
Password = Annotated[Text, Field(examples=["correct horse battery"])]
TotpCode = Annotated[
    str, Field(max_length=TOKEN_CHARS_MAX, description="One-time code.", examples=["123456"])
]
Token = Annotated[
    str,
    Field(
        examples=["dG9rZW4tZnJvbS10aGUtbGluaw"],
        max_length=TOKEN_CHARS_MAX,
        description="From the fragment of a link.",
    ),
]
RevokeKeys = Annotated[bool, Field(description="Revoke every API key as well.")]


class PasswordChangeRequest(RequestModel):
    """The present password and a new one."""

    password: Password
    """The account's present password."""
    new_password: NewPassword
    revoke_keys: RevokeKeys = False


class ResetLinkRequest(RequestModel):
    """The account whose password is to be reset."""

    email: Email
    """The account's e-mail address, at most 254 characters."""


class PasswordResetRequest(RequestModel):
    """A reset token and a new password."""

    token: Token
    """A token for 12 hours, sent as `Authorization: Bearer`."""
    new_password: NewPassword
    revoke_keys: RevokeKeys = False


class VerifyEmailRequest(RequestModel):
    """A verification token."""

    token: Token
    """A token for 12 hours, sent as `Authorization: Bearer`."""


class PasswordRequest(RequestModel):
    """The present password."""

    password: Password
    """The account's present password."""


class TotpConfirmRequest(RequestModel):
    """A code of the enrolled secret."""

    code: TotpCode


class SecondFactorRequest(RequestModel):
    """The present password and a one-time or recovery code."""

    password: Password
    """The account's present password."""
    code: TotpCode


class DeleteAccountRequest(RequestModel):
    """The present password, and a one-time or recovery code if a log-in needs one."""

    password: Password
    """The account's present password."""
    code: TotpCode | None = None
    """A one-time or recovery code; needed if the second factor is on."""


class Done(ResponseModel):
    """It is done."""

    ok: bool = True
    """Always true in a success."""


class PasswordChanged(ResponseModel):
    """The password is changed; `keysLeft` API keys still work."""

    ok: bool = True
    """Always true in a success."""
    sessions_ended: Count
    """Dashboard sessions that ended."""
    keys_revoked: Count0
    """API keys that were revoked."""
    keys_left: Count
    """API keys that still work."""


class SessionResponse(ResponseModel):
    """A dashboard session; `current` marks the one that asks."""

    id: RecordId
    """Its id, a UUID."""
    created_at: Timestamp
    """When it was created."""
    last_used: Timestamp
    """When its token was used last."""
    expires_at: Timestamp
    """When it ends."""
    user_agent: Annotated[str, Field(examples=["Mozilla/5.0"])]
    """The browser or program, as it names itself; may be empty."""
    address: ClientAddress
    """The network address that logged in."""
    current: bool
    """Whether it is the session that asks."""


class SessionsResponse(PageResponse):
    """The account's sessions, newest first."""

    items: list[SessionResponse]
    """The rows of this page."""


class SessionsEnded(ResponseModel):
    """How many sessions have ended."""

    ok: bool = True
    """Always true in a success."""
    ended: Count
    """How many sessions ended."""


class DashboardSessionEnded(ResponseModel):
    """The session has ended."""

    ok: bool = True
    """Always true in a success."""
    id: RecordId
    """Its id, a UUID."""


class TotpEnrolment(ResponseModel):
    """Data for an authenticator application, shown this once; in force after confirmation."""

    secret: Annotated[str, Field(examples=["JBSWY3DPEHPK3PXP"], description="Base32.")]
    uri: Annotated[
        str,
        Field(
            examples=["otpauth://totp/Assay?secret=JBSWY3DPEHPK3PXP"],
            description="`otpauth://`, for a QR code.",
        ),
    ]


class RecoveryCodes(ResponseModel):
    """Codes that each replace a one-time code once. Shown this once."""

    recovery_codes: Annotated[list[str], Field(examples=[["ABCD-EFGH-JKMN-PQRS"]])]
    """The codes. Each works once."""


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
