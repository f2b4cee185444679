"""Streams of requests by grammar, most of them then changed at places where framing is decided.

The same seed and number give the same bytes on every machine.
"""

from collections.abc import Callable
from random import Random

PREFIX = b"/P/"
"""How every target begins; the path of a lane is put there before anybody reads the stream."""

LAST = b"GET " + PREFIX + b"last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
"""Ends every stream: a reader that frames all before it as we do closes after this."""

_METHODS = (b"GET", b"POST", b"PUT", b"DELETE", b"PATCH", b"OPTIONS", b"PROPFIND", b"X")
_HOSTS = (b"x", b"x:80", b"a.example", b"127.0.0.1:8000")
_FIELDS = (
    *(b"X: y", b"Accept: */*", b"X-Empty:", b"x:y", b"X: a, b", b"Content-Type: text/plain"),
    *(b"Connection: keep-alive", b"Connection: close", b"Connection: X", b"TE: trailers"),
    *(b"Expect: 100-continue", b"Upgrade: h2c", b"Upgrade: h2c\r\nConnection: Upgrade"),
    *(b"Trailer: X", b"Keep-Alive: 5", b"Cookie: a=b", b"Connection: Content-Length"),
)
_BODIES = (
    *(b"", b"a", b"hello", b"0\r\n\r\n", b"\r\n", b"GET /Q/hidden HTTP/1.1\r\nHost: x\r\n\r\n"),
    *(b"5\r\nhello\r\n0\r\n\r\n", b"x" * 300, b"\n\n", b"\x00\xff", b"POST /Q/hidden HTTP/1.1\r\n"),
)
_EXTENSIONS = (b"", b"", b"", b"", b";a", b";a=b", b';a="b"', b" ", b";a=b;c")
_TRAILERS = (b"", b"", b"", b"", b"X: y\r\n", b"Content-Length: 3\r\n", b"X: y\r\nZ: w\r\n")
_VERSIONS = (b"HTTP/1.1",) * 12 + (b"HTTP/1.0",)

_NASTY_LINES = (
    *(b"Content-Length: 5", b"Content-Length: 0", b"Content-Length: 05", b"Content-Length: +5"),
    *(b"Content-Length: 5 ", b"Content-Length:\t5", b"Content-Length: 5,5", b"Content-Length: -0"),
    *(b"Content-Length : 5", b"Content-Length: 0x5", b"content-length: 5", b"Content-Length:"),
    *(b"Content-Length: 5, 6", b"Content_Length: 5", b"Content-Length: 18446744073709551621"),
    *(b"Transfer-Encoding: chunked", b"Transfer-Encoding: Chunked", b"Transfer-Encoding: x"),
    *(b"Transfer-Encoding: chunked, chunked", b"Transfer-Encoding: gzip, chunked"),
    *(b"Transfer-Encoding:chunked ", b"Transfer-Encoding: \x0bchunked", b"Transfer-Encoding:"),
    *(
        b"Transfer-Encoding: identity",
        b"Transfer_Encoding: chunked",
        b"Transfer-Encoding : chunked",
    ),
    *(b" folded", b"\tfolded", b"no colon", b": empty", b"X\x00: y", b"X: a\x00b", b"X: a\rb"),
    *(
        b"Host: y",
        b"Host:",
        b"Host: x, y",
        b"Host: x y",
        b"Upgrade: websocket",
        b"X Y: z",
        b"\xff: x",
    ),
    *(b"Connection: Upgrade\r\nUpgrade: anything", b"Connection: Transfer-Encoding", b""),
)
_NASTY_BYTES = b"\r\n \t\x00\x0b\x0c:;,0159aAfFgG+-_.\"'\\/#?%@\x7f\x80\xff=[](){}"
_ENDS = (b"\n", b"\r", b"\r\r\n", b"\n\r", b" \r\n", b"\t\r\n", b"\r\n ", b"\r\n\r\n", b"\x0b\r\n")


def stream(seed: int, number: int) -> bytes:
    """The bytes of one connection, in one piece."""
    rng = Random(f"{seed}:{number}")
    requests = [_request(rng, place) for place in range(rng.choice((1, 1, 1, 2, 3)))]
    data = b"".join(requests)
    for _ in range(rng.choice((0, 1, 1, 1, 2, 2, 3))):
        data = rng.choice(_CHANGES)(rng, data)
    return data + LAST


