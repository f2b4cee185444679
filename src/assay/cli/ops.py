"""Uvicorn servers within the process's own loop, and `/metrics` and `/readyz` on another address.

Only the operator's monitoring uses that address. Without a token it listens on loopback only, and
answers loopback names only: a page in a browser on this machine may reach it by a name that points
here, and is refused. The server takes few connections, one request on each, and gives each a time.
"""

import asyncio
import json
import signal
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from hmac import compare_digest
from http import HTTPStatus
from ipaddress import ip_address
from types import FrameType
from typing import Any, Final
from urllib.parse import urlsplit

import uvicorn
from typing_extensions import override
from uvicorn.protocols.http.h11_impl import H11Protocol

from assay.app import App
from assay.settings import Settings, bind_address


@dataclass(frozen=True, slots=True)
class Stopping:
    """What a first signal to stop does before the server stops listening."""

    announce: Callable[[], None]
    unready_s: float
    """Seconds until it stops listening."""


class Server(uvicorn.Server):
    """A server that says when it answers and when it has ended."""

    def __init__(
        self,
        config: uvicorn.Config,
        listener: socket.socket,
        stopping: Stopping | None = None,
        leaving: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Create it; `leaving` lets connections end with their next answer, until all have."""
        super().__init__(config)
        self._listener = listener
        self._ended = asyncio.Event()
        self._stopping = stopping
        self._leaving = leaving
        self._waiting: asyncio.TimerHandle | None = None

    @override
    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        stopping, self._stopping = self._stopping, None
        if stopping is None:  # a second signal does not wait
            if self._waiting is not None:
                self._waiting.cancel()
            super().handle_exit(sig, frame)
            return
        stopping.announce()
        if stopping.unready_s:
            loop = asyncio.get_running_loop()
            self._waiting = loop.call_later(stopping.unready_s, super().handle_exit, sig, frame)
        else:
            super().handle_exit(sig, frame)

    def stop(self) -> None:
        """Do what the first signal to stop does, unless one has come already."""
        if self._stopping is not None:
            self.handle_exit(signal.SIGTERM, None)

    def stop_now(self) -> None:
        """Do what the second signal to stop does."""
        self.stop()
        self.handle_exit(signal.SIGTERM, None)

    async def leave(self) -> None:
        """Accept no connection, let each end with its next answer, and stop after `LEAVE_S`.

        Others accept connections of the same socket, so this process stays ready meanwhile.
        """
        for server in self.servers:
            server.close()
        if self._leaving is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(LEAVE_S):
                    await self._leaving()
        self.should_exit = True

    @contextmanager
    @override
    def capture_signals(self) -> Generator[None]:
        """Do nothing: Uvicorn's handler would end the process before its counts are stored."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    async def wait_started(self) -> None:
        """Return once the server answers requests."""
        while not self.started and not self._ended.is_set():  # noqa: ASYNC110 - uvicorn sets a flag
            await asyncio.sleep(0.005)

    async def wait_closed(self) -> None:
        """Return once the server has drained and closed."""
        await self._ended.wait()

    async def run_to_the_end(self) -> None:
        """Serve; whatever happens, `wait_closed` returns afterwards."""
        try:
            await self.serve(sockets=[self._listener])
        finally:
            self._ended.set()


LEAVE_S: Final = 10.0
"""Seconds that a server which leaves waits for the next request of each connection."""


class SecondServer(Server):
    """A server beside another one, which receives the signals."""

    @contextmanager
    @override
    def capture_signals(self) -> Generator[None]:
        yield


@asynccontextmanager
async def running(server: Server) -> AsyncGenerator[Server]:
    """Yield the server once it answers requests; drain and close it at the end."""
    async with asyncio.TaskGroup() as group:
        group.create_task(server.run_to_the_end())
        await server.wait_started()
        try:
            yield server
        finally:
            server.should_exit = True


CONNECTIONS_MAX: Final = 32
"""At a time; of one address a quarter. Beyond it the oldest without a request is dropped."""

PER_ADDRESS: Final = CONNECTIONS_MAX // 4

CONNECTION_S: Final = 10.0
"""From being accepted to the end of the answer. A page takes a second at most."""


class OpsProtocol(H11Protocol):
    """Uvicorn's protocol, within bounds that hold before a first request has come."""

    _open: list["OpsProtocol"]
    """The connections of this server, oldest first."""
    _end: asyncio.TimerHandle | None = None
    _lifetime_s: float

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        own = [one for one in self._open if one.address == self.address]
        for connections, most in ((own, PER_ADDRESS), (self._open, CONNECTIONS_MAX)):
            if len(connections) >= most and not _drop_idle(connections):
                transport.abort()
                return
        self._open.append(self)
        self._end = self.loop.call_later(self._lifetime_s, self.drop)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._drop()
        super().connection_lost(exc)

    @property
    def address(self) -> str:
        """The caller's."""
        return self.client[0] if self.client else ""

    def drop(self) -> None:
        """End it at once."""
        self._drop()
        self.transport.abort()

    def _drop(self) -> None:
        if self._end is not None:
            self._end.cancel()
        if self in self._open:
            self._open.remove(self)


def _drop_idle(connections: list[OpsProtocol]) -> bool:
    """Drop the oldest connection without a request; return whether there was one."""
    idle = next((one for one in connections if not one.cycle), None)
    if idle is not None:
        idle.drop()
    return idle is not None


def ops_protocol(lifetime_s: float = CONNECTION_S) -> type[OpsProtocol]:
    """Return the protocol class of one server, whose connections are counted together.

    A connection is closed after `lifetime_s` seconds, answered or not.
    """
    return type("OpsProtocol", (OpsProtocol,), {"_open": [], "_lifetime_s": lifetime_s})


PATH: Final = "/metrics"
READY_PATH: Final = "/readyz"
BACKLOG: Final = 64
"""Connections that wait to be accepted."""

_Send = Callable[[Mapping[str, Any]], Awaitable[None]]


Page = Callable[[], Awaitable[tuple[HTTPStatus, str, bytes]]]
"""Returns status, media type and body within a bounded time, whatever is down."""


@contextmanager
def listen_ops(settings: Settings) -> Generator[tuple[socket.socket | None, Settings]]:
    """Return the listening socket, if one is set, and the settings with its port.

    Raises `OSError`.
    """
    if settings.ops_bind is None:
        yield None, settings
        return
    host, port = bind_address(settings.ops_bind)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family, backlog=BACKLOG) as listener:
        bound = _authority(host, listener.getsockname()[1])
        yield listener, settings.model_copy(update={"ops_bind": bound})


