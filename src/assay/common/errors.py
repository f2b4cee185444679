"""Refusals and faults that reach a caller.

    ServiceError
    ├── InvalidRequest        the request cannot be understood (with `details`)
    ├── Unauthorized          no credential, or an invalid one
    ├── Forbidden             a valid credential without the permission
    ├── NotFound              there is nothing of that name
    ├── MethodNotAllowed      the path exists, the method does not
    ├── Conflict              it collides with an existing thing
    ├── TooLarge              more bytes than are accepted
    ├── RequestTimeout        the body did not arrive in time
    ├── TooMany               too often; `retry_after_s` says when to try again
    └── Unavailable           we cannot answer now, and do not guess
        └── SourceAway        a database or a chain does not answer

A feature subclasses one of these to give its own refusal a `code` of its own. HTTP statuses are
only in the table of `server/errors.py`. Source: conventions.md#error-envelope.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from assay.common.json import JsonValue


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of a request: its place (a path into the request) and a sentence."""

    loc: tuple[str | int, ...]
    message: str


class ServiceError(Exception):
    """An error that the caller receives instead of the answer.

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
    """The request is invalid; `details` say where and how."""

    code: ClassVar[str] = "invalid_request"

    def __init__(self, message: str, *, details: Sequence[Problem] = ()) -> None:
        listed = [{"loc": list(p.loc), "message": p.message} for p in details]
        super().__init__(message, details=listed)


class Unauthorized(ServiceError):
    """There is no credential, or it is invalid."""

    code: ClassVar[str] = "unauthorized"


class Forbidden(ServiceError):
    """The credential is valid but does not permit this."""

    code: ClassVar[str] = "forbidden"


class NotFound(ServiceError):
    """There is nothing of that name."""

    code: ClassVar[str] = "not_found"


class MethodNotAllowed(ServiceError):
    """The path exists, but not with this method."""

    code: ClassVar[str] = "method_not_allowed"


class Conflict(ServiceError):
    """The request collides with an existing thing."""

    code: ClassVar[str] = "conflict"


class TooLarge(ServiceError):
    """The request has more bytes than are accepted."""

    code: ClassVar[str] = "payload_too_large"


class RequestTimeout(ServiceError):
    """The body did not arrive in time."""

    code: ClassVar[str] = "request_timeout"


class TooMany(ServiceError):
    """The caller asks too often; `retry_after_s` is always set."""

    code: ClassVar[str] = "rate_limited"


class Unavailable(ServiceError):
    """We cannot answer now, and do not guess."""

    code: ClassVar[str] = "temporarily_unavailable"


class SourceAway(Unavailable):
    """A database or a chain does not answer: no connection, or too slow.

    It says nothing about what was asked for. What was read before may be used for a stated time.
    """
