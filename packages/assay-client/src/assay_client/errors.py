"""Errors that the client raises. No message and no attribute contains a credential.

AssayError
├── InvalidInput          an argument cannot be sent; nothing was sent
├── MissingExtra          an optional library is not installed
├── ConnectionFailed      no response arrived, or not in time
├── UnexpectedResponse    the response is not one of this service
├── InvalidToken          a decision token does not verify
├── PaymentDeclined       the 402 asks for what may not be paid; nothing was signed (payments.py)
├── PaymentFailed         a payment was signed and sent (payments.py)
│   ├── PaymentRefused    the service did not accept it
│   └── PaymentUnresolved its outcome is unknown: send the same payment again
└── ServiceRefusal        the service answered with an error
    ├── InvalidRequest (400), NotFound (404), Conflict (409, 412), Forbidden (403)
    ├── Unauthorized (401)
    │   ├── IdentityRequired, SignatureInvalid, IdentityMismatch
    │   └── ChallengeRequired     carries the challenge to sign
    ├── TooManyRequests (429)
    │   └── AllowanceUsedUp
    └── Unavailable (500 and above)
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


class AssayError(Exception):
    """Any failure of a call."""


class InvalidInput(AssayError, ValueError):
    """An argument cannot be sent; nothing was sent."""


class MissingExtra(AssayError, ImportError):
    """An optional library is not installed; the message names the extra that has it."""


class ConnectionFailed(AssayError):
    """No complete response arrived. `sent` says whether the service may have acted."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class UnexpectedResponse(AssayError):
    """The response is not one that the service gives: another server answers at this address."""


class InvalidToken(AssayError):
    """A decision token does not verify; the message says why."""


@dataclass(frozen=True)
class RefusalBody:
    """The service's error form. Source: conventions.md#error-envelope."""

    status: int
    error: str
    code: str
    message: str
    request_id: str
    members: Mapping[str, object]
    """The whole body, with members that depend on the code, such as `details`."""
    retry_after_s: float | None = None
    agent_session: str | None = field(default=None, repr=False)
    """A session that began with this call although it was refused: its challenge is spent."""


class ServiceRefusal(AssayError):
    """The service answered with an error; `body` has all of it."""

    def __init__(self, body: RefusalBody) -> None:
        details = body.members.get("details")
        said = f" {details!r:.1000}" if details else ""
        super().__init__(
            f"{body.status} {body.code}: {body.message}{said} (request {body.request_id})"
        )
        self.body = body
        self.status, self.error, self.code = body.status, body.error, body.code
        self.message, self.request_id = body.message, body.request_id
        self.retry_after_s, self.agent_session = body.retry_after_s, body.agent_session

    @property
    def details(self) -> tuple[object, ...]:
        """Return what is wrong and where, if the service says so."""
        found = self.body.members.get("details")
        return tuple(found) if isinstance(found, list) else ()  # pyright: ignore[reportUnknownArgumentType,reportUnknownVariableType] - opaque entries


class InvalidRequest(ServiceRefusal):
    """The request is invalid: see `details`."""


class Unauthorized(ServiceRefusal):
    """The operator's credential or the agent's proof is missing or invalid."""


class IdentityRequired(Unauthorized):
    """The agent's address is missing or malformed."""


class ChallengeRequired(Unauthorized):
    """The agent must sign `challenge` first: see `AgentSession.answer`."""

    @property
    def challenge(self) -> str:
        """Return the text to sign, exactly as it is."""
        return str(self.body.members.get("challenge", ""))

    @property
    def agent_address(self) -> str:
        """Return the address whose key has to sign."""
        return str(self.body.members.get("agentAddress", ""))

    @property
    def expires_at(self) -> str:
        """Return the end of the challenge's validity, in ISO 8601."""
        return str(self.body.members.get("expiresAt", ""))


class SignatureInvalid(Unauthorized):
    """The signature is not this address's over this challenge, or the challenge is used."""


class IdentityMismatch(Unauthorized):
    """The proven address does not control the agent."""


class Forbidden(ServiceRefusal):
    """The credential does not permit this, or the plan does not include it."""


class NotFound(ServiceRefusal):
    """The service knows no such agent or object."""


class Conflict(ServiceRefusal):
    """The call collides with an existing object or a newer revision."""


class TooManyRequests(ServiceRefusal):
    """Too many requests; `retry_after_s` says when to try again."""


class AllowanceUsedUp(TooManyRequests):
    """The plan's calls of this month are used up."""


class Unavailable(ServiceRefusal):
    """The service cannot answer now, and does not guess."""


_BY_CODE: Mapping[str, type[ServiceRefusal]] = {
    "identity_required": IdentityRequired,
    "challenge_required": ChallengeRequired,
    "signature_invalid": SignatureInvalid,
    "identity_mismatch": IdentityMismatch,
    "MONTHLY_REQUEST_LIMIT_EXCEEDED": AllowanceUsedUp,
}
_BY_STATUS: Mapping[int, type[ServiceRefusal]] = {
    400: InvalidRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: Conflict,
    429: TooManyRequests,
}


def refusal(body: RefusalBody) -> ServiceRefusal:
    """Return the error of the class that fits the code, or else the status."""
    other = Unavailable if body.status >= 500 else ServiceRefusal  # noqa: PLR2004 - RFC 9110, section 15.6
    return _BY_CODE.get(body.code, _BY_STATUS.get(body.status, other))(body)
