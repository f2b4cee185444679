"""Reads HTTP/1.1 requests from bytes: one at a time, strictly, and within bounds.

The library's parser pauses for upgrades, continues after them as if a new request began, and has no
bound on trailers or chunks. This parser ignores upgrades: it removes the header and frames the
request like any other. It accepts what RFC 9112 makes a well-formed request and nothing that nginx
and h11 both refuse.

    CL and TE together, either of them twice, a coding but chunked, a length that is no number
    a bare CR or LF, NUL and other controls, a folded line, a space before a colon
    no Host or two of them, a Host that is no host, a version but 1.0 and 1.1
                                                                     -> InvalidRequest
    a WebSocket handshake                                            -> UpgradeNotSupported
    a head larger than the bound                                     -> RequestHeadTooLarge
    CONNECT, TRACE                                                   -> MethodNotAllowed
"""

import re
from typing import Final, Protocol

from assay.common.errors import InvalidRequest, MethodNotAllowed
from assay.common.http_heads import END

METHOD_BYTES_MAX: Final = 24

HEADERS_MAX: Final = 256
"""Header lines of one request; proxies and browsers together send fewer than 100."""

BLANK_LINES_MAX: Final = 2
"""Empty lines before a request that are skipped. Source: RFC 9112, section 2.2."""

CHUNK_LINE_BYTES_MAX: Final = 1024
"""Largest size line of a chunk, including its extensions."""

CHUNK_EXCESS_BYTES_MAX: Final = 16 * 1024
"""Framing bytes allowed beyond 16 bytes a chunk and twice its data. Source: Go, net/http."""

TINY_CHUNK_BYTES: Final = 32
TINY_CHUNKS_MAX: Final = 16 * 1024
"""Largest number of chunks smaller than this many bytes: each costs as much as a large one."""

CHUNKS_PER_TURN: Final = 1024
"""Chunks read before other connections get their turn: about a millisecond."""

TRAILER_BYTES_MAX: Final = 8 * 1024
TRAILERS_MAX: Final = 32

_LENGTH_MAX = 2**63 - 1
_PORT_MAX = 65_535

_REQUEST_LINE = re.compile(
    rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,24}) ([\x21\x22\x24-\x7e\x80-\xff]+) (HTTP/1\.[01])"
)
"""Method, target, version. Source: RFC 9112, section 3: a fragment is never sent."""

_FIRST_BYTES = re.compile(rb"\r?\Z|[!#$%&'*+.^_`|~0-9A-Za-z-]{1,24}(?: |\Z)")
"""Matches what an incomplete request line can begin with."""

_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HOST = re.compile(
    rb"(?:[A-Za-z0-9_~-]+(?:\.[A-Za-z0-9_~-]+)*+\.?|\[[0-9A-Fa-f:.]{2,45}\])(?::([0-9]{0,5}))?"
)
"""Forbids empty labels, as nginx does."""

_ABSOLUTE = re.compile(rb"[Hh][Tt][Tt][Pp][Ss]?://([^/?]+)(.*)")
_LENGTH = re.compile(rb"[0-9]{1,19}")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,16})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?")
_PLAIN = bytes(byte for byte in range(256) if (byte >= 0x20 and byte != 0x7F) or byte == 0x09)  # noqa: PLR2004 - ASCII
"""Bytes allowed in a head besides line ends."""

_CONTINUE = b"100-continue"
_OWS = b" \t"
_CRLF = b"\r\n"

_COMMON = (
    b"accept accept-encoding accept-language authorization cache-control connection content-length"
    b" content-type cookie expect forwarded host if-match if-none-match if-modified-since origin"
    b" payment-signature priority range referer te traceparent tracestate transfer-encoding upgrade"
    b" upgrade-insecure-requests user-agent via x-agent-address x-agent-id x-agent-session x-chain"
    b" x-forwarded-for x-forwarded-host x-forwarded-proto x-payment x-real-ip x-request-id"
).split()
_LOWER = {spelled: name for name in _COMMON for spelled in (name, name.title())}
"""Common names in their usual spellings: only other names are checked and lowered."""

