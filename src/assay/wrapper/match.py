"""Operator + path + method -> the config that answers. Pure (decisions, section 9).

Exact beats `{param}` beats prefix `/*`, segment by segment from the left; a method's own config
beats one for any method. Segments are compared percent-decoded; the path goes on as it came.
"""

import re
from collections.abc import Sequence
from typing import Generic, TypeVar
from urllib.parse import unquote

from assay.wrapper.model import ANY_METHOD

PATH_CHARS_MAX = 2048
SEGMENTS_MAX = 64
FOUND_CHARS_MAX = 512
"""A longer path is matched each time."""

FOUND_MAX = 1000
"""Paths of one operator whose match is remembered."""

_LITERAL = re.compile(r"[A-Za-z0-9._~!$&'()+,;=:@-]+")
_PARAMETER = re.compile(r"\{[A-Za-z_][A-Za-z0-9_]{0,63}\}")
METHODS = frozenset(
    {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY", "COPY", "LOCK", "MKCOL"}
    | {"MOVE", "PROPFIND", "PROPPATCH", "SEARCH", "UNLOCK", "BIND", "REBIND", "UNBIND", "ACL"}
    | {"REPORT", "MKACTIVITY", "CHECKOUT", "MERGE", "M-SEARCH", "NOTIFY", "SUBSCRIBE"}
    | {"UNSUBSCRIBE", "PURGE", "MKCALENDAR", "LINK", "UNLINK", "SOURCE"}
)
"""What the server's parser knows (llhttp), without TRACE, which shows an upstream's secret to
whoever asks, and CONNECT, which is a tunnel."""

_HIDDEN = re.compile(r"[\x00-\x1f\x7f]")

T = TypeVar("T")


class BadPath(ValueError):
    """A path that is not one; the message is a sentence."""


def check_pattern(path: str) -> None:
    """Raises `BadPath` unless a config may have this path."""
    if not path.startswith("/") or len(path) > PATH_CHARS_MAX:
        raise BadPath(f"must begin with a slash and have at most {PATH_CHARS_MAX} characters")
    segments = path[1:].split("/")
    if len(segments) > SEGMENTS_MAX:
        raise BadPath(f"has more than {SEGMENTS_MAX} segments")
    for place, segment in enumerate(segments):
        last = place == len(segments) - 1
        if segment in {".", ".."}:
            raise BadPath("has a dot segment")
        if segment in {"", "*"} and last:
            continue
        if not _LITERAL.fullmatch(segment) and not _PARAMETER.fullmatch(segment):
            raise BadPath("has a segment that is neither plain text nor a {parameter}")


def check_method(method: str) -> None:
    """Raises `BadPath` unless a config may have this method."""
    if method != ANY_METHOD and method not in METHODS:
        raise BadPath("must be a known HTTP method in capitals, or * for any; not CONNECT or TRACE")


def route_key(method: str, path: str) -> str:
    """What two configs that answer the same requests have in common."""
    return method + " " + _PARAMETER.sub("{}", path)


def segments_of(path: str) -> tuple[str, ...]:
    """The decoded segments of a request's path, which begins with a slash.

    Raises `BadPath` for one that another reader could take for a different path.
    """
    if len(path) > PATH_CHARS_MAX:
        raise BadPath(f"has more than {PATH_CHARS_MAX} characters")
    if "%" not in path:
        segments = tuple(path[1:].split("/"))
        if "/." in path or ";." in path or "\\" in path or _HIDDEN.search(path):
            _refuse_ambiguous(path)
        return segments
    _refuse_ambiguous(unquote(path))
    return tuple(unquote(segment) for segment in path[1:].split("/"))


class Table(Generic[T]):
    """An operator's routes."""

    def __init__(self, rows: Sequence[tuple[str, str, T]]) -> None:
        """`rows` are method, path and value of configs that do not overlap."""
        self._exact: dict[tuple[str, str], T] = {}
        self._found: dict[tuple[str, str], T] = {}
        self._patterns: list[tuple[tuple[str, ...], str, T]] = []
        for method, path, value in rows:
            if "{" in path or path.endswith("/*"):
                self._patterns.append((tuple(path[1:].split("/")), method, value))
            else:
                self._exact[method, path] = value
        self._patterns.sort(key=lambda row: (_rank(row[0]), row[1] == ANY_METHOD))

    def find(self, method: str, path: str) -> T | None:
        """The value of the best match; HEAD is answered by GET's. Raises `BadPath`."""
        known = self._found.get((method, path))
        if known is not None:
            return known
        found = self._find(method, path)
        if found is not None and len(path) <= FOUND_CHARS_MAX:
            if len(self._found) >= FOUND_MAX:
                self._found.clear()
            self._found[method, path] = found
        return found

    def _find(self, method: str, path: str) -> T | None:
        if method not in METHODS:
            return None
        segments = segments_of(path)
        # A segment with a slash of its own is one segment: joined, it would pass for two.
        split = "%" in path and any("/" in segment for segment in segments)
        plain = path if "%" not in path or split else "/" + "/".join(segments)
        methods = ("HEAD", "GET", ANY_METHOD) if method == "HEAD" else (method, ANY_METHOD)
        for wanted in methods:
            if (wanted, plain) in self._exact:
                return self._exact[wanted, plain]
        return self._by_pattern(methods, segments)

    def _by_pattern(self, methods: Sequence[str], segments: tuple[str, ...]) -> T | None:
        best: tuple[int, T] | None = None
        shape: tuple[int, ...] = ()
        for pattern, method, value in self._patterns:
            if method not in methods or not _fits(pattern, segments):
                continue
            rank = _rank(pattern)
            if best is None or (rank == shape and methods.index(method) < best[0]):
                best, shape = (methods.index(method), value), rank
            elif rank != shape:
                break
        return None if best is None else best[1]


def _rank(pattern: tuple[str, ...]) -> tuple[int, ...]:
    """Smaller is better: literal 0, parameter 1, prefix 2, the end of a shorter pattern last."""
    return tuple(2 if part == "*" else 1 if part.startswith("{") else 0 for part in pattern)


def _fits(pattern: tuple[str, ...], segments: tuple[str, ...]) -> bool:
    if pattern[-1] == "*":
        pattern = pattern[:-1]
        if len(segments) <= len(pattern):
            return False
        segments = segments[: len(pattern)]
    if len(pattern) != len(segments):
        return False
    return all(
        part == segment or (part.startswith("{") and segment != "")
        for part, segment in zip(pattern, segments, strict=True)
    )


def _refuse_ambiguous(decoded: str) -> None:
    """What an upstream might read as a step upwards, or not at all."""
    if _HIDDEN.search(decoded):
        raise BadPath("has control characters")
    if any(segment in {".", ".."} for segment in re.split(r"[/\\;]", decoded)):
        raise BadPath("has dot segments")