def _request(rng: Random, place: int) -> bytes:
    body = rng.choice(_BODIES)
    lines = [b"Host: " + rng.choice(_HOSTS)]
    lines += [rng.choice(_FIELDS) for _ in range(rng.choice((0, 0, 1, 2)))]
    framing = rng.choice(("none", "length", "chunked"))
    method = rng.choice(_METHODS if framing != "none" else (b"GET", b"DELETE", b"OPTIONS"))
    if framing == "length":
        lines.append(b"Content-Length: %d" % len(body))
    elif framing == "chunked":
        lines.append(b"Transfer-Encoding: chunked")
        body = _chunks(rng, body)
    else:
        body = b""
    rng.shuffle(lines)
    start = b"%b %bn%d %b" % (method, PREFIX, place, rng.choice(_VERSIONS))
    return b"\r\n".join([start, *lines, b"", b""]) + body


def _chunks(rng: Random, body: bytes) -> bytes:
    data = b""
    while body:
        size = rng.randint(1, len(body))
        data += b"%x%b\r\n%b\r\n" % (size, rng.choice(_EXTENSIONS), body[:size])
        body = body[size:]
    return data + b"0" + rng.choice(_EXTENSIONS) + b"\r\n" + rng.choice(_TRAILERS) + b"\r\n"


def _nasty_line(rng: Random, data: bytes) -> bytes:
    """A line more, somewhere after a line's end."""
    at = _after_a_line(rng, data)
    return data[:at] + rng.choice(_NASTY_LINES) + b"\r\n" + data[at:]


def _other_end(rng: Random, data: bytes) -> bytes:
    """A line that ends in another way."""
    at = _after_a_line(rng, data)
    return data[: max(0, at - 2)] + rng.choice(_ENDS) + data[at:]


def _other_byte(rng: Random, data: bytes) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([rng.choice(_NASTY_BYTES)]) + data[at + 1 :]


def _one_more_byte(rng: Random, data: bytes) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes([rng.choice(_NASTY_BYTES)]) + data[at:]


def _near_a_colon(rng: Random, data: bytes) -> bytes:
    places = [at for at, byte in enumerate(data) if byte in b":;"]
    if not places:
        return data
    at = rng.choice(places) + rng.choice((0, 1))
    return data[:at] + bytes([rng.choice(_NASTY_BYTES)]) + data[at:]


def _one_byte_less(rng: Random, data: bytes) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + data[at + 1 :]


def _a_line_twice(rng: Random, data: bytes) -> bytes:
    lines = data.split(b"\r\n")
    at = rng.randrange(len(lines))
    lines.insert(rng.randrange(len(lines)), lines[at])
    return b"\r\n".join(lines)


def _a_line_less(rng: Random, data: bytes) -> bytes:
    lines = data.split(b"\r\n")
    del lines[rng.randrange(len(lines))]
    return b"\r\n".join(lines)


def _lines_swapped(rng: Random, data: bytes) -> bytes:
    lines = data.split(b"\r\n")
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\r\n".join(lines)


def _other_number(rng: Random, data: bytes) -> bytes:
    """A digit of a length or of a chunk's size is another."""
    places = [at for at, byte in enumerate(data) if byte in b"0123456789"]
    if not places:
        return data
    at = rng.choice(places)
    return (
        data[:at] + rng.choice((b"0", b"1", b"7", b"a", b"00", b"", b"0x1", b" ")) + data[at + 1 :]
    )


def _after_a_line(rng: Random, data: bytes) -> int:
    places = [at + 2 for at in range(len(data)) if data[at : at + 2] == b"\r\n"]
    return rng.choice(places) if places else 0


_CHANGES: tuple[Callable[[Random, bytes], bytes], ...] = (
    *(_nasty_line, _nasty_line, _nasty_line, _other_end, _other_end, _other_byte, _one_more_byte),
    *(_near_a_colon, _one_byte_less, _a_line_twice, _a_line_less, _lines_swapped, _other_number),
)
