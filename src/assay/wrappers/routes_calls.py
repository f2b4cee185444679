"""The wrappers' lane: `/wrap/{operatorId}/{path}`, any method.

It stands before the edge's own bookkeeping, for an answer here is the upstream's, not ours.
Source: interface.md#wrappers; conventions.md#wrapper.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass

from assay.common.clock import Clock
from assay.common.errors import ServiceError, TooMany
from assay.common.http_heads import HeaderPairs
from assay.common.quota_lease import QuotaLease
from assay.http1.callers import Caller, agent_at, anonymous_at
from assay.identity.auth import agent_headers
from assay.identity.session import Sessions
from assay.payments.service import PaymentService
from assay.server.errors import fault
from assay.server.rate_limits import caller_of, rate_limit
from assay.server.request_context import (
    WRAP_PREFIX,
    AsgiScope,
    FaultLog,
    Receive,
    RequestContext,
    Send,
    note_detail,
)
from assay.wrappers.address_limits import PayerLimits
from assay.wrappers.cors import preflighted_method
from assay.wrappers.fast_calls import FastCalls
from assay.wrappers.inbound_body import WrapperBody
from assay.wrappers.model import CallRecord, InboundRequest, WrapperNotFound
from assay.wrappers.origin import WrapperOrigin
from assay.wrappers.pipeline import Pipeline
from assay.wrappers.response_writer import WrapperResponseWriter
from assay.wrappers.unread_answers import UnreadAnswers, UpstreamUnread

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
    """How much one caller may leave unread."""
    per_minute: int
    """How many calls an address, an agent or a payer may make."""
    keyed_per_minute: int
    """The same of an operator."""


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
        # Agents are made for nothing: those of one address have as much together as one operator.
        self._presented = rate_limit("wrapper presented", keyed, clock, quota_lease)

    async def __call__(
        self, scope: AsgiScope, receive: Receive, send: Send, exchange: RequestContext
    ) -> None:
        """One request, answered whatever happens."""
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
                None  # its traceback knows the journey: a circle for the collector
            )
            needs.pipeline.record(call_record, outgoing.status, outgoing.bytes_out)

    def _require_host(self, exchange: RequestContext) -> None:
        """Raises `WrapperNotFound` where wrappers have an origin of their own, and this is none."""
        origin = self._needs.origin
        if not origin.serves_wrappers(exchange.headers.get("host", "")):
            raise WrapperNotFound(f"Wrappers are served at {origin.address}.")

    def _caller(self, exchange: RequestContext) -> Caller:
        """The agent whose session it shows, else its address."""
        session, address = exchange.headers.get("x-agent-session"), exchange.client_address
        agent = None if session is None else self._needs.sessions.owner_of(session)
        return anonymous_at(address) if agent is None else agent_at(agent, address)

    async def _admit(
        self, exchange: RequestContext, caller: Caller, call_record: CallRecord
    ) -> None:
        """Count the call for its address; where strangers have used that up, for who it shows.

        That is its agent, or its payer as far as the payment is proven. What was left unread is
        held against the agent, the payer or the address that left it. Raises `TooMany`.
        """
        try:
            self.unread.require(caller)
            await self.limit.require(caller_of(exchange.client_address))
        except TooMany as refusal:
            cors = self._needs.direct.known_cors(call_record.operator_id, call_record.incoming)
            if cors and preflighted_method(call_record.incoming) is not None:
                call_record.refusal = refusal  # a browser may ask, to be able to read the refusal
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
        """Answer; a caller that goes away meanwhile takes its upstream call with it."""
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
        if answer.delivered is not None:  # a caller that is gone by now has its answer
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
    """A request as the stages take it."""
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
    yield b""  # what makes it a generator


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
    """As it was sent: the upstream gets the very same."""
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw.decode("latin-1")


def _query(scope: AsgiScope) -> str | None:
    """As it was sent. ASGI has the same for no query and an empty one; our server tells."""
    query: str = scope["query_string"].decode("latin-1")
    return query if query or EMPTY_QUERY in scope.get("extensions", {}) else None
