"""Requests that two HTTP readers could frame in two ways, as bytes, by class.

The ideas are those of the published work on HTTP desync, in our own words: RFC 9110 and 9112 say
which reading is right. Every request carries a second one, hidden where the right reading sees a
body or nothing at all; a reader that gets it wrong runs it.
"""

import itertools
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

OPERATOR = b"OPERATOR-OPERATOR-OPERATOR-OPERATOR-"
"""Stands for the sender's operator id, of the same length, so that declared lengths hold."""

TAG = b"TAG00000"
"""Stands for what names one sending of one request."""

PATH = b"/wrap/" + OPERATOR + b"/open/" + TAG
HIDDEN_NAME = "hidden-"
HIDDEN = b"/wrap/" + OPERATOR + b"/open/" + HIDDEN_NAME.encode() + TAG
STOLEN_BYTES = 300
"""How much of the next request on the connection a hidden one declares as its body."""

SECOND = b"GET " + HIDDEN + b" HTTP/1.1\r\nHost: x\r\n\r\n"
TAKES_BODY = (
    b"POST "
    + HIDDEN
    + b" HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n"
    % STOLEN_BYTES
)
TAKES_HEAD = b"GET " + HIDDEN + b" HTTP/1.1\r\nHost: x\r\nX-Taken: "
HIDDEN_REQUESTS = {"second": SECOND, "takes-body": TAKES_BODY, "takes-head": TAKES_HEAD}
"""By what the hidden request wants: to be answered, the next request as its body, or its head."""

Outcome = Literal["served", "refused", "either"]


@dataclass(frozen=True)
class Case:
    """One connection's bytes, and what RFC 9110, RFC 9112 and our own promises say of them.

    `pieces` are sent apart. `outcome` is that of the first request. `bodies` are the requests
    that may reach the upstream, in order: a service that serves the case passes on exactly these.
    `statuses`, where not empty, are the only right ones of a refusal. `closes`: the connection
    ends after the first answer.
    """

    group: str
    name: str
    pieces: tuple[bytes, ...]
    outcome: Outcome = "either"
    bodies: tuple[bytes, ...] = ()
    statuses: frozenset[int] = frozenset()
    closes: bool = False
    answers: int = 1

    def named(self, operator: bytes, tag: bytes) -> "Case":
        """The case for this sender, under this name; no length changes."""
        assert (len(operator), len(tag)) == (len(OPERATOR), len(TAG))

        def fill(data: bytes) -> bytes:
            return data.replace(OPERATOR, operator).replace(TAG, tag)

        whole = fill(b"".join(self.pieces))
        ends = list(itertools.accumulate(map(len, self.pieces)))
        pieces = tuple(whole[end - len(p) : end] for end, p in zip(ends, self.pieces, strict=True))
        return replace(self, pieces=pieces, bodies=tuple(fill(body) for body in self.bodies))


def head(*lines: bytes, start: bytes = b"POST " + PATH + b" HTTP/1.1", host: bytes = b"x") -> bytes:
    """A head whose lines end as they should."""
    return b"\r\n".join([start, b"Host: " + host, *lines, b"", b""])


