"""A TLS server that writes down what tells one client from another, and serves an ASGI app."""

import asyncio
import datetime as dt
import ssl
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from assay.common.clock import SystemClock
from tests.ground_truth.site import App

HOST = "127.0.0.1"
CLIENT_HELLO = 1


@dataclass
class RecordedRequest:
    """One request as it came."""

    at_s: float
    connection: int
    method: str
    target: str
    version: str
    headers: list[tuple[str, str]]
    body: bytes


@dataclass
class Session:
    """All that one visitor did."""

    url: str = ""
    app: App | None = None
    hellos: list[bytes] = field(default_factory=list)
    addresses: list[str] = field(default_factory=list)
    requests: list[RecordedRequest] = field(default_factory=list)


class Recorder:
    """Every session has a port of its own, so that it is known who did what."""

    def __init__(self, folder: Path) -> None:
        self.certificate = _certificate(folder)
        self._tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._tls.load_cert_chain(self.certificate)
        self._tls.set_alpn_protocols(["http/1.1"])
        self._hellos: dict[int, bytes] = {}
        # Python shows no ClientHello anywhere else; the attribute serves the standard library.
        self._tls._msg_callback = self._message  # type: ignore[attr-defined]

    def _message(self, connection: Any, direction: str, *rest: Any) -> None:
        _version, _content, kind, data = rest
        if direction == "read" and int(kind) == CLIENT_HELLO:
            self._hellos[id(connection)] = bytes(data)

    @asynccontextmanager
    async def session(self) -> AsyncGenerator[Session]:
        """Somewhere to go; `app` is set by the caller once the URL is known."""
        session = Session()
        talks: set[asyncio.Task[None]] = set()

        async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            talks.add(task)
            try:
                await self._talk(session, reader, writer)
            except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                pass
            finally:
                talks.discard(task)
                writer.transport.abort()

        server = await asyncio.start_server(talk, HOST, 0, ssl=self._tls)
        session.url = f"https://{HOST}:{server.sockets[0].getsockname()[1]}"
        try:
            yield session
        finally:
            server.close()
            for task in list(talks):
                task.cancel()
            for task in list(talks):
                with suppress(asyncio.CancelledError):
                    await task

    async def _talk(
        self, session: Session, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        connection = len(session.hellos)
        session.hellos.append(self._hellos.pop(id(writer.get_extra_info("ssl_object")), b""))
        session.addresses.append(writer.get_extra_info("peername")[0])
        while True:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                return
            first, *lines = head.decode("latin-1").split("\r\n")[:-2]
            method, target, version = first.split(" ")
            headers = [(n, v.strip()) for n, _, v in (line.partition(":") for line in lines)]
            sizes = [int(v) for n, v in headers if n.lower() == "content-length"]
            body = await reader.readexactly(sizes[0]) if sizes else b""
            at_s = asyncio.get_running_loop().time()
            session.requests.append(
                RecordedRequest(at_s, connection, method, target, version, headers, body)
            )
            await _answer(session, session.requests[-1], writer)


async def _answer(session: Session, heard: RecordedRequest, writer: asyncio.StreamWriter) -> None:
    status, headers, body = await _run(session, heard)
    lines = [f"HTTP/1.1 {status} Answer"]
    lines += [f"{n}: {v}" for n, v in headers if n.lower() != "content-length"]
    lines += [f"content-length: {len(body)}", "", ""]
    writer.write("\r\n".join(lines).encode("latin-1") + body)
    await writer.drain()


async def _run(
    session: Session, heard: RecordedRequest
) -> tuple[int, list[tuple[str, str]], bytes]:
    """One answer, whole. No stream is opened for what the server may want to say some day."""
    accepts = {n.lower(): v for n, v in heard.headers}.get("accept", "")
    if heard.method == "GET" and accepts == "text/event-stream":
        return 405, [], b""
    path, _, query = heard.target.partition("?")
    assert session.app is not None
    host, _, port = session.url.removeprefix("https://").partition(":")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": heard.method,
        "scheme": "https",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(n.lower().encode(), v.encode()) for n, v in heard.headers],
        "server": (host, int(port)),
        "client": (HOST, 1),
        "state": {},
    }
    sent: list[Any] = []
    given = [{"type": "http.request", "body": heard.body, "more_body": False}]
    done = asyncio.Event()

    async def receive() -> Any:
        if given:
            return given.pop()
        await done.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)
        if message["type"] == "http.response.body" and not message.get("more_body"):
            done.set()

    with suppress(asyncio.CancelledError):
        await session.app(scope, receive, send)
    start = next(m for m in sent if m["type"] == "http.response.start")
    body = b"".join(m.get("body", b"") for m in sent if m["type"] == "http.response.body")
    return start["status"], [(n.decode(), v.decode()) for n, v in start["headers"]], body


def _certificate(folder: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, HOST)])
    now = SystemClock().now()
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=30))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    path = folder / "site.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


def new_folder() -> tempfile.TemporaryDirectory[str]:
    """For the certificate."""
    return tempfile.TemporaryDirectory()
