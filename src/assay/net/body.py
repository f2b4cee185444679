"""Requests to configured addresses, and bodies of all responses, within fixed bounds.

Reads response bodies within fixed bounds.

Endless, truncated ones and decompression bombs too.

Addresses that the operator configured: they are connected to without egress checks.

One bounded request to an address that the operator configured, over the HTTP/1.1 client.

A request to a configured provider, with a bounded answer.
"""

import asyncio
import base64
import zlib
from collections.abc import AsyncIterable, Awaitable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

import httpcore2
import httpx2

from assay.common.json import JsonValue
from assay.http1.model import DEFAULT_PORTS, Target, Upstream, UpstreamRequest
from assay.net.egress.budget_client import OverBudget
from assay.net.egress.ports import Tap
from assay.net.egress.request_slots import host_timeout

ACCEPTED_ENCODINGS = "gzip, deflate"
"""The encodings we accept: those whose output zlib can bound while it decodes."""

EVENT_STREAM = "text/event-stream"

_INFLATE_STEP_BYTES = 64 * 1024
_MAGIC_BYTES = 2
_FRAMING = frozenset({"content-length", "transfer-encoding"})


class BodyBroken(Exception):
    """The body does not match its headers: corrupt, truncated, or encoded more than once."""


@dataclass(frozen=True, slots=True)
class DecodedBody:
    """The decoded bytes, whether they were cut, and whether the ratio or an egress budget cut them.

    `received_bytes` counts the encoded bytes that were read.
    """

    data: bytes
    truncated: bool
    is_bomb: bool = False
    over_budget: bool = False
    received_bytes: int = field(default=0, compare=False)


async def read_stream(
    reading: Awaitable[DecodedBody], headers: Sequence[tuple[str, str]], limit_s: float | None
) -> DecodedBody:
    """Await `reading` and return its body, within `limit_s` seconds for an event stream.

    Raises `TimeoutError` if a stream of events takes longer than `limit_s`.
    """
    is_stream = any(n == "content-type" and v.lower().startswith(EVENT_STREAM) for n, v in headers)
    async with host_timeout(limit_s if is_stream else None):
        return await reading


async def read_body(
    chunks: AsyncIterable[bytes],
    encoding: str,
    bytes_max: int,
    ratio_max: int,
    tap: Tap | None = None,
) -> DecodedBody:
    """Read until the end or a bound, whichever comes first.

    `encoding` is the Content-Encoding; an encoding other than gzip and deflate was not asked for,
    and its body is returned as received. At most `bytes_max` decoded bytes are buffered, and at
    most `ratio_max` times the bytes received. Raises `BodyBroken`.
    """
    inflate = _inflate_for(encoding)
    received, decoded = 0, bytearray()
    try:
        async for chunk in chunks:
            received += len(chunk)
            allowed = bytes_max if inflate is None else min(bytes_max, ratio_max * received)
            room = allowed - len(decoded)
            piece = chunk[: room + 1] if inflate is None else inflate.feed(chunk, room + 1)
            if tap is not None:
                tap.add(piece[:room])
            decoded += piece
            if len(decoded) > allowed:
                is_bomb = allowed < bytes_max
                data = bytes(decoded[:allowed])
                return DecodedBody(data, truncated=True, is_bomb=is_bomb, received_bytes=received)
    except OverBudget:
        data = bytes(decoded)
        return DecodedBody(data, truncated=True, over_budget=True, received_bytes=received)
    if inflate is not None and received and not inflate.ended:
        raise BodyBroken("the compressed body ends in the middle")
    return DecodedBody(bytes(decoded), truncated=False, received_bytes=received)


async def read_rest(chunks: AsyncIterable[bytes]) -> bool:
    """Read and discard what follows a bound; return whether the end was reached."""
    try:
        async for _ in chunks:
            pass
    except (OverBudget, httpcore2.ProtocolError, httpcore2.NetworkError):
        return False
    return True


def declared_length(headers: Sequence[tuple[str, str]]) -> int | None:
    """Return the length that the headers declare; None if only the body's end tells.

    Source: RFC 9112, section 6.3. The parser has refused invalid lengths.
    """
    found = {name: value for name, value in headers if name in _FRAMING}
    if "transfer-encoding" in found or not found.get("content-length", "").isdecimal():
        return None
    return int(found["content-length"])


def _inflate_for(encoding: str) -> "_Inflate | None":
    codings = [c for part in encoding.split(",") if (c := part.strip().lower()) != "identity" and c]
    if len(codings) > 1:
        raise BodyBroken("the body is encoded more than once")
    return _Inflate() if codings and codings[0] in {"gzip", "x-gzip", "deflate"} else None


class _Inflate:
    """Decodes gzip, zlib, or the raw deflate that some servers send under the name of zlib."""

    def __init__(self) -> None:
        self._zlib: zlib._Decompress | None = None  # pyright: ignore[reportPrivateUsage] - its only name
        self._head = b""

    @property
    def ended(self) -> bool:
        """Return whether the compressed stream reached its own end."""
        return self._zlib is not None and self._zlib.eof

    def feed(self, chunk: bytes, room: int) -> bytes:
        """Return at most `room` decoded bytes; exactly `room` bytes mean the bound is crossed."""
        if self._zlib is None:
            chunk = self._head = self._head + chunk
            if len(chunk) < _MAGIC_BYTES:
                return b""
            self._zlib = zlib.decompressobj(_window_bits(chunk))
        made = bytearray()
        try:
            while chunk and len(made) < room and not self._zlib.eof:
                made += self._zlib.decompress(chunk, min(_INFLATE_STEP_BYTES, room - len(made)))
                chunk = self._zlib.unconsumed_tail
        except zlib.error:
            raise BodyBroken("the compressed body is corrupt") from None
        return bytes(made)


