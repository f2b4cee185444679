"""Counts a visit's calls, and those an agent left unanswered.

Only requests that any customer may send count: a probe's requests that are meant to be refused do
not. A call failed if there was no reply, or 502, 503 or 504; or 500 if the same method and path
answered another call. 429 is neither. Failures before a site's first answer count as its start-up
and are forgiven.
"""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Literal
from urllib.parse import urlsplit

from assay.common.json import JsonObject

_Outcome = Literal["answered", "failed", "error"]

UNAVAILABLE: Final = frozenset({502, 503, 504})
TOO_MANY: Final = 429
ERROR: Final = 500

_is_odd: ContextVar[bool] = ContextVar("assay_odd_requests", default=False)
# Not an argument: client libraries lie between a probe and the request.


@contextmanager
def odd_requests() -> Generator[None]:
    """Do not count the requests inside the block: no customer sends such requests."""
    token = _is_odd.set(True)
    try:
        yield
    finally:
        _is_odd.reset(token)


class CallTally:
    """The calls of one visit: at most as many as it may make requests."""

    def __init__(self) -> None:
        self._calls: list[tuple[str, str, _Outcome]] = []

    def note(self, method: str, url: str, status: int | None) -> None:
        """Record a finished call; `status` is None if there was no reply."""
        if _is_odd.get() or status == TOO_MANY:
            return
        try:
            parts = urlsplit(url)
        except ValueError:
            return
        failed = status is None or status in UNAVAILABLE
        outcome: _Outcome = "failed" if failed else "error" if status == ERROR else "answered"
        self._calls.append((parts.netloc, f"{method} {parts.netloc}{parts.path}", outcome))

    def as_json(self) -> JsonObject:
        """Return how many calls count, and how many of them failed."""
        answering = {place for _, place, outcome in self._calls if outcome == "answered"}
        begun: set[str] = set()
        made = failed = 0
        for site, place, outcome in self._calls:
            if outcome == "answered":
                begun.add(site)
            elif site not in begun or (outcome == "error" and place not in answering):
                continue
            made += 1
            failed += outcome != "answered"
        return {"made": made, "failed": failed}
