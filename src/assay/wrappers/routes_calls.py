"""The calls of wrappers: `/wrap/{operatorId}/{path}`, with any method.

It reads the body as it arrives, notices a caller that goes away, and writes the upstream's answer
or a refusal in the usual envelope. It runs before the application's own additions, because an
answer here is the upstream's and not ours. Source: interface.md#wrappers; conventions.md#wrapper.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from assay.common.clock import Clock
from assay.common.errors import InvalidRequest, RequestTimeout, ServiceError, TooMany
from assay.common.http_heads import HeaderPairs
from assay.common.quota_lease import QuotaLease
from assay.http1.connections import BOUNDS, PIECE_BYTES
from assay.http1.model import Caller, agent_at, anonymous_at
from assay.identity.auth import agent_headers
from assay.identity.service import Sessions
from assay.payments.model import PaymentRequired
from assay.payments.service import PaymentService
from assay.payments.settlement import PaymentPending
from assay.server.errors import envelope, error_headers, fault, status_of
from assay.server.rate_limits import caller_of, rate_limit
from assay.server.request_context import (
    JSON,
    WRAP_PREFIX,
    AsgiScope,
    FaultLog,
    Receive,
    RequestContext,
    Send,
    date_header,
    note_detail,
)
from assay.wrappers.address_limits import PayerLimits, UnreadAnswers, UpstreamUnread
from assay.wrappers.cors import preflighted_method
from assay.wrappers.fast_calls import FastCalls
from assay.wrappers.model import (
    CallRecord,
    InboundRequest,
    RateLimitExceeded,
    WrapperNotFound,
    WrapperResponse,
    WrapperTooLarge,
)
from assay.wrappers.origin import WrapperOrigin
from assay.wrappers.pipeline import Pipeline
from assay.wrappers.stages.forward import SANDBOX
from assay.wrappers.stages.limit import limit_headers

PIECE_S: Final = 15.0
"""Longest wait for the next piece of a body."""

SLOW_S: Final = 30.0
"""Longest total wait for a body."""

BYTES_PER_S: Final = 1024
"""Bytes that a caller must send for each further second: less than a bad line carries. The body
holds a connection to the upstream meanwhile. The upstream's own reading time does not count."""

WATCH_AFTER_S: Final = 0.05
"""If an answer takes longer than this, the service watches whether the caller goes away."""


class WrapperBody:
    """The request's body, and whether the caller is still connected."""

    def __init__(self, receive: Receive, exchange: RequestContext, clock: Clock) -> None:
        self._receive = receive
        self._clock = clock
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._ended = False
        self.is_gone = False
        self.length = _length(exchange)
        """The declared length; None for a chunked body, 0 for none."""

    async def pieces(self, bytes_max: int) -> AsyncIterator[bytes]:
        """Yield the body as it arrives.

        Raises `WrapperTooLarge`, `RequestTimeout`, `InvalidRequest`.
        """
        size, waited_s = 0, 0.0
        while not self._ended:
            asked_s = self._clock.monotonic_s()
            try:
                async with asyncio.timeout(PIECE_S):
                    message = await self._receive()
            except TimeoutError:
                raise RequestTimeout("The body stopped arriving.") from None
            waited_s += self._clock.monotonic_s() - asked_s
            if message["type"] == "http.disconnect":
                self.is_gone = True
                raise InvalidRequest("The body ended before it was whole.")
            self._ended = not message.get("more_body", False)
            piece: bytes = message.get("body", b"")
            size += len(piece)
            if size > bytes_max:
                raise WrapperTooLarge(
                    f"The body is larger than {bytes_max} bytes.", maxBytes=bytes_max
                )
            if waited_s > SLOW_S + size / BYTES_PER_S and not self._ended:
                raise RequestTimeout(
                    f"The body arrives too slowly: send at least {BYTES_PER_S} bytes a second."
                )
            yield piece

    def watch_later(self, task: "asyncio.Task[Any] | None") -> None:
        """Cancel `task` if the caller goes away, from a moment after the body is in."""
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(WATCH_AFTER_S, self._watch, task)

    def unwatch(self) -> None:
        """Stop watching."""
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
        self._timer = self._task = None  # they refer to this one: a cycle is left to the collector

    def _watch(self, task: "asyncio.Task[Any] | None") -> None:
        if task is None:
            return
        if self._ended or self.length == 0:
            self._task = asyncio.get_running_loop().create_task(self._listen(task))
        else:  # the body's reader notices it; check again when it is in
            self.watch_later(task)

    async def _listen(self, task: "asyncio.Task[Any]") -> None:
        while (await self._receive())["type"] != "http.disconnect":
            continue
        self.is_gone = True
        task.cancel()


