"""The outermost ASGI callable: request id, limits, body cap, headers, log, raw handlers.

It is pure ASGI and small, because every request passes it (ADR 0006). What it adds to a response,
it adds to every response, the framework's and the raw handlers'.
"""

from collections.abc import Sequence
from functools import partial
from ipaddress import ip_network
from typing import Protocol, TypeAlias

from assay.accounts.auth import cost_bearer, operator_of
from assay.accounts.traffic import Traffic, TrafficDependencies
from assay.app import App
from assay.common.addresses import address_of_hop
from assay.common.costs import serve_for
from assay.common.errors import NotFound, ServiceError
from assay.common.memory_budget import MemoryBudget
from assay.server.cors import Cors
from assay.server.errors import fault
from assay.server.rate_limits import RateLimit, RateLimitVerdict, parsed_address
from assay.server.rate_limits import refuse as refuse_by_limit
from assay.server.request_context import (
    KEY,
    PARTS,
    WRAP_PREFIX,
    AsgiApp,
    AsgiMessage,
    AsgiScope,
    BodyRooms,
    Receive,
    RequestContext,
    Send,
    body_bytes_max,
    give_back,
    headers_of,
    note_detail,
    read_body,
    refuse,
    request_id_of,
)
from assay.server.response_writer import ANSWERS_BYTES, ApiResponseWriter
from assay.wrappers.address_limits import UnreadAnswers

RawHeaders: TypeAlias = Sequence[tuple[bytes, bytes]]


class RawHandler(Protocol):
    """Answers every request below its prefix before the framework sees it."""

    prefix: str
    route: str
    """The name of the handler in the log."""

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Answer one request; the application renders a `ServiceError`."""
        ...


class WrapperHandler(Protocol):
    """Answers every request below `WRAP_PREFIX`, errors included."""

    limit: RateLimit
    """The limit of requests a minute and client address."""
    unread: UnreadAnswers

    async def __call__(
        self, scope: AsgiScope, receive: Receive, send: Send, exchange: RequestContext
    ) -> None:
        """Answer one request."""
        ...


class Application:
    """The service as one ASGI application."""

    def __init__(
        self,
        app: App,
        framework: AsgiApp,
        raw_handlers: tuple[RawHandler, ...],
        wrap: WrapperHandler,
    ) -> None:
        self.app = app
        self._framework = framework
        self._raw_handlers = raw_handlers
        self.wrap = wrap
        self._traffic = _traffic(app)
        self.bodies = BodyRooms()
        self.answers = MemoryBudget(ANSWERS_BYTES, parts=PARTS)
        self._cors = Cors(app.settings.cors_origins)
        self._proxies = tuple(ip_network(network) for network in app.settings.trusted_proxies)

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Answer one request; ignore anything but HTTP."""
        if scope["type"] != "http":
            return
        begun_s = self.app.clock.monotonic_s()
        headers = headers_of(scope)
        exchange = RequestContext(
            request_id_of(headers), self.client_of(scope.get("client"), scope["headers"]), headers
        )
        scope[KEY] = exchange
        serve_for(partial(cost_bearer, exchange))
        if scope["path"].startswith(WRAP_PREFIX):
            await self.wrap(scope, receive, send, exchange)
            return
        outgoing = ApiResponseWriter(send, exchange, self.app.clock, self.answers)
        exchange.answer_headers.extend(self._cors.headers(exchange))
        try:
            if self._cors.is_preflight(scope, exchange):
                await self._cors.answer(outgoing)
                return
            verdict = await self._traffic.count(scope, exchange)
            exchange.answer_headers.extend(_limit_headers(verdict))
            refuse_by_limit(verdict)
            exchange.bodies = self.bodies
            await self._dispatch(scope, receive, outgoing)
        except ServiceError as error:
            await self._refuse(outgoing, exchange, error)
        except Exception as error:
            self.app.log.exception("unhandled", request_id=exchange.request_id, exc_info=error)
            if outgoing.status == 0:
                await refuse(outgoing, fault(), exchange.request_id)
        finally:
            give_back(exchange)
            self._log(scope, exchange, outgoing.status, begun_s)

    async def _dispatch(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        if not self.app.wrapper_origin.serves_app(scope[KEY].headers.get("host", "")):
            raise NotFound("There is nothing at this path.")
        for handler in self._raw_handlers:
            if path.startswith(handler.prefix):
                scope[KEY].route = handler.route
                await handler(scope, receive, send)
                return
        largest = body_bytes_max(scope, self.app.settings.body_bytes_max)
        body = await read_body(scope, receive, largest)
        if scope["method"] == "HEAD":  # GET; the server leaves out its body
            scope = {**scope, "method": "GET"}
        await self._framework(scope, _replay(body, receive), send)

    async def _refuse(
        self, send: ApiResponseWriter, exchange: RequestContext, error: ServiceError
    ) -> None:
        note_detail(self.app.log, exchange, error)
        if send.status == 0:
            await refuse(send, error, exchange.request_id)

    @property
    def believes_proxies(self) -> bool:
        """Return whether a caller's address may come from a header."""
        return bool(self._proxies)

    def client_of(self, client: tuple[str, int] | None, headers: RawHeaders) -> str:
        """Return the caller's address; only configured proxies may forward another one."""
        peer = (client or ("unknown", 0))[0]
        if not self._proxies or not self.trusts(peer):
            return peer
        for hop in reversed(_forwarded(headers)):
            address = address_of_hop(hop)
            if address is None:  # its proxy answers for it
                break
            peer = address
            if not self.trusts(address):
                break
        return peer[:64]

    def trusts(self, address: str) -> bool:
        """Return whether the address is that of a configured proxy."""
        parsed = parsed_address(address)
        return parsed is not None and any(parsed in network for network in self._proxies)

    def _log(self, scope: AsgiScope, exchange: RequestContext, status: int, begun_s: float) -> None:
        operator = operator_of(exchange)
        template = getattr(scope.get("route"), "path", None)
        self.app.request_log.write(
            method=scope["method"],
            route=exchange.route or template or "(none)",
            status=status,
            ms=round((self.app.clock.monotonic_s() - begun_s) * 1000, 2),
            request_id=exchange.request_id,
            operator=operator.id if operator else None,
        )


def _traffic(app: App) -> Traffic:
    settings = app.settings
    return Traffic(
        TrafficDependencies(
            keys=app.api_keys,
            logins=app.logins,
            agent_of=app.sessions.owner_of,
            run_of=app.course.run_of,
            clock=app.clock,
            quota_lease=app.quota_lease,
            anonymous_per_minute=settings.anonymous_per_minute,
            keyed_per_minute=settings.keyed_per_minute,
            guesses_per_minute=settings.guesses_per_minute,
        )
    )


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives a body that was already read, and then what follows it."""
    given = False

    async def replayed() -> AsgiMessage:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replayed


def _forwarded(headers: RawHeaders) -> list[str]:
    """Return every hop, from the caller on; a proxy may add a line instead of an entry."""
    lines = [value for name, value in headers if name == b"x-forwarded-for"]
    hops = b",".join(lines).decode("latin-1").split(",")
    return [hop.strip() for hop in hops if hop.strip()]


def _limit_headers(verdict: RateLimitVerdict) -> tuple[tuple[bytes, bytes], ...]:
    """Return the three headers that clients read; the newer draft's single header still changes.

    Source: draft-ietf-httpapi-ratelimit-headers-07.
    """
    return (
        (b"ratelimit-limit", b"%d" % verdict.limit),
        (b"ratelimit-remaining", b"%d" % verdict.remaining),
        (b"ratelimit-reset", b"%d" % verdict.reset_s),
    )
