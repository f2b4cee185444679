"""Operator accounts and API keys (spec 2.12, 2.13, 4.6)."""

from typing import Annotated

from pydantic import ConfigDict, Field

from assay.accounts.allowance import Standing
from assay.accounts.fields import PASSWORD_CHARS, TEXT_CHARS_MAX
from assay.accounts.model import ApiKey, Operator
from assay.kit.clock import iso
from assay.web.wire.shape import Answer, Body, Timestamp

Text = Annotated[str, Field(max_length=1000)]
"""The use case says what may stand in it; this only bounds what is looked at."""

Name = Annotated[str, Field(min_length=1, max_length=TEXT_CHARS_MAX, examples=["Ada"])]


class RegisterBody(Body):
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


class LoginBody(Body):
    """Credentials for a dashboard token."""

    email: Annotated[Text, Field(examples=["you@example.com"])]
    password: Annotated[Text, Field(examples=["correct horse battery"])]


class RenameBody(Body):
    """A new name."""

    name: Name


class RotateBody(Body):
    """What to call the new key."""

    label: Name | None = None


class OperatorBrief(Answer):
    """An account, in short."""

    id: str
    email: str
    name: str
    role: str


class Registered(Answer):
    """The new account and its first API key, shown this once."""

    operator: OperatorBrief
    api_key: str


class LoggedIn(Answer):
    """The account and a dashboard token for 12 hours."""

    operator: OperatorBrief
    token: str


class OperatorShape(Answer):
    """An account (spec 2.12; its three snake_case names are the specification's)."""

    model_config = ConfigDict(alias_generator=None)

    id: str
    email: str
    name: str
    role: str
    plan: str
    fee_rate: str
    created_at: Timestamp
    updated_at: Timestamp


class AllowanceShape(Answer):
    """Metered calls of the current UTC month; `limit` is null where the plan has no cap."""

    used: int
    limit: int | None
    resets_at: Timestamp


class Me(Answer):
    """The account that asks, and what it has used of its monthly allowance."""

    ok: bool
    operator: OperatorShape
    allowance: AllowanceShape


class KeyShape(Answer):
    """An API key record (spec 2.13)."""

    id: str
    key_prefix: str
    label: str | None
    revoked: bool
    last_used: Timestamp | None
    created_at: Timestamp


class Rotated(Answer):
    """A new key, shown this once. The other keys stay as they are."""

    key: str
    id: str
    label: str | None


class Revoked(Answer):
    """The key is revoked."""

    ok: bool
    id: str
    revoked: bool


def brief(operator: Operator) -> OperatorBrief:
    """An account in short, on the wire."""
    return OperatorBrief(
        id=operator.id, email=operator.email, name=operator.name, role=operator.role.value
    )


def operator(found: Operator) -> OperatorShape:
    """An account on the wire."""
    return OperatorShape(
        id=found.id,
        email=found.email,
        name=found.name,
        role=found.role.value,
        plan=found.plan.value,
        fee_rate=str(found.fee_rate),
        created_at=iso(found.created_at),
        updated_at=iso(found.updated_at),
    )


def me(found: Operator, standing: Standing) -> Me:
    """The account that asks, on the wire."""
    allowance = AllowanceShape(
        used=standing.used, limit=standing.limit, resets_at=iso(standing.resets_at)
    )
    return Me(ok=True, operator=operator(found), allowance=allowance)


def key(record: ApiKey) -> KeyShape:
    """A key record on the wire."""
    return KeyShape(
        id=record.id,
        key_prefix=record.prefix,
        label=record.label,
        revoked=record.revoked,
        last_used=None if record.last_used is None else iso(record.last_used),
        created_at=iso(record.created_at),
    )
