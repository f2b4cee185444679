"""A client that sends exactly the bytes a test asks for and reads answers by the letter."""

import socket
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

_FINAL = 200
_BARE = frozenset({204, 304})


class CutOff(Exception):
    """The connection ended before the answer was whole."""


@dataclass
class Got:
    """One answer."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes = b""
    interim: list[int] = field(default_factory=list[int])

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]


class RawClient:
    """One connection."""

    def __init__(self, address: str, wait_s: float = 10.0, own: str | None = None) -> None:
        """`own` is the loopback address to come from; the usual one if it is None."""
        parts = urlsplit(address)
        self.wait_s = wait_s
        source = None if own is None else (own, 0)
        self.sock = socket.create_connection((parts.hostname, parts.port), wait_s, source)
        self._kept = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, one: BaseException | None, at: TracebackType | None
    ) -> None:
        self.sock.close()

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def ask(self, method: str, path: str, *headers: str, body: bytes = b"") -> Got:
        """A request with a declared length, where it is one that may have a body."""
        self.send(request(method, path, *headers, body=body))
        return self.answer(bare=method == "HEAD")

    def answer(self, *, bare: bool = False) -> Got:
        """Exactly one answer, framed as it says. Raises `CutOff`, and `TimeoutError` for none."""
        interim: list[int] = []
        got = self.head()
        while got.status < _FINAL:
            interim.append(got.status)
            got = self.head()
        got.interim = interim
        lengths, codings = got.all("content-length"), got.all("transfer-encoding")
        assert len(lengths) + len(codings) <= 1, f"framed twice: {got.headers}"
        if bare or got.status in _BARE:
            return got
        if codings:
            assert codings == ["chunked"]
            got.body = b"".join(self.chunks())
        elif lengths:
            got.body = self.exactly(int(lengths[0]))
        else:
            got.body = self.rest()
        return got

    def head(self) -> Got:
        text = self._until(b"\r\n\r\n").decode("latin-1").removesuffix("\r\n\r\n")
        first, *lines = text.split("\r\n")
        version, status = first.split(" ")[:2]
        assert version == "HTTP/1.1", first
        pairs = [line.split(": ", 1) for line in lines]
        return Got(int(status), [(name.lower(), value) for name, value in pairs])

    def chunks(self) -> list[bytes]:
        pieces: list[bytes] = []
        while (piece := self.chunk()) is not None:
            pieces.append(piece)
        return pieces

    def chunk(self) -> bytes | None:
        """The next chunk; None for the last."""
        size = int(self._until(b"\r\n"), 16)
        data = self.exactly(size)
        assert self.exactly(2) == b"\r\n"
        return data if size else None

    def piece(self) -> bytes:
        """Whatever has come, at least a byte. Raises `CutOff`."""
        if not self._kept:
            self._more()
        data, self._kept = self._kept, b""
        return data

    def rest(self, wait_s: float | None = None) -> bytes:
        """Everything until the end of the connection, or until nothing more comes."""
        deadline = time.monotonic() + (self.wait_s if wait_s is None else wait_s)
        try:
            while (left := deadline - time.monotonic()) > 0:
                self.sock.settimeout(left)
                self._more()
        except (TimeoutError, CutOff):
            pass
        finally:
            self.sock.settimeout(self.wait_s)
        data, self._kept = self._kept, b""
        return data

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._kept:
            self._more()
        data, _, self._kept = self._kept.partition(mark)
        return data + mark

    def exactly(self, size: int) -> bytes:
        pieces, missing = [self._kept[:size]], size - len(self._kept)
        self._kept = self._kept[size:]
        while missing > 0:
            self._more()
            pieces.append(self._kept[:missing])
            taken = len(pieces[-1])
            self._kept = self._kept[taken:]
            missing -= taken
        return b"".join(pieces)

    def _more(self) -> None:
        try:
            data = self.sock.recv(262_144)
        except ConnectionError as error:
            raise CutOff(self._kept[:200]) from error
        if not data:
            raise CutOff(self._kept[:200])
        self._kept += data


def request(method: str, path: str, *headers: str, body: bytes = b"") -> bytes:
    """The bytes of a well-formed request."""
    lines = [f"{method} {path} HTTP/1.1", "Host: assay.example", *headers]
    if body or method in {"POST", "PUT", "PATCH"}:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body
