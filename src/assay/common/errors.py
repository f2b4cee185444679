"""Refusals and faults that reach a caller.

    ServiceError
    ├── InvalidRequest        what was sent cannot be understood (with `details`)
    ├── Unauthorized          no credential, or one that does not hold
    ├── Forbidden             a credential that holds but does not reach this far
    ├── NotFound              nothing of that name
    ├── MethodNotAllowed      the path is there, the method is not
    ├── Conflict              it collides with what is already there
    ├── TooLarge              more bytes than are accepted
    ├── TooMany               too often; `retry_after_s` says when again
    └── Unavailable           we cannot answer now, and do not guess

A feature subclasses one of these to name its own refusal by its own `code`. HTTP statuses are
nobody's business here: `server/errors.py` holds the one table.
Source: conventions.md#error-envelope.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from assay.common.json import JsonValue


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a request: where (path into it) and what, in a sentence."""

    loc: tuple[str | int, ...]
    message: str


class ServiceError(Exception):
    """Anything a caller is told instead of the answer.

    `message` is public: one English sentence without internal text, addresses or library words.
    `detail` is for our logs only. `extras` are further public members of the error body.
    """

    code: ClassVar[str] = "internal_error"

    def __init__(
        self,
        message: str,
        *,
        detail: str | None = None,
        retry_after_s: int | None = None,
        **extras: JsonValue,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.retry_after_s = retry_after_s
        self.extras = extras


class InvalidRequest(ServiceError):
    """The request itself is wrong; `details` say where and how."""

    code: ClassVar[str] = "invalid_request"

    def __init__(self, message: str, *, details: Sequence[Problem] = ()) -> None:
        listed = [{"loc": list(p.loc), "message": p.message} for p in details]
        super().__init__(message, details=listed)


class Unauthorized(ServiceError):
    """No credential, or one that does not hold."""

    code: ClassVar[str] = "unauthorized"


class Forbidden(ServiceError):
    """The credential holds but does not reach this far."""

    code: ClassVar[str] = "forbidden"


class NotFound(ServiceError):
    """Nothing of that name."""

    code: ClassVar[str] = "not_found"


class MethodNotAllowed(ServiceError):
    """The path is there, the method is not."""

    code: ClassVar[str] = "method_not_allowed"


class Conflict(ServiceError):
    """It collides with what is already there."""

    code: ClassVar[str] = "conflict"


class TooLarge(ServiceError):
    """More bytes than are accepted."""

    code: ClassVar[str] = "payload_too_large"


class RequestTimeout(ServiceError):
    """The body did not arrive in time."""

    code: ClassVar[str] = "request_timeout"


class TooMany(ServiceError):
    """Too often; `retry_after_s` is always set."""

    code: ClassVar[str] = "rate_limited"


class Unavailable(ServiceError):
    """We cannot answer now, and do not guess."""

    code: ClassVar[str] = "temporarily_unavailable"
