"""Requests of the fast lane by their bytes, and what was found out about them."""

from dataclasses import dataclass, field

from assay.common.http_heads import END, HeaderPairs, is_plain
from assay.http1.model import ResponseHead
from assay.wrappers.fast_calls import FastPathRequest

REPEATS_MAX = 1000
"""Requests remembered by their bytes. Most callers send few, again and again."""

REPEAT_BYTES_MAX = 2048
"""A longer request is not remembered: 1000 of them must not be a burden."""

ANSWERS_REMEMBERED = 8
"""Heads of answers to one request; a date in them makes most of them old within a second."""


@dataclass(frozen=True, slots=True)
class RenderedHead:
    """The head of an answer as bytes, but for what each answer has of its own."""

    lines: bytes
    is_dated: bool
    is_chunked: bool


@dataclass(slots=True)
class ParsedRequest:
    """A request as its bytes have it: what may come again, and how it was answered."""

    carried: FastPathRequest
    raw_headers: HeaderPairs
    request_id: str | None
    """The caller's own, where it has sent a good one."""
    keep_alive: bool
    agent: str | None = None
    """The agent whose session it shows."""
    data: bytes = b""
    """The request itself, once it is known to be all of what one packet held."""
    answers: dict[ResponseHead, RenderedHead] = field(
        default_factory=dict[ResponseHead, RenderedHead]
    )

    @property
    def is_head(self) -> bool:
        """Whether the answer has no body."""
        return self.carried.matched.incoming.method == "HEAD"


class ParsedRequestCache:
    """Requests of the fast lane by their bytes: what came before need not be parsed again.

    A parser between two messages gives the same result for the same bytes. Only that is skipped:
    whether the request may be sent on is asked each time (`wrappers.fast_calls.FastCalls.begin`).
    """

    def __init__(self) -> None:
        self._known: dict[bytes, ParsedRequest] = {}
        self.find = self._known.get
        """The request of these very bytes, or None."""

    def remember(self, data: bytes, repeat: ParsedRequest) -> None:
        """Remember a request that a parser has just read from `data`, and nothing else."""
        if (
            len(data) <= REPEAT_BYTES_MAX
            and data.endswith(END)
            and is_plain(data, len(repeat.raw_headers))
        ):
            if len(self._known) >= REPEATS_MAX:
                self._known.clear()
            repeat.data = data
            self._known[data] = repeat