@asynccontextmanager
async def serving_ops(app: App, listener: socket.socket | None) -> AsyncGenerator[None]:
    """Serve metrics on the socket, if there is one."""
    if listener is None:
        yield
        return
    from assay.app.metrics import metrics_page  # noqa: PLC0415 - heavy, and seldom set

    page = metrics_page(app)

    async def metrics() -> tuple[HTTPStatus, str, bytes]:
        return HTTPStatus.OK, page.media_type, await page.text()

    pages = {PATH: metrics, READY_PATH: partial(_readiness, app)}
    try:
        async with serving_pages(app.settings, listener, pages):
            yield
    finally:
        await page.aclose()


@asynccontextmanager
async def serving_pages(
    settings: Settings, listener: socket.socket, pages: Mapping[str, Page]
) -> AsyncGenerator[None]:
    """Serve these pages, by path, to whoever may see metrics."""
    token = settings.ops_token
    secret = None if token is None else token.get_secret_value().encode()
    config = uvicorn.Config(
        OpsApplication(pages, secret),
        http=ops_protocol(),
        ws="none",
        access_log=False,
        log_level="warning",
        lifespan="off",
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        timeout_graceful_shutdown=1,
    )
    async with running(SecondServer(config, listener)):
        yield


async def _readiness(app: App) -> tuple[HTTPStatus, str, bytes]:
    """Return the readiness with what strangers do not learn: the reasons, and what is down."""
    return readiness_page(await readiness_shown(app))


async def readiness_shown(app: App) -> Mapping[str, object]:
    """Return the members of the page."""
    found = await app.readiness.read()
    return {
        "ready": found.is_ready,
        "reasons": found.reasons,
        "degraded": found.degraded,
        "loopLagS": round(app.readiness.lag.most_s(), 3),
    }


def readiness_page(shown: Mapping[str, object]) -> tuple[HTTPStatus, str, bytes]:
    """Return the page with these members."""
    status = HTTPStatus.OK if shown["ready"] else HTTPStatus.SERVICE_UNAVAILABLE
    return status, "application/json", json.dumps(shown).encode()


def ops_address(settings: Settings) -> str:
    """Return the address that serves metrics."""
    return f"http://{settings.ops_bind}{PATH}"


@dataclass(frozen=True, slots=True)
class OpsApplication:
    """The ASGI application."""

    pages: Mapping[str, Page]
    """By path."""
    token: bytes | None

    async def __call__(self, scope: Mapping[str, Any], _receive: object, send: _Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        status = self._status(scope)
        kind, body = "text/plain", status.phrase.encode()
        if status is HTTPStatus.OK:
            status, kind, body = await self.pages[scope["path"]]()
        headers = [
            (b"content-type", kind.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
            (b"connection", b"close"),
        ]
        if status is HTTPStatus.UNAUTHORIZED:
            headers.append((b"www-authenticate", b"Bearer"))
        await send({"type": "http.response.start", "status": status.value, "headers": headers})
        sent = b"" if scope["method"] == "HEAD" else body
        await send({"type": "http.response.body", "body": sent})

    def _status(self, scope: Mapping[str, Any]) -> HTTPStatus:
        """Return the status; check the caller before the path."""
        headers = dict(scope["headers"])
        if self.token is None:
            if not _is_loopback(headers.get(b"host", b"").decode("latin-1")):
                return HTTPStatus.MISDIRECTED_REQUEST
        elif not compare_digest(headers.get(b"authorization", b""), b"Bearer " + self.token):
            return HTTPStatus.UNAUTHORIZED
        if scope["path"] not in self.pages:
            return HTTPStatus.NOT_FOUND
        return HTTPStatus.OK if scope["method"] in _READS else HTTPStatus.METHOD_NOT_ALLOWED


_READS: Final = frozenset({"GET", "HEAD"})


def _is_loopback(authority: str) -> bool:
    try:
        host = urlsplit(f"//{authority}").hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _authority(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
