"""The context of one request, and its body within bounds per caller.

The context of one request, and raw responses.

Reads request bodies into memory, within bounds per caller.

Callers without a credential share one buffer budget, and all operators share another; of either,
one caller may use a sixteenth. The reservation is released when the request has been answered or
cancelled.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import formatdate
from functools import lru_cache
from typing import Any, Final, Protocol, TypeAlias

from assay.common.addresses import caller_of
from assay.common.errors import InvalidRequest, RequestTimeout, ServiceError, TooLarge
from assay.common.ids import new_id
from assay.common.memory_budget import MemoryBudget, Reservation
from assay.http1.model import Caller
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
    """Log the detail of a refusal, which its caller does not receive."""
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


CHECK_PREFIX = "/gate/"
"""Below it a proxy asks whether to let a request in."""

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


BODY_S = 15.0
"""Time limit for a body to arrive."""

ANONYMOUS_BYTES: Final = 64 * 1024 * 1024
KEYED_BYTES: Final = 128 * 1024 * 1024
PARTS: Final = 16

CREDENTIAL_BODY_BYTES: Final = 32 * 1024
"""The largest body with a password, a token or a signed challenge: the longest allowed signature of
a contract wallet takes half of it."""


class BodyRooms:
    """The buffer budgets for callers without a credential, and for operators."""

    def __init__(self) -> None:
        self.anonymous = MemoryBudget(ANONYMOUS_BYTES, parts=PARTS)
        self.keyed = MemoryBudget(KEYED_BYTES, parts=PARTS)

    def share(self, exchange: RequestContext) -> Reservation:
        """Return an empty reservation of the caller's budget."""
        if exchange.counted_for is not None:
            return Reservation(self.keyed, exchange.counted_for, SMALL_BYTES)
        return Reservation(self.anonymous, caller_of(exchange.client_address), SMALL_BYTES)


def body_bytes_max(scope: AsgiScope, usual: int) -> int:
    """Return the largest body that this request may have."""
    if scope["path"] in CREDENTIAL_IN_BODY:
        return min(usual, CREDENTIAL_BODY_BYTES)
    return usual


async def read_body(scope: AsgiScope, receive: Receive, bytes_max: int) -> bytes:
    """Read the whole body.

    Raises `TooLarge` beyond `bytes_max`, `RequestTimeout` when it is slow, `InvalidRequest` when it
    is truncated, and `Unavailable` while its caller, or all callers, use up their budget.
    """
    exchange = exchange_of(scope)
    declared = exchange.headers.get("content-length", "0").strip(" \t")
    if not declared.isdecimal():
        raise InvalidRequest("The header Content-Length is not a number.")
    if int(declared[:20]) > bytes_max:
        raise _too_large(bytes_max)
    if declared == "0" and "transfer-encoding" not in exchange.headers:
        return b""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":  # A partial request is invalid.
                    raise InvalidRequest("The body ended before it was whole.")
                body += message.get("body", b"")
                more = message.get("more_body", False)
                if len(body) > bytes_max:
                    raise _too_large(bytes_max)
                await _hold(exchange, len(body))
    except TimeoutError:
        raise RequestTimeout(f"The body did not arrive within {BODY_S:g} seconds.") from None
    return bytes(body)


def give_back(exchange: RequestContext) -> None:
    """Release the reservations for the request's body and its answer."""
    for share in (exchange.body_share, exchange.answer_share):
        if share is not None:
            share.close()


async def _hold(exchange: RequestContext, size: int) -> None:
    if size <= SMALL_BYTES:
        return
    if exchange.body_share is None and exchange.bodies is not None:
        exchange.body_share = exchange.bodies.share(exchange)
    if exchange.body_share is not None:
        await exchange.body_share.take(size)


def _too_large(bytes_max: int) -> TooLarge:
    return TooLarge(f"The body is larger than {bytes_max} bytes.", maxBytes=bytes_max)


CREDENTIAL_IN_BODY: Final = frozenset(
    {
        "/operator/login",
        "/operator/password/reset",
        "/operator/email/verify",
        "/operator/key/verify",
    }
)
"""Operations whose body holds a password, a token or a signature. Each bounds the guesses at it
itself, before it hashes or queries a chain. Looking the account up comes first."""
