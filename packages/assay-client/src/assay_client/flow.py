"""The protocol without I/O: what to send, when to wait, and what a response means.

An operation is a generator of `Send`, `Wait` and `Run`. The clients carry these out, blocking or
not, so that each rule is written once.
"""

import json
import re
import secrets
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from assay_client.errors import (
    ConnectionFailed,
    InvalidInput,
    RefusalBody,
    ServiceRefusal,
    UnexpectedResponse,
    refusal,
)
from assay_client.models import camel_case, object_of

T = TypeVar("T")

_ID = re.compile(r"[A-Za-z0-9:_-]{1,128}")
_HEADER = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,16383}[\x21-\x7e])?")
_SUCCESS = range(200, 300)
_TEXT_CHARS_MAX = 2000
_CAN_WAIT = frozenset({429, 503})


@dataclass(frozen=True)
class Send:
    """Send a request; the result is a `Received`."""

    method: str
    path: str
    """A path of the service, or a whole address."""
    headers: Mapping[str, str] = field(repr=False)
    body: bytes | None = field(default=None, repr=False)
    is_idempotent: bool = False
    """Whether it may be sent twice: a lost response is asked for again."""
    is_single_use: bool = False
    """Whether it carries a proof that one request uses up: it is never sent again."""
    is_relayed: bool = False
    """Whether an API answers and not the service: redirects and codings are its result."""


@dataclass(frozen=True)
class Received:
    """A response; header names are in lower case."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


@dataclass(frozen=True)
class Wait:
    """Wait that long; the result is None."""

    seconds: float


@dataclass(frozen=True)
class Run:
    """Call a function that may block; the result is what it returns."""

    call: Callable[[], object]


Steps = Generator[Send | Wait | Run, Any, T]
"""An operation. `Any` is the result of the step before, whose type the step decides."""


@dataclass(frozen=True)
class Retries:
    """How often and how long a call is tried again.

    Again are sent: any request that could not be sent, an idempotent one whose response was lost,
    and one refused with 429 or 503 and a `Retry-After` of at most `wait_s_max`.
    """

    attempts: int = 3
    wait_s: float = 0.1
    """The first wait after a failed connection; each further one is twice as long."""
    wait_s_max: float = 5.0


@dataclass(frozen=True)
class Core:
    """The service's address and the operator's credentials; `repr` shows no credential."""

    base_url: str
    api_key: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    retries: Retries = Retries()

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise InvalidInput("base_url must begin with https:// or http:// and name a host.")
        if parts.username is not None or parts.query or parts.fragment:
            raise InvalidInput("base_url must have no user name, query or fragment.")
        for credential in (self.api_key, self.token):
            if credential is not None:
                header_value("The credential", credential)
        object.__setattr__(self, "base_url", self.base_url.rstrip("/"))

    def send(self, request: Send) -> Steps[Received]:
        """Send with retries; returns a success, raises `ServiceRefusal` or `ConnectionFailed`."""
        for attempt in range(1, self.retries.attempts + 1):
            is_last = attempt == self.retries.attempts or request.is_single_use
            wait_s = self.retries.wait_s * 2 ** (attempt - 1)
            try:
                received: Received = yield request
            except ConnectionFailed as failure:
                if is_last or (failure.sent and not request.is_idempotent):
                    raise
                yield Wait(min(_spread(wait_s), self.retries.wait_s_max))
                continue
            if received.status in _SUCCESS:
                return received
            refused = refusal_of(received)
            delay_s = refused.retry_after_s
            if is_last or received.status not in _CAN_WAIT or delay_s is None:
                raise refused
            if delay_s > self.retries.wait_s_max:
                raise refused
            yield Wait(delay_s + _spread(self.retries.wait_s))
        raise AssertionError("Retries.attempts must be at least 1.")

    def request(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | None = None,
        body: Mapping[str, object] | None = None,
        credential: str | None = None,
    ) -> Send:
        """Return a request with JSON; GET and DELETE are idempotent (RFC 9110, section 9.2.2)."""
        sent = {"accept": "application/json", **(headers or {})}
        if credential is not None:
            sent["authorization"] = f"Bearer {credential}"
        content = None
        if body is not None:
            content = _json(body)
            sent["content-type"] = "application/json"
        return Send(method, path, sent, content, is_idempotent=method in {"GET", "DELETE"})


def pause_after(retries: Retries, attempt: int, after_s: float | None = None) -> Wait:
    """Return the wait after a failed attempt, and after the `after_s` that a server named."""
    own_s = min(_spread(retries.wait_s * 2 ** (attempt - 1)), retries.wait_s_max)
    return Wait(own_s + (after_s or 0.0))


def _spread(seconds: float) -> float:
    """Return a random part of it, so that clients do not all come back at once."""
    return seconds * (0.5 + secrets.randbelow(1000) / 2000)


def _json(body: Mapping[str, object]) -> bytes:
    try:
        return json.dumps(body, allow_nan=False, default=list).encode()
    except (ValueError, TypeError):
        raise InvalidInput("An argument cannot be written as JSON.") from None


def json_names(options: Mapping[str, object]) -> dict[str, object]:
    """Return options under the names of the interface; a `Decimal` becomes an exact text."""
    return {
        camel_case(name): format(value, "f") if isinstance(value, Decimal) else value
        for name, value in options.items()
    }


def header_value(name: str, value: str) -> str:
    """Return a value that fits a header; raises `InvalidInput` without showing the value."""
    if not _HEADER.fullmatch(value):
        raise InvalidInput(f"{name} is not printable ASCII text.")
    return value


def segment(name: str, value: str) -> str:
    """Return an id for a path; raises `InvalidInput` if it has other characters than ids have."""
    if not _ID.fullmatch(value):
        raise InvalidInput(f"{name} is not an id: letters, digits, ':', '_' and '-' are.")
    return quote(value, safe=":")


def query(chain: str | None) -> str:
    """Return the query that names a chain, or nothing."""
    return "" if chain is None else "?" + urlencode({"chain": chain})


def json_of(received: Received) -> Any:
    """Return the JSON of a response; raises `UnexpectedResponse`."""
    try:
        return json.loads(received.body)
    except (ValueError, RecursionError):
        message = f"The response with status {received.status} is not JSON."
        raise UnexpectedResponse(message) from None


def refusal_of(received: Received) -> ServiceRefusal:
    """Return the error that a response is; raises `UnexpectedResponse` for any other form."""
    members = object_of(json_of(received))
    if members is None or not isinstance(members.get("code"), str):
        message = f"The response with status {received.status} is no error of this service."
        raise UnexpectedResponse(message)

    def text(name: str) -> str:
        value = members.get(name)
        return value[:_TEXT_CHARS_MAX] if isinstance(value, str) else ""

    after = received.headers.get("retry-after", "")
    return refusal(
        RefusalBody(
            received.status,
            text("error"),
            text("code"),
            text("message"),
            text("requestId"),
            members,
            float(after) if re.fullmatch("[0-9]{1,9}", after) else None,
            session_of(received),
        )
    )


def session_of(received: Received) -> str | None:
    """Return the agent's session that a response carries."""
    return received.headers.get("x-agent-session")
