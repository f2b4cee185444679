"""What a node may answer instead of the truth: over a hundred answers, each made of an honest one.

An answer is bytes to send, or pieces: bytes, and seconds to wait between them. After it the
connection is closed, unless the answer was a whole one and says otherwise.
"""

import gzip
import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from tests.support.raw_server import plain

Honest = Any
"""The honest reply: an object, or a list of them for a batch."""

Pieces = Sequence[bytes | float]
Hostile = Callable[[Honest], bytes | Pieces]


@cache
def _bomb() -> bytes:
    return gzip.compress(b" " * 50_000_000)


@cache
def _deflated() -> bytes:
    return zlib.compress(b"[" * 10_000_000)


_BROKEN = gzip.compress(b"a" * 9_000)[:20] + b"\xff" * 30

ENDLESS = 400
"""Pieces of an answer that does not end while anybody waits for it."""


def as_list(honest: Honest) -> list[Any]:
    """A batch as it is, a single one as a batch of one."""
    return honest if isinstance(honest, list) else [honest]  # pyright: ignore[reportUnknownVariableType] - JSON


def _each(honest: Honest, change: Callable[[dict[str, Any]], dict[str, Any]]) -> bytes:
    changed = [change(one) for one in as_list(honest)]
    sent: Any = changed if isinstance(honest, list) else changed[0]
    return plain(json.dumps(sent).encode("utf-8", "surrogatepass"))


def _with(**members: Any) -> Hostile:
    return lambda honest: _each(honest, lambda one: {**one, **members})


def _without(*names: str) -> Hostile:
    return lambda honest: _each(
        honest, lambda one: {k: v for k, v in one.items() if k not in names}
    )


def _error(error: Any) -> Hostile:
    return lambda honest: _each(
        honest, lambda one: {"jsonrpc": "2.0", "id": one["id"], "error": error}
    )


def _text(change: Callable[[bytes], bytes]) -> Hostile:
    """The JSON itself, changed."""
    return lambda honest: plain(change(json.dumps(honest).encode()))


def _raw(reply: bytes) -> Hostile:
    return lambda _honest: reply


def _status(line: str, *headers: str) -> Hostile:
    """The honest body under another status."""
    return lambda honest: plain(json.dumps(honest).encode(), line, *headers)


def _coded(coding: str, change: Callable[[bytes], bytes]) -> Hostile:
    return lambda honest: plain(
        change(json.dumps(honest).encode()), "200 OK", f"Content-Encoding: {coding}"
    )


def _headed(head: str) -> Hostile:
    """The honest body under a head of one's own."""
    return lambda honest: head.encode() + b"\r\n\r\n" + json.dumps(honest).encode()


def _batch(change: Callable[[list[Any]], Any]) -> Hostile:
    """Of a batch; what is asked alone gets it as a batch of one."""

    def reply(honest: Honest) -> bytes:
        return plain(json.dumps(change(as_list(honest))).encode())

    return reply


def _nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def _dripping(honest: Honest) -> Pieces:
    whole = plain(json.dumps(honest).encode())
    return [piece for byte in whole for piece in (bytes([byte]), 0.05)]


IDS: Mapping[str, Hostile] = {
    "id of an object": _with(id={}),
    "id of a list": _with(id=[]),
    "id of a list in a list": _with(id=[[]]),
    "id null": _with(id=None),
    "no id": _without("id"),
    "id as text": lambda honest: _each(honest, lambda one: {**one, "id": str(one["id"])}),
    "id as a float": lambda honest: _each(honest, lambda one: {**one, "id": float(one["id"])}),
    "id of another request": lambda honest: _each(honest, lambda one: {**one, "id": one["id"] + 1}),
    "id negative": lambda honest: _each(honest, lambda one: {**one, "id": -one["id"]}),
    "id true": _with(id=True),
    "id huge": _with(id=10**300),
    "id not a number": _with(id=float("nan")),
}

_RESULTS: Mapping[str, Any] = {
    "null": None,
    "true": True,
    "a number": 7,
    "negative": -1,
    "a float": 1.5,
    "not a number": float("nan"),
    "infinite": float("inf"),
    "empty": "",
    "a minus": "-0x5",
    "a minus within": "0x-5",
    "an underscore": "0x_5",
    "spaces": " 0x5 ",
    "a line end": "0x55\n",
    "wide digits": "0x\uff15\uff15",
    "a letter": "0x5g",
    "an upper-case X": "0X55",
    "NUL": "0x55\0",
    "half a character": "\ud800",
    "half a character after hex": "0x55\udfff",
    "words": "latest",
    "65 digits": "0x" + "f" * 65,
    "odd and long": "0x" + "f" * 70_001,
    "a list": [],
    "a list of lists": [[], [[]]],
    "a list of null": [None],
    "an object": {},
    "an object of itself": {"result": {"result": "0x5"}},
    "deep": _nested(60),
    "too deep": _nested(70),
    "a value of null": {"context": {}, "value": None, "x": 1, "number": "0x"},
    "a value of words": {"context": {"slot": "x"}, "value": "words"},
    "a value of floats": {"value": 1.5, "number": 1.5, "timestamp": 1.5},
    "a negative value": {"value": -1, "number": "-0x1", "timestamp": "-0x1"},
}
RESULTS: Mapping[str, Hostile] = {
    f"result {name}": _with(result=value) for name, value in _RESULTS.items()
} | {"no result": _without("result"), "nothing": _without("result", "id", "jsonrpc")}

