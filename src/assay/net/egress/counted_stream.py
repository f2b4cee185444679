"""Connections that count bytes below TLS and read only as much as a budget allows."""

import asyncio
import select
import socket
import ssl
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import anyio
import anyio.abc
import httpcore2
from anyio.streams.tls import TLSAttribute, TLSStream
from typing_extensions import override

from assay.net.egress.budget_client import BudgetedExchange, current_exchange
from assay.net.egress.host_timeout import host_timeout
from assay.net.egress.ports import EgressError, Failure


async def dial_counted(
    address: str,
    port: int,
    timeout_s: float | None,
    exchange: BudgetedExchange | None,
    proxy: tuple[str, int] | None = None,
) -> httpcore2.AsyncNetworkStream:
    """Connect to a checked and claimed address, with the receive buffer that `exchange` allows.

    With a `proxy` the connection goes there, and is still counted for the address.

    Raises `httpcore2.ConnectError` and `httpcore2.ConnectTimeout`.
    """
    window_bytes = None if exchange is None else exchange.window_bytes
    dialled = proxy or (address, port)
    family = socket.AF_INET6 if ":" in dialled[0] else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setblocking(False)  # noqa: FBT003 - its only form
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if window_bytes is not None:
            # Set before connecting: an offered window cannot be taken back. Linux doubles the
            # value. Source: socket(7), SO_RCVBUF.
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window_bytes // 2)
        async with asyncio.timeout(timeout_s):
            await asyncio.get_running_loop().sock_connect(made, dialled)
    except TimeoutError as error:
        made.close()
        raise httpcore2.ConnectTimeout(str(error)) from error
    except OSError as error:
        made.close()
        raise httpcore2.ConnectError(str(error)) from error
    except BaseException:
        made.close()
        raise
    counted = _Counted(made, address, window_bytes)
    return CountedStream(counted, counted)


class _Counted(anyio.abc.ByteStream):
    """A connection that reports every byte to the exchange using it.

    It works on the bare socket: a transport of the event loop reads ahead, and those bytes would
    already have been sent to us.
    """

    def __init__(self, connected: socket.socket, address: str, window_bytes: int | None) -> None:
        self._socket = connected
        self._address = address
        self._window_bytes = window_bytes
        self._bytes = self._opening_bytes = 0

    def is_open(self) -> None:
        """Record that its TLS handshake is complete."""
        self._opening_bytes = self._bytes

    def _count(self, exchange: BudgetedExchange, size_bytes: int) -> None:
        self._bytes += size_bytes
        exchange.count(size_bytes)

    @override
    async def send(self, item: bytes) -> None:
        exchange = current_exchange()
        if exchange is not None:
            await exchange.connect(self._address)  # A kept connection was not dialled for it.
            exchange.uses(self._window_bytes, self._opening_bytes)
            exchange.is_sent = True
            self._count(exchange, len(item))
        try:
            await asyncio.get_running_loop().sock_sendall(self._socket, item)
        except OSError as error:
            raise anyio.BrokenResourceError from error

    @override
    async def receive(self, max_bytes: int = 65536) -> bytes:
        exchange = current_exchange()
        room = max_bytes if exchange is None else await exchange.room(max_bytes)
        try:
            data = await asyncio.get_running_loop().sock_recv(self._socket, room)
        except OSError as error:
            raise anyio.BrokenResourceError from error
        if exchange is not None:
            self._count(exchange, len(data))
        if not data:
            raise anyio.EndOfStream
        return data

    @override
    async def send_eof(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)

    @override
    async def aclose(self) -> None:
        self._socket.close()
        await asyncio.sleep(0)

    @property
    @override
    def extra_attributes(self) -> Mapping[Any, Any]:
        return {anyio.abc.SocketAttribute.raw_socket: lambda: self._socket}


class CountedStream(httpcore2.AsyncNetworkStream):
    """A byte stream for the pool; it raises the pool's own errors, except those of TLS."""

    def __init__(self, stream: anyio.abc.ByteStream, counted: _Counted) -> None:
        self._stream = stream
        self._counted = counted

    @override
    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        with _mapped(httpcore2.ReadTimeout, httpcore2.ReadError):
            async with host_timeout(timeout):
                try:
                    return await self._stream.receive(max_bytes)
                except anyio.EndOfStream:
                    return b""

    @override
    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if not buffer:
            return
        with _mapped(httpcore2.WriteTimeout, httpcore2.WriteError):
            async with host_timeout(timeout):
                await self._stream.send(buffer)

    @override
    async def aclose(self) -> None:
        await self._stream.aclose()

    @override
    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            async with host_timeout(timeout):
                secured = await TLSStream.wrap(
                    self._stream,
                    ssl_context=ssl_context,
                    hostname=server_hostname,
                    standard_compatible=False,
                    server_side=False,
                )
        except BaseException as error:
            await self.aclose()
            if isinstance(error, TimeoutError):
                raise EgressError(Failure.TIMEOUT, "the TLS handshake took too long") from None
            if isinstance(error, _TLS_FAILURES):
                raise EgressError(Failure.TLS, str(error) or type(error).__name__) from error
            raise
        self._counted.is_open()
        return CountedStream(secured, self._counted)

    @override
    def get_extra_info(self, info: str) -> Any:
        if info == "ssl_object":
            return self._stream.extra(TLSAttribute.ssl_object, None)  # noqa: S610 - not Django
        if info == "is_readable":
            attribute = anyio.abc.SocketAttribute.raw_socket
            return _is_readable(self._stream.extra(attribute, None))  # noqa: S610 - not Django
        return None


_TLS_FAILURES = (
    ssl.SSLError,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
    OSError,
    ValueError,  # No certificate can contain this name.
)


@contextmanager
def _mapped(on_timeout: type[Exception], on_failure: type[Exception]) -> Generator[None]:
    try:
        yield
    except TimeoutError as error:
        raise on_timeout(str(error)) from error
    except (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream) as error:
        raise on_failure(type(error).__name__) from error
    except ssl.SSLError as error:
        raise on_failure(str(error)) from error


def _is_readable(raw: socket.socket | None) -> bool:
    """Return whether a kept connection was closed or has unsolicited data."""
    if raw is None or raw.fileno() < 0:
        return True
    poll = select.poll()  # Works with any number of open files, which `select` does not.
    poll.register(raw.fileno(), select.POLLIN)
    return bool(poll.poll(0))
