"""The HTTP client for addresses that other parties gave us: HTTP/1.1, and HTTP/2 for gRPC.

An HTTP/2 request on a guarded connection of its own: gRPC (ADR 0040).

Source: interface.md#blocked-addresses; egress.md#addresses.
"""

import asyncio
import re
import ssl
from collections.abc import AsyncIterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

import httpcore2

from assay.common.clock import Clock, SystemClock
from assay.http1.model import Target
from assay.net.body import (
    ACCEPTED_ENCODINGS,
    BodyBroken,
    DecodedBody,
    declared_length,
    read_body,
    read_rest,
    read_stream,
)
from assay.net.egress.budget_client import BudgetedExchange, EgressBudget, OverBudget
from assay.net.egress.dial import GuardedNetworkBackend, HttpProxy
from assay.net.egress.ports import (
    EgressError,
    EgressResponse,
    Failure,
    Limits,
    OutboundRequest,
    Tap,
)
from assay.net.egress.request_slots import (
    CONNECTIONS_MAX,
    ConnectionSlots,
    OwnWaits,
    count_own_waits,
    host_timeout,
)
from assay.net.egress.url import EgressPolicy, RefusedUrl, parse_target
from assay.net.resolver import NameResolver, SystemResolver

Headers = list[tuple[bytes, bytes]]

_HTTP1 = frozenset({b"host", b"connection", b"content-length", b"accept", b"accept-encoding"})
"""Headers that gRPC clients do not send. Source: gRPC over HTTP/2, Request-Headers."""


async def exchange_http2(
    request: httpcore2.Request,
    body: bytes,
    backend: httpcore2.AsyncNetworkBackend,
    tls: ssl.SSLContext,
    limits: Limits,
) -> tuple[int, Headers, DecodedBody, Headers]:
    """Return status, headers, body and trailers of the answer. Raises as the pool does.

    `backend` checks the address and opens a connection, which is closed at the end. Nothing is
    decompressed: a gRPC message states itself whether it is compressed.
    """
    from assay.net.egress.http2 import Http2Exchange  # noqa: PLC0415 - an optional library

    stream = await _connected(request, backend, tls, min(limits.connect_s, limits.total_s))
    try:
        made = Http2Exchange(stream, limits.header_bytes_max, limits.total_s)
        await made.send(_headers(request), body)
        read = await read_body(
            made.chunks(), "", limits.body_bytes_max, limits.decompression_ratio_max
        )
    finally:
        await stream.aclose()
    return made.status, made.headers, read, made.trailers


async def _connected(
    request: httpcore2.Request,
    backend: httpcore2.AsyncNetworkBackend,
    tls: ssl.SSLContext,
    connect_s: float,
) -> httpcore2.AsyncNetworkStream:
    """Connect to a checked address; with TLS, only to a server that proves the host's name."""
    host, port = request.url.host.decode("ascii"), request.url.port or 0
    stream = await backend.connect_tcp(host, port, connect_s)
    if request.url.scheme != b"https":
        return stream
    tls.set_alpn_protocols(["h2"])
    secured = await stream.start_tls(tls, host, connect_s)
    if secured.get_extra_info("ssl_object").selected_alpn_protocol() != "h2":
        await secured.aclose()
        raise EgressError(Failure.PROTOCOL, f"{host} does not speak HTTP/2")
    return secured


def _headers(request: httpcore2.Request) -> Headers:
    """Return the head of a gRPC request, in the order of the stock client."""
    sent = [(name.lower(), value) for name, value in request.headers]
    said = [(name, value) for name, value in sent if name not in _HTTP1]
    typed = [(name, value) for name, value in said if name == b"content-type"]
    return [
        (b":path", request.url.target),
        (b":authority", dict(sent)[b"host"]),
        (b":method", request.method),
        (b":scheme", request.url.scheme),
        *typed,
        (b"te", b"trailers"),
        *(one for one in said if one not in typed),
    ]


KEEP_ALIVE_S = 2.0
"""Idle time before a connection is closed: below the 5 s after which common servers close theirs,
so that a request rarely meets a connection that is closing."""

USER_AGENT = "Assay (tests and grades AI agents)"
"""Sent if the request has no User-Agent."""

_NEVER_SENT = frozenset({"CONNECT", "TRACE"})
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OURS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "keep-alive", "upgrade"}
    | {"proxy-connection", "proxy-authorization", "proxy-authenticate", "te", "trailer", "expect"}
)
"""Header fields that belong to the connection and are never copied from a request.
Source: RFC 9110, section 7.6.1."""


