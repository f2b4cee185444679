"""Turns a token URI or the bytes behind it into a JSON value, leniently and within bounds. Pure.

Beyond RFC 8259 it accepts, each with a problem that says so: a byte order mark, UTF-16, gzip,
base64, comments and trailing commas, a code fence, lone surrogates, JSON within a text. All of
these have one meaning. Bare keys, single quotes and malformed numbers are ambiguous and refused.

Parses token URIs in their known spellings: an address to fetch, or the file itself.
"""

import base64
import binascii
import json
import math
import re
import zlib
from collections.abc import Sequence
from typing import NoReturn
from urllib.parse import unquote_to_bytes

from assay.common.json import (
    JsonObject,
    JsonValue,
    has_values_beyond,
    is_array,
    is_nested_beyond,
    is_object,
)
from assay.registries.model import Note, quoted

BYTES_MAX = 256 * 1024
"""Largest file that is parsed: room for an embedded picture, and small enough to cache many."""

VALUES_MAX = 10_000
DEPTH_MAX = 32

_JSON = "JSON as RFC 8259 has it"
_FENCE = "```"
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*+"?)|//[^\n]*|/\*(?:.*?\*/|.*+)', re.DOTALL)
_COMMA = re.compile(r'("(?:[^"\\]|\\.)*+"?)|,(?=\s*+[\]}])', re.DOTALL)
"""Matches a string first, so that commas in it stay; nothing is scanned twice."""

_BASE64 = re.compile(rb"[A-Za-z0-9+/_=\s-]{16,}")
_HALF = re.compile("[\ud800-\udfff]")
_HALF_ESCAPED = re.compile(r"\\u[dD][89a-fA-F]")


class NotRegistration(Exception):
    """The document is not a registration file; the message may be shown to the caller."""


def load(body: bytes, note: Note) -> JsonValue:
    """Return the JSON value in `body`. Raises only `NotRegistration`, whatever the bytes."""
    text = _decoded(_unpacked(body, note), note)
    try:
        return _parsed(text, note)
    except ValueError:
        pass
    return _repaired(text, note)


def load_inner(text: str, note: Note) -> JsonValue:
    """Return JSON within a text of the file, within the same bounds; None if it is not JSON."""
    try:
        return _parsed(text, note)
    except (ValueError, NotRegistration):
        return None


def _from_base64(text: bytes) -> bytes | None:
    """Decode base64 in either alphabet, padded or not; None if it is invalid."""
    plain = b"".join(text.split()).translate(bytes.maketrans(b"-_", b"+/")).rstrip(b"=")
    try:
        return base64.b64decode(plain + b"=" * (-len(plain) % 4), validate=True)
    except binascii.Error:
        return None


def _unzipped(body: bytes) -> bytes:
    """Decompress gzip to at most one byte beyond `BYTES_MAX`. Raises `NotRegistration`."""
    unpack = zlib.decompressobj(wbits=31)
    try:
        plain = unpack.decompress(body, BYTES_MAX + 1)
    except zlib.error:
        raise NotRegistration("The document at the token URI is not gzip that is whole.") from None
    if not unpack.eof and len(plain) <= BYTES_MAX:
        raise NotRegistration("The document at the token URI is not gzip that is whole.")
    return plain


def _unpacked(body: bytes, note: Note) -> bytes:
    if len(body) <= BYTES_MAX and _BASE64.fullmatch(body):
        inner = _from_base64(body)
        if inner is not None and inner[:1] in {b"{", b"[", b"\x1f"}:
            note("file", "base64", "the JSON itself")
            body = inner
    if body[:2] == b"\x1f\x8b":
        note("file", "gzip", "the JSON itself, or the header Content-Encoding: gzip")
        body = _unzipped(body)
    if len(body) > BYTES_MAX:
        raise NotRegistration(f"The document at the token URI is larger than {BYTES_MAX} bytes.")
    return body


def _decoded(body: bytes, note: Note) -> str:
    if body[:2] in {b"\xff\xfe", b"\xfe\xff"}:
        note("file", "UTF-16", "UTF-8")
        return body.decode("utf-16", "replace")
    if body[:3] == b"\xef\xbb\xbf":
        note("file", "a byte order mark", "UTF-8 without one")
        body = body[3:]
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        note("file", "bytes that are no UTF-8", "UTF-8")
        return body.decode("utf-8", "replace")


def _parsed(text: str, note: Note) -> JsonValue:
    """Parse; raises `ValueError` if it is not JSON, `NotRegistration` if it exceeds the bounds."""
    data = text.encode()
    if has_values_beyond(data, 4 * VALUES_MAX):  # Commas in strings count too.
        raise NotRegistration("The document at the token URI holds too many values.")
    if is_nested_beyond(data, DEPTH_MAX):
        raise NotRegistration("The document at the token URI is nested too deeply.")

    def no_key_twice(pairs: Sequence[tuple[str, JsonValue]]) -> JsonObject:
        members = dict(pairs)
        if len(members) < len(pairs):
            seen: set[str] = set()
            twice = next(key for key, _ in pairs if key in seen or seen.add(key))
            note("file", f"the member {quoted(twice)} twice", "it once; the last one counts")
        return members

    value: JsonValue = json.loads(text, parse_constant=_no_constant, object_pairs_hook=no_key_twice)
    _check(value)
    if _HALF_ESCAPED.search(text):
        return _whole(value, note)
    return value