_REFUSED = frozenset({b"CONNECT", b"TRACE"})

_FRAMING = (b"host", b"content-length", b"transfer-encoding", b"connection", b"upgrade", b"expect")
_ONCE = frozenset(_FRAMING[:3])
"""Headers that decide the framing and may appear only once."""


class RequestEvents(Protocol):
    """Events of a parser, in this order for each request."""

    def on_head(self) -> None:
        """Handle a complete head; the parser's attributes hold it until the next one."""
        ...

    def on_body(self, body: bytes) -> None:
        """Handle a piece of the body, without its framing; at least one byte."""
        ...

    def on_message_complete(self) -> None:
        """Handle the end of the request."""
        ...


# Plain integers: looking up enumeration members costs more than the rest of a state change.
_HEAD, _FIXED, _CHUNK_LINE, _CHUNK_DATA, _CHUNK_END, _TRAILERS, _STOPPED = range(7)


class RequestParser:
    """Parses the requests of one connection.

    `method`, `target` (in origin form), `headers` (lower-case names, values without surrounding
    white space, no Upgrade), `version`, `keep_alive` and `expects_continue` belong to the request
    whose head was read last.
    """

    def __init__(self, events: RequestEvents, head_bytes_max: int) -> None:
        self._events = events
        self._head_bytes_max = head_bytes_max
        self._state = _HEAD
        self._head = bytearray()
        self._searched = self._blank_lines = 0
        self._is_line_read = False
        self._rest = b""
        self._left = self._excess = self._tiny = self._trailers = self._trailer_bytes = 0
        self.is_behind = False
        """Whether `feed` stopped to let others run: call it again, with no bytes."""
        self.method = self.target = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.version = "1.1"
        self.keep_alive = True
        self.expects_continue = False

    def feed(self, data: bytes) -> bytes:
        """Parse up to the end of one request; return the bytes that follow it.

        Raises `InvalidRequest`, `UpgradeNotSupported` and `MethodNotAllowed`; after that the parser
        ignores all input.
        """
        try:
            return self._read(data)
        except Exception:
            self.stop()
            raise

    @property
    def is_idle(self) -> bool:
        """Return whether no byte has arrived since the last request."""
        return self._state is _HEAD and not self._head and not self._blank_lines

    @property
    def is_in_head(self) -> bool:
        """Return whether part of a head has arrived, but not all of it."""
        return self._state is _HEAD and not self.is_idle

    @property
    def is_in_body(self) -> bool:
        """Return whether more of a body is expected."""
        return self._state not in {_HEAD, _STOPPED}

    @property
    def is_chunked(self) -> bool:
        """Return whether the current body is chunked."""
        return self.is_in_body and self._state is not _FIXED

    @property
    def rest_bytes(self) -> int | None:
        """Return how many bytes of the body are missing; None if only its last chunk will tell."""
        return None if self.is_chunked else self._left if self.is_in_body else 0

    @property
    def is_stopped(self) -> bool:
        """Return whether the parser ignores all input."""
        return self._state is _STOPPED

    def stop(self) -> None:
        """Ignore all further input."""
        self._state = _STOPPED
        self._head, self._rest, self.is_behind = bytearray(), b"", False

    # -- the method names that the server's library calls --------------------------------------

    def get_method(self) -> bytes:
        """Return the method as it was sent."""
        return self.method

    def get_http_version(self) -> str:
        """Return `1.0` or `1.1`."""
        return self.version

    def should_keep_alive(self) -> bool:
        """Return whether the caller may send another request on this connection."""
        return self.keep_alive

    def should_upgrade(self) -> bool:
        """Return False: upgrades are not supported."""
        return False

    # -- head ------------------------------------------------------------------------------------

    def _read(self, data: bytes) -> bytes:
        if self._rest:
            data, self._rest = self._rest + data, b""
        self.is_behind = False
        if self._state is _HEAD:
            data = self._read_head(data)
        if self._state is _STOPPED:
            return b""
        if self._state is _FIXED:
            return self._read_length(data)
        return data if self._state is _HEAD else self._read_chunks(data)

    def _read_head(self, data: bytes) -> bytes:
        """Read the head and return the bytes after it.

        Return nothing while the head is incomplete.
        """
        end = -1 if self._head or data.startswith(b"\r") else data.find(END)
        # Reset first: a request refused before its head must not be taken for the last one
        # answered.
        self.method = b""
        if end < 0:
            self._head += data
            end = self._end_of_head()
            if end < 0:
                return b""
            data, self._head = bytes(self._head), bytearray()
        self._bound_head(end + len(END))
        self._searched = self._blank_lines = 0
        self._is_line_read = False
        self._parse_head(data[:end])
        self._events.on_head()
        if self._state == _HEAD:
            self._complete()
        return data[end + len(END) :]

    def _end_of_head(self) -> int:
        """Return the end of a head whose beginning came earlier; negative if it is incomplete."""
        head = self._head
        while head.startswith(_CRLF):
            if self._blank_lines >= BLANK_LINES_MAX:
                raise InvalidRequest("The request does not begin with a request line.")
            self._blank_lines += 1
            del head[:2]
        end = head.find(END, self._searched)
        if end < 0:
            self._bound_head(len(head))
            self._read_part(head)
        return end

    def _bound_head(self, size: int) -> None:
        if size > self._head_bytes_max:
            raise RequestHeadTooLarge(
                f"The request's head is larger than {self._head_bytes_max} bytes: send less in it."
            )

    def _read_part(self, head: bytearray) -> None:
        """Check the first line as soon as it is there: other protocols may never send an end."""
        if not _FIRST_BYTES.match(head[: METHOD_BYTES_MAX + 1]):  # A TLS hello has no line end.
            raise InvalidRequest("The request does not begin with a method.")
        line_end = head.find(b"\n", self._searched) if not self._is_line_read else -1
        if line_end >= 0:
            self._is_line_read = True
            _request_line(bytes(head[: line_end + 1]).removesuffix(_CRLF))
        self._searched = max(0, len(head) - len(END) + 1)

    def _parse_head(self, head: bytes) -> None:
        first, *lines = head.split(_CRLF)
        if head.translate(None, _PLAIN) != _CRLF * len(lines):
            raise InvalidRequest(
                "The request's head holds a control character, or a bare CR or LF."
            )
        if len(lines) > HEADERS_MAX:
            raise InvalidRequest(f"The request has more than {HEADERS_MAX} header lines.")
        self.method, target, version = _request_line(first)
        self.version = "1.1" if version == b"HTTP/1.1" else "1.0"
        if self.method in _REFUSED:
            raise MethodNotAllowed("This service takes neither CONNECT nor TRACE.")
        self.headers = _headers(lines)
        framing = _framing(self.headers)
        self._route(target, framing.get(b"host"))
        self._frame(framing.get(b"content-length"), framing.get(b"transfer-encoding"))
        self._connect(framing)

    def _route(self, target: bytes, host: bytes | None) -> None:
        """Set the target in origin form and the host. Source: RFC 9112, sections 3.2 and 3.3."""
        if host is None and self.version == "1.1":
            raise InvalidRequest("The request needs exactly one Host header.")
        if not target.startswith(b"/"):
            absolute = _ABSOLUTE.fullmatch(target)
            if absolute is None:
                raise InvalidRequest("The request target is neither a path nor an http(s) URL.")
            # The header is ignored, but must still be valid (RFC 9112, section 3.2).
            _check_host(host)
            host, target = absolute[1], absolute[2]
            if not target.startswith(b"/"):
                target = b"/" + target
            # The target's host counts, and the header's is ignored (RFC 9112, section 3.2.2).
            self.headers = [h for h in self.headers if h[0] != b"host"]
            self.headers.append((b"host", absolute[1]))
        _check_host(host)
        self.target = target

    def _frame(self, length: bytes | None, coding: bytes | None) -> None:
        """Determine the length of the body. Source: RFC 9112, sections 6.1 to 6.3."""
        if coding is not None:
            if coding.lower() != b"chunked" or self.version == "1.0":
                raise InvalidRequest(
                    "The only transfer coding taken is chunked, once, in HTTP/1.1."
                )
            if length is not None:
                raise InvalidRequest("A request has Content-Length or Transfer-Encoding, not both.")
            self._state = _CHUNK_LINE
            self._excess = self._tiny = self._trailers = self._trailer_bytes = 0
        elif length is not None:
            if not _LENGTH.fullmatch(length):
                raise InvalidRequest("The Content-Length is not one number of bytes.")
            self._left = int(length)
            if self._left > _LENGTH_MAX:
                raise InvalidRequest("The Content-Length is larger than any body can be.")
            if self._left:
                self._state = _FIXED

    def _connect(self, framing: dict[bytes, bytes]) -> None:
        """Determine whether the connection persists after the request; upgrades are ignored."""
        self.keep_alive = self.version == "1.1"
        # HTTP/1.0 knows no interim answers (RFC 9110, sections 10.1.1 and 15.2).
        self.expects_continue = self.keep_alive and framing.get(b"expect", b"").lower() == _CONTINUE
        options = _listed(framing.get(b"connection", b""))
        if b"close" in options:
            self.keep_alive = False
        wanted = framing.get(b"upgrade")
        if wanted is None:
            return
        if self.method == b"GET" and b"upgrade" in options and b"websocket" in _listed(wanted):
            raise UpgradeNotSupported("WebSocket connections are not supported here.")
        self.headers = [header for header in self.headers if header[0] != b"upgrade"]
        self.keep_alive = False

    # -- body ------------------------------------------------------------------------------------

    def _read_length(self, data: bytes) -> bytes:
        piece = data[: self._left]
        if piece:
            self._left -= len(piece)
            self._events.on_body(piece)
        if self._left or self._state is _STOPPED:
            return b""
        self._complete()
        return data[len(piece) :] if self._state is _HEAD else b""

    def _read_chunks(self, data: bytes) -> bytes:
        pieces: list[bytes] = []
        at, turns = 0, 0
        before = -1
        while self.is_in_body and (at, self._state) != before:
            if turns >= CHUNKS_PER_TURN:
                self.is_behind = True
                break
            before = at, self._state
            if self._state is _CHUNK_LINE:
                at = self._read_chunk_line(data, at)
                turns += 1
            elif self._state is _CHUNK_DATA:
                piece = data[at : at + self._left]
                at, self._left = at + len(piece), self._left - len(piece)
                if piece:
                    pieces.append(piece)
                if not self._left:
                    self._state = _CHUNK_END
            elif self._state is _CHUNK_END:
                at = self._read_chunk_end(data, at)
            else:
                at = self._read_trailer(data, at)
        return self._end_turn(pieces, data[at:])

    def _end_turn(self, pieces: list[bytes], rest: bytes) -> bytes:
        """Report what was read; return the bytes that belong to the next request."""
        is_whole = self._state is _HEAD
        if pieces:
            self._events.on_body(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        if is_whole:
            self._complete()
            return rest if self._state is _HEAD else b""
        if self._state is not _STOPPED:
            self._rest = rest
        return b""

    def _read_chunk_line(self, data: bytes, at: int) -> int:
        end = data.find(_CRLF, at, at + CHUNK_LINE_BYTES_MAX)
        if end < 0:
            if len(data) - at >= CHUNK_LINE_BYTES_MAX:
                raise InvalidRequest(
                    f"A chunk's size and extensions take more than {CHUNK_LINE_BYTES_MAX} bytes."
                )
            return at
        found = _CHUNK_SIZE.fullmatch(data, at, end)
        if found is None:
            raise InvalidRequest("A chunk does not begin with its size in hexadecimal digits.")
        size = int(found[1], 16)
        self._excess = max(0, self._excess + end - at + 4 - 16 - 2 * size)
        if size < TINY_CHUNK_BYTES:
            self._tiny += 1
        if self._excess > CHUNK_EXCESS_BYTES_MAX or self._tiny > TINY_CHUNKS_MAX:
            raise InvalidRequest("The body's chunks are too small, or their extensions too long.")
        self._left = size
        self._state = _CHUNK_DATA if size else _TRAILERS
        return end + len(_CRLF)

    def _read_chunk_end(self, data: bytes, at: int) -> int:
        end = data[at : at + 2]
        if end == _CRLF:
            self._state = _CHUNK_LINE
            return at + 2
        if end not in {b"", b"\r"}:
            raise InvalidRequest("A chunk is longer than its size says.")
        return at

    def _read_trailer(self, data: bytes, at: int) -> int:
        """Skip one trailer; trailers are dropped, not merged (RFC 9110, section 6.5.1)."""
        room = TRAILER_BYTES_MAX - self._trailer_bytes
        end = data.find(_CRLF, at, at + room)
        if end < 0:
            if len(data) - at >= room:
                raise InvalidRequest(f"The trailers take more than {TRAILER_BYTES_MAX} bytes.")
            return at
        line = data[at:end]
        if not line:
            self._state = _HEAD
            return end + len(_CRLF)
        self._trailers += 1
        self._trailer_bytes += end + len(_CRLF) - at
        name, colon, _ = line.partition(b":")
        if not colon or not _TOKEN.fullmatch(name) or line.translate(None, _PLAIN):
            raise InvalidRequest("A trailer is not a name, a colon and a value.")
        if self._trailers > TRAILERS_MAX:
            raise InvalidRequest(f"The request has more than {TRAILERS_MAX} trailers.")
        return end + len(_CRLF)

    def _complete(self) -> None:
        """Complete the request; if the connection ends with it, ignore further input."""
        self._state = _HEAD if self.keep_alive else _STOPPED
        self._events.on_message_complete()


def _request_line(line: bytes) -> tuple[bytes, bytes, bytes]:
    """Split a request line into method, target and version."""
    found = _REQUEST_LINE.fullmatch(line)
    if found is None:
        raise InvalidRequest(
            "The request line is not a method of at most 24 bytes, a target and version 1.0 or"
            " 1.1 of HTTP, with one space between them."
        )
    return found[1], found[2], found[3]


def _check_host(host: bytes | None) -> None:
    """Raise unless it is a host with an optional port; a missing host is accepted here."""
    if host is None:
        return
    parts = _HOST.fullmatch(host)
    if parts is None or (parts[1] and int(parts[1]) > _PORT_MAX):
        raise InvalidRequest("The Host is not a host name or address with an optional port.")


def _headers(lines: list[bytes]) -> list[tuple[bytes, bytes]]:
    """Return lower-case names, and values without surrounding white space."""
    known = _LOWER.get
    try:
        return [
            (known(name) or _lowered(name), value.strip(_OWS))
            for name, value in [line.split(b":", 1) for line in lines]
        ]
    except ValueError:  # The line has no colon, or the name is not a token.
        raise InvalidRequest("A header line is not a name, a colon and a value.") from None


def _lowered(name: bytes) -> bytes:
    if not _TOKEN.fullmatch(name):
        raise ValueError
    return name.lower()


def _framing(headers: list[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Return the headers by name, after checking those that decide the framing.

    Lists spread over several lines are joined. Raises if a header that may appear once appears
    twice.
    """
    framing = dict(headers)
    if len(framing) == len(headers):
        return framing
    for name in _FRAMING:
        values = [value for one, value in headers if one == name]
        if len(values) > 1:
            if name in _ONCE:
                raise InvalidRequest(f"The request has more than one {name.decode()} header.")
            framing[name] = b",".join(values)
    return framing


def _listed(value: bytes) -> set[bytes]:
    """Return the members of a comma-separated header, in lower case."""
    return {part.strip(_OWS) for part in value.lower().split(b",")}


class RequestHeadTooLarge(InvalidRequest):
    """The request line and headers exceed the size limit. Source: RFC 6585, section 5."""

    code = "request_head_too_large"


class UpgradeNotSupported(InvalidRequest):
    """The request asks to switch this connection to another protocol."""

    code = "upgrade_not_supported"
