"""Finds the config that answers an operator, path and method. Pure (conventions.md#wrapper).

Exact beats `{param}`, which beats a prefix `/*`, segment by segment from the left. A method's own
config beats one for any method. Segments are compared percent-decoded; the path is forwarded as it
came. If nothing matches, `%2F` is read as a slash once, and the path is forwarded so.

If a path matches one config and is another spelling of a stricter config's path, the stricter one
answers. Otherwise an upstream that treats both alike would serve the paid call for nothing.

Servers differ in what they accept for the same path: letter case (Express), `;` parameters
(Spring), doubled slashes, a slash, dots or spaces at the end (Windows), percent-encoding once more
than needed. What two paths have in common after all of that is their folded form. Servers differ in
the order of these steps too: `/SHOP/a%2Fb/buy` is three segments to Express, which splits before it
decodes, and four to Flask. So a path has several readings, and a route's parameter may contain in
one reading what another cuts off. Each reading is a list of folded segments.

All of an operator's patterns are compared at once. A pattern is one bit of a number; for each
position of a path there is the number of those that accept a segment there. A thousand patterns of
64 segments cost 64 steps instead of 64,000, so an operator with such patterns delays nobody.
"""

import asyncio
import itertools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Generic, NamedTuple, TypeVar
from urllib.parse import unquote, unquote_to_bytes

from assay.wrappers.model import ANY_METHOD, Terms

DECODINGS_MAX: Final = 8
"""How often a path is percent-decoded; no honest path changes more often."""

PARTS_MAX: Final = 128
"""Most segments of a path that is read in every way; no route has half as many."""

READINGS_MAX: Final = 32
"""Most different readings of one path; honest ones have one or two."""

_DECODED_APART: Final = 3
"""Single decodings after which a path is split again; after that it is decoded to the end."""

_ENCODED_PERCENT = re.compile(rb"%(?:25)+")
_WIDE = re.compile(rb"%[uU]([0-9a-fA-F]{4})")
"""The form `%u0041`, which IIS reads."""

_OVERLONG = re.compile(
    rb"[\xc0\xc1][\x80-\xbf]|\xe0[\x80-\x9f][\x80-\xbf]|\xf0[\x80-\x8f][\x80-\xbf]{2}"
)
"""A character in more UTF-8 bytes than it needs, which is invalid (RFC 3629, section 3)."""

_END = re.compile(rb"[?#\x00]")
"""Where a server that decodes too early ends a path."""

_CONTROLS = bytes(range(1, 0x20)) + b"\x7f"
"""Characters that the URL standard's parsers remove, such as tabs and line ends."""

_STREAM = re.compile(r":[^:]*:\$")
"""NTFS's type of a stream: `quote::$DATA` is the file `quote`, and `shop:$I30:$INDEX_ALLOCATION`
the folder `shop`. Source: [MS-FSCC], 2.1.5."""

_PARAMETERS = re.compile(rb";[^/]*")
_SLASHES = re.compile(rb"[/\\]")


class Unfoldable(ValueError):
    """A path that is still encoded after as many decodings as any server would do.

    Also a path with more segments or readings than any honest path.
    """


class _Segment(NamedTuple):
    """A segment without what servers remove, and what is left of it if that is nothing."""

    core: str
    is_upward: bool
    is_parameters: bool
    """Whether it had nothing but `;` parameters."""


@lru_cache(maxsize=2000)
def folded(path: str) -> tuple[str, ...]:
    """Return the segments that all spellings of a path have in common; none are empty.

    `path` is as it came, percent-encoded, without its query. Raises `Unfoldable`.
    """
    parts = _SLASHES.split(_ended(_plainest(_octets(path))))
    return _kept([_segment(part) for part in parts if part], frozenset())


