"""`assay serve`: runs one process, or several that share a socket, until it is stopped."""

import asyncio
import ctypes
import gc
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Coroutine, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Annotated, cast

import uvicorn
import uvloop
from cyclopts import Parameter

from assay.app import App, assemble, networks_from
from assay.app.heartbeat import heartbeat
from assay.app.log import open_log
from assay.app.protocol import protocol_for
from assay.app.secrets import secret_rings
from assay.app.web import build
from assay.chains.networks import Networks
from assay.cli import unsafe_connections
from assay.cli.command import FAILED, MISCONFIGURED, complain, explain, read_settings
from assay.cli.ext_authz import serving_ext_authz
from assay.cli.ops import (
    Server,
    Stopping,
    listen_ops,
    ops_address,
    running,
    serving_ops,
    serving_pages,
)
from assay.cli.worker_link import READY_S, Answer, Link, SupervisorWindow, linked
from assay.cli.workers import Supervisor, require_free
from assay.common.clock import SystemClock
from assay.common.errors import ServiceError
from assay.server.request_context import AsgiApp
from assay.settings import Settings

MALLOC_KEPT_BYTES = 32 * 1024 * 1024
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3
"""Source: mallopt(3)."""

GC_OBJECTS = 30_000
"""New containers between collections; the usual 700 would scan every burst of requests. Calls wait
a second for the log, and there may be tens of thousands of them. Each unused object blocks the loop
for 1 us: 200,000 blocked it for 200 ms (`bench/hostile.py`)."""

DRAIN_S = 10
"""Seconds for which a stopping server waits for running answers."""


def serve(
    *,
    host: Annotated[str | None, Parameter(help="Address to listen on.")] = None,
    port: Annotated[int | None, Parameter(help="Port to listen on; 0 picks one.")] = None,
    data_dir: Annotated[Path | None, Parameter(help="Where everything is kept.")] = None,
    workers: Annotated[int | None, Parameter(help="Processes that serve this port.")] = None,
    worker_of: Annotated[str | None, Parameter(show=False)] = None,
) -> int:
    """Serve until SIGINT or SIGTERM; then return status 0.

    `worker_of` is what a supervisor gives to its workers: the descriptors of the listening socket
    and of the link, and the address of the metrics.
    """
    given = {"host": host, "port": port, "data_dir": data_dir, "workers": workers}
    settings = read_settings(given)
    if worker_of is not None:
        return _run(_work(settings, *worker_of.split(",", 2)))
    if settings.workers > 1:
        return _run(_supervise(settings, _arguments(given)))
    return _run(_serve(settings))


def _arguments(given: Mapping[str, object]) -> Sequence[str]:
    """Return the command line that gives the same settings."""
    known = {name: value for name, value in given.items() if value is not None}
    return [f"--{name.replace('_', '-')}={value}" for name, value in known.items()]


def _run(serving_to_the_end: Coroutine[None, None, int]) -> int:
    """Return the status; what kept it from serving becomes one sentence."""
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(serving_to_the_end)
    except KeyboardInterrupt:
        return 0
    except ServiceError as error:
        complain(explain(error))
        return FAILED
    except (ValueError, RuntimeError, OSError) as error:
        complain(str(error))
        return MISCONFIGURED


async def _serve(settings: Settings) -> int:
    files = unsafe_connections.raise_limit()
    fitting = unsafe_connections.fitting(settings, files)
    with listen(fitting) as (listener, bound), listen_ops(bound) as (ops, settled):
        async with (
            assemble(settled) as app,
            serving(app, listener) as server,
            serving_ops(app, ops),
            serving_ext_authz(app, cast("AsgiApp", server.config.app)),
        ):
            print_welcome(settled, app.networks)
            _begin(app, settings, files)
            async with heartbeat(app, settings):
                await server.wait_closed()
    return 0


