"""Operator accounts and API keys (interface.md#operator-account, #api-key-record, #dashboard)."""

from datetime import datetime, timedelta
from typing import Annotated

from pydantic import AwareDatetime, ConfigDict, Field, model_validator

from assay.accounts.allowance import AllowanceUsage
from assay.accounts.codes import TOKEN_CHARS_MAX
from assay.accounts.fields import PASSWORD_CHARS, TEXT_CHARS_MAX
from assay.accounts.model import DEFAULT_SCOPES, ApiKey, Operator, Scope
from assay.common.clock import iso
from assay.server.schemas_base import RequestModel, ResponseModel, Timestamp

Text = Annotated[str, Field(max_length=1000)]
"""The use case says what may stand in it; this only bounds what is looked at."""

BODY_BYTES_MAX = 16 * 1024
"""Longest body of a registration or log-in: everything in it is bounded in characters."""

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
    """What to call the new key, what it is for, and until when."""

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
        """The scopes, with their default."""
        return DEFAULT_SCOPES if self.scopes is None else frozenset(self.scopes)

    def ends_at(self, now: datetime) -> datetime | None:
        """When the key ends; None: never."""
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
    """Metered calls of the current UTC month; `limit` is null where the plan has no cap."""

    used: int
    limit: int | None
    resets_at: Timestamp


class AccountSecurity(ResponseModel):
    """What stands between the account and strangers."""

    email_verified: bool
    totp_enabled: bool
    recovery_codes_left: int


class Me(ResponseModel):
    """The account that asks, and what it has used of its monthly allowance."""

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
    """A new key, shown this once. The other keys stay as they are."""

    key: str
    id: str
    label: str | None


class Revoked(ResponseModel):
    """The key is revoked."""

    ok: bool
    id: str
    revoked: bool


def brief(operator: Operator) -> OperatorBrief:
    """An account in short, on the wire."""
    return OperatorBrief(
        id=operator.id, email=operator.email, name=operator.name, role=operator.role.value
    )


def operator(found: Operator) -> OperatorResponse:
    """An account on the wire."""
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
    """The account that asks, on the wire."""
    return Me(
        ok=True,
        operator=operator(found),
        allowance=allowance(usage),
        security=security(found, codes_left),
    )


def allowance(usage: AllowanceUsage) -> AllowanceResponse:
    """What is used of the month's allowance, on the wire."""
    return AllowanceResponse(used=usage.used, limit=usage.limit, resets_at=iso(usage.resets_at))


def security(found: Operator, codes_left: int) -> AccountSecurity:
    """What protects an account, on the wire."""
    return AccountSecurity(
        email_verified=found.email_verified_at is not None,
        totp_enabled=found.totp_enabled,
        recovery_codes_left=codes_left,
    )


def key(record: ApiKey) -> KeyResponse:
    """A key record on the wire."""
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
