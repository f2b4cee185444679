"""What the parser of requests accepts, how it frames it, and what one request may cost."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.common.errors import InvalidRequest, MethodNotAllowed
from assay.http1.request_parser import (
    CHUNK_EXCESS_BYTES_MAX,
    CHUNK_LINE_BYTES_MAX,
    CHUNKS_PER_TURN,
    HEADERS_MAX,
    TINY_CHUNKS_MAX,
    TRAILER_BYTES_MAX,
    TRAILERS_MAX,
    RequestParser,
    UpgradeNotSupported,
)

HEAD_BYTES_MAX = 4096


@dataclass
class Request:
    method: bytes
    target: bytes
    headers: list[tuple[bytes, bytes]]
    keep_alive: bool
    body: bytes = b""
    is_whole: bool = False


@dataclass
class Reader:
    """All requests of a connection; a request is answered as soon as it is whole."""

    requests: list[Request] = field(default_factory=list[Request])
    pieces: int = 0
    turns: int = 0

    def __post_init__(self) -> None:
        self.parser = RequestParser(self, HEAD_BYTES_MAX)

    def on_head(self) -> None:
        one = self.parser
        self.requests.append(Request(one.method, one.target, one.headers, one.keep_alive))

    def on_body(self, body: bytes) -> None:
        assert body
        self.pieces += 1
        self.requests[-1].body += body

    def on_message_complete(self) -> None:
        self.requests[-1].is_whole = True

    def feed_all(self, packets: Sequence[bytes]) -> None:
        for packet in packets:
            self.feed(packet)

    def feed(self, data: bytes) -> None:
        rest = self.parser.feed(data)
        while rest or self.parser.is_behind:
            self.turns += 1
            rest = self.parser.feed(rest)


def read(*packets: bytes) -> Reader:
    reader = Reader()
    reader.feed_all(packets)
    return reader


def head(*lines: str, first: str = "POST /a HTTP/1.1") -> bytes:
    return "\r\n".join([first, "Host: x", *lines, "", ""]).encode("latin-1")


CHUNKED = "Transfer-Encoding: chunked"


def chunked(*chunks: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in chunks) + end


def test_a_request_is_read_with_its_body() -> None:
    [one] = read(head("Content-Length: 5", "X-A:  b c\t ") + b"hello").requests
    assert (one.method, one.target, one.body, one.is_whole) == (b"POST", b"/a", b"hello", True)
    assert one.headers == [(b"host", b"x"), (b"content-length", b"5"), (b"x-a", b"b c")]
    assert one.keep_alive


def test_one_request_is_read_at_a_time() -> None:
    parser = Reader().parser
    both = head("Content-Length: 1") + b"a" + head()
    assert parser.feed(both) == head()
    assert parser.is_idle


@pytest.mark.parametrize("line", ["Connection: close", "Connection: x , Close", "Upgrade: h2c"])
def test_nothing_is_read_behind_a_request_that_ends_its_connection(line: str) -> None:
    reader = read(head(line, "Content-Length: 1") + b"a" + head(), head())
    [one] = reader.requests
    assert (one.body, one.is_whole, one.keep_alive) == (b"a", True, False)


@pytest.mark.parametrize("token", ["h2c", "foo", "websocket", "TLS/1.0", ""])
@pytest.mark.parametrize("framing", ["Content-Length: 14", CHUNKED])
def test_an_upgrade_is_removed_and_its_body_kept(token: str, framing: str) -> None:
    hidden = b"GET / HTTP/1.1"
    body = chunked(hidden) if framing == CHUNKED else hidden
    lines = [f"Upgrade: {token}", "Connection: Upgrade", framing]
    for packets in ((head(*lines) + body,), (head(*lines), body)):
        [one] = read(*packets).requests
        assert (one.body, one.keep_alive) == (hidden, False)
        assert b"upgrade" not in dict(one.headers)


def test_a_websocket_handshake_is_refused() -> None:
    lines = ["Upgrade: WebSocket", "Connection: keep-alive, upgrade", "Sec-WebSocket-Version: 13"]
    with pytest.raises(UpgradeNotSupported):
        read(head(*lines, first="GET / HTTP/1.1"))


@pytest.mark.parametrize(
    "first", ["CONNECT x:443 HTTP/1.1", "TRACE / HTTP/1.1", "TRACE * HTTP/1.0"]
)
def test_connect_and_trace_are_refused(first: str) -> None:
    with pytest.raises(MethodNotAllowed):
        read(head(first=first))


MALFORMED = {
    "two spaces": b"GET  / HTTP/1.1\r\nHost: x\r\n\r\n",
    "a space behind the version": b"GET / HTTP/1.1 \r\nHost: x\r\n\r\n",
    "version 2.0": b"GET / HTTP/2.0\r\nHost: x\r\n\r\n",
    "version 0.9": b"GET / HTTP/0.9\r\nHost: x\r\n\r\n",
    "version 1.2": b"GET / HTTP/1.2\r\nHost: x\r\n\r\n",
    "no version": b"GET /\r\n",
    "another protocol": b"GET / RTSP/1.0\r\nHost: x\r\n\r\n",
    "a method of 25 bytes": b"A" * 25 + b" / HTTP/1.1\r\nHost: x\r\n\r\n",
    "a method that is no token": b"G@T / HTTP/1.1\r\nHost: x\r\n\r\n",
    "a fragment": b"GET /#a HTTP/1.1\r\nHost: x\r\n\r\n",
    "no path": b"GET a HTTP/1.1\r\nHost: x\r\n\r\n",
    "another scheme": b"GET ftp://x/ HTTP/1.1\r\nHost: x\r\n\r\n",
    "user information": b"GET http://a@x/ HTTP/1.1\r\nHost: x\r\n\r\n",
    "an absolute target without host": b"GET http:///a HTTP/1.1\r\nHost: x\r\n\r\n",
    "bare LF": b"GET / HTTP/1.1\nHost: x\n\n",
    "a bare LF behind a header": b"GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n",
    "a bare CR": b"GET / HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n",
    "CR CR LF": b"GET / HTTP/1.1\r\nHost: x\r\nA: b\r\r\n\r\n",
    "NUL": b"GET / HTTP/1.1\r\nHost: x\r\nA: \0\r\n\r\n",
    "DEL": b"GET / HTTP/1.1\r\nHost: x\r\nA: \x7f\r\n\r\n",
    "a fold": b"GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
    "a fold first": b"GET / HTTP/1.1\r\n A: b\r\nHost: x\r\n\r\n",
    "a space before the colon": b"GET / HTTP/1.1\r\nHost: x\r\nA : b\r\n\r\n",
    "no colon": b"GET / HTTP/1.1\r\nHost: x\r\nA\r\n\r\n",
    "a known name without a colon": b"GET / HTTP/1.1\r\nHost: x\r\nCookie\r\n\r\n",
    "no name": b"GET / HTTP/1.1\r\nHost: x\r\n: b\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\nA: b\r\n\r\n",
    "two hosts": b"GET / HTTP/1.1\r\nHost: x\r\nhost: x\r\n\r\n",
    "an empty host": b"GET / HTTP/1.1\r\nHost:\r\n\r\n",
    "hosts in a list": b"GET / HTTP/1.1\r\nHost: a, b\r\n\r\n",
    "a host with a user": b"GET / HTTP/1.1\r\nHost: a@b\r\n\r\n",
    "a host with a space": b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n",
    "a host with a path": b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n",
    "a port beyond all": b"GET / HTTP/1.1\r\nHost: a:99999\r\n\r\n",
    "a coding in version 1.0": b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "three blank lines": b"\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "a blank line of LF": b"\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_head_that_is_not_well_formed_is_refused(case: str) -> None:
    data = MALFORMED[case]
    for packets in ([data], [data[n : n + 1] for n in range(len(data))]):
        reader = Reader()
        with pytest.raises(InvalidRequest):
            reader.feed_all(packets)
        assert reader.requests == []
        assert reader.parser.feed(head()) == b""
        assert reader.requests == [], "nothing is read after a refusal"


@pytest.mark.parametrize(
    "lines",
    [
        ["Content-Length: 1", CHUNKED],
        ["Content-Length: 1", "Content-Length: 1"],
        ["Content-Length: 1, 1"],
        ["Content-Length: +1"],
        ["Content-Length: -1"],
        ["Content-Length: 0x1"],
        ["Content-Length: 1_0"],
        ["Content-Length: \xb2"],
        ["Content-Length:"],
        ["Content-Length: 1 0"],
        ["Content-Length: 9223372036854775808"],
        [CHUNKED, CHUNKED],
        ["Transfer-Encoding: gzip, chunked"],
        ["Transfer-Encoding: identity"],
        ["Transfer-Encoding: chunked, "],
        ["Transfer-Encoding:"],
    ],
)
def test_a_body_two_readers_could_frame_in_two_ways_is_refused(lines: list[str]) -> None:
    with pytest.raises(InvalidRequest):
        read(head(*lines))


@pytest.mark.parametrize(
    "size", [b"", b"-1", b"+1", b"0x1", b" 1", b"1 ", b"g", b"1" * 17, b"1;a\nb"]
)
def test_a_chunk_without_a_plain_size_is_refused(size: bytes) -> None:
    with pytest.raises(InvalidRequest):
        read(head(CHUNKED) + size + b"\r\na\r\n0\r\n\r\n")


@pytest.mark.parametrize("body", [b"1\r\nab0\r\n\r\n", b"1\r\na\n0\r\n\r\n", b"1\na\r\n0\r\n\r\n"])
def test_a_chunk_that_does_not_end_where_it_says_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest):
        read(head(CHUNKED) + body)


@pytest.mark.parametrize(
    ("target", "host", "seen"),
    [
        ("http://a.example:8/b?c", "a.example:8", "/b?c"),
        ("HTTPS://a", "a", "/"),
        ("http://a?b", "a", "/?b"),
        ("/b", "x", "/b"),
    ],
)
def test_the_targets_own_host_counts(target: str, host: str, seen: str) -> None:
    [one] = read(head(first=f"GET {target} HTTP/1.1")).requests
    assert (one.target, dict(one.headers)[b"host"]) == (seen.encode(), host.encode())


@pytest.mark.parametrize("host", ["a", "a_b.c-d:80", "127.0.0.1", "[::1]:8080", "a:", "xn--a"])
def test_hosts_and_ports_are_taken(host: str) -> None:
    data = f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    assert dict(read(data).requests[0].headers)[b"host"] == host.encode()


@pytest.mark.parametrize("more", [0, 1])
def test_the_bound_of_a_head_is_exact(more: int) -> None:
    bare = head("X: ")
    data = bare.replace(b"X: ", b"X: " + b"y" * (HEAD_BYTES_MAX - len(bare) + more))
    for packets in ((data,), (data[:-1], data[-1:]), (data[:100], data[100:])):
        if more:
            with pytest.raises(InvalidRequest):
                read(*packets)
        else:
            assert len(read(*packets).requests) == 1


def test_a_head_without_an_end_is_refused_at_the_bound() -> None:
    reader = read(head()[:-2] + b"X: " + b"y" * (HEAD_BYTES_MAX - len(head()) - 1))
    assert reader.parser.is_in_head
    with pytest.raises(InvalidRequest):
        reader.feed(b"y")


@pytest.mark.parametrize("data", [b"\x16\x03\x01\x02\x00", b"A" * 25, b" GET", b"G\0"])
def test_what_does_not_begin_with_a_method_is_refused_at_once(data: bytes) -> None:
    with pytest.raises(InvalidRequest):
        read(data)


def test_header_lines_are_counted() -> None:
    assert read(head(*["a: b"] * (HEADERS_MAX - 1))).requests
    with pytest.raises(InvalidRequest):
        read(head(*["a: b"] * HEADERS_MAX))


def test_trailers_are_dropped_and_bounded() -> None:
    [one] = read(head(CHUNKED) + chunked(b"a", end=b"0\r\nX-Agent-Id: 7\r\n\r\n")).requests
    assert (one.body, one.is_whole) == (b"a", True)
    assert b"x-agent-id" not in dict(one.headers)
    for trailers in (
        b"a: b\r\n" * (TRAILERS_MAX + 1),
        b"a: " + b"b" * TRAILER_BYTES_MAX,
        b"no colon\r\n",
        b" a: b\r\n",
        b"a: b\nc: d\r\n",
    ):
        with pytest.raises(InvalidRequest):
            read(head(CHUNKED) + b"0\r\n" + trailers + b"\r\n")


def test_chunk_extensions_are_dropped_and_bounded() -> None:
    [one] = read(head(CHUNKED) + b'1 ; a="b;c"\r\nx\r\n0;end\r\n\r\n').requests
    assert (one.body, one.is_whole) == (b"x", True)
    long = b"1;" + b"a" * (CHUNK_LINE_BYTES_MAX - 2)
    with pytest.raises(InvalidRequest):
        read(head(CHUNKED) + long)
    many = b"1;" + b"a" * 500 + b"\r\nx\r\n"
    with pytest.raises(InvalidRequest):
        read(head(CHUNKED) + many * (CHUNK_EXCESS_BYTES_MAX // 400))


def test_tiny_chunks_are_bounded_in_number_and_large_ones_are_not() -> None:
    with pytest.raises(InvalidRequest):
        read(head(CHUNKED) + b"1\r\nx\r\n" * (TINY_CHUNKS_MAX + 1))
    large = chunked(*[b"y" * 32] * (TINY_CHUNKS_MAX + 1))
    assert len(read(head(CHUNKED) + large).requests[0].body) == 32 * (TINY_CHUNKS_MAX + 1)


def test_many_chunks_in_one_packet_are_read_in_turns() -> None:
    reader = read(head(CHUNKED) + chunked(*[b"x"] * (3 * CHUNKS_PER_TURN)))
    assert reader.requests[0].body == b"x" * (3 * CHUNKS_PER_TURN)
    assert reader.turns == 3
    assert reader.pieces == 4


REQUESTS = st.lists(
    st.one_of(
        st.just(head(first="GET /g HTTP/1.1")),
        st.binary(max_size=40).map(lambda b: head(f"Content-Length: {len(b)}") + b),
        st.lists(st.binary(min_size=1, max_size=20), max_size=4).map(
            lambda chunks: head(CHUNKED, "X-B: c") + chunked(*chunks, end=b"0;x\r\nT: u\r\n\r\n")
        ),
        st.just(b"\r\n" + head(first="DELETE /d?e HTTP/1.1")),
    ),
    min_size=1,
    max_size=5,
)


@given(REQUESTS, st.data())
def test_how_bytes_are_cut_into_packets_changes_nothing(
    requests: list[bytes], data: st.DataObject
) -> None:
    sent = b"".join(requests)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sent)), max_size=8)))
    packets = [sent[a:b] for a, b in zip([0, *cuts], [*cuts, len(sent)], strict=True)]
    assert read(*packets).requests == read(sent).requests
    assert len(read(sent).requests) == len(requests)


@given(REQUESTS)
def test_what_is_accepted_is_framed_as_h11_frames_it(requests: list[bytes]) -> None:
    ours = read(b"".join(requests)).requests
    theirs: list[tuple[bytes, bytes, bytes]] = []
    for one in requests:
        server = h11.Connection(h11.SERVER)
        server.receive_data(one.removeprefix(b"\r\n"))  # which nginx passes over, and h11 not
        asked, body = server.next_event(), b""
        while isinstance(event := server.next_event(), h11.Data):
            body += bytes(event.data)
        assert isinstance(asked, h11.Request)
        theirs.append((asked.method, asked.target, body))
    assert [(one.method, one.target, one.body) for one in ours] == theirs


@given(st.binary(max_size=200), st.binary(max_size=100))
def test_no_bytes_are_a_fault_of_ours(first: bytes, second: bytes) -> None:
    for start in (b"", head(CHUNKED), head("Content-Length: 9"), head()[:-2]):
        with suppress(InvalidRequest, MethodNotAllowed, UpgradeNotSupported):
            read(start + first, second)