def readings(path: str) -> frozenset[tuple[str, ...]]:
    """Return the ways in which servers read a path, each as folded segments.

    `folded` is one of them. A segment is empty if some servers keep it and others remove all of it.
    Raises `Unfoldable`.
    """
    found: set[tuple[str, ...]] = set()
    for parts in _partings(_octets(path)):
        if len(parts) > PARTS_MAX:
            raise Unfoldable
        found.update(_read([_segment(part) for part in parts]))
        if len(found) > READINGS_MAX:
            raise Unfoldable
    return frozenset(found)


def _partings(data: bytes) -> set[tuple[bytes, ...]]:
    """Return the path's segments, split before and after each of the steps."""
    found: set[tuple[bytes, ...]] = set()
    for text in _texts(data):
        for ended in {text, _ended(text)}:
            found.add(tuple(part for part in ended.split(b"/") if part))
            if b"\\" in ended:
                found.add(tuple(part for part in _SLASHES.split(ended) if part))
    return found


def _texts(data: bytes) -> set[bytes]:
    """Return the path as it came, decoded once, twice and to the end; also without parameters."""
    found: set[bytes] = set()
    for start in {data, _PARAMETERS.sub(b"", data)}:
        text = start
        for _ in range(_DECODED_APART + 1):
            found.add(text)
            text = unquote_to_bytes(_WIDE.sub(_wide, text))
        found.add(_plainest(start))
    return found


def _plainest(data: bytes, *, is_segment: bool = False) -> bytes:
    """Return the text after every decoding; parameters are removed before each of them.

    Raises `Unfoldable`.
    """
    for _ in range(DECODINGS_MAX):
        decoded = _decoded(data.partition(b";")[0] if is_segment else data)
        if decoded == data:
            return data
        data = decoded
    raise Unfoldable


def _decoded(data: bytes) -> bytes:
    """Do one step: percent-decode, or if that changes nothing, decode other forms."""
    if b"%" in data:
        wide = _WIDE.sub(_wide, _ENCODED_PERCENT.sub(b"%", data))
        decoded = unquote_to_bytes(wide)
        if decoded != data:
            return decoded
    if data.isascii():
        return data.translate(None, _CONTROLS)
    text = _OVERLONG.sub(_shortest, data).decode("utf-8", "replace")
    return unicodedata.normalize("NFKC", text).encode("utf-8", "replace")


def _wide(found: re.Match[bytes]) -> bytes:
    return chr(int(found[1], 16)).encode("utf-8", "replace")


def _shortest(found: re.Match[bytes]) -> bytes:
    first, *rest = found[0]
    number = first & (0x3F >> len(rest))
    for byte in rest:
        number = number << 6 | byte & 0x3F
    return chr(number).encode("utf-8", "replace")


def _ended(data: bytes) -> bytes:
    return _END.split(data, maxsplit=1)[0]


def _segment(part: bytes) -> _Segment:
    """Return one segment, folded as a whole: an encoded slash stays in it."""
    bare = _plainest(part, is_segment=True)
    name = _STREAM.split(bare.decode("utf-8", "replace"), maxsplit=1)[0].rstrip(" ")
    # Upper case first: such servers compare `\u0131` as `I`, and `\u0130` as `i`.
    core = name.rstrip(". ").upper().casefold().replace("i\u0307", "i")
    return _Segment(core, name == "..", not bare)


def _read(segments: list[_Segment]) -> Iterator[tuple[str, ...]]:
    """Return the segments, by whether a server keeps each kind that others remove."""
    kinds = {_kind(one) for one in segments} - {None}
    for count in range(len(kinds) + 1):
        for kept in itertools.combinations(sorted(filter(None, kinds)), count):
            yield _kept(segments, frozenset(kept))


def _kind(segment: _Segment) -> str | None:
    """Return why servers remove a segment; None if all of them keep it."""
    if segment.is_upward:
        return "upward"
    if segment.core:
        return None
    return "parameters" if segment.is_parameters else "dots"


