"""The server's protocol for this service: it answers free wrappers on a fast path."""

import asyncio
from typing import Any, cast

from typing_extensions import override

from assay.app.application import Application
from assay.caller_behaviour.routes import CUT
from assay.common.ids import new_id
from assay.common.tasks import WriteCoalescer
from assay.http1.connections import BOUNDS, ConnectionBounds, ConnectionCaps, Connections
from assay.http1.model import Caller, agent_at, anonymous_at
from assay.http1.server_protocol import ServerProtocol
from assay.server.errors import refusal
from assay.server.request_context import KEY, RequestContext
from assay.wrappers.fast_path import FastCycle, ParsedRequest, ParsedRequestCache, read_plain
from assay.wrappers.routes_calls import EMPTY_QUERY

PREFIX = b"/wrap/"
COURSE = b"/operator/sandbox/course/"


class FastProtocol(ServerProtocol[FastCycle]):
    """The server's protocol with the wrappers' fast path before the application."""

    _application: Application
    _repeats: ParsedRequestCache
    outbox: WriteCoalescer
    _caller: tuple[str, Caller] | None = None
    """The caller's address and identity; None if each request has its own."""
    _is_ordinary = False
    """Whether a request is parsed again, for the ordinary path."""
    _has_wrapped = False
    """Whether the ordinary path called a wrapper."""

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        application = self._application
        if not application.believes_proxies:
            client = application.client_of(self.client, ())
            self._caller = client, anonymous_at(client)
        elif self.client is not None and application.trusts(self.client[0]):
            # A proxy sends its next request on a connection that it holds to be open.
            self.timeout_keep_alive = application.app.settings.keep_alive_s

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self.fast is not None or self._has_wrapped:
            self._count_unread()
        super().connection_lost(exc)

    @override
    def begin_ordinary(self) -> None:
        super().begin_ordinary()
        if self.url.startswith(COURSE):
            self.scope["extensions"] = {CUT: {"cut": self.transport.abort}}
        elif self.url.find(b"?") == len(self.url) - 1:
            self.scope["extensions"] = {EMPTY_QUERY: {}}

    @override
    def begin_repeated(self, data: bytes) -> bool:
        repeat = self._repeats.find(data)
        return repeat is not None and self._carry(repeat, is_repeated=True)

    @override
    def begin_fast(self) -> bool:
        if not self.url.startswith(PREFIX):
            return False
        self._has_wrapped = True
        if self._is_ordinary or self.is_leaving or not self.is_free():
            return False
        repeat = self._parsed()
        return repeat is not None and self._carry(repeat)

    @override
    def remember(self, data: bytes, call: FastCycle) -> None:
        self._repeats.remember(data, call.repeat)

    def _count_unread(self) -> None:
        """Count what a wrapper's caller left unread when it went away."""
        left_bytes = self.left_unread_bytes()
        if left_bytes:
            self._application.wrap.unread.note(self._last_caller(), left_bytes)

    def _last_caller(self) -> Caller:
        """Return whom the last request counts for: its agent or payer, else its address."""
        if self.fast is not None and self.running is self.fast:
            return self.fast.caller
        exchange: RequestContext | None = self.running.scope.get(KEY) if self.running else None
        caller = exchange.wrapper_caller if exchange else None
        return caller or anonymous_at(self._application.client_of(self.client, self.headers))

    def take_ordinary(self, cycle: FastCycle) -> bool:
        """Let the ordinary path answer a request that the upstream has not seen.

        Returns False if the caller is gone.
        """
        if self.cycle is not cast("Any", cycle) or self.transport.is_closing():
            return False
        cycle.response_complete = True
        if not cycle.is_repeated:
            self.begin_whole()
            return True
        self._is_ordinary = True  # the parser has not seen this one
        try:
            self.feed(cycle.repeat.data)
        finally:
            self._is_ordinary = False
        return True

    def _parsed(self) -> ParsedRequest | None:
        """Return the request if it is one for the fast path, else None."""
        requests = self.requests
        plain = read_plain(requests)
        carried = plain and self._application.app.direct.prepare(plain.operator_id, plain.incoming)
        if not plain or not carried:
            return None
        session = plain.incoming.agent.session
        agent = None if session is None else self._application.app.sessions.owner_of(session)
        return ParsedRequest(
            carried, requests.headers, plain.request_id, requests.keep_alive, agent
        )

    def _carry(self, repeat: ParsedRequest, *, is_repeated: bool = False) -> bool:
        """Forward the request; return False, having done nothing, if that is not possible."""
        if not self.is_admitted:
            return False
        application = self._application
        client = self._caller or self._caller_by(repeat)
        key, limit = client[1].own, application.wrap.limit
        if repeat.agent is not None:
            client = client[0], agent_at(repeat.agent, client[0])
        room = limit.room(key)
        if room is None or application.wrap.unread.wait_s(client[1]):
            return False
        request_id = repeat.request_id or new_id()
        cycle = FastCycle(
            self,
            application.app.direct,
            application.app.clock,
            repeat,
            client,
            request_id,
            is_repeated,
        )
        if not cycle.begin():
            return False
        limit.count(key, room)
        self.answer_by(cycle)
        return True

    def _caller_by(self, repeat: ParsedRequest) -> tuple[str, Caller]:
        client = self._application.client_of(self.client, repeat.raw_headers)
        return client, anonymous_at(client)


def protocol_for(application: Application, bounds: ConnectionBounds = BOUNDS) -> type[FastProtocol]:
    """Return the server's protocol for this service."""
    settings = application.app.settings
    caps = ConnectionCaps(
        settings.connections_max,
        settings.connections_per_address,
        settings.connections_per_network,
    )
    return FastProtocol.configured(
        bounds,
        Connections(caps, application.trusts, application.app.on_crowd),
        refusal,
        _application=application,
        _repeats=ParsedRequestCache(),
        outbox=WriteCoalescer(),
    )
