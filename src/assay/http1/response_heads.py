"""A cache of response heads by their bytes, so that a repeated head need not be parsed.

A parser between two messages gives the same result for the same bytes. So a head that was parsed
once, and framed a body by Content-Length, is fully described by its bytes. Any other head is parsed
each time.
"""

from dataclasses import dataclass

from assay.common.http_heads import END, HeaderPairs, is_plain
from assay.http1.model import ResponseHead

HEADS_MAX = 64
"""Heads cached per upstream; their dates make most of them obsolete within a second."""

HEAD_BYTES_MAX = 4096
"""A larger head is not cached: it costs more to keep than to parse."""

HEADS_BYTES_MAX = 32 * 1024
"""Bytes of heads cached per upstream, as received; parsed they take about as much again."""

_LENGTH_DIGITS_MAX = 18
"""Most digits of a Content-Length: a body of more than an exbibyte never ends."""

_NO_BODY = frozenset({204, 304})


@dataclass(frozen=True, slots=True)
class CachedResponseHead:
    """A head, and the length of the body that follows it on a persistent connection."""

    head: ResponseHead
    body_bytes: int


class ResponseHeadCache:
    """The heads that one upstream sent recently."""

    def __init__(self) -> None:
        self._known: dict[bytes, CachedResponseHead] = {}
        self._bytes = 0
        self.find = self._known.get
        """Returns the cached head of exactly these bytes, or None."""

    def remember(self, data: bytes, head: ResponseHead) -> None:
        """Cache a head that was just parsed from the beginning of `data`."""
        end = data.find(END) + len(END)
        body_bytes = _body_bytes(head)
        if body_bytes is None or not len(END) <= end <= HEAD_BYTES_MAX:
            return
        raw = data[:end]
        # A 1xx response may have preceded it in the same packet.
        if raw.startswith(b"HTTP/1.1 %d" % head.status) and is_plain(raw, len(head.headers)):
            if len(self._known) >= HEADS_MAX or self._bytes + end > HEADS_BYTES_MAX:
                self.forget()
            if raw not in self._known:
                self._bytes += end
            self._known[raw] = CachedResponseHead(head, body_bytes)

    def forget(self) -> None:
        """Clear the cache."""
        self._known.clear()
        self._bytes = 0


def _body_bytes(head: ResponseHead) -> int | None:
    """Return the declared length if the body has one and no other framing."""
    if head.status in _NO_BODY:
        return None
    return _declared(head.headers)


def _declared(headers: HeaderPairs) -> int | None:
    lengths = [value for name, value in headers if name == b"content-length"]
    chunked = any(name == b"transfer-encoding" for name, _ in headers)
    if chunked or len(lengths) != 1 or not lengths[0].isdigit():
        return None
    return int(lengths[0]) if len(lengths[0]) <= _LENGTH_DIGITS_MAX else None