def _kept(segments: list[_Segment], kinds: frozenset[str]) -> tuple[str, ...]:
    found: list[str] = []
    for segment in segments:
        kind = _kind(segment)
        if kind is None or kind in kinds:
            found.append(segment.core)
        elif kind == "upward":
            del found[-1:]
    return tuple(found)


def _octets(path: str) -> bytes:
    return path.encode("latin-1", "replace")


class PatternIndex:
    """Patterns, numbered in the order in which they were given."""

    def __init__(
        self, patterns: Iterable[tuple[str, ...]] = (), *, is_folded: bool = False
    ) -> None:
        """Create it. With folded patterns, a parameter also accepts an empty segment.

        A prefix then accepts nothing at all, and a slash at the end means nothing.
        """
        self._is_folded = is_folded
        self._all = 0
        self._literal: list[dict[str, int]] = []
        self._parameter: list[int] = []
        self._prefix = [0]
        self._end = [0]
        for pattern in patterns:
            self.add(pattern)

    def add(self, pattern: tuple[str, ...]) -> None:
        """Add one more, with the next number."""
        bit = self._all + 1
        self._all |= bit
        for _ in range(len(self._parameter), len(pattern)):
            self._literal.append({})
            for places in (self._parameter, self._prefix, self._end):
                places.append(0)
        for place, part in enumerate(pattern):
            if part == "*" and place == len(pattern) - 1:
                self._prefix[place] |= bit
                return
            if part.startswith("{"):
                self._parameter[place] |= bit
            else:
                literal = self._literal[place]
                literal[part] = literal.get(part, 0) | bit
        self._end[len(pattern)] |= bit

    def fitting(self, segments: Sequence[str]) -> int:
        """Return the patterns that fit a path of these segments, one bit each."""
        left, found = self._all, 0
        for place, segment in enumerate(segments):
            if place >= len(self._parameter):
                return found
            found |= left & self._prefix[place]
            takes = self._literal[place].get(segment, 0)
            if segment or self._is_folded:
                takes |= self._parameter[place]
            left &= takes
            if not left:
                return found
        count = len(segments)
        if count < len(self._end):
            found |= left & self._end[count]
            if self._is_folded:
                found |= left & self._prefix[count]
        return found


def numbers(bits: int) -> Iterator[int]:
    """Return the numbers of the bits that are set, from the smallest on."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


PATH_CHARS_MAX = 2048
SEGMENTS_MAX = 64
FOUND_MAX = 1000
"""Paths of one operator whose match is remembered."""

STEPS_AT_ONCE: Final = 20
"""Configs that are prepared or added before other work runs: about five milliseconds."""

_LITERAL = re.compile(r"[A-Za-z0-9._~!$&'()+,;=:@-]+")
_ONE_READING = re.compile(r"[A-Za-z0-9_~!&'()+,=@-]+(?:\.[A-Za-z0-9_~!&'()+,=@-]+)*+")
"""A segment that all servers read in the same way, but for letter case."""

_PARAMETER = re.compile(r"\{[A-Za-z_][A-Za-z0-9_]{0,63}\}")
METHOD_CHARS_MAX = 24
_METHOD = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,24}")
_NEVER_FORWARDED = frozenset({"CONNECT", "TRACE"})
"""TRACE shows an upstream's secret to every caller; CONNECT opens a tunnel."""

_REMEMBERED_CHARS_MAX = 256
"""A longer path is matched each time."""

_SLASH = re.compile(r"%2[fF]")
_HIDDEN = re.compile(r"[\x00-\x1f\x7f]")

T = TypeVar("T")

FREE_TERMS = Terms()
"""The terms of a wrapper that asks for nothing."""


class BadPath(ValueError):
    """The path is invalid; the message is a sentence."""


def check_pattern(path: str) -> None:
    """Raise `BadPath` unless a config may have this path."""
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
    """Raise `BadPath` unless a config may have this method."""
    if not _is_forwarded(method) or method != method.upper():
        raise BadPath(
            f"must be an HTTP method of at most {METHOD_CHARS_MAX} characters in capitals,"
            " or * for any; not CONNECT or TRACE"
        )


