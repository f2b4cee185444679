"""`assay serve`: runs one process until it is stopped."""

import asyncio
import ctypes
import gc
import socket
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Annotated, cast

import uvicorn
import uvloop
from cyclopts import Parameter

from assay.app import App, assemble
from assay.app.protocol import protocol_for
from assay.app.web import build
from assay.cli import unsafe_connections
from assay.cli.command import FAILED, MISCONFIGURED, complain, explain, read_settings
from assay.cli.ext_authz import serving_ext_authz
from assay.cli.ops import Server, Stopping, listen_ops, ops_address, running, serving_ops
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
) -> int:
    """Serve until SIGINT or SIGTERM; then return status 0."""
    settings = read_settings({"host": host, "port": port, "data_dir": data_dir})
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_serve(settings))
    except KeyboardInterrupt:
        return 0
    except ServiceError as error:
        complain(explain(error))
        return FAILED
    except (ValueError, RuntimeError, OSError) as error:
        complain(str(error))
        return MISCONFIGURED
    return 0


async def _serve(settings: Settings) -> None:
    files = unsafe_connections.raise_limit()
    fitting = unsafe_connections.fitting(settings, files)
    with listen(fitting) as (listener, bound), listen_ops(bound) as (ops, settled):
        async with (
            assemble(settled) as app,
            serving(app, listener) as server,
            serving_ops(app, ops),
            serving_ext_authz(app, cast("AsgiApp", server.config.app)),
        ):
            print_welcome(app)
            if fitting is not settings:
                _say_lowered(app, settings, files)
            _settle_down()
            app.readiness.lag.forget()
            await server.wait_closed()


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
    config = uvicorn.Config(
        service,
        http=protocol_for(service),
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
    async with running(Server(config, listener, stopping)) as server:
        yield server


def print_welcome(app: App) -> None:
    """Print the address, the data directory, and what to do next."""
    settings = app.settings
    account = '{"email": "you@example.com", "password": "at least 12 characters", "name": "You"}'
    lines = [
        f"Assay serves at {settings.address}",
        f"  data       {settings.data_dir}",
        f"  chains     {len(app.networks.slugs)} (default: {app.networks.default.slug})",
        f"  reference  {settings.address}/docs",
        *([f"  metrics    {ops_address(settings)}"] if settings.ops_bind else []),
        *([f"  ext_authz  {settings.ext_authz_bind} (gRPC)"] if settings.ext_authz_bind else []),
        f"  next       curl -s {settings.address}/operator/register --json '{account}'",
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()
