"""Connects to exactly the addresses that were checked, and counts bytes below TLS.

Connections that count bytes below TLS and read only as much as a budget allows.

Connects to exactly the addresses that were checked: after one look-up, no name is used.
"""

import asyncio
import re
import select
import socket
import ssl
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any, Final, TypeVar

import anyio
import anyio.abc
import httpcore2
from anyio.streams.tls import TLSAttribute, TLSStream
from typing_extensions import override

from assay.common.egress_budget import EgressUse, egress_use
from assay.common.errors import Unavailable
from assay.http1.model import Scheme, Target, upstream_failed
from assay.net.egress.budget_client import BudgetedExchange, current_exchange
from assay.net.egress.ports import EgressError, Failure
from assay.net.egress.request_slots import SlotShare, host_timeout
from assay.net.egress.url import EgressPolicy
from assay.net.resolver import LOOKUPS_MAX, NameResolver, SystemResolver


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


DIAL_ATTEMPTS_MAX = 3
"""Addresses of one name tried before giving up; they share the connect timeout."""

UPSTREAM_CONNECT_S = 5.0
"""Time to connect to an upstream, excluding waits for this service."""

WINDOW_BYTES: Final = 192 * 1024
"""Requested receive buffer. Linux doubles it and offers about half of that as the window. At 50 ms
of round trip that is 4 MB a second. By default, Linux buffers up to 32 MiB that no caller may ever
want."""

PROXY_HEAD_BYTES_MAX = 8_192
_TUNNELLED = re.compile(rb"HTTP/1\.[01] 2[0-9][0-9]")

P = TypeVar("P", bound=asyncio.BaseProtocol)


class GuardedNetworkBackend(httpcore2.AsyncNetworkBackend):
    """The pool's network: resolves names, checks every address, connects to a checked one.

    The pool keys its connections by scheme, name and port, so a connection made for one name is
    never used for another, and TLS and Host keep the name.
    """

    def __init__(
        self, policy: EgressPolicy, resolver: NameResolver, proxy: "HttpProxy | None" = None
    ) -> None:
        self._policy = policy
        self._resolver = resolver
        self._proxy = proxy

    @override
    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            async with host_timeout(timeout):
                addresses = await _judged_addresses(host, port, self._policy, self._resolver)
                return await self._dial_one(addresses, port, timeout)
        except TimeoutError:
            raise EgressError(Failure.TIMEOUT, f"connecting to {host} took too long") from None

    async def _dial_one(
        self, addresses: Sequence[str], port: int, timeout_s: float | None
    ) -> httpcore2.AsyncNetworkStream:
        tried = _first_of_each_family(addresses)[:DIAL_ATTEMPTS_MAX]
        share = None if timeout_s is None else timeout_s / len(tried)
        failures: list[str] = []
        timed_out = False
        for address in tried:
            try:
                return await self._connect(address, port, share)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failures.append(f"{address}: {type(error).__name__} {error}")
                timed_out = isinstance(error, httpcore2.ConnectTimeout)
        failure = Failure.TIMEOUT if timed_out else Failure.CONNECT
        raise EgressError(failure, "; ".join(failures))

    async def _connect(
        self, address: str, port: int, share_s: float | None
    ) -> httpcore2.AsyncNetworkStream:
        exchange = current_exchange()
        if exchange is not None:
            await exchange.connect(address)
        if self._proxy is None:
            return await dial_counted(address, port, share_s, exchange)
        return await self._proxy.connect(address, port, share_s, self._resolver)


@dataclass(frozen=True, slots=True)
class HttpProxy:
    """The operator's HTTP proxy: it receives checked addresses, never names."""

    host: str
    port: int
    authorization: str = ""
    """Value of `Proxy-Authorization`; if empty, the header is not sent."""

    async def connect(
        self, address: str, port: int, timeout_s: float | None, resolver: NameResolver
    ) -> httpcore2.AsyncNetworkStream:
        """Open a tunnel to the address. Raises `httpcore2.ConnectError`.

        Source: RFC 9110, section 9.3.6.
        """
        try:
            own = (await resolver.resolve(self.host, self.port))[0]
        except (OSError, IndexError) as error:
            raise httpcore2.ConnectError("the proxy has no address") from error
        exchange = current_exchange()
        stream = await dial_counted(address, port, timeout_s, exchange, (own, self.port))
        target = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        proof = f"Proxy-Authorization: {self.authorization}\r\n" if self.authorization else ""
        asked = f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{proof}\r\n"
        try:
            await stream.write(asked.encode("ascii"), timeout_s)
            answer = await _head(stream, timeout_s)
        except BaseException:
            await stream.aclose()
            raise
        if not _TUNNELLED.match(answer):
            await stream.aclose()
            raise httpcore2.ConnectError("the proxy makes no tunnel")
        return stream