def _is_forwarded(method: str) -> bool:
    """Return whether requests of this method may reach an upstream (RFC 9110, section 9.1).

    Methods are case-sensitive, but some frameworks read `trace` as `TRACE`.
    """
    return _METHOD.fullmatch(method) is not None and method.upper() not in _NEVER_FORWARDED


def route_key(method: str, path: str) -> str:
    """Return what two configs that answer the same requests have in common."""
    return method + " " + _PARAMETER.sub("{}", path)


def segments_of(path: str) -> tuple[str, ...]:
    """Return the decoded segments of a request's path, which begins with a slash.

    Raises `BadPath` for a path that another reader could read as a different one.
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


class RouteRow(NamedTuple, Generic[T]):
    """A config as it is matched."""

    method: str
    path: str
    value: T
    terms: Terms = FREE_TERMS


class Match(NamedTuple, Generic[T]):
    """What answers a request, and the path that is forwarded."""

    value: T
    path: str


@dataclass(frozen=True, slots=True)
class _Entry(Generic[T]):
    """A config that is prepared for comparison."""

    row: RouteRow[T]
    segments: tuple[str, ...]
    rank: tuple[int, ...]
    core: tuple[str, ...]
    """The segments, folded."""
    core_rank: tuple[int, ...]


def _entry(row: RouteRow[T]) -> _Entry[T]:
    segments = tuple(row.path[1:].split("/"))
    core = folded_pattern(segments)
    return _Entry(row, segments, rank_of(segments), core, rank_of(core))


class RouteTable(Generic[T]):
    """An operator's routes."""

    def __init__(self, rows: Iterable[RouteRow[T]]) -> None:
        """Create it; no two of the `rows` have the same route key."""
        self._exact: dict[tuple[str, str], _Entry[T]] = {}
        self._fitting = PatternIndex()
        self._said, self._meant = PatternIndex(), PatternIndex(is_folded=True)
        self._found: dict[tuple[str, str], Match[T]] = {}
        for _ in self._steps(rows):
            pass

    @classmethod
    async def by_turns(cls, rows: Iterable[RouteRow[T]]) -> "RouteTable[T]":
        """Create it from many rows with pauses; rows are requested as they are needed."""
        table = cls(())
        for number, _ in enumerate(table._steps(rows), 1):
            if number % STEPS_AT_ONCE == 0:
                await asyncio.sleep(0)
        return table

    def _steps(self, rows: Iterable[RouteRow[T]]) -> Iterator[None]:
        """Build it, with a pause after each config that is prepared or added."""
        entries: list[_Entry[T]] = []
        for row in rows:
            entries.append(_entry(row))
            yield
        self._exact = {(e.row.method, e.row.path): e for e in entries if not any(e.rank)}
        self._patterns = [entry for entry in entries if any(entry.rank)]
        self._patterns.sort(key=lambda e: (e.rank, e.row.method == ANY_METHOD))
        self._demanding = [e for e in entries if e.row.terms.ask_more_than(FREE_TERMS)]
        self._demanding.sort(key=lambda e: e.core_rank)
        for entry in self._patterns:
            self._fitting.add(entry.segments)
            yield
        for entry in self._demanding:
            self._said.add(entry.segments)
            self._meant.add(entry.core)
            yield

    def match(self, method: str, path: str) -> Match[T] | None:
        """Return the best match; GET's config answers HEAD. Raises `BadPath`."""
        known = self._found.get((method, path))
        if known is not None:
            return known
        found = self._match(method, path) if _is_forwarded(method) else None
        if found is not None and len(path) <= _REMEMBERED_CHARS_MAX:
            if len(self._found) >= FOUND_MAX:
                self._found.clear()
            self._found[method, path] = found
        return found

    def _match(self, method: str, path: str) -> Match[T] | None:
        segments = segments_of(path)
        entry = self._raw(method, path, segments)
        if entry is None and "%2" in path:
            path = _SLASH.sub("/", path)
            segments = segments_of(path)
            entry = self._raw(method, path, segments)
        if entry is None:
            return None
        return Match(self._strictest(entry, method, path, segments).row.value, path)

    def _raw(self, method: str, path: str, segments: tuple[str, ...]) -> _Entry[T] | None:
        # A segment that contains a slash is one segment: joined, it would look like two.
        split = "%" in path and any("/" in segment for segment in segments)
        plain = path if "%" not in path or split else "/" + "/".join(segments)
        methods = methods_for(method)
        for wanted in methods:
            if (wanted, plain) in self._exact:
                return self._exact[wanted, plain]
        return self._by_pattern(methods, segments)

    def _by_pattern(self, methods: Sequence[str], segments: tuple[str, ...]) -> _Entry[T] | None:
        best: tuple[int, _Entry[T]] | None = None
        shape: tuple[int, ...] = ()
        for number in numbers(self._fitting.fitting(segments)):
            entry = self._patterns[number]
            method = entry.row.method
            if method not in methods:
                continue
            if best is None or (entry.rank == shape and methods.index(method) < best[0]):
                best, shape = (methods.index(method), entry), entry.rank
            elif entry.rank != shape:
                break
        return None if best is None else best[1]

    def _strictest(
        self, found: _Entry[T], method: str, path: str, segments: tuple[str, ...]
    ) -> _Entry[T]:
        """Return the match, or the stricter config whose path this is in another spelling.

        A config that also matches the path as spelled was passed over by the order of matching, and
        so was a less exact one: neither is evaded.
        """
        terms = found.row.terms
        if not any(e.row.terms.ask_more_than(terms) for e in self._demanding):
            return found
        try:
            cores = readings(path)
        except Unfoldable:
            raise BadPath(
                "is percent-encoded again and again, or can be read in too many ways"
            ) from None
        sent, meant = methods_for(method), methods_for(method.upper())
        is_meant, is_said = 0, self._said.fitting(segments)
        for core in cores:
            is_meant |= self._meant.fitting(core)
        best = found
        for number in numbers(is_meant):
            entry = self._demanding[number]
            if entry.core_rank > best.core_rank:
                break
            if (
                entry.row.method in meant
                and not (entry.row.method in sent and is_said >> number & 1)
                and entry.row.terms.ask_more_than(terms)
                and (best is found or entry.row.terms.ask_more_than(best.row.terms))
            ):
                best = entry
        return best