def _length(exchange: RequestContext) -> int | None:
    """Return the declared length; None for a chunked body, 0 for none."""
    if "transfer-encoding" in exchange.headers:
        return None
    declared = exchange.headers.get("content-length", "0").strip(" \t")
    # A length that the server's parser accepted and we do not read still means a body.
    return int(declared[:20]) if declared.isdecimal() else None


UNREAD_S = BOUNDS.unread_s
"""Longest time that a caller may take to read a whole answer."""

_EXPOSED = (
    b"access-control-expose-headers",
    b"PAYMENT-REQUIRED, PAYMENT-RESPONSE, X-PAYMENT-RESPONSE, WWW-Authenticate, Payment-Receipt",
)
"""Headers that a browser's client must be able to read. Source: x402.md#both-versions-at-once."""

_NO_BODY = frozenset({204, 304})


class WrapperResponseWriter:
    """Writes an answer with the headers that every answer here has."""

    __slots__ = ("_call_record", "_clock", "_exchange", "_send", "bytes_out", "status")

    def __init__(
        self, send: Send, exchange: RequestContext, call_record: CallRecord, clock: Clock
    ) -> None:
        self._send = send
        self._clock = clock
        self._exchange = exchange
        self._call_record = call_record
        self.status = 0
        self.bytes_out = 0

    async def answer(self, answer: WrapperResponse) -> None:
        """Send the upstream's answer, whole or as it comes."""
        headers = [*answer.headers, *self._call_record.answer_headers]
        headers.append((b"x-request-id", self._exchange.request_id.encode()))
        if not any(name == b"date" for name, _ in headers):
            headers.append(date_header(self._clock.now()))
        body = answer.body
        is_head = self._call_record.incoming.method == "HEAD"
        if isinstance(body, bytes):
            if not is_head:
                headers = [header for header in headers if header[0] != b"content-length"]
            if not is_head and answer.status not in _NO_BODY:
                headers.append((b"content-length", b"%d" % len(body)))
            await self._start(answer.status, headers)
            await self._send_whole(body)
            return
        await self._start(answer.status, headers)
        async for piece in body:
            self.bytes_out += len(piece)
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        await self._send({"type": "http.response.body", "body": b""})

    async def _send_whole(self, body: bytes) -> None:
        """Send it in pieces, each when the one before is out: held here it counts, there not."""
        size = self.bytes_out = len(body)
        try:
            async with asyncio.timeout(UNREAD_S):
                for start in range(0, max(1, size), PIECE_BYTES):
                    await self._send_piece(body[start : start + PIECE_BYTES], start, size)
        except TimeoutError:
            raise RequestTimeout("The answer was not read in time.") from None

    async def _send_piece(self, piece: bytes, start: int, size: int) -> None:
        is_more = start + len(piece) < size
        await self._send({"type": "http.response.body", "body": piece, "more_body": is_more})

    async def refuse(self, error: ServiceError) -> None:
        """Send a refusal in the envelope; nothing if an answer has begun already."""
        if self.status:
            return
        body = envelope(error, self._exchange.request_id)
        headers = [
            JSON,
            (b"content-length", b"%d" % len(body)),
            (b"cache-control", b"no-store"),
            *SANDBOX,
            date_header(self._clock.now()),
            (b"x-request-id", self._exchange.request_id.encode()),
            *error_headers(error),
            *_extra_headers(error),
            *self._call_record.answer_headers,
        ]
        await self._start(status_of(error), headers)
        self.bytes_out = len(body)
        await self._send({"type": "http.response.body", "body": body})

    async def _start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.status = status
        await self._send({"type": "http.response.start", "status": status, "headers": headers})