def _no_constant(name: str) -> NoReturn:
    """Refuse NaN and Infinity, which are not JSON (RFC 8259, section 6)."""
    raise ValueError(name)


def _check(value: JsonValue) -> None:
    """Refuse too many values, and numbers larger than a float."""
    waiting: list[JsonValue] = [value]
    seen = 0
    while waiting:
        one = waiting.pop()
        seen += 1
        if seen > VALUES_MAX:
            raise NotRegistration("The document at the token URI holds too many values.")
        if is_object(one):
            waiting += [*one.keys(), *one.values()]
        elif is_array(one):
            waiting += one
        elif isinstance(one, float) and not math.isfinite(one):
            raise ValueError("a number larger than a float")


def _whole(value: JsonValue, note: Note) -> JsonValue:
    """Return the value without lone surrogates, which have no UTF-8; as deep as `DEPTH_MAX`."""
    if is_object(value):
        return {str(_whole(key, note)): _whole(one, note) for key, one in value.items()}
    if is_array(value):
        return [_whole(one, note) for one in value]
    if not isinstance(value, str) or not _HALF.search(value):
        return value
    note("file", "half a character (a surrogate by itself)", "whole characters")
    return _HALF.sub("\N{REPLACEMENT CHARACTER}", value)


def _repaired(text: str, note: Note) -> JsonValue:
    """Parse text that is JSON except for a code fence, comments and trailing commas."""
    if not text.strip():
        raise NotRegistration("The document at the token URI is empty.")
    if text.lstrip()[:1] == "<":
        raise NotRegistration("The document at the token URI is a web page or XML, not JSON.")
    plain, is_fenced = _unfenced(text.strip())
    bare = _COMMENT.sub(lambda found: found[1] or " ", plain)
    clean = _COMMA.sub(lambda found: found[1] or "", bare)
    steps = (
        ("a code fence", is_fenced),
        ("a comment", bare != plain),
        ("a trailing comma", clean != bare),
    )
    extra = [what for what, is_there in steps if is_there]
    try:
        value = _parsed(clean, note)
    except ValueError:
        raise NotRegistration("The document at the token URI is not JSON.") from None
    note("file", " and ".join(extra), _JSON)
    return value


def _unfenced(text: str) -> tuple[str, bool]:
    """Return the lines between two code fences, and whether there were any."""
    if len(text) < 2 * len(_FENCE) or not (text.startswith(_FENCE) and text.endswith(_FENCE)):
        return text, False
    return text[: -len(_FENCE)].partition("\n")[2], True


_KINDS = "an https:, ipfs:, ar: or data: URI"
_DATA = re.compile(r"data:([^;,]*)(.*)", re.IGNORECASE | re.DOTALL)
_JSON_TYPE = re.compile(r"(?:application|text)/(?:[a-z0-9.+-]+\+)?json|", re.IGNORECASE)
_CID = re.compile(r"(?:/?ipfs/)?(Qm[1-9A-HJ-NP-Za-km-z]{44}|b[a-z2-7]{58,110})(/.*)?", re.DOTALL)
_BASE64_TEXT = re.compile(r"[A-Za-z0-9+/_=\s-]{16,}")
_TEMPLATE = re.compile(r"https?:[^?#]*[{}<>]", re.IGNORECASE)


class TemplateUri(Exception):
    """The URI contains a placeholder that was never filled in."""


def read_token_uri(uri: str, note: Note) -> str | bytes:
    """Return the address to fetch, or the bytes of a file stored in the registry itself.

    Raises `TemplateUri`.
    """
    stripped = uri.strip()
    if inner := _inline(stripped):
        content, how = inner
        note("tokenURI", how, _KINDS)
        return content
    if stripped != uri:
        note("tokenURI", "white space around it", "the URI alone")
    if found := _CID.fullmatch(stripped):
        note("tokenURI", quoted(stripped), "ipfs:// before the CID")
        return f"ipfs://{found[1]}{found[2] or ''}"
    if _TEMPLATE.match(stripped):
        raise TemplateUri("The token URI holds a placeholder that was not filled in.")
    found = _DATA.fullmatch(stripped)
    if found is not None and "," in stripped and not _JSON_TYPE.fullmatch(found[1].strip()):
        note("tokenURI", f"the media type {quoted(found[1])}", "application/json")
        return f"data:{found[2]}"
    return stripped


def _inline(text: str) -> tuple[bytes, str] | None:
    """Return the file that the text itself contains, and its format."""
    if text[:1] in {"{", "["}:
        return text.encode("utf-8", "replace"), "the file itself"
    if text[:3].lower() in {"%7b", "%5b"}:
        return unquote_to_bytes(text.encode("utf-8", "replace")), "the file itself"
    if _CID.fullmatch(text) or not _BASE64_TEXT.fullmatch(text):
        return None
    content = _from_base64(text.encode("ascii"))
    if content is None or content[:1] not in {b"{", b"[", b"\x1f"}:
        return None
    return content, "the file itself in base64"