_ERRORS: Mapping[str, Any] = {
    "of words": "no",
    "a list": [1],
    "empty": {},
    "false": False,
    "zero": 0,
    "without a message": {"code": -32000},
    "with a message of null": {"code": -32000, "message": None},
    "with a code of text": {"code": "-32000", "message": "no"},
    "with a code of true": {"code": True, "message": "no"},
    "with a code that is not a number": {"code": float("nan"), "message": "no"},
    "with a float": {"code": -32000.5, "message": "no"},
    "with a huge code": {"code": 10**300, "message": "no"},
    "of half characters": {"code": -32005, "message": "\ud800\0\udfff slow down"},
    "of a terminal": {"code": -32603, "message": "\x1b[2J\r\nroot: fine"},
    "of very many words": {"code": -32603, "message": "slow " * 15_000},
    "of deep data": {"code": -32603, "message": "no", "data": _nested(50)},
    "of the limit": {"code": -32005, "message": "slow down"},
    "internal": {"code": -32603, "message": "oops", "data": {"data": {"data": []}}},
}
ERRORS: Mapping[str, Hostile] = {
    f"error {name}": _error(value) for name, value in _ERRORS.items()
} | {"error beside the result": _with(error={"code": -32603, "message": "oops"})}

TEXTS: Mapping[str, Hostile] = {
    "cut in the middle": _text(lambda text: text[: len(text) // 2]),
    "more after the end": _text(lambda text: text + b"x"),
    "twice": _text(lambda text: text + text),
    "id twice": _text(lambda text: text.replace(b'"id": ', b'"id": 1, "id": 7')),
    "result twice": _text(lambda text: text.replace(b"}", b', "result": {"a": -1}}')),
    "error twice": _text(
        lambda text: text.replace(
            b"}", b', "error": null, "error": {"code": -32603, "message": ""}}'
        )
    ),
    "very deep": _raw(plain(b"[" * 90_000)),
    "very deep objects": _raw(plain(b'{"a":' * 15_000)),
    "deep beside": _text(
        lambda text: text.replace(b"{", b'{"a":' + b"[" * 300 + b"]" * 300 + b",", 1)
    ),
    "NaN beside": _text(lambda text: text.replace(b"{", b'{"a":NaN,', 1)),
    "a number of very many digits": _text(
        lambda text: text.replace(b"{", b'{"a":' + b"9" * 5_000 + b",", 1)
    ),
    "single quotes": _text(lambda text: text.replace(b'"', b"'")),
    "a comment": _text(lambda text: b"/**/" + text),
    "UTF-16": _text(lambda text: text.decode().encode("utf-16")),
    "UTF-32": _text(lambda text: text.decode().encode("utf-32")),
    "not UTF-8": _text(lambda text: text.replace(b"{", b'{"\xff\xfe":1,', 1)),
    "only a mark": _raw(plain(b"\xef\xbb\xbf")),
    "only spaces": _raw(plain(b" " * 90_000)),
    "NUL": _text(lambda text: text + b"\0"),
    "null": _raw(plain(b"null")),
    "true": _raw(plain(b"true")),
    "a text": _raw(plain(b'"0x5"')),
    "a number": _raw(plain(b"5")),
    "very many values": _raw(plain(b"[" + b"[]," * 30_000 + b"1]")),
    "a page": _raw(plain(b"<html>pay</html>", "200 OK", "Content-Type: text/html")),
    "nothing": _raw(plain(b"")),
    "too long": _raw(plain(b'"' + b"0" * 200_000 + b'"')),
}

BATCHES: Mapping[str, Hostile] = {
    "an empty batch": _batch(lambda _: []),
    "a batch that is short": _batch(lambda all_: all_[1:]),
    "a batch with one twice": _batch(lambda all_: [*all_, all_[-1]]),
    "a batch of one answer": _batch(lambda all_: [all_[0]] * max(2, len(all_))),
    "a batch of more": _batch(
        lambda all_: [*all_, {"jsonrpc": "2.0", "id": 999_999, "result": "0x1"}]
    ),
    "a batch of null": _batch(lambda all_: [None] * len(all_)),
    "a batch of texts": _batch(lambda all_: [json.dumps(one) for one in all_]),
    "a batch in a batch": _batch(lambda all_: [all_]),
    "a batch as an object": _batch(lambda all_: {str(n): one for n, one in enumerate(all_)}),
}

_OK = "HTTP/1.1 200 OK"
HTTP: Mapping[str, Hostile] = {
    **{
        f"{code} to itself": _status(f"{code} Moved", "Location: /key123")
        for code in (301, 302, 303, 307, 308)
    },
    "302 elsewhere": _status("302 Found", "Location: http://169.254.169.254/latest"),
    **{f"{code}": _status(f"{code} No") for code in (400, 401, 403, 404, 405, 418)},
    **{f"{code}": _status(f"{code} No", "Retry-After: 999999999") for code in (429, 500, 503)},
    "201": _status("201 Created"),
    "204": _status("204 No Content"),
    "206": _status("206 Partial Content", "Content-Range: bytes 0-1/9"),
    "304": _status("304 Not Modified"),
    "101": _status("101 Switching Protocols", "Upgrade: h2c"),
    "999": _status("999 What"),
    "gzip that is none": _coded("gzip", lambda text: text),
    "gzip cut off": _coded("gzip", lambda text: gzip.compress(text)[:-9]),
    "gzip with a broken middle": _coded("gzip", lambda _: _BROKEN),
    "gzip bomb": _coded("gzip", lambda _: _bomb()),
    "gzip in gzip": _coded("gzip, gzip", lambda text: gzip.compress(gzip.compress(text))),
    "deflate bomb": _coded("deflate", lambda _: _deflated()),
    "a coding that was not asked for": _coded("br", lambda _: b"\x0b\x02\x80"),
    "a length that is too long": _headed(f"{_OK}\r\nContent-Length: 90000"),
    "a length that is too short": _headed(f"{_OK}\r\nContent-Length: 10"),
    "two lengths": _headed(f"{_OK}\r\nContent-Length: 10\r\nContent-Length: 900"),
    "a negative length": _headed(f"{_OK}\r\nContent-Length: -1"),
    "a length with an underscore": _headed(f"{_OK}\r\nContent-Length: 1_0"),
    "a huge length": _headed(f"{_OK}\r\nContent-Length: {'9' * 5_000}"),
    "a chunk of no size": _headed(f"{_OK}\r\nTransfer-Encoding: chunked"),
    "a huge chunk": _raw(f"{_OK}\r\nTransfer-Encoding: chunked\r\n\r\n{'f' * 40}\r\n".encode()),
    "a negative chunk": _raw(f"{_OK}\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n".encode()),
    "a coding of its own": _headed(f"{_OK}\r\nTransfer-Encoding: gzip"),
    "endless chunks": lambda _: [
        f"{_OK}\r\nTransfer-Encoding: chunked\r\n\r\n".encode(), *[b"1\r\n \r\n", 0.02] * ENDLESS
    ],
    "endless heads": lambda _: [
        b"HTTP/1.1 200 OK\r\n", *[b"a: " + b"b" * 4_000 + b"\r\n", 0.01] * ENDLESS
    ],
    "endless lines": lambda _: [b"HTTP/1.1 200 " + b"O" * 4_000, *[b"O" * 4_000, 0.01] * ENDLESS],
    "endless interim answers": lambda _: [b"HTTP/1.1 100 Continue\r\n\r\n", 0.01] * ENDLESS,
    "endless bytes": lambda _: [b"\0" * 4_000, 0.01] * ENDLESS,
    "drop by drop": _dripping,
    "silence": lambda _: [30.0],
    "silence after the head": lambda _: [f"{_OK}\r\nContent-Length: 50\r\n\r\n".encode(), 30.0],
    "a line without a colon": _headed(f"{_OK}\r\nwhat\r\nContent-Length: 5"),
    "a head with NUL": _headed(f"{_OK}\r\na: \0\r\nContent-Length: 5"),
    "another version": _headed("HTTP/9.9 200 OK\r\nContent-Length: 5"),
    "no head": lambda honest: json.dumps(honest).encode(),
    "no status": _headed("HTTP/1.1\r\nContent-Length: 5"),
    "a status of letters": _headed("HTTP/1.1 abc OK\r\nContent-Length: 5"),
    "half a line": _raw(b"HTTP/1.1 20"),
    "another protocol": _raw(b"SSH-2.0-x\r\n"),
    "TLS": _raw(b"\x15\x03\x01\x00\x02\x02\x46"),
    "HTTP/2": _raw(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00" + b"\0" * 18),
    "closed at once": _raw(b""),
}  # fmt: skip

SLOW = frozenset(
    {
        *("endless chunks", "endless heads", "endless lines", "endless interim answers"),
        *("endless bytes", "drop by drop", "silence", "silence after the head"),
    }
)
"""Those that end only because whoever asked waits no longer."""

ALL: Mapping[str, Hostile] = {**IDS, **RESULTS, **ERRORS, **TEXTS, **BATCHES, **HTTP}