def methods_for(method: str) -> tuple[str, ...]:
    """Return the methods of configs that answer this one, best first."""
    return ("HEAD", "GET", ANY_METHOD) if method == "HEAD" else (method, ANY_METHOD)


@lru_cache(maxsize=5000)
def folded_pattern(segments: tuple[str, ...]) -> tuple[str, ...]:
    """Return a pattern folded like paths; parameters and a prefix's end stay."""
    parts: list[str] = []
    for segment in segments:
        if segment == "*" or segment.startswith("{"):
            parts.append(segment)
        elif _ONE_READING.fullmatch(segment):  # folding it costs a hundred times as much
            parts.append(segment.lower())
        else:
            parts.extend(folded("/" + segment))
    return tuple(parts)


def rank_of(pattern: tuple[str, ...]) -> tuple[int, ...]:
    """Return a rank, smaller is better: literal 0, parameter 1, prefix 2, then shorter patterns."""
    return tuple(2 if part == "*" else 1 if part.startswith("{") else 0 for part in pattern)


def _refuse_ambiguous(decoded: str) -> None:
    """Raise `BadPath` for a segment that an upstream might read as a parent folder or ignore."""
    if _HIDDEN.search(decoded):
        raise BadPath("has control characters")
    if any(segment in {".", ".."} for segment in re.split(r"[/\\;]", decoded)):
        raise BadPath("has dot segments")
