"""Reads response bodies within fixed bounds.

Endless, truncated ones and decompression bombs too.
"""

import zlib
from collections.abc import AsyncIterable, Awaitable, Sequence
from dataclasses import dataclass, field

import httpcore2

from assay.net.egress.budget_client import OverBudget
from assay.net.egress.host_timeout import host_timeout
from assay.net.egress.ports import Tap

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
