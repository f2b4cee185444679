"""Sessions, passwords, second factors, export and end of an account.

Source: conventions.md#account-security.
"""

import base64
from typing import Annotated

from pydantic import Field

from assay.accounts.codes import TOKEN_CHARS_MAX
from assay.accounts.fields import PASSWORD_CHARS
from assay.accounts.model import DashboardSession, EndedCredentials
from assay.accounts.second_factor import Enrolment
from assay.common.clock import iso
from assay.server.schemas_base import RequestModel, ResponseModel, Timestamp
from assay.server.schemas_page import PageResponse, Part

Text = Annotated[str, Field(max_length=1000)]

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
    """Whose password is to be reset."""

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
    """The present password, and a one-time or recovery code where one is needed to log in."""

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
    """For an authenticator application, shown this once; in force when a code is confirmed."""

    secret: Annotated[str, Field(description="Base32.")]
    uri: Annotated[str, Field(description="`otpauth://`, for a QR code.")]


class RecoveryCodes(ResponseModel):
    """Codes that each stand for a one-time code once. Shown this once."""

    recovery_codes: list[str]


def password_changed(ended: EndedCredentials) -> PasswordChanged:
    """What a new password has ended, on the wire."""
    return PasswordChanged(
        sessions_ended=ended.sessions,
        keys_revoked=ended.keys_revoked,
        keys_left=ended.keys_left,
    )


def session(found: DashboardSession, current: str | None) -> SessionResponse:
    """A session on the wire."""
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
    """A page of the account's sessions on the wire."""
    return SessionsResponse(
        items=[session(one, current) for one in part.items],
        total=part.total,
        limit=part.limit,
        offset=part.offset,
        next_cursor=part.next_cursor,
    )


def enrolment(made: Enrolment) -> TotpEnrolment:
    """A secret on the wire."""
    secret = base64.b32encode(made.secret).decode().rstrip("=")
    return TotpEnrolment(secret=secret, uri=made.uri)
