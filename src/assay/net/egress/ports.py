"""The egress client's interface, for addresses of agents, token URIs and upstreams."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one request. Times in seconds, sizes in bytes."""

    connect_s: float = 3.0
    total_s: float = 5.0
    body_bytes_max: int = 1024 * 1024
    header_bytes_max: int = 64 * 1024
    decompression_ratio_max: int = 100
    events_s: float | None = None
    """Time that an event stream (`text/event-stream`) answering a GET may continue after its head
    before it times out; None: as long as any other body."""


class Tap(Protocol):
    """Receives a reply as it arrives, within the limits of the whole reply."""

    def begin(self, status: int, headers: tuple[tuple[str, str], ...]) -> None:
        """Receive the head of the reply; header names are lower case."""
        ...

    def add(self, piece: bytes) -> None:
        """Receive the next bytes of the body, decompressed."""
        ...


@dataclass(frozen=True, slots=True)
class OutboundRequest:
    """A request to an address of another party. Redirects are never followed."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    is_verbatim: bool = False
    """Whether `headers` are sent unchanged and in this order, as a stock client sends them."""
    tap: Tap | None = field(default=None, compare=False)
    """Reads the reply before it ends: event streams."""
    is_bare: bool = False
    """Whether it is sent without the credential that was deposited for its address."""
    is_http2: bool = False
    """Whether to use only HTTP/2, on a separate connection: gRPC. Needs the extra `grpc`."""


@dataclass(frozen=True, slots=True)
class EgressResponse:
    """A response. Header names are lower case, in the order sent; `body` is decompressed.

    `truncated`: the body was longer than `Limits.body_bytes_max` (or decompressed beyond the ratio)
    and was cut there.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    truncated: bool
    elapsed_ms: float
    is_bomb: bool = False
    """Whether it was cut because it expands beyond any honest ratio."""
    over_budget: bool = False
    """Whether it was cut because its host's egress budget is used up; `truncated` is true too."""
    address: str | None = None
    """The address that answered, if requests are counted."""
    trailers: tuple[tuple[str, str], ...] = ()
    """Fields after the body of an HTTP/2 answer; names are lower case."""

    def header(self, name: str) -> str | None:
        """Return the first header of that lower-case name."""
        return next((value for key, value in self.headers if key == name), None)


class Failure(StrEnum):
    """Why there is no response."""

    REFUSED_ADDRESS = "refused_address"  # Our own check of the address or URL failed.
    NAME = "name_not_resolved"
    CONNECT = "connect_failed"
    TLS = "tls_failed"
    TIMEOUT = "timeout"
    PROTOCOL = "protocol_error"  # Not HTTP, oversized headers, or truncated.
    BUDGET = "egress_budget"  # Our own: the host's budget of requests or bytes is used up for now.


class EgressError(Exception):
    """There is no response. `failure` says why; `detail` is for logs and the operator.

    If the budget refused it, `is_sent` tells whether any byte of the request was sent, and
    `retry_s` the seconds until there may be room.
    """

    def __init__(
        self, failure: Failure, detail: str, *, is_sent: bool = False, retry_s: float = 0.0
    ) -> None:
        super().__init__(f"{failure}: {detail}")
        self.failure = failure
        self.detail = detail
        self.is_sent = is_sent
        self.retry_s = retry_s


class EgressClient(Protocol):
    """Checks the address, connects only to checked addresses, and enforces limits."""

    async def send(self, request: OutboundRequest, limits: Limits = ...) -> EgressResponse:
        """Send one request and return its response (any status). Raises `EgressError`."""
        ...


Begins = Literal["whole", "least", "not"]
"""Whether a visit may begin: in full, with only the least number of requests, or not at all."""


class VisitTurns(Protocol):
    """Lets visits to one host begin one after the other, so that each finds room in full."""

    def turn(
        self, urls: Sequence[str], visit_s: float, *, least: int = 0
    ) -> AbstractAsyncContextManager[Begins]:
        """Wait for the hosts of `urls`; return whether the visit may begin. Never raises.

        A visit may take `visit_s` seconds in all; at most half of them are spent waiting. With
        `least`, that many requests suffice if there is no room for a full visit.
        """
        ...