async def _work(settings: Settings, listening: str, end: str, ops_bind: str) -> int:
    """Serve the supervisor's socket until it says so or is gone."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # meant for the supervisor, if a group gets it
    files = unsafe_connections.raise_limit()
    fitting = unsafe_connections.fitting(settings, files)
    answers: dict[str, Answer] = {}
    with _inherited(listening) as listener, _inherited(end) as link_end:
        settled = fitting.model_copy(
            update={"port": listener.getsockname()[1], "ops_bind": ops_bind or None}
        )
        link = await Link.open(link_end, answers)
        async with (
            linked(link, answers) as orders,
            assemble(settled, window=SupervisorWindow(link)) as app,
            serving(app, listener) as server,
            serving_ext_authz(app, cast("AsgiApp", server.config.app)),
        ):
            _begin(app, settings, files)
            orders.take(server, app)
            await link.ask("ready", None, READY_S)
            async with heartbeat(app, settings):
                await server.wait_closed()
            await orders.report(link)
    return 0


async def _supervise(settings: Settings, arguments: Sequence[str]) -> int:
    """Let workers serve; the secrets are created before the first of them starts."""
    networks = networks_from(settings)
    with listen(settings) as (listener, bound), listen_ops(bound) as (ops, settled):
        require_free(settled)
        settled.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        secret_rings(settled, SystemClock().now())
        log = open_log(settled.log_format, settled.log_level)
        supervisor = Supervisor(settled, arguments, listener, log)
        async with AsyncExitStack() as stack:
            if ops is not None:
                pages = serving_pages(settled, ops, supervisor.pages())
                await stack.enter_async_context(pages)
            return await supervisor.run(lambda: print_welcome(settled, networks))


def _inherited(number: str) -> socket.socket:
    """Return a socket that the supervisor gave to this process, and to no process it starts."""
    inherited = socket.socket(fileno=int(number))
    inherited.set_inheritable(False)
    return inherited


def _begin(app: App, asked: Settings, files: int) -> None:
    """Do what remains before callers are answered at full speed."""
    if app.settings.connections_max != asked.connections_max:
        _say_lowered(app, asked, files)
    _settle_down()
    app.readiness.lag.forget()


def _say_lowered(app: App, asked: Settings, files: int) -> None:
    app.log.warning(
        "fewer connections are held than the settings say, because too few files may be open",
        files=files,
        needed=unsafe_connections.needed(asked),
        connections_max=app.settings.connections_max,
        connections_per_address=app.settings.connections_per_address,
        connections_per_network=app.settings.connections_per_network,
        next=unsafe_connections.ADVICE,
    )


def _settle_down() -> None:
    """Freeze what start-up created, so that the collector does not scan it again and again.

    Memory of past bodies is kept for the next ones: returning it to the system and taking it again
    costs half of forwarding 100 KiB (measurements.md#forwarding-requests).
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_OBJECTS)
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # glibc only
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, MALLOC_KEPT_BYTES)
        mallopt(_M_TRIM_THRESHOLD, MALLOC_KEPT_BYTES)


BACKLOG_MIN, BACKLOG_MAX = 128, 2048

LOW_WATER_BYTES = 512 * 1024
"""Bytes of an answer that the system takes beyond the caller's window."""


@contextmanager
def listen(settings: Settings) -> Generator[tuple[socket.socket, Settings]]:
    """Return the listening socket, and the settings with its real port.

    It binds before anything is opened, so that a taken port is the first error. Raises `OSError`.
    """
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    at, backlog = (settings.host, settings.port), _backlog(settings)
    with socket.create_server(at, family=family, backlog=backlog) as listener:
        _send_at_once(listener)
        _send_little_ahead(listener)
        yield listener, settings.model_copy(update={"port": listener.getsockname()[1]})


def _backlog(settings: Settings) -> int:
    """Connections that wait to be accepted, all of which may be accepted at once."""
    return min(BACKLOG_MAX, max(BACKLOG_MIN, settings.connections_max))


def _send_at_once(listening: socket.socket) -> None:
    """Keep the system from holding a small piece of an answer until the last is acknowledged.

    asyncio does this for sockets that it created itself. Connections inherit it from the listening
    socket. Source: tcp(7), TCP_NODELAY.
    """
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _send_little_ahead(listening: socket.socket) -> None:
    """Keep the system from taking megabytes for a caller that does not read.

    It does not bound what is under way to a caller that reads. Connections inherit it from the
    listening socket. Source: tcp(7), TCP_NOTSENT_LOWAT.
    """
    option = getattr(socket, "TCP_NOTSENT_LOWAT", None)
    if option is not None:
        listening.setsockopt(socket.IPPROTO_TCP, option, LOW_WATER_BYTES)


@asynccontextmanager
async def serving(app: App, listener: socket.socket) -> AsyncGenerator[Server]:
    """Yield the server once it answers requests; drain and close it at the end."""
    service = build(app)
    protocol = protocol_for(service)
    config = uvicorn.Config(
        service,
        http=protocol,
        ws="none",
        access_log=False,
        log_level="warning",
        lifespan="off",
        server_header=False,
        date_header=False,  # the application and upstreams set it
        proxy_headers=False,
        backlog=_backlog(app.settings),
        timeout_graceful_shutdown=DRAIN_S,
    )
    stopping = Stopping(app.readiness.drain, app.settings.unready_s)
    async with running(Server(config, listener, stopping, protocol.leave)) as server:
        yield server


def print_welcome(settings: Settings, networks: Networks) -> None:
    """Print the address, the data directory, and what to do next."""
    account = '{"email": "you@example.com", "password": "at least 12 characters", "name": "You"}'
    lines = [
        f"Assay serves at {settings.address}",
        f"  data       {settings.data_dir}",
        f"  chains     {len(networks.slugs)} (default: {networks.default.slug})",
        f"  reference  {settings.address}/docs",
        *([f"  workers    {settings.workers}"] if settings.workers > 1 else []),
        *([f"  metrics    {ops_address(settings)}"] if settings.ops_bind else []),
        *([f"  ext_authz  {settings.ext_authz_bind} (gRPC)"] if settings.ext_authz_bind else []),
        f"  next       curl -s {settings.address}/operator/register --json '{account}'",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