def chunked(body: bytes) -> bytes:
    """The body as one chunk."""
    return (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + b"0\r\n\r\n"


def length(body: bytes) -> bytes:
    return b"Content-Length: %d" % len(body)


CHUNKED = b"Transfer-Encoding: chunked"


def apart(data: bytes, *, way: str) -> tuple[bytes, ...]:
    """The bytes in pieces: `whole`, `head` (then the body), `blank` (in the blank line), `drip`."""
    end = data.find(b"\r\n\r\n") + 4
    if way == "whole" or end < 4:
        return (data,)
    if way == "head":
        return tuple(piece for piece in (data[:end], data[end:]) if piece)
    if way == "blank":
        return data[: end - 2], data[end - 2 :]
    third = max(1, (len(data) - end) // 3)
    pieces = [data[:7], data[7:end]]
    pieces += [data[at : at + third] for at in range(end, len(data), third)]
    return tuple(pieces)


WAYS = ("whole", "head", "blank", "drip")


def _upgrades() -> Iterator[Case]:
    """Nothing is ever upgraded: the body belongs to the request, and the connection ends."""
    tokens = (
        *(b"h2c", b"websocket", b"WebSocket", b"anything", b"TLS/1.2"),
        *(b"HTTP/2.0", b"h2c, anything", b"", b"connect-udp"),
    )
    methods = (b"POST", b"GET", b"PUT", b"DELETE", b"HEAD", b"OPTIONS", b"PATCH", b"PROPFIND")
    naming = (b"Upgrade", b"upgrade", b"keep-alive, Upgrade", b"Upgrade, HTTP2-Settings", b"")
    everything = list(
        itertools.product(
            tokens, methods, naming, ("length", "chunked", "none"), HIDDEN_REQUESTS, WAYS
        )
    )
    chosen = random.Random(12).sample(everything, 170)
    chosen += [
        (token, method, b"Upgrade", framing, "takes-body", "head")
        for token in (b"h2c", b"websocket", b"anything")
        for method in (b"POST", b"GET", b"HEAD")
        for framing in ("length", "chunked")
    ]
    for one in dict.fromkeys(chosen):
        yield _upgrade(*one)
    yield from _large_upgrades()


def _upgrade(
    token: bytes, method: bytes, named: bytes, framing: str, hidden: str, way: str
) -> Case:
    body = HIDDEN_REQUESTS[hidden]
    lines = [b"Upgrade: " + token]
    lines += [b"Connection: " + named] if named else []
    lines += {"length": [length(body)], "chunked": [CHUNKED], "none": []}[framing]
    sent = chunked(body) if framing == "chunked" else body
    data = head(*lines, start=method + b" " + PATH + b" HTTP/1.1") + sent
    parts = (token.decode(), method.decode(), named.decode(), framing, hidden, way)
    case = Case("upgrade", "/".join(parts), apart(data, way=way), closes=True)
    if method == b"GET" and token.lower() == b"websocket" and named:
        return replace(case, group="websocket", outcome="refused", statuses=frozenset({400}))
    bodies = (b"" if framing == "none" else body,)
    return replace(case, outcome="served", bodies=bodies)


def _large_upgrades() -> Iterator[Case]:
    """The body does not fit into what a proxy sends together with the head."""
    for size, (name, hidden) in itertools.product((5_000, 40_000), HIDDEN_REQUESTS.items()):
        body = b"\r\n" * (size // 2) + hidden
        for framing, sent in ((length(body), body), (CHUNKED, chunked(body))):
            data = head(b"Upgrade: h2c", b"Connection: Upgrade", framing) + sent
            kind = "chunked" if framing is CHUNKED else "length"
            yield Case(
                *("upgrade", f"{size} bytes before/{name}/{kind}", apart(data, way="head")),
                outcome="served",
                bodies=(body,),
                closes=True,
            )


def _tunnels() -> Iterator[Case]:
    """No tunnel is opened, and what follows is nobody's request."""
    targets = (b"x:443", b"127.0.0.1:80", PATH, b"*", b"http://x" + PATH)
    for method, target in itertools.product((b"CONNECT", b"TRACE"), targets):
        for framing, (name, hidden) in itertools.product(
            ("length", "chunked", "none"), HIDDEN_REQUESTS.items()
        ):
            lines = {"length": [length(hidden)], "chunked": [CHUNKED], "none": []}[framing]
            sent = chunked(hidden) if framing == "chunked" else hidden
            data = head(*lines, start=method + b" " + target + b" HTTP/1.1") + sent
            right = target == (b"x:443" if method == b"CONNECT" else PATH)
            yield Case(
                "connect and trace",
                f"{method.decode()} {target.decode()}/{framing}/{name}",
                apart(data, way="head"),
                outcome="refused",
                statuses=frozenset({405} if right else {400, 404, 405}),
                closes=True,
            )


def _both(order: Sequence[bytes], name: str, hidden: bytes, kind: str) -> Case:
    body = b"0\r\n\r\n" + hidden if kind == "cl.te" else chunked(hidden)
    declared = len(body) if kind == "cl.te" else body.index(b"\r\n") + 2
    lines = [line.replace(b"LENGTH", b"%d" % declared) for line in order]
    return Case(kind, name, (head(*lines) + body,), outcome="refused")


def _lengths_and_codings() -> Iterator[Case]:
    """Two framings of one request, in every order and spelling that a reader might take."""
    spellings = (
        (b"Content-Length: LENGTH", b"Transfer-Encoding: chunked"),
        (b"Transfer-Encoding: chunked", b"Content-Length: LENGTH"),
        (b"content-length: LENGTH", b"transfer-encoding: chunked"),
        (b"Content-Length:LENGTH", b"Transfer-Encoding:chunked"),
        (b"Content-Length: LENGTH", b"Transfer-Encoding: Chunked"),
        (b"Content-Length: LENGTH", b"Transfer-Encoding: \tchunked\t"),
        (b"Content-Length: LENGTH", b"Transfer-Encoding: identity, chunked"),
        (b"Content-Length: LENGTH", b"Transfer-Encoding: gzip, chunked"),
        (b"Content-Length: LENGTH", b"X: y", b"Transfer-Encoding: chunked"),
        (b"Content-Length: LENGTH", b"Transfer-Encoding: xchunked"),
        (b"Content-Length: LENGTH", b"Transfer-Encoding : chunked"),
        (b"Content-Length: LENGTH", b"Transfer-Encoding: identity"),
        (b"Content-Length: LENGTH", b"Transfer-Encoding:"),
        (b"Content-Length: LENGTH", b"Transfer-Encoding: chunked, identity"),
        (b"Content-Length: LENGTH", b"Transfer-Encoding: chunked", b"Connection: Content-Length"),
        (
            b"Content-Length: LENGTH",
            b"Transfer-Encoding: chunked",
            b"Connection: Transfer-Encoding",
        ),
        (b"Content-Length: LENGTH", b"Content-Length: 0", b"Transfer-Encoding: chunked"),
    )
    for number, order in enumerate(spellings):
        for kind, (name, hidden) in itertools.product(
            ("cl.te", "te.cl"), list(HIDDEN_REQUESTS.items())
        ):
            yield _both(order, f"{number} {order[-1].decode()}/{name}", hidden, kind)


_CODINGS = (
    (b"xchunked", b"chunke", b"chunkedx", b"chunk", b"cow", b"identity", b"gzip", b"", b"x"),
    (b"chunked, identity", b"chunked, gzip", b"chunked, chunked", b"identity, chunked"),
    (b"gzip, chunked", b"deflate,chunked", b"chunked;x=y", b"chunked x", b'"chunked"'),
    (b"'chunked'", b"chunked\x0b", b"\x0bchunked", b"\x0cchunked", b"chunked\x00", b"\x00chunked"),
    (
        b"chunked\xa0",
        b"\xa0chunked",
        b"chunked,",
        b",chunked",
        b"chunk\xe9d",
        b"\xef\xbb\xbfchunked",
    ),
    (
        b"chunked\r",
        b"\rchunked",
        b"chun\x00ked",
        b"chunked\x7f",
        b"ch\xc5\xabnked",
        b"0",
        b"chunked\x1a",
    ),
)


def _codings() -> Iterator[Case]:
    """A coding that one reader takes for chunked and another does not."""
    body = chunked(SECOND)
    for value in itertools.chain.from_iterable(_CODINGS):
        shown = ascii(value)[2:-1]
        data = head(b"Transfer-Encoding: " + value) + body
        outcome: Outcome = "either" if value in {b"chunked,", b",chunked"} else "refused"
        yield Case("te.te", f"value {shown}", (data,), outcome, (SECOND,))
    for name in (
        *(
            b"Transfer-Encoding ",
            b"Transfer-Encoding\t",
            b" Transfer-Encoding",
            b"\tTransfer-Encoding",
        ),
        *(
            b"Transfer-Encoding\x00",
            b"Transfer-Encoding\x0b",
            b"Transfer-Encoding\r",
            b"Transfer\rEncoding",
        ),
        *(
            b"Transfer Encoding",
            b"Transfer-Encoding\xa0",
            b"\x00Transfer-Encoding",
            b"\x7fTransfer-Encoding",
        ),
        *(b"(Transfer-Encoding", b"Transfer-Encoding;", b'"Transfer-Encoding"'),
    ):
        yield Case(
            "te.te", f"name {ascii(name)[2:-1]}", (head(name + b": chunked") + body,), "refused"
        )
    for lines in (
        (CHUNKED, CHUNKED),
        (CHUNKED, b"Transfer-Encoding: identity"),
        (b"Transfer-Encoding: identity", CHUNKED),
        (CHUNKED, b"Transfer-Encoding: x"),
        (CHUNKED, b"Transfer-Encoding:"),
        (b"Transfer-Encoding:", CHUNKED),
        (b"Transfer-Encoding: gzip", CHUNKED),
    ):
        yield Case("te.te", f"twice {lines[0]!r} {lines[1]!r}", (head(*lines) + body,), "refused")
    for value in (b"Chunked", b"CHUNKED", b"chunked ", b" chunked", b"\tchunked", b"chunked\t"):
        outcome = "either" if b"\t" in value else "served"  # nginx takes no tab there
        data = head(b"Transfer-Encoding:" + value) + body
        yield Case("te.te", f"plain {ascii(value)[2:-1]}", (data,), outcome, (SECOND,))
    for name, wrong in ((b"Transfer_Encoding", b""), (b"X-Transfer-Encoding", b"")):
        data = head(name + b": chunked", b"Content-Length: 0", start=b"POST " + PATH + b" HTTP/1.1")
        yield Case("te.te", f"other {name.decode()}", (data + wrong,), "served", (b"",))


def _ignored_bodies() -> Iterator[Case]:
    """An answer before the body, or by a route that wants none: the body is still a body."""
    root = b"/wrap/" + OPERATOR
    targets = (
        *(b"/operator/health", b"/api/health", b"/api", b"/.well-known/jwks.json", b"/docs"),
        *(b"/openapi.json", b"/", b"/nothing-here", b"/operator/me", b"/operator/keys"),
        *(root + b"/nothing/" + TAG, root + b"/paid/" + TAG, root + b"/trusted/" + TAG),
        *(root + b"/small/" + TAG, b"/operator/health/", b"/docs/", b"//", b"/wrap/x/y"),
    )
    for target, method in itertools.product(targets, (b"GET", b"POST", b"HEAD", b"OPTIONS")):
        hidden = HIDDEN_REQUESTS["takes-body" if method == b"GET" else "second"]
        sent = b"x" * 200 + b"\r\n" * 20 + hidden if b"small" in target else hidden
        start = method + b" " + target + b" HTTP/1.1"
        for framing in ("length", "chunked"):
            line = length(sent) if framing == "length" else CHUNKED
            body = sent if framing == "length" else chunked(sent)
            way = "head" if method in {b"GET", b"POST"} else "whole"
            shown = target.replace(OPERATOR, b"").decode()
            name = f"{method.decode()} {shown}/{framing}/{way}"
            data = head(line, start=start) + body
            yield Case("cl.0 and early answers", name, apart(data, way=way))


def _hidden_lengths() -> Iterator[Case]:
    """A length that a lenient reader sees and a strict one does not."""
    for name in (
        *(b"Content-Length ", b"Content-Length\t", b" Content-Length", b"\tContent-Length"),
        *(b"Content-Length\x00", b"Content-Length\x0b", b"Content Length", b"\x00Content-Length"),
        *(b"Content-Length\r", b"Content-Length\xa0", b"(Content-Length", b"Content-Length;"),
    ):
        for method in (b"GET", b"POST"):
            line = name + b": %d" % len(SECOND)
            data = head(line, start=method + b" " + PATH + b" HTTP/1.1") + SECOND
            yield Case("0.cl", f"{method.decode()} {ascii(name)[2:-1]}", (data,), "refused")
    for name in (b"Content_Length", b"X-Content-Length", b"Content-Lengths"):
        line = name + b": %d" % len(SECOND)
        data = head(line, b"Connection: close", start=b"GET " + PATH + b" HTTP/1.1")
        yield Case("0.cl", f"other {name.decode()}", (data,), "served", (b"",), closes=True)


def _lengths() -> Iterator[Case]:
    """Content-Length is decimal digits, once."""
    size = len(SECOND)
    digits = b"%d" % size
    wrong = (
        *(b"+" + digits, b"-" + digits, b"0x%x" % size, digits + b".0", digits + b"e0"),
        *(b"", b" ", digits + b",", b"," + digits, digits + b" " + digits, digits + b";"),
        *(b"-0", b"+0", b"0x0", digits + b"\x00", b"\x00" + digits, digits + b"\x0b"),
        *(digits[:1] + b" " + digits[1:], digits[:1] + b"_" + digits[1:], b'"' + digits + b'"'),
        *(b"%d" % (2**64 + size), b"%d" % (2**63), b"9" * 20, b"9" * 300, b"chunked", b"x"),
        *(
            "\u0665\u0665".encode(),
            b"\xb2",
            "\uff15".encode(),
            digits + b"\xa0",
            b"%d" % -(2**64 - size),
        ),
        *(digits + b", %d" % (size - 1), b"0, " + digits, digits + b", 0", digits + b"\r"),
    )
    for value in wrong:
        line = b"Content-Length: " + value
        shown = ascii(value)[2:-1]
        shown = shown if len(shown) < 40 else f"{len(value)} digits"
        yield Case("length value", shown, (head(line) + SECOND,), "refused")
    for value in (
        *(digits + b" ", digits + b"\t", b" " + digits, b"\t" + digits, b"\t " + digits + b" \t"),
        *(b"0" + digits, b"000000" + digits, digits + b"   "),
    ):
        for way in ("whole", "head"):
            data = head(b"Content-Length:" + value) + SECOND
            name = f"{ascii(value)[2:-1]}/{way}"
            outcome: Outcome = "either" if b"\t" in value else "served"  # nginx takes no tab there
            yield Case("length value", name, apart(data, way=way), outcome, (SECOND,))
    for values in (
        (digits, b"0"),
        (b"0", digits),
        (digits, b"%d" % (size + 1)),
        (digits, b"x"),
        (digits, b""),
        (b"", digits),
        (digits, b"+" + digits),
    ):
        lines = [b"Content-Length: " + value for value in values]
        yield Case("length twice", f"{values}", (head(*lines) + SECOND,), "refused")
    same = (
        head(length(SECOND), length(SECOND)),
        head(b"Content-Length: %b, %b" % (digits, digits)),
    )
    for number, one in enumerate(same):
        yield Case("length twice", f"equal {number}", (one + SECOND,), "either", (SECOND,))


def _folds() -> Iterator[Case]:
    """A line that goes on in the next is refused (RFC 9112, section 5.2)."""
    for number, lines in enumerate(
        (
            (b"X: y\r\n Transfer-Encoding: chunked",),
            (b"X: y\r\n\tTransfer-Encoding: chunked",),
            (b"Transfer-Encoding:\r\n chunked",),
            (b"Transfer-Encoding:\r\n\tchunked",),
            (b"Transfer-Encoding: x,\r\n chunked",),
            (b"Transfer-Encoding: chunked\r\n ",),
            (b"Transfer-Encoding: chunked\r\n , identity",),
            (b"Content-Length:\r\n 0",),
            (b"Content-Length: 1\r\n 0",),
            (b"Content-Length: %d\r\n\t" % len(SECOND),),
            (b"X: y\r\n Content-Length: 0",),
            (b"X:\r\n \r\n y",),
            (b"X: y\r\n\r Content-Length: 0",),
            (b"Connection: close\r\n , Upgrade", b"Upgrade: h2c"),
        )
    ):
        yield Case("folded line", f"{number}", (head(*lines) + chunked(SECOND),), "refused")
    start = b"POST " + PATH + b" HTTP/1.1\r\n"
    for number, first in enumerate((b" X: y\r\n", b"\tX: y\r\n", b" \r\n", b" Host: x\r\n")):
        data = start + first + b"Host: x\r\n" + length(SECOND) + b"\r\n\r\n" + SECOND
        yield Case("folded line", f"first {number}", (data,), "refused")
    yield Case(
        "folded line",
        "host",
        (start + b"Host: x\r\n y\r\n" + length(SECOND) + b"\r\n\r\n" + SECOND,),
        "refused",
    )


def _line_ends() -> Iterator[Case]:
    """Only CR LF ends a line; no other control character is part of one."""
    plain = head(length(SECOND)) + SECOND
    end = plain.index(b"\r\n\r\n") + 4
    top, body = plain[:end], plain[end:]
    changes: dict[str, bytes] = {
        "LF only": top.replace(b"\r\n", b"\n"),
        "LF after the request line": top.replace(b"\r\n", b"\n", 1),
        "LF after the last line": top[:-4] + b"\n\r\n",
        "LF as the blank line": top[:-2] + b"\n",
        "CR only": top.replace(b"\r\n", b"\r"),
        "CR after the request line": top.replace(b"\r\n", b"\r", 1),
        "CR CR LF": top.replace(b"\r\n", b"\r\r\n", 1),
        "CR CR LF blank": top[:-2] + b"\r\r\n",
        "LF CR": top.replace(b"\r\n", b"\n\r", 1),
        "LF before a line": top.replace(b"Content", b"\nContent"),
        "CR before a line": top.replace(b"Content", b"\rContent"),
        "LF in a value": top.replace(b"Host: x", b"Host: x\r\nX: a\nTransfer-Encoding: chunked"),
        "CR in a value": top.replace(b"Host: x", b"Host: x\r\nX: a\rTransfer-Encoding: chunked"),
        "VT": top.replace(b"Host: x", b"Host: x\r\nX: a\x0bb"),
        "FF": top.replace(b"Host: x", b"Host: x\r\nX: a\x0cb"),
        "DEL": top.replace(b"Host: x", b"Host: x\r\nX: a\x7fb"),
        "NUL in a value": top.replace(b"Host: x", b"Host: x\r\nX: a\x00b"),
        "NUL in a name": top.replace(b"Host: x", b"Host: x\r\nX\x00: a"),
        "NUL in the target": top.replace(TAG, TAG + b"\x00", 1),
        "NUL in the method": top.replace(b"POST", b"PO\x00ST", 1),
        "NUL before": b"\x00" + top,
        "NEL": top.replace(b"Host: x", b"Host: x\x85X: y"),
        "a space before": b" " + top,
        "a byte order mark before": b"\xef\xbb\xbf" + top,
        "LF LF in the head": top.replace(b"\r\nContent", b"\n\nContent"),
        "CR LF CR in the head": top.replace(b"\r\nContent", b"\r\n\rContent"),
    }
    for name, changed in changes.items():
        yield Case("line ends", name, (changed + body,), "refused")
    for count in (1, 2):
        yield Case(
            "line ends",
            f"{count} empty lines before",
            (b"\r\n" * count + plain,),
            "either",
            (SECOND,),
        )


def _chunk_sizes() -> Iterator[Case]:
    """A chunk's size is hex digits; nothing else ends it than CR LF or an extension."""
    size, start = len(SECOND), head(CHUNKED)
    hexed = b"%x" % size
    wrong = (
        *(b"0x" + hexed, b"+" + hexed, b"-" + hexed, b" " + hexed, b"\t" + hexed, hexed + b"g"),
        *(b"", b"\r\n" + hexed, b"f" * 16, b"f" * 17),
        *(b"1" + b"0" * 15 + hexed, b"1" + b"0" * 16 + hexed),
        *(b"1" + b"0" * 7 + hexed, hexed + b"_0", hexed + b".", hexed + b",1", hexed + b"\x00"),
        *(hexed + b"\r", b"\x00" + hexed, hexed + b"\x0b"),
        *(b"chunk", b'"' + hexed + b'"', hexed + b"h"),
        *(hexed + b" 1", b"g", b"0" * 300 + hexed, b"-1"),
        *(b"\xef\xbc\x95", hexed[:1] + b" " + hexed[1:]),
    )  # fmt: skip
    for value in wrong:
        data = start + value + b"\r\n" + SECOND + b"\r\n0\r\n\r\n"
        shown = ascii(value)[2:-1]
        shown = shown if len(shown) < 40 else f"{len(value)} digits"
        outcome: Outcome = "either" if value == b"0" * 300 + hexed else "refused"
        yield Case("chunk size", shown, (data,), outcome, (SECOND,))
    for value in (hexed.upper(), b"0" + hexed, b"0000" + hexed):
        data = start + value + b"\r\n" + SECOND + b"\r\n0\r\n\r\n"
        yield Case("chunk size", f"plain {value.decode()}", (data,), "served", (SECOND,))
    for value in (hexed + b" ", hexed + b"\t", hexed + b"  "):
        data = start + value + b"\r\n" + SECOND + b"\r\n0\r\n\r\n"
        yield Case("chunk size", f"space {ascii(value)[2:-1]}", (data,), "either", (SECOND,))
    yield from _chunk_ends(start, hexed)


def _chunk_ends(start: bytes, hexed: bytes) -> Iterator[Case]:
    ends = {
        "LF after the size": hexed + b"\n" + SECOND + b"\r\n0\r\n\r\n",
        "CR after the size": hexed + b"\r" + SECOND + b"\r\n0\r\n\r\n",
        "CR x after the size": hexed + b"\rx" + SECOND + b"\r\n0\r\n\r\n",
        "LF after the data": hexed + b"\r\n" + SECOND + b"\n0\r\n\r\n",
        "CR after the data": hexed + b"\r\n" + SECOND + b"\r0\r\n\r\n",
        "nothing after the data": hexed + b"\r\n" + SECOND + b"0\r\n\r\n",
        "two bytes after the data": hexed + b"\r\n" + SECOND + b"xx0\r\n\r\n",
        "more data than said": b"5\r\n" + b"x" * 9 + b"\r\n0\r\n\r\n",
        "LF after the last size": b"0\n\r\n" + SECOND,
        "LF LF at the end": b"0\n\n" + SECOND,
        "CR at the end": b"0\r\n\r" + SECOND,
        "LF as the last line": b"0\r\n\n" + SECOND,
        "x after the last size": b"0x\r\n\r\n" + SECOND,
        "minus zero": b"-0\r\n\r\n" + SECOND,
        "an empty size": b"\r\n\r\n" + SECOND,
        "a negative size": b"-5\r\n\r\n" + SECOND,
    }
    for name, data in ends.items():
        yield Case("chunk ends", name, (start + data,), "refused")
    for name, last in (("000", b"000\r\n\r\n"), ("0", b"0\r\n\r\n")):
        data = start + hexed + b"\r\n" + SECOND + b"\r\n" + last
        yield Case("chunk ends", f"last {name}", (data,), "served", (SECOND,))
    body = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    tiny = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    yield Case("chunk ends", "one byte each", (start + tiny,), "served", (body,))
    cut = start + hexed + b"\r\n" + SECOND
    for at in (len(start) + 1, len(start) + len(hexed) + 1, len(cut) - 3, len(cut) + 1):
        whole = cut + b"\r\n0\r\n\r\n"
        yield Case("chunk ends", f"cut at {at}", (whole[:at], whole[at:]), "served", (SECOND,))


def _extensions() -> Iterator[Case]:
    """Chunk extensions are passed over, and none of their bytes is a line end."""
    hexed, start = b"%x" % len(SECOND), head(CHUNKED)
    kept = (b";a", b";a=b", b';a="b"', b";a=b;c=d", b";" + b"a" * 100, b';a="b;c"')
    loose = (b" ;a=b", b"; a=b", b";", b";;", b";a=", b";=b", b'; a = "b"', b"\t;a")
    wrong = (
        *(b";a\n", b";a\r", b";\n", b";a\x00", b';a="\r\n"', b";a=b\nGET / HTTP/1.1", b";a\rb"),
        *(b";\r\r", b"a;b", b",a=b", b"/a", b"=a", b";a=\x7f", b";a\x01b"),
    )
    for values, outcome in ((kept, "served"), (loose, "either"), (wrong, "refused")):
        for value in values:
            data = start + hexed + value + b"\r\n" + SECOND + b"\r\n0\r\n\r\n"
            shown = ascii(value)[2:42]
            yield Case("chunk extensions", shown, (data,), outcome, (SECOND,))  # type: ignore[arg-type]
    last = start + hexed + b"\r\n" + SECOND + b"\r\n0;a=b\r\n\r\n"
    yield Case("chunk extensions", "of the last chunk", (last,), "served", (SECOND,))


def _trailers() -> Iterator[Case]:
    """Trailers are dropped, whatever they are named."""
    start = head(CHUNKED) + chunked(SECOND)[:-2]
    kept = (
        *(b"X: y", b"Content-Length: 5", b"Transfer-Encoding: chunked", b"Host: other"),
        b"Content-Length: 0\r\nTransfer-Encoding: identity",
        *(b"Connection: close", b"X: y\r\nZ: w"),
        *(b"Authorization: Bearer x", b"X-Forwarded-For: 6.6.6.6", b"Upgrade: h2c"),
    )  # fmt: skip
    for value in kept:
        data = start + value + b"\r\n\r\n"
        yield Case("trailers", ascii(value)[2:-1], (data,), "either", (SECOND,))
    wrong = (
        *(b"X: y\r\n z", b"X : y", b" X: y", b"X\x00: y", b"X: \x00", b"X: a\nContent-Length: 0"),
        *(b"no colon", b"X: a\rb", b": y", b"GET / HTTP/1.1", b"X: y\n", b"\nX: y"),
    )
    for value in wrong:
        data = start + value + b"\r\n\r\n" + SECOND
        yield Case("trailers", f"wrong {ascii(value)[2:-1]}", (data,), "refused")
    data = start + b"X: y\r\n\r\n"
    for at in (len(start) - 2, len(start) + 1, len(data) - 3, len(data) - 1):
        yield Case("trailers", f"cut at {at}", (data[:at], data[at:]), "either", (SECOND,))


def _targets() -> Iterator[Case]:
    """The target is a path, or an address of this host."""
    wrong = (
        *(b"", b" ", PATH + b" x", PATH + b"\tx", PATH + b"\x0b", b"\t" + PATH, PATH + b"\x7f"),
        *(PATH + b"\xe9", PATH + "ü".encode(), b"*", b"x:80", b"wrap/x", b"\\wrap", PATH + b"#a"),
        *(b"http://", b"http:///" + PATH[1:], b"http:/" + PATH, b"http://a b" + PATH, b"x"),
        *(b"ftp://x" + PATH, b"http://x:y" + PATH, b"http://u@x" + PATH, b"http://x\\y" + PATH),
        b"//x" + PATH + b" HTTP/1.1\r\nX: y\r\n\r\nGET " + PATH,
        *(b"?" + PATH, b"http://[::1" + PATH),
    )  # fmt: skip
    open_to_taste = {
        *(PATH + b"#a", b"http://u@x" + PATH, b"*", b"x:80", b"ftp://x" + PATH),
        *(PATH + b"\xe9", PATH + "ü".encode()),
    }
    for target in wrong:
        start = b"POST " + target + b" HTTP/1.1"
        outcome: Outcome = (
            "either" if target in open_to_taste or b"HTTP/1.1" in target else "refused"
        )
        shown = ascii(target.replace(OPERATOR, b""))[2:-1]
        data = head(length(SECOND), start=start) + SECOND
        yield Case("target", shown, (data,), outcome, (SECOND,))
    for target, host in (
        (b"http://x" + PATH, b"x"),
        (b"HTTP://x" + PATH, b"x"),
        (b"http://x:80" + PATH, b"x:80"),
        (b"https://x" + PATH, b"x"),
        (b"http://other" + PATH, b"x"),
        (b"http://x" + PATH, b""),
        (b"http://x", b"x"),
    ):
        start = b"POST " + target + b" HTTP/1.1"
        shown = f"{target.replace(OPERATOR, b'').decode()} for {host.decode()}"
        data = head(length(SECOND), start=start, host=host) + SECOND
        yield Case("absolute form", shown, (data,), "either", (SECOND,))
    data = b"POST http://x" + PATH + b" HTTP/1.1\r\n" + length(SECOND) + b"\r\n\r\n" + SECOND
    yield Case("absolute form", "without Host", (data,), "refused")


def _hosts() -> Iterator[Case]:
    """Exactly one Host, which is a host and perhaps a port (RFC 9112, section 3.2)."""
    start = b"POST " + PATH + b" HTTP/1.1\r\n"
    rest = length(SECOND) + b"\r\n\r\n" + SECOND
    wrong = (
        *(b"", b"Host: x\r\nHost: x\r\n", b"Host: x\r\nHost: y\r\n", b"Host: x, y\r\n"),
        *(b"Host : x\r\n", b" Host: x\r\n", b"Host: x y\r\n", b"Host: u@x\r\n", b"Host: x/y\r\n"),
        *(b"Host: x:99999999\r\n", b"Host: x:y\r\n", b"Host: x\\y\r\n", b"Host: x?y\r\n"),
        *(b"Host: x#y\r\n", b"Host: [::1\r\n", b"Host: x\x00y\r\n"),
        *(b"Host: <x>\r\n", b"Host: x\ty\r\n"),
        *(b"Host: x\r\nhost: y\r\n", b"Host: x:80:80\r\n", b"Host: x:-1\r\n", b'Host: "x"\r\n'),
    )  # fmt: skip
    for lines in wrong:
        shown = ascii(lines)[2:-1]
        yield Case("host", shown or "none", (start + lines + rest,), "refused")
    for host in (b"x", b"x:80", b"X.Y-z:8080", b"127.0.0.1", b"[::1]", b"[::1]:80", b"x_y", b"x."):
        data = start + b"Host: " + host + b"\r\n" + rest
        yield Case("host", f"plain {host.decode()}", (data,), "served", (SECOND,))
    yield Case("host", "empty", (start + b"Host:\r\n" + rest,), "either", (SECOND,))


def _versions() -> Iterator[Case]:
    """HTTP/1.0 and HTTP/1.1, and no other word after the target."""
    wrong = (
        *(b"HTTP/2.0", b"HTTP/0.9", b"HTTP/1.2", b"HTTP/1.10", b"HTTP/01.1", b"HTTP/1", b"HTTP/1."),
        *(b"http/1.1", b"HTTP/1.1 ", b"HTTP/1.1\t", b" HTTP/1.1", b"HTTP /1.1", b"HTTP/ 1.1"),
        *(b"RTSP/1.0", b"ICE/1.0", b"HTTPS/1.1", b"HTTP/1,1", b"HTTP/-1.1", b"HTTP/3", b"XTTP/1.1"),
        *(b"HTTP/1.1 x", b"HTTP/1.1x", b"HTTP/9.9", b"HTTP/2"),
        *(b"HTTP\\1.1", b"SIP/2.0", b"HTTP/1.0.1"),
    )  # fmt: skip
    for version in wrong:
        data = head(length(SECOND), start=b"POST " + PATH + b" " + version) + SECOND
        yield Case("version", ascii(version)[2:-1], (data,), "refused")
    for line in (b"GET " + PATH, b"GET " + PATH + b" ", b"GET", b"GET " + PATH + b" HTTP/"):
        shown = ascii(line.replace(OPERATOR, b""))[2:-1]
        yield Case("version", f"none {shown}", (line + b"\r\n\r\n" + SECOND,), "refused")
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    yield Case("version", "HTTP/2 preface", (preface + SECOND,), "refused")


def _old_version() -> Iterator[Case]:
    start = b"POST " + PATH + b" HTTP/1.0"
    get = b"GET " + PATH + b" HTTP/1.0"
    yield Case(
        "http/1.0",
        "closes",
        (head(length(SECOND), start=start) + SECOND,),
        "served",
        (SECOND,),
        closes=True,
    )
    data = head(b"Connection: keep-alive", length(SECOND), start=start) + SECOND
    yield Case("http/1.0", "keep-alive", (data,), "served", (SECOND,))
    yield Case(
        "http/1.0",
        "without Host",
        (get + b"\r\n\r\n",),
        "either",
        (b"",),
        closes=True,
    )
    for name, lines in (("chunked", ()), ("chunked kept", (b"Connection: keep-alive",))):
        data = head(CHUNKED, *lines, start=start) + chunked(SECOND)
        yield Case("http/1.0", name, (data,), "either", (SECOND,), closes=True)
    data = head(CHUNKED, length(SECOND), start=start) + chunked(SECOND)
    yield Case("http/1.0", "chunked and length", (data,), "refused")
    data = head(start=get) + SECOND
    yield Case("http/1.0", "a second request", (data,), "served", (b"",), closes=True)
    data = head(b"Upgrade: h2c", b"Connection: Upgrade", length(SECOND), start=start) + SECOND
    yield Case("http/1.0", "upgrade", apart(data, way="head"), "served", (SECOND,), closes=True)


def _expectations() -> Iterator[Case]:
    """Whoever waits for `100 Continue` and whoever does not: the body is one."""
    for value, way in itertools.product(
        (b"100-continue", b"100-Continue", b"100-continue ", b"\t100-continue"), ("whole", "head")
    ):
        data = head(b"Expect:" + value, length(SECOND)) + SECOND
        name = f"{ascii(value)[2:-1]}/{way}"
        yield Case("expect", name, apart(data, way=way), "served", (SECOND,))
        data = head(b"Expect:" + value, CHUNKED) + chunked(SECOND)
        yield Case("expect", f"{name}/chunked", apart(data, way=way), "served", (SECOND,))
    for value in (
        *(b"y 100-continue", b"100-continue, x", b"200-ok", b"", b"100-continu", b"x=100-continue"),
        *(b"100-continue\r\nExpect: 100-continue", b"100-continue;q=1"),
    ):
        for method in (b"GET", b"POST"):
            start = method + b" " + PATH + b" HTTP/1.1"
            data = head(b"Expect: " + value, length(SECOND), start=start) + SECOND
            name = f"{method.decode()} {ascii(value)[2:-1]}"
            yield Case("expect", name, apart(data, way="head"), "either", (SECOND,))
    for lines in ((b"Content-Length: 0",), ()):
        data = head(b"Expect: 100-continue", *lines, start=b"GET " + PATH + b" HTTP/1.1")
        yield Case("expect", f"no body {len(lines)}", (data,), "either", (b"",))
    for target in (b"/paid/", b"/trusted/", b"/nothing/"):
        start = b"POST /wrap/" + OPERATOR + target + TAG + b" HTTP/1.1"
        data = head(b"Expect: 100-continue", length(TAKES_BODY), start=start) + TAKES_BODY
        yield Case("expect", f"early answer {target.decode()}", apart(data, way="head"))


def _pipelines() -> Iterator[Case]:
    """Requests sent ahead are answered in their order."""
    for count, framing in itertools.product((2, 5, 20), ("none", "length", "chunked", "mixed")):
        requests: list[bytes] = []
        bodies: list[bytes] = []
        for number in range(count):
            kind = ("none", "length", "chunked")[number % 3] if framing == "mixed" else framing
            body = b"" if kind == "none" else b"body %d" % number
            lines = {"none": [], "length": [length(body)], "chunked": [CHUNKED]}[kind]
            method = b"GET" if kind == "none" else b"POST"
            start = method + b" " + PATH + b"?n=%d HTTP/1.1" % number
            requests.append(
                head(*lines, start=start) + (chunked(body) if kind == "chunked" else body)
            )
            bodies.append(body)
        data = b"".join(requests)
        for pieces, name in (((data,), "whole"), ((data[:100], data[100:]), "cut")):
            yield Case(
                *("pipelining", f"{count} {framing}/{name}", pieces, "served", tuple(bodies)),
                answers=count,
            )
    data = head(b"Connection: close", start=b"GET " + PATH + b" HTTP/1.1") + SECOND
    yield Case("pipelining", "after close", (data,), "served", (b"",), closes=True)
    for blank in (b"\r\n", b"\r\n\r\n"):
        data = head(length(b"a")) + b"a" + blank + head(start=b"GET " + PATH + b" HTTP/1.1")
        yield Case("pipelining", f"{len(blank)} between", (data,), "either", (b"a", b""), answers=2)
    data = head(length(b"a")) + b"abc"
    yield Case("pipelining", "more than declared", (data,), "either", (b"a",))


def _methods() -> Iterator[Case]:
    """Any token of up to 24 bytes is a method, and nothing else is."""
    for method in (
        *(
            b"get",
            b"M-SEARCH",
            b"PROPFIND",
            b"X",
            b"a" * 24,
            b"!#$%&'*+-.^_`|~",
            b"POSTS",
            b"QUERY",
        ),
        *(b"PURGE", b"REPORT", b"LINK", b"DESCRIBE", b"BREW", b"Get", b"0", b"GET-POST"),
    ):
        start = method + b" " + PATH + b" HTTP/1.1"
        data = head(length(SECOND), start=start) + SECOND
        yield Case("method", method.decode(), (data,), "served", (SECOND,))
    for method in (
        *(
            b"a" * 25,
            b"a" * 5000,
            b"",
            b"GE T",
            b"GET\t",
            b"GET ",
            b"(GET)",
            b"G\xc3\x89T",
            b"GET:",
        ),
        *(
            b"GET/",
            b'"GET"',
            b"GET\x00",
            b"GE\rT",
            b"GET,POST",
            b"GET@",
            b"{GET}",
            b"[GET]",
            b"G=T",
        ),
    ):
        start = method + b" " + PATH + b" HTTP/1.1"
        data = head(length(SECOND), start=start) + SECOND
        yield Case("method", f"wrong {ascii(method)[2:30]} {len(method)}", (data,), "refused")


def _names() -> Iterator[Case]:
    """A header's name is a token, directly before its colon."""
    for line in (
        *(b": y", b"no colon", b"X : y", b"X\t: y", b"X Y: z", b"X\x0b: y", b"\xffX: y", b"X(: y"),
        *(b"X,: y", b"X/: y", b"X;: y", b"X[: y", b"X=: y", b'"X": y', b"X@: y", b"X\xa0: y"),
        *(b"=: y", b"X\\: y", b"X{: y", b"GET / HTTP/1.1"),
    ):
        data = head(line, length(SECOND)) + SECOND
        yield Case("header name", ascii(line)[2:-1], (data,), "refused")
    for line in (
        *(
            b"X_Y: z",
            b"x: y",
            b"!#$%&'*+-.^_`|~: y",
            b"X:y",
            b"X:",
            b"X:\t y \t",
            b"X: \xe9",
            b"0: 1",
        ),
        *(b"X: :", b"X:: y", b"X" * 300 + b": y"),
    ):
        data = head(line, length(SECOND)) + SECOND
        yield Case("header name", f"plain {ascii(line)[2:40]}", (data,), "served", (SECOND,))


def _connections() -> Iterator[Case]:
    """What `Connection` names is dropped for the upstream and changes no framing."""
    for named in (
        *(
            b"Content-Length",
            b"Transfer-Encoding",
            b"Host",
            b"close, Content-Length",
            b"X-Forwarded-For",
        ),
        *(
            b"Authorization",
            b"X-Proxy-Request",
            b"keep-alive, close",
            b"Keep-Alive",
            b"TE",
            b"Cookie",
        ),
        *(b"Expect", b",,", b"Upgrade", b"Connection", b"Trailer", b"Content-Type", b"x" * 200),
    ):
        for framing in ("length", "chunked"):
            line = length(SECOND) if framing == "length" else CHUNKED
            body = SECOND if framing == "length" else chunked(SECOND)
            data = head(b"Connection: " + named, line) + body
            name = f"{named[:30].decode()}/{framing}"
            yield Case("connection", name, apart(data, way="head"), "served", (SECOND,))


HEAD_BYTES = 64 * 1024
UNREAD = "unread body"
"""The group behind which the next request has to be answered at once."""


def sized(size: int, *, way: str) -> bytes:
    """A GET whose head has exactly that many bytes: in one line, in many, or in the target."""
    start = b"GET " + PATH + b" HTTP/1.1\r\nHost: x\r\n"
    if way == "target":
        missing = size - len(start) - 2
        return start.replace(TAG, TAG + b"?" + b"a" * (missing - 1), 1) + b"\r\n"
    lines, missing = b"", size - len(start) - 2
    while missing > (4000 if way == "many lines" else size):
        lines += b"X-Large: " + b"a" * 1900 + b"\r\n"
        missing -= 1911
    return start + lines + b"X-Large: " + b"a" * (missing - 11) + b"\r\n\r\n"


def _large_heads() -> Iterator[Case]:
    """The bound on a head is exact: that many bytes are taken, one more is not."""
    for way, size in itertools.product(("one line", "many lines"), (30_000, HEAD_BYTES)):
        data = sized(size, way=way)
        yield Case("large head", f"{size} {way}", (data,), "served", (b"",))
        yield Case(
            *("large head", f"{size} {way} apart", (data[:9000], data[9000:]), "served", (b"",))
        )
    for way, more in itertools.product(("one line", "many lines", "target"), (1, 2, 5000, 200_000)):
        data = sized(HEAD_BYTES + more, way=way)
        yield Case("large head", f"{more} too many {way}", (data + SECOND,), "refused")
    yield Case("large head", "target", (sized(30_000, way="target"),), "either", (b"",))


def _after_refusal() -> Iterator[Case]:
    """What follows a refused request on its connection is not read as another."""
    bad = {
        "a bad line": b"GET " + PATH + b" HTTP/9.9\r\nHost: x\r\n\r\n",
        "a bad header": head(b"X Y: z", start=b"GET " + PATH + b" HTTP/1.1"),
        "a bad length": head(b"Content-Length: x"),
        "a bad chunk": head(CHUNKED) + b"zz\r\n",
        "both framings": head(CHUNKED, b"Content-Length: 4"),
        "a bad trailer": head(CHUNKED) + b"0\r\nX Y: z\r\n\r\n",
    }
    for (name, first), (kind, hidden) in itertools.product(bad.items(), HIDDEN_REQUESTS.items()):
        for way in ("whole", "apart"):
            pieces = (first + hidden,) if way == "whole" else (first, hidden)
            yield Case("after a refusal", f"{name}/{kind}/{way}", pieces, "refused", closes=True)


def _unread_bodies() -> Iterator[Case]:
    """A body beyond the wrapper's limit, of which some stays where the proxy has written it.

    What the proxy sends next on that connection would wait behind it.
    """
    body = bytes(10 * 1024 * 1024 + 1)
    pieces = {
        "length": head(length(body)) + body,
        "chunked": head(CHUNKED) + chunked(body),
        "expected": head(length(body), b"Expect: 100-continue") + body,
    }
    for name, data in pieces.items():
        yield Case(UNREAD, name, (data,), "refused")


BUILDERS: tuple[Callable[[], Iterable[Case]], ...] = (
    *(_upgrades, _tunnels, _lengths_and_codings, _codings, _ignored_bodies, _hidden_lengths),
    *(_lengths, _folds, _line_ends, _chunk_sizes, _extensions, _trailers, _targets, _hosts),
    *(_versions, _old_version, _expectations, _pipelines, _methods, _names, _connections),
    *(_large_heads, _after_refusal, _unread_bodies),
)


def all_cases() -> list[Case]:
    """Every case once; no two send the same bytes in the same pieces."""
    found: dict[tuple[bytes, ...], Case] = {}
    for build in BUILDERS:
        for case in build():
            found.setdefault(case.pieces, case)
    return list(found.values())
