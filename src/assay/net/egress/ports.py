"""The one door for addresses that others gave us: agents, token URIs, upstreams."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal, Protocol


@dataclass(frozen=True, slots=True)
class Limits:
    """What one request may cost. Times in seconds, sizes in bytes."""

    connect_s: float = 3.0
    total_s: float = 5.0
    body_bytes_max: int = 1024 * 1024
    header_bytes_max: int = 64 * 1024
    decompression_ratio_max: int = 100
    events_s: float | None = None
    """How long a stream of events (`text/event-stream`) that answers a GET may go on after its head
    before it is a time-out; None: as long as every other body."""


class Tap(Protocol):
    """Is given a reply while it arrives, within the limits of the whole of it."""

    def begin(self, status: int, headers: tuple[tuple[str, str], ...]) -> None:
        """The head of the reply; header names are lower case."""
        ...

    def add(self, piece: bytes) -> None:
        """The next bytes of the body, decompressed."""
        ...


@dataclass(frozen=True, slots=True)
class OutboundRequest:
    """A request to an address that is not ours. Redirects are never followed."""

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    is_verbatim: bool = False
    """`headers` go out as they are and in this order, as a stock client sends them."""
    tap: Tap | None = field(default=None, compare=False)
    """Reads the reply before it has ended: event streams."""
    is_bare: bool = False
    """It goes out without a credential that was deposited for its address."""
    is_http2: bool = False
    """Over HTTP/2 and nothing else, on a connection of its own: gRPC. Needs the extra `grpc`."""


@dataclass(frozen=True, slots=True)
class EgressResponse:
    """What came back. Header names are lower case, in the order sent; `body` is decompressed.

    `truncated` tells that the body was longer than `Limits.body_bytes_max` (or decompressed
    beyond the ratio) and was cut there.
    """

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    truncated: bool
    elapsed_ms: float
    is_bomb: bool = False
    """It was cut because it expands beyond any honest ratio."""
    over_budget: bool = False
    """It was cut because its host's egress budget has no more bytes; `truncated` is true too."""
    address: str | None = None
    """The address that answered, where requests are counted."""
    trailers: tuple[tuple[str, str], ...] = ()
    """Fields after the body, of an answer over HTTP/2; names are lower case."""

    def header(self, name: str) -> str | None:
        """The first header of that lower-case name."""
        return next((value for key, value in self.headers if key == name), None)


class Failure(StrEnum):
    """Why nothing came back."""

    REFUSED_ADDRESS = "refused_address"  # our own judgement of the address or URL
    NAME = "name_not_resolved"
    CONNECT = "connect_failed"
    TLS = "tls_failed"
    TIMEOUT = "timeout"
    PROTOCOL = "protocol_error"  # not HTTP, header bomb, cut off in the middle
    BUDGET = "egress_budget"  # our own: the host has had its share of requests or bytes for now


class EgressError(Exception):
    """Nothing came back; `failure` says why, `detail` is for logs and the operator.

    Of a refusal for the budget, `is_sent` tells whether any byte of the request had gone out, and
    `retry_s` the seconds until there may be room again.
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
    """Judges the address, dials exactly what was judged, and keeps to the limits."""

    async def send(self, request: OutboundRequest, limits: Limits = ...) -> EgressResponse:
        """One request, one reply (any status). Raises `EgressError`."""
        ...


Begins = Literal["whole", "least", "not"]
"""Whether a visit may begin: as it is, with the least that it was to take, or not."""


class VisitTurns(Protocol):
    """Lets visits to one host begin one after the other: each finds room for the whole of it."""

    def turn(
        self, urls: Sequence[str], visit_s: float, *, least: int = 0
    ) -> AbstractAsyncContextManager[Begins]:
        """Wait for the hosts of `urls`; whether the visit may begin. Raises nothing.

        A visit may take `visit_s` seconds in all. Half of them are waited for at most. With `least`
        so many requests do where a whole visit has no room.
        """
        ...
