"""The context of one request, and raw responses."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import formatdate
from functools import lru_cache
from typing import Any, Final, Protocol, TypeAlias

from assay.common.errors import ServiceError
from assay.common.ids import new_id
from assay.common.memory_budget import Reservation
from assay.http1.callers import Caller
from assay.server.errors import envelope, error_headers, status_of

AsgiScope: TypeAlias = MutableMapping[str, Any]
AsgiMessage: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[AsgiMessage]]
Send: TypeAlias = Callable[[AsgiMessage], Awaitable[None]]
AsgiApp: TypeAlias = Callable[[AsgiScope, Receive, Send], Awaitable[None]]
HeaderMap: TypeAlias = Mapping[str, str]

KEY = "assay.exchange"
"""Key of the context in the ASGI scope."""

JSON = (b"content-type", b"application/json")

LENGTH_DIGITS_MAX: Final = 19
"""Most digits of a `Content-Length`, as in the parser."""

SMALL_BYTES: Final = 4 * 1024
"""Bodies up to this size are not counted: the number of connections bounds them."""


def date_header(moment: datetime) -> tuple[bytes, bytes]:
    """Return `Date`, which an origin server with a clock must send (RFC 9110, section 6.6.1)."""
    return (b"date", _http_date(int(moment.timestamp())))


@lru_cache(maxsize=4)
def _http_date(second: int) -> bytes:
    return formatdate(second, usegmt=True).encode()


class SharesBodies(Protocol):
    """Provides buffer budgets for bodies."""

    def share(self, exchange: "RequestContext") -> Reservation:
        """Return an empty reservation of the caller's budget."""
        ...


@dataclass(slots=True)
class RequestContext:
    """The context of a request. `headers` has lower-case names, the first value of each."""

    request_id: str
    client_address: str
    headers: HeaderMap
    route: str = ""
    """The route's template, for the log: paths themselves may contain anything."""
    account: object | None = None
    """The account of its credential, once known; its type is known to the code that sets it."""
    key_digest: bytes | None = None
    """Digest of the key in `Authorization`, once it has been checked."""
    counted_for: str | None = None
    """The account it is counted for; None: its address."""
    session_id: str | None = None
    """The session of its credential, once that is known."""
    bodies: "SharesBodies | None" = None
    """Provides buffer space for its body."""
    body_share: Reservation | None = None
    """The reservation for its body until it is answered."""
    answer_share: Reservation | None = None
    """The reservation for a large answer until it is sent."""
    wrapper_caller: Caller | None = None
    """The party a wrapper call is counted for, as far as it is known now."""
    answer_headers: list[tuple[bytes, bytes]] = field(default_factory=list[tuple[bytes, bytes]])

    @property
    def brings_much(self) -> bool:
        """Return whether the request may have a body large enough to be counted."""
        declared = self.headers.get("content-length", "0").strip(" \t")
        is_number = declared.isdecimal() and len(declared) <= LENGTH_DIGITS_MAX
        is_small = is_number and int(declared) <= SMALL_BYTES
        return not is_small or "transfer-encoding" in self.headers


def headers_of(scope: AsgiScope) -> HeaderMap:
    """Return the request's headers; if a name was sent twice, the first value counts."""
    return {
        name.decode("latin-1"): value.decode("latin-1")
        for name, value in reversed(scope["headers"])
    }


def exchange_of(scope: Mapping[str, Any]) -> RequestContext:
    """Return the context that the application put into the scope."""
    return scope[KEY]


class FaultLog(Protocol):
    """The log methods that requests use."""

    def warning(self, event: str, **fields: object) -> object:
        """Write a warning."""
        ...

    def exception(self, event: str, **fields: object) -> object:
        """Write a fault of ours; `exc_info` is the exception."""
        ...


def note_detail(log: FaultLog, exchange: RequestContext, error: ServiceError) -> None:
    """Log the detail of a refusal that its caller is not told."""
    if error.detail is not None:
        log.warning("refused", request_id=exchange.request_id, code=error.code, detail=error.detail)


async def answer(
    send: Send, status: int, body: bytes, headers: Iterable[tuple[bytes, bytes]] = (JSON,)
) -> None:
    """Send a whole response."""
    sized = [*headers, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": sized})
    await send({"type": "http.response.body", "body": body})


async def refuse(send: Send, error: ServiceError, request_id: str) -> None:
    """Send the response of a refusal."""
    headers = [JSON, *error_headers(error)]
    await answer(send, status_of(error), envelope(error, request_id), headers)


WRAP_PREFIX = "/wrap/"
"""Responses below it are upstreams', not ours: the application adds nothing to them."""


_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def request_id_of(headers: Mapping[str, str]) -> str:
    """Return the caller's request id if it is well formed, otherwise a new one."""
    return given_request_id(headers) or new_id()


def given_request_id(headers: Mapping[str, str]) -> str | None:
    """Return the caller's request id, or None."""
    given = headers.get("x-request-id")
    return given if given is not None and _REQUEST_ID.fullmatch(given) else None
