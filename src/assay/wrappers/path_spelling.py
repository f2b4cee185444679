"""What lenient upstreams make of a path, out of all its spellings. Pure.

Servers differ in what they take for the same path: letter case (Express), `;` parameters (Spring),
doubled slashes, a slash, dots or spaces at the end (Windows), percent-encoding once more than
needed. What two paths have in common after all of that is their folded form.

They differ in the order of these steps too: `/SHOP/a%2Fb/buy` is three segments to Express, which
parts them before it decodes, and four to Flask. So one path has several readings, and a parameter
of a route may hold in one reading what another would cut off. Each reading is the folded segments.
"""

import itertools
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import unquote_to_bytes

DECODINGS_MAX: Final = 8
"""How often a path is percent-decoded; one that goes on changing is nobody's honest path."""

PARTS_MAX: Final = 128
"""Segments of a path that is read in every way; no route has half as many."""

READINGS_MAX: Final = 32
"""Different readings of one path; honest ones have one or two."""

_DECODED_APART: Final = 3
"""After how many single decodings a path is parted anew; then it is decoded to the end."""

_ENCODED_PERCENT = re.compile(rb"%(?:25)+")
_WIDE = re.compile(rb"%[uU]([0-9a-fA-F]{4})")
"""`%u0041`, which IIS reads."""

_OVERLONG = re.compile(
    rb"[\xc0\xc1][\x80-\xbf]|\xe0[\x80-\x9f][\x80-\xbf]|\xf0[\x80-\x8f][\x80-\xbf]{2}"
)
"""A character in more bytes of UTF-8 than it needs, which is no UTF-8 (RFC 3629, section 3)."""

_END = re.compile(rb"[?#\x00]")
"""Where a server ends a path that it has decoded too early."""

_CONTROLS = bytes(range(1, 0x20)) + b"\x7f"
"""Characters that the URL standard's parsers leave out, tabs and ends of lines among them."""

_STREAM = re.compile(r":[^:]*:\$")
"""Before NTFS's type of a stream: `quote::$DATA` is the file `quote`, and
`shop:$I30:$INDEX_ALLOCATION` the folder `shop`. Source: [MS-FSCC], 2.1.5."""

_PARAMETERS = re.compile(rb";[^/]*")
_SLASHES = re.compile(rb"[/\\]")


class Unfoldable(ValueError):
    """A path that is still encoded after any number of decodings a server would do.

    Also one of more segments or readings than any honest path has.
    """


class _Segment(NamedTuple):
    """A segment without what servers leave off, and what is left where that is nothing."""

    core: str
    is_upward: bool
    is_parameters: bool
    """Whether nothing but `;` parameters was there."""


@lru_cache(maxsize=2000)
def folded(path: str) -> tuple[str, ...]:
    """The segments that all spellings of a path have in common; none are empty.

    `path` is as it came, percent-encoded, without its query. Raises `Unfoldable`.
    """
    parts = _SLASHES.split(_ended(_plainest(_octets(path))))
    return _kept([_segment(part) for part in parts if part], frozenset())


def readings(path: str) -> frozenset[tuple[str, ...]]:
    """What servers make of a path, each as its folded segments; `folded` is one of them.

    A segment is empty where some servers keep it, and others leave all of it off. Raises
    `Unfoldable`.
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
    """The path's segments, parted before and after each of the steps."""
    found: set[tuple[bytes, ...]] = set()
    for text in _texts(data):
        for ended in {text, _ended(text)}:
            found.add(tuple(part for part in ended.split(b"/") if part))
            if b"\\" in ended:
                found.add(tuple(part for part in _SLASHES.split(ended) if part))
    return found


def _texts(data: bytes) -> set[bytes]:
    """The path as it came, decoded once and again, and to the end; also without parameters."""
    found: set[bytes] = set()
    for start in {data, _PARAMETERS.sub(b"", data)}:
        text = start
        for _ in range(_DECODED_APART + 1):
            found.add(text)
            text = unquote_to_bytes(_WIDE.sub(_wide, text))
        found.add(_plainest(start))
    return found


def _plainest(data: bytes, *, is_segment: bool = False) -> bytes:
    """The text after every decoding there is; a segment without parameters, before each of them.

    Raises `Unfoldable`.
    """
    for _ in range(DECODINGS_MAX):
        decoded = _decoded(data.partition(b";")[0] if is_segment else data)
        if decoded == data:
            return data
        data = decoded
    raise Unfoldable


def _decoded(data: bytes) -> bytes:
    """One step: percent-decoding, and where that changes nothing, other forms of a character."""
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
    """One segment, folded as a whole: a slash that it holds encoded stays in it."""
    bare = _plainest(part, is_segment=True)
    name = _STREAM.split(bare.decode("utf-8", "replace"), maxsplit=1)[0].rstrip(" ")
    # Upper case first: `\u0131` is an `I` to servers that compare so, and `\u0130` an `i`.
    core = name.rstrip(". ").upper().casefold().replace("i\u0307", "i")
    return _Segment(core, name == "..", not bare)


def _read(segments: list[_Segment]) -> Iterator[tuple[str, ...]]:
    """The segments, by whether a server keeps each kind of those that others leave off."""
    kinds = {_kind(one) for one in segments} - {None}
    for count in range(len(kinds) + 1):
        for kept in itertools.combinations(sorted(filter(None, kinds)), count):
            yield _kept(segments, frozenset(kept))


def _kind(segment: _Segment) -> str | None:
    """Why servers leave a segment off; None for one that all of them keep."""
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
