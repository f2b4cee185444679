"""A request to an upstream and its answer, whoever sends it: what the HTTP/1.1 client offers."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias

from assay.common.errors import ServiceError
from assay.common.http_heads import HeaderPairs
from assay.http1.callers import Caller

Scheme: TypeAlias = Literal["http", "https"]

DEFAULT_PORTS: Final[Mapping[str, int]] = {"http": 80, "https": 443}
"""Source: RFC 9110, sections 4.2.1 and 4.2.2."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a request goes: `host` is lower-case ASCII (an IPv6 address without brackets)."""

    scheme: Scheme
    host: str
    port: int
    path_and_query: str
    is_literal_ip: bool

    @property
    def authority(self) -> str:
        """The value of the Host header: brackets for IPv6, no port when it is the default."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


class UpstreamFailed(ServiceError):
    """The upstream failed or answered with what is no answer (interface.md#wrapper-errors)."""

    code = "wrapper_request_failed"


def upstream_failed(detail: str) -> UpstreamFailed:
    """The refusal as the caller receives it; `detail` is for our log."""
    return UpstreamFailed("The upstream failed or gave no valid answer.", detail=detail)


@dataclass(frozen=True, slots=True)
class UpstreamRequest:
    """A request to an operator's upstream. `headers` are complete but for framing and Host."""

    method: str
    target: Target
    path_and_query: bytes
    headers: HeaderPairs
    body: "bytes | AsyncIterator[bytes]"
    content_length: int | None
    """Of a body in pieces, where it is known; else it goes out chunked."""
    timeout_s: float
    repeatable: bool = False
    """Whether it may be sent again when a kept connection closed under it, body or not."""
    account: str = ""
    """The operator whose wrapper it is for: what waits for one operator holds up no other."""
    caller: Caller | None = None
    """Whom it is counted for at its upstream; None for requests of this service itself."""


class UpstreamResponse(Protocol):
    """An answer whose head has arrived; names of headers are lower case."""

    status: int
    headers: HeaderPairs

    @property
    def whole(self) -> bytes | None:
        """The body, where all of it has arrived already."""
        ...

    def body(self) -> AsyncGenerator[bytes]:
        """The body as it arrives. Raises `UpstreamFailed` when it breaks off."""
        ...

    def close(self) -> None:
        """Give up what has not been read. Harmless at the end."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ResponseHead:
    """Status and headers of an answer; names are lower case.

    The very same object may stand for an upstream that says the very same again: what was made of
    it once may be remembered by it.
    """

    status: int
    headers: HeaderPairs


class ResponseSink(Protocol):
    """Takes an answer as it arrives, without waiting; every call is made from the event loop."""

    def on_head(self, head: ResponseHead) -> None:
        """The head, once."""
        ...

    def on_piece(self, piece: bytes | memoryview) -> None:
        """A piece of the body.

        The memory of a view is used again once the `flush` or `on_end` that follows has returned,
        unless the exchange was told to keep it by then.
        """
        ...

    def flush(self) -> None:
        """No more for the moment."""
        ...

    def on_end(self) -> None:
        """The answer is whole."""
        ...

    def on_failure(self, error: UpstreamFailed, *, untouched: bool) -> None:
        """It broke off; `untouched` when not a byte of an answer had come."""
        ...


class UpstreamExchange(Protocol):
    """A request under way whose answer goes to a sink."""

    def pause(self) -> None:
        """Take no more of the answer for now."""
        ...

    def resume(self) -> None:
        """Go on."""
        ...

    def keep_piece(self) -> None:
        """The memory of the last piece is still needed."""
        ...

    def abort(self) -> None:
        """Give it up; the sink hears no more."""
        ...


class ReservedExchange(UpstreamExchange, Protocol):
    """An exchange that has its connection, and has not begun."""

    def begin(self, more: bytes) -> bool:
        """Send the request, with `more` whole lines of headers; False when that cannot be now.

        The sink hears of the answer later, never before this returns.
        """
        ...

    def release(self) -> None:
        """Give the connection back, unused."""
        ...


class PreparedUpstreamRequest(Protocol):
    """A request without a body, ready to be sent as often as it is asked for."""

    def reserve(self, sink: ResponseSink, caller: Caller) -> ReservedExchange | None:
        """A kept connection to send it over; None without one, or when the caller may not now."""
        ...


class Upstream(Protocol):
    """The guarded way to upstreams: judges, dials what was judged, keeps connections alive."""

    def prepare(self, request: UpstreamRequest) -> PreparedUpstreamRequest:
        """A request without a body, made ready once."""
        ...

    async def send(self, request: UpstreamRequest) -> UpstreamResponse:
        """One request, and the head of its answer (any status but 1xx).

        Raises `UpstreamFailed`, and where nothing was sent: `common.errors.Unavailable` for one
        that waited for this service, and `UpstreamBusy` for a caller with too many.
        A request is sent at most once, but for one that met a kept connection just being closed and
        has no body: that one is sent again.
        """
        ...