class GuardedHttp:
    """Checks addresses, connects only to checked ones and enforces limits.

    Implements `EgressClient`. It follows no redirects, keeps no cookies and ignores the
    environment's proxies: a proxy would resolve the name again, where we cannot check it.
    """

    def __init__(  # noqa: PLR0913 - what differs between the ways out
        self,
        policy: EgressPolicy,
        resolver: NameResolver | None = None,
        *,
        tls: ssl.SSLContext | None = None,
        clock: Clock | None = None,
        keep_alive_s: float = KEEP_ALIVE_S,
        budget: EgressBudget | None = None,
        proxy: HttpProxy | None = None,
    ) -> None:
        """Create the client; without a `budget` nothing is counted, for tests of the rest.

        With a `proxy`, addresses are still resolved and checked here.
        """
        self._policy = policy
        self._budget = budget
        self._system = SystemResolver()
        self._backend = GuardedNetworkBackend(policy, resolver or self._system, proxy)
        self._tls = tls
        self._tls_http2 = tls  # The caller that passes a context lets us set its ALPN protocols.
        self._clock = clock or SystemClock()
        self._keep_alive_s = keep_alive_s
        self._slots = ConnectionSlots()
        self._pools: dict[int | None, httpcore2.AsyncConnectionPool] = {}

    async def send(self, request: OutboundRequest, limits: Limits = Limits()) -> EgressResponse:  # noqa: B008 - frozen
        target = parse_target(request.url, self._policy)
        if isinstance(target, RefusedUrl):
            raise EgressError(Failure.REFUSED_ADDRESS, target.why)
        prepared = _prepare(request, target, limits)
        if self._budget is None:
            return await self._send_counted(prepared, target, limits, None)
        size_bytes = len(request.body) + sum(
            len(n) + len(v) + 4 for n, v in prepared.request.headers
        )
        size_bytes += len(target.path_and_query)
        async with self._budget.exchange(target, self._policy, size_bytes, limits) as exchange:
            return await self._send_counted(prepared, target, limits, exchange)

    async def _send_counted(
        self,
        prepared: "_Prepared",
        target: Target,
        limits: Limits,
        exchange: BudgetedExchange | None,
    ) -> EgressResponse:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        wait_s = limits.total_s - (exchange.waited_s if exchange else 0.0)
        async with self._slots.one(target.host, wait_s):
            if exchange is not None:
                exchange.waited_s += loop.time() - began_s
            with count_own_waits() as waits:
                return await self._send(prepared, limits, exchange, waits)

    async def _send(
        self,
        prepared: "_Prepared",
        limits: Limits,
        exchange: BudgetedExchange | None,
        waits: OwnWaits,
    ) -> EgressResponse:
        started = self._clock.monotonic_s()
        try:
            async with host_timeout(limits.total_s):
                answer = await self._exchange(prepared, limits, exchange)
        except httpcore2.PoolTimeout:
            raise _over_budget(is_sent=False) from None
        except (TimeoutError, httpcore2.TimeoutException):
            raise EgressError(Failure.TIMEOUT, f"no whole reply in {limits.total_s} s") from None
        except OverBudget:
            raise _over_budget(is_sent=True) from None
        except (BodyBroken, httpcore2.ProtocolError, httpcore2.NetworkError) as error:
            detail = f"{type(error).__name__}: {error}"
            raise EgressError(Failure.PROTOCOL, detail) from error
        elapsed_s = max(0.0, self._clock.monotonic_s() - started - waits.waited_s)
        reply = _reply(answer, elapsed_s)
        return reply if exchange is None else replace(reply, address=exchange.address)

    async def aclose(self) -> None:
        """Close every connection and let the resolver's threads end."""
        for pool in self._pools.values():
            await pool.aclose()
        self._system.close()

    async def _exchange(
        self, prepared: "_Prepared", limits: Limits, exchange: BudgetedExchange | None
    ) -> "_Answer":
        if prepared.is_http2:
            return await self._exchange_http2(prepared, limits, exchange)
        pool = self._opened_pool(exchange.pool if exchange else None)
        response = await pool.handle_async_request(prepared.request)
        try:
            headers = _read_headers(response.headers, limits)
            tap = prepared.tap
            if tap is not None:
                tap.begin(response.status, headers)
            length = declared_length(headers)
            if exchange is not None and length is not None:
                exchange.expect(min(length, limits.body_bytes_max + 1))
            encoding = ",".join(value for name, value in headers if name == "content-encoding")
            async with aclosing(response.aiter_stream()) as chunks:
                reading = read_body(
                    chunks, encoding, limits.body_bytes_max, limits.decompression_ratio_max, tap
                )
                is_get = prepared.request.method == b"GET"
                body = await read_stream(reading, headers, limits.events_s if is_get else None)
                if exchange is not None:
                    exchange.is_whole = not body.truncated or await _is_read_on(
                        exchange, length, body, chunks
                    )
        finally:
            # Closes a connection with an unread rest; it never returns to the pool.
            await response.aclose()
        return _Answer(response.status, headers, body)

    async def _exchange_http2(
        self, prepared: "_Prepared", limits: Limits, exchange: BudgetedExchange | None
    ) -> "_Answer":
        self._tls_http2 = self._tls_http2 or httpcore2.default_ssl_context()
        status, headers, body, trailers = await exchange_http2(
            prepared.request, prepared.body, self._backend, self._tls_http2, limits
        )
        if exchange is not None:
            exchange.is_whole = not body.truncated
        head, tail = _read_headers(headers, limits), _read_headers(trailers, limits)
        return _Answer(status, head, body, tail)

    def _opened_pool(self, window_bytes: int | None) -> httpcore2.AsyncConnectionPool:
        """Return the pool for this window, created on first use: loading certificates takes 30 ms.

        Each window size has its own pool: a request is never sent on a connection that allows its
        host to have more in transit than was claimed.
        """
        if window_bytes not in self._pools:
            self._tls = self._tls or httpcore2.default_ssl_context()
            self._pools[window_bytes] = httpcore2.AsyncConnectionPool(
                ssl_context=self._tls,
                max_connections=CONNECTIONS_MAX,  # As many as there are slots: nothing waits here.
                keepalive_expiry=self._keep_alive_s,
                network_backend=self._backend,
            )
        return self._pools[window_bytes]