def _extra_headers(error: ServiceError) -> list[tuple[bytes, bytes]]:
    """Return the headers of a refusal of payment or of a limit."""
    if isinstance(error, PaymentRequired):
        return [*error.demand.headers, _EXPOSED]
    if isinstance(error, PaymentPending):
        return [*error.headers, _EXPOSED]
    if isinstance(error, RateLimitExceeded):
        limit, reset = error.extras.get("limit"), error.extras.get("resetSeconds")
        if isinstance(limit, int) and isinstance(reset, int):
            return list(limit_headers(limit, 0, reset))
    return []


EMPTY_QUERY = "assay.empty_query"
"""The server's extension for a target with a question mark and nothing after it."""


@dataclass(frozen=True, slots=True)
class WrapHandlerDependencies:
    """What calls of wrappers use."""

    pipeline: Pipeline
    direct: FastCalls
    origin: WrapperOrigin
    payments: PaymentService
    sessions: Sessions
    log: FaultLog
    clock: Clock
    quota_lease: QuotaLease | None
    unread_bytes: int
    """Bytes that one caller may leave unread."""
    per_minute: int
    """Calls a minute of an address, an agent or a payer."""
    keyed_per_minute: int
    """Calls a minute of an operator."""


class WrapHandler:
    """Answers every request below `/wrap/`."""

    def __init__(self, needs: WrapHandlerDependencies) -> None:
        self._needs = needs
        clock, quota_lease = needs.clock, needs.quota_lease
        per_minute, keyed = needs.per_minute, needs.keyed_per_minute
        self.limit = rate_limit("wrappers", per_minute, clock, quota_lease)
        self.unread = UnreadAnswers(clock, needs.unread_bytes)
        self._agents = rate_limit("wrapper agents", per_minute, clock, quota_lease)
        self._payments = PayerLimits(
            *(self.unread, clock, quota_lease), per_minute=per_minute, keyed_per_minute=keyed
        )
        # Agents cost nothing: those of one address together have as much as an operator.
        self._presented = rate_limit("wrapper presented", keyed, clock, quota_lease)

    async def __call__(
        self, scope: AsgiScope, receive: Receive, send: Send, exchange: RequestContext
    ) -> None:
        """Answer one request, whatever happens."""
        needs = self._needs
        operator_id, _, rest = _raw_path(scope)[len(WRAP_PREFIX) :].partition("/")
        body = WrapperBody(receive, exchange, needs.clock)
        caller = exchange.wrapper_caller = self._caller(exchange)
        call_record = CallRecord(
            incoming=_incoming(scope, exchange, caller, "/" + rest, body),
            operator_id=operator_id,
            begun_s=needs.clock.monotonic_s(),
            payments=self._payments.within(exchange),
        )
        outgoing = WrapperResponseWriter(send, exchange, call_record, needs.clock)
        try:
            await self._admit(exchange, caller, call_record)
            self._require_host(exchange)
            await self._watched(call_record, body, outgoing)
        except ServiceError as error:
            call_record.outcome = error.code
            note_detail(needs.log, exchange, error)
            await outgoing.refuse(error)
        except asyncio.CancelledError:
            call_record.outcome = "cancelled"
            if not body.is_gone:
                raise
        except Exception as error:
            call_record.outcome = "internal_error"
            needs.log.exception("unhandled", request_id=exchange.request_id, exc_info=error)
            await outgoing.refuse(fault())
        finally:
            call_record.refusal = (
                None  # its traceback refers to the call record: a cycle for the collector
            )
            needs.pipeline.record(call_record, outgoing.status, outgoing.bytes_out)

    def _require_host(self, exchange: RequestContext) -> None:
        """Raise `WrapperNotFound` if wrappers have an origin of their own, and this is another."""
        origin = self._needs.origin
        if not origin.serves_wrappers(exchange.headers.get("host", "")):
            raise WrapperNotFound(f"Wrappers are served at {origin.address}.")

    def _caller(self, exchange: RequestContext) -> Caller:
        """Return the agent of the request's session, else its address."""
        session, address = exchange.headers.get("x-agent-session"), exchange.client_address
        agent = None if session is None else self._needs.sessions.owner_of(session)
        return anonymous_at(address) if agent is None else agent_at(agent, address)

    async def _admit(
        self, exchange: RequestContext, caller: Caller, call_record: CallRecord
    ) -> None:
        """Count the call for its address; if strangers have used that up, for its credential.

        That is its agent, or its payer as far as the payment is proven. Unread answers count
        against the agent, the payer or the address that left them. Raises `TooMany`.
        """
        try:
            self.unread.require(caller)
            await self.limit.require(caller_of(exchange.client_address))
        except TooMany as refusal:
            cors = self._needs.direct.known_cors(call_record.operator_id, call_record.incoming)
            if cors and preflighted_method(call_record.incoming) is not None:
                call_record.refusal = refusal  # a browser asks, to be able to read the refusal
                return
            try:
                if caller.agents and not isinstance(refusal, UpstreamUnread):
                    await self._presented.require(caller_of(exchange.client_address))
                    await self._agents.require(caller.own)
                    return
                if not self._needs.payments.is_any_attached(call_record.incoming.headers):
                    raise
                call_record.payments = await self._payments.beyond(exchange)
            except TooMany:
                call_record.answer_headers.extend(cors)
                raise
            call_record.refusal = refusal

    async def _watched(
        self, call_record: CallRecord, body: WrapperBody, outgoing: WrapperResponseWriter
    ) -> None:
        """Answer; if the caller goes away meanwhile, cancel its upstream call."""
        body.watch_later(asyncio.current_task())
        try:
            answer = await self._needs.pipeline.answer(call_record)
            try:
                await outgoing.answer(answer)
            finally:
                if answer.close is not None:
                    answer.close()
        finally:
            body.unwatch()
        if answer.delivered is not None:  # a caller that goes away now has its answer
            await answer.delivered()


