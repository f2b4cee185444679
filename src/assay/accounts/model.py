"""Operators, keys and plans, as plain values (spec 2.12, 2.13, 8)."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from assay.kit.errors import Conflict, Forbidden, NotFound, TooMany, Unauthorized

FREE_MONTHLY_ALLOWANCE = 100_000
"""Metered calls per UTC calendar month on the Free plan, account-wide. Source: spec, section 8."""

API_KEY_PREFIX = "svc_op_"
"""Every full API key starts so. Source: spec 2.13."""


class Role(StrEnum):
    """What an account may do beside its own things (spec 2.17)."""

    OPERATOR = "operator"
    ADMIN = "admin"


class Plan(StrEnum):
    """What an account pays for (decisions, section 12)."""

    FREE = "free"
    PRO = "pro"


class Feature(StrEnum):
    """What only the Pro plan has. The signal names are those of spec 2.17."""

    PERSONHOOD = "personhood"
    ATTESTATION = "attestation"
    SELF = "self"
    PROXY = "proxy"


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator account (spec 2.12)."""

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
    """Since when nothing of it works: no login, no key, no wrapper."""

    @property
    def is_suspended(self) -> bool:
        """Whether nothing of it works."""
        return self.suspended_at is not None


@dataclass(frozen=True, slots=True)
class Change:
    """What an admin changes of an account; None leaves it as it is."""

    plan: Plan | None = None
    role: Role | None = None
    fee_rate: Decimal | None = None
    suspended: bool | None = None


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key record; the key itself is never stored, only its SHA-256 (spec 2.13)."""

    id: str
    operator_id: str
    prefix: str
    """The first characters of the full key, enough to tell keys apart."""
    label: str | None
    revoked: bool
    last_used: datetime | None
    created_at: datetime


class InvalidCredentials(Unauthorized):
    """Missing, unknown or revoked; the three are not told apart."""

    code = "unauthorized"


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
    """The plan does not include this; `signal` or `feature` and `upgradeUrl` say what would."""

    code = "plan_required"


class ApiKeyNotFound(NotFound):
    """This operator has no key of this id."""

    code = "key_not_found"


class OperatorNotFound(NotFound):
    """There is no such account."""

    code = "operator_not_found"


class MonthlyLimitExceeded(TooMany):
    """The Free plan's monthly allowance is used up (spec 7.2)."""

    code = "MONTHLY_REQUEST_LIMIT_EXCEEDED"


def require_active(operator: Operator) -> Operator:
    """The account, unless it is suspended: then it raises `AccountSuspended`."""
    if operator.is_suspended:
        raise AccountSuspended("This account is suspended: ask the service's administrator.")
    return operator