async def _is_read_on(
    exchange: BudgetedExchange,
    length: int | None,
    body: DecodedBody,
    chunks: AsyncIterable[bytes],
) -> bool:
    """Return whether an answer longer than wanted was still read to its end.

    Reading a short rest costs its host no more than what would count as in transit, and keeps the
    connection reusable.
    """
    if length is None or body.over_budget:
        return False
    return length - body.received_bytes <= exchange.cut_bytes and await read_rest(chunks)


def _over_budget(*, is_sent: bool) -> EgressError:
    return EgressError(Failure.BUDGET, "the request was cut off", is_sent=is_sent)


@dataclass(frozen=True, slots=True)
class _Answer:
    """A response before its duration is known."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: DecodedBody
    trailers: tuple[tuple[str, str], ...] = ()


def _reply(answer: _Answer, elapsed_s: float) -> EgressResponse:
    return EgressResponse(
        answer.status,
        answer.headers,
        answer.body.data,
        answer.body.truncated,
        elapsed_s * 1000,
        is_bomb=answer.body.is_bomb,
        over_budget=answer.body.over_budget,
        trailers=answer.trailers,
    )


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A request as it is sent, and the reader of its streamed reply."""

    request: httpcore2.Request
    tap: Tap | None
    body: bytes
    is_http2: bool


def _prepare(request: OutboundRequest, target: Target, limits: Limits) -> _Prepared:
    method = request.method.upper()
    if method in _NEVER_SENT or not _TOKEN.fullmatch(method):
        raise EgressError(Failure.PROTOCOL, "that method is never sent")
    timeouts = dict.fromkeys(("read", "write", "pool"), limits.total_s)
    whole = httpcore2.Request(
        method,
        httpcore2.URL(
            scheme=target.scheme,
            host=target.host,
            port=target.port,
            target=target.path_and_query,
        ),
        headers=_request_headers(request, target, method),
        content=request.body,
        extensions={
            "timeout": {**timeouts, "connect": min(limits.connect_s, limits.total_s)},
        },
    )
    return _Prepared(whole, request.tap, request.body, request.is_http2)


def _request_headers(
    request: OutboundRequest, target: Target, method: str
) -> list[tuple[bytes, bytes]]:
    if request.is_verbatim:
        return _verbatim_headers(request, target)
    headers = {
        "host": target.authority,
        "user-agent": USER_AGENT,
        "accept": "*/*",
        "accept-encoding": ACCEPTED_ENCODINGS,
    }
    headers |= _theirs(request.headers)
    if request.body or method in {"POST", "PUT", "PATCH"}:
        headers["content-length"] = str(len(request.body))
    return _encoded(headers)


def _verbatim_headers(request: OutboundRequest, target: Target) -> list[tuple[bytes, bytes]]:
    """Return the headers of a stock client: its names, spelling and order, with our values."""
    facts = {"host": target.authority, "accept-encoding": ACCEPTED_ENCODINGS}
    facts |= {"content-length": str(len(request.body)), "connection": "keep-alive"}
    kept = {"connection", "content-length", "host"}
    return _encoded(
        {
            name: facts.get(name.lower(), value)
            for name, value in {"Host": "", **request.headers}.items()
            if name.lower() in kept or name.lower() not in _OURS
            if name == "Host" or name.lower() != "host"
        }
    )


def _encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    try:
        return [(name.encode("ascii"), value.encode("latin-1")) for name, value in headers.items()]
    except UnicodeEncodeError:
        raise EgressError(Failure.PROTOCOL, "a header is not sendable text") from None


def _theirs(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items() if name.lower() not in _OURS}


def _read_headers(
    raw: Sequence[tuple[bytes, bytes]], limits: Limits
) -> tuple[tuple[str, str], ...]:
    """Return lower-case names in the order sent; too many bytes of them are a protocol error.

    The parser itself stops at 100 KiB (h11), so larger limits have no effect.
    """
    if sum(len(name) + len(value) + 4 for name, value in raw) > limits.header_bytes_max:
        raise BodyBroken("the headers are larger than accepted")
    return tuple((n.decode("ascii").lower(), v.decode("latin-1")) for n, v in raw)