def _window_bits(head: bytes) -> int:
    """Return the zlib parameter for the format found.

    Source: RFC 1950, section 2.2 (CMF and FLG).
    """
    is_zlib = head[0] & 0x0F == zlib.DEFLATED and int.from_bytes(head[:2], "big") % 31 == 0
    return zlib.MAX_WBITS | 32 if is_zlib or head.startswith(b"\x1f\x8b") else -zlib.MAX_WBITS


@dataclass(frozen=True, slots=True)
class ConfiguredAddress:
    """A configured destination, and the headers made from the URL's user and password."""

    target: Target
    path_and_query: bytes
    headers: tuple[tuple[bytes, bytes], ...]


def configured(url: str) -> ConfiguredAddress:
    """Parse a configured URL. Raises `ValueError` if it is not an http(s) address."""
    parts = urlsplit(url)
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
        raise ValueError("not an http(s) address")
    scheme = "https" if parts.scheme == "https" else "http"
    port = parts.port or DEFAULT_PORTS[scheme]
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    host = parts.hostname if parts.hostname.isascii() else parts.hostname.encode("idna").decode()
    headers: tuple[tuple[bytes, bytes], ...] = ()
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers = ((b"authorization", b"Basic " + base64.b64encode(pair.encode())),)
    target = Target(scheme, host, port, path, is_literal_ip=False)
    return ConfiguredAddress(target, path.encode("ascii", "strict"), headers)


_ASKED = (
    (b"accept", b"application/json"),
    (b"accept-encoding", ACCEPTED_ENCODINGS.encode()),
    (b"user-agent", b"assay"),
)
_SENT = (b"content-type", b"application/json")


@dataclass(frozen=True, slots=True)
class ExchangeBounds:
    """Bounds of a request: seconds, decoded bytes, and decoded bytes for each received byte."""

    timeout_s: float
    bytes_max: int
    ratio_max: int


async def exchange(
    client: Upstream, method: str, url: str, content: bytes, bounds: ExchangeBounds
) -> tuple[int, DecodedBody]:
    """Send a request and return the status and the decoded body, cut at the bounds.

    Content, if any, is sent as JSON. The request may be sent twice, so it must be repeatable.
    Raises `UpstreamFailed`, `BodyBroken`, and `ValueError` for an invalid address.
    """
    place = configured(url)
    request = UpstreamRequest(
        method=method,
        target=place.target,
        path_and_query=place.path_and_query,
        headers=(*_ASKED, *((_SENT,) if content else ()), *place.headers),
        body=content,
        content_length=len(content),
        timeout_s=bounds.timeout_s,
        repeatable=True,
    )
    reply = await client.send(request)
    try:
        encoding = b",".join(v for n, v in reply.headers if n == b"content-encoding")
        async with aclosing(reply.body()) as pieces:
            body = await read_body(
                pieces, encoding.decode("latin-1"), bounds.bytes_max, bounds.ratio_max
            )
    finally:
        reply.close()
    return reply.status, body


_RATIO_MAX = 100
_PLAIN = {"accept-encoding": "identity"}


class AnswerTooLarge(ValueError):
    """The answer exceeds the size limit; the bytes beyond it were not read."""


@dataclass(frozen=True, slots=True)
class PostAnswer:
    """A status and a complete body."""

    status: int
    body: bytes


async def post_json(
    client: httpx2.AsyncClient,
    url: str,
    body: Mapping[str, JsonValue],
    bytes_max: int,
    timeout_s: float,
    headers: Mapping[str, str] | None = None,
) -> PostAnswer:
    """Post `body` as JSON and return the answer, within `timeout_s` seconds in all.

    Raises `httpx2.HTTPError`, `TimeoutError`, and `ValueError` for an answer that is larger than
    `bytes_max`, compressed beyond the allowed ratio, or corrupt.
    """
    async with (
        asyncio.timeout(timeout_s),
        client.stream("POST", url, json=body, headers={**(headers or {}), **_PLAIN}) as answer,
    ):
        return await _whole(answer, bytes_max)


async def get(
    client: httpx2.AsyncClient,
    url: str,
    bytes_max: int,
    timeout_s: float,
    headers: Mapping[str, str] | None = None,
) -> PostAnswer:
    """Send a GET and return the answer; bounds and exceptions are those of `post_json`."""
    async with (
        asyncio.timeout(timeout_s),
        client.stream("GET", url, headers={**(headers or {}), **_PLAIN}) as answer,
    ):
        return await _whole(answer, bytes_max)


async def _whole(answer: httpx2.Response, bytes_max: int) -> PostAnswer:
    encoding = answer.headers.get("content-encoding", "")
    try:
        read = await read_body(answer.aiter_raw(), encoding, bytes_max, _RATIO_MAX)
    except BodyBroken as error:
        raise ValueError(str(error)) from error
    if read.truncated:
        raise AnswerTooLarge(f"an answer of more than {bytes_max} bytes")
    return PostAnswer(answer.status_code, read.data)