async def _head(stream: httpcore2.AsyncNetworkStream, timeout_s: float | None) -> bytes:
    """Read the head of the proxy's answer byte by byte: what follows belongs to the tunnel."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = await stream.read(1, timeout_s)
        if not byte or len(head) > PROXY_HEAD_BYTES_MAX:
            raise httpcore2.ConnectError("the proxy does not speak HTTP")
        head += byte
    return head


class UpstreamDialer:
    """Dials for the pools of `http1`: it checks every address before it connects.

    Look-ups are shared fairly among operators; `close` lets their threads end.
    """

    def __init__(
        self,
        policy: EgressPolicy | None,
        resolver: NameResolver | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """Connect without checks if `policy` is None: only for configured addresses."""
        self._policy = policy
        # Gates do not use it, so nothing is reserved for them.
        shares = SlotShare(LOOKUPS_MAX, LOOKUPS_MAX) if policy else None
        self._system = SystemResolver(shares)
        self._resolver = resolver or self._system
        self._tls = tls

    async def connect(self, target: Target, account: str, make: Callable[[], P]) -> P:
        """Implements `http1.client.Connect`."""
        try:
            with egress_use(EgressUse(account=account)):
                async with host_timeout(UPSTREAM_CONNECT_S):
                    return await self._connect(target, make)
        except EgressError as error:
            if error.failure is Failure.BUDGET:
                # It waited for this service in vain: its upstream is not at fault.
                raise Unavailable("Many names are being looked up.", retry_after_s=1) from error
            raise upstream_failed(f"it cannot be reached: {error!r}") from error
        except OSError as error:  # Includes timeouts and TLS failures.
            raise upstream_failed(f"it cannot be reached: {error!r}") from error

    def close(self) -> None:
        """Let the threads of look-ups end; no connections are made afterwards."""
        self._system.close()

    async def _connect(self, target: Target, make: Callable[[], P]) -> P:
        """Connect to the first checked address that answers."""
        addresses = await _judged_addresses(
            target.host, target.port, self._policy, self._resolver, target.scheme
        )
        tls = self._context() if target.scheme == "https" else None
        problem: OSError | None = None
        for address in addresses[:DIAL_ATTEMPTS_MAX]:
            try:
                _, connection = await asyncio.get_running_loop().create_connection(
                    make,
                    sock=await connected_socket(address, target.port),
                    ssl=tls,
                    server_hostname=target.host if tls else None,
                )
            except OSError as error:
                problem = error
            else:
                return connection
        raise problem or OSError("no address")

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = httpcore2.default_ssl_context()
        return self._tls


async def connected_socket(address: str, port: int) -> socket.socket:
    """Return a connected socket to a checked address. Raises `OSError`."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setblocking(False)  # noqa: FBT003 - its only form
        # Otherwise a small body would wait until its head is acknowledged.
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Set before connecting: an offered window cannot be taken back.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, WINDOW_BYTES)
        await asyncio.get_running_loop().sock_connect(made, (address, port))
    except BaseException:
        made.close()
        raise
    return made


async def _judged_addresses(
    host: str,
    port: int,
    policy: EgressPolicy | None,
    resolver: NameResolver,
    scheme: Scheme = "https",
) -> Sequence[str]:
    """Resolve `host` and return its addresses; refuse them all if any is blocked.

    A name that mixes public and private addresses is an attack or a mistake: picking the allowed
    ones would let its owner try until we pick wrong. Only a policy with opened addresses uses the
    `scheme`. Raises `EgressError`.
    """
    try:
        ip_address(host)
        addresses: Sequence[str] = (host,)
    except ValueError:
        addresses = await _resolve(host, port, resolver)
    for address in addresses:
        if policy is not None and (why := policy.refusal(scheme, host, port, address)):
            raise EgressError(Failure.REFUSED_ADDRESS, f"{host}: {why}")
    return addresses


async def _resolve(host: str, port: int, resolver: NameResolver) -> Sequence[str]:
    try:
        addresses = await resolver.resolve(host, port)
    except TimeoutError:
        raise  # TimeoutError is an OSError too, but has its own failure.
    except OSError as error:
        raise EgressError(Failure.NAME, f"{host}: {error}") from error
    if not addresses:
        raise EgressError(Failure.NAME, f"{host} has no address")
    return addresses


def _first_of_each_family(addresses: Sequence[str]) -> list[str]:
    """Put the first address of each family in front.

    Otherwise a machine without IPv6 could spend every attempt on it.
    """
    versions = {ip_address(a).version: a for a in reversed(addresses)}
    firsts = [a for a in addresses if a in versions.values()]
    return firsts + [a for a in addresses if a not in firsts]