def incoming_of(  # noqa: PLR0913 - a request's parts
    *,
    method: str,
    path: str,
    query: str | None,
    raw: HeaderPairs,
    headers: Mapping[str, str],
    client: str,
    request_id: str,
    content_length: int | None,
    caller: Caller,
    body: Callable[[int], AsyncIterator[bytes]] | None = None,
) -> InboundRequest:
    """Return a request as the stages take it."""
    return InboundRequest(
        method=method,
        path=path,
        query=query,
        headers=raw,
        agent=agent_headers(headers),
        agent_id=headers.get("x-agent-id"),
        chain=headers.get("x-chain"),
        client_address=client,
        request_id=request_id,
        content_length=content_length,
        caller=caller,
        body=body or _no_body,
    )


async def _no_body(_bytes_max: int) -> AsyncIterator[bytes]:
    return
    yield b""  # this makes it a generator


def _incoming(
    scope: AsgiScope, exchange: RequestContext, caller: Caller, path: str, body: WrapperBody
) -> InboundRequest:
    return incoming_of(
        method=scope["method"],
        path=path,
        query=_query(scope),
        raw=scope["headers"],
        headers=exchange.headers,
        client=exchange.client_address,
        request_id=exchange.request_id,
        content_length=body.length,
        caller=caller,
        body=body.pieces,
    )


def _raw_path(scope: AsgiScope) -> str:
    """Return the path as it was sent: the upstream gets exactly that."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw.decode("latin-1")


def _query(scope: AsgiScope) -> str | None:
    """Return the query as it was sent.

    ASGI does not distinguish none from empty; our server does.
    """
    query: str = scope["query_string"].decode("latin-1")
    return query if query or EMPTY_QUERY in scope.get("extensions", {}) else None
