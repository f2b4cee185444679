"""Requests to an upstream, their answers, and whom a call is counted for.

The party that a wrapper call is counted for: an address, a proven agent or a payer.

Calls of agents and payers are never counted together with those of strangers at the same address.
Pure.

Requests to an upstream and their answers: the interface of the HTTP/1.1 client.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, Protocol, TypeAlias

from assay.common.addresses import caller_of, network_around
from assay.common.errors import ServiceError, TooMany
from assay.common.http_heads import HeaderPairs


@dataclass(frozen=True, slots=True)
class Caller:
    """The party a call is counted for. It stays the same object for as long as it calls."""

    own: str
    """A unique name for the address, the agent or the payer."""
    group: str
    """Groups all callers of this kind in the same network."""
    agents: str = ""
    """Groups every agent at this address; empty unless the caller is an agent."""
    is_paid: bool = False
    """Whether the call carries a valid payment."""


class UpstreamBusy(TooMany):
    """The caller or its network has too many concurrent calls to one upstream."""

    code = "wrapper_upstream_busy"


@lru_cache(maxsize=10_000)
def anonymous_at(address: str) -> Caller:
    """Return a caller of which only the address is known."""
    return Caller(caller_of(address), f"network {network_around(address)}")


@lru_cache(maxsize=10_000)
def agent_at(agent: str, address: str) -> Caller:
    """Return a caller that has proven to be an agent. Agents cost nothing, so they have groups."""
    own = f"agent {agent}"
    agents = f"agents at {caller_of(address)}"
    return Caller(own, f"agents of {network_around(address)}", agents)


@lru_cache(maxsize=10_000)
def payer_at(payer: str, address: str) -> Caller:
    """Return a caller whose payment for this call is valid."""
    return Caller(f"payer {payer}", f"payers of {network_around(address)}", is_paid=True)


Scheme: TypeAlias = Literal["http", "https"]

DEFAULT_PORTS: Final[Mapping[str, int]] = {"http": 80, "https": 443}
"""Source: RFC 9110, sections 4.2.1 and 4.2.2."""


@dataclass(frozen=True, slots=True)
class Target:
    """The destination of a request.

    `host` is lower-case ASCII (an IPv6 address without brackets).
    """

    scheme: Scheme
    host: str
    port: int
    path_and_query: str
    is_literal_ip: bool

    @property
    def authority(self) -> str:
        """Return the value of the Host header.

        Brackets for IPv6, no port when it is the default.
        """
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


class UpstreamFailed(ServiceError):
    """The upstream failed or sent an invalid answer (interface.md#wrapper-errors)."""

    code = "wrapper_request_failed"


def upstream_failed(detail: str) -> UpstreamFailed:
    """Return the refusal for the caller; `detail` is only logged."""
    return UpstreamFailed("The upstream failed or gave no valid answer.", detail=detail)


@dataclass(frozen=True, slots=True)
class UpstreamRequest:
    """A request to an operator's upstream. `headers` are complete except for framing and Host."""

    method: str
    target: Target
    path_and_query: bytes
    headers: HeaderPairs
    body: "bytes | AsyncIterator[bytes]"
    content_length: int | None
    """Length of a streamed body if known; otherwise it is sent chunked."""
    timeout_s: float
    repeatable: bool = False
    """Whether it may be retried when a kept connection closed, with a body or without."""
    account: str = ""
    """The operator whose wrapper sends it: waiting requests of one operator do not delay others."""
    caller: Caller | None = None
    """The caller it is counted for at its upstream; None for requests of this service itself."""


class UpstreamResponse(Protocol):
    """An answer whose head has arrived; header names are lower case."""

    status: int
    headers: HeaderPairs

    @property
    def whole(self) -> bytes | None:
        """Return the body if all of it has already arrived."""
        ...

    def body(self) -> AsyncGenerator[bytes]:
        """Yield the body as it arrives. Raises `UpstreamFailed` when it breaks off."""
        ...

    def close(self) -> None:
        """Discard the unread rest. Has no effect at the end."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ResponseHead:
    """Status and headers of an answer; names are lower case.

    The same object may be reused for an upstream that repeats the same head, so that results
    derived from it can be cached by identity.
    """

    status: int
    headers: HeaderPairs


class ResponseSink(Protocol):
    """Receives an answer as it arrives, without waiting; all calls come from the event loop."""

    def on_head(self, head: ResponseHead) -> None:
        """Receive the head, once."""
        ...

    def on_piece(self, piece: bytes | memoryview) -> None:
        """Receive a piece of the body.

        The memory of a view is reused after the following `flush` or `on_end` returns, unless
        `keep_piece` was called on the exchange before.
        """
        ...

    def flush(self) -> None:
        """Learn that no more data is available for the moment."""
        ...

    def on_end(self) -> None:
        """Learn that the answer is complete."""
        ...

    def on_failure(self, error: UpstreamFailed, *, untouched: bool) -> None:
        """Learn that the answer broke off; `untouched` if no byte of it had arrived."""
        ...


class UpstreamExchange(Protocol):
    """A request in progress whose answer goes to a sink."""

    def pause(self) -> None:
        """Stop reading the answer until `resume`."""
        ...

    def resume(self) -> None:
        """Continue reading."""
        ...

    def keep_piece(self) -> None:
        """Keep the memory of the last piece valid."""
        ...

    def abort(self) -> None:
        """Abort the exchange; the sink receives nothing more."""
        ...


class ReservedExchange(UpstreamExchange, Protocol):
    """An exchange that has a connection but has not begun."""

    def begin(self, more: bytes) -> bool:
        """Send the request with `more`, whole lines of headers; return False if that is impossible.

        The sink is called later, never before this returns.
        """
        ...

    def release(self) -> None:
        """Return the connection unused."""
        ...


class PreparedUpstreamRequest(Protocol):
    """A request without a body that can be sent repeatedly."""

    def reserve(self, sink: ResponseSink, caller: Caller) -> ReservedExchange | None:
        """Return an exchange on a kept connection.

        None without one, or if the caller is over its share.
        """
        ...


class Upstream(Protocol):
    """The guarded client for upstreams.

    It connects only to approved addresses, and reuses connections.
    """

    def prepare(self, request: UpstreamRequest) -> PreparedUpstreamRequest:
        """Prepare a request without a body for repeated use."""
        ...

    async def send(self, request: UpstreamRequest) -> UpstreamResponse:
        """Send a request and return the head of its answer (any status but 1xx).

        Raises `UpstreamFailed`. If nothing was sent, raises `common.errors.Unavailable` for a
        request that waited for this service in vain, and `UpstreamBusy` for a caller with too many.
        A request is sent at most once, except that one without a body is sent again when the kept
        connection was closing.
        """
        ...
