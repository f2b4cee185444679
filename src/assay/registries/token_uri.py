"""Parses token URIs in their known spellings: an address to fetch, or the file itself. Pure."""

import re
from urllib.parse import unquote_to_bytes

from assay.registries.file_problems import Note, quoted
from assay.registries.registration_json import from_base64

_KINDS = "an https:, ipfs:, ar: or data: URI"
_DATA = re.compile(r"data:([^;,]*)(.*)", re.IGNORECASE | re.DOTALL)
_JSON = re.compile(r"(?:application|text)/(?:[a-z0-9.+-]+\+)?json|", re.IGNORECASE)
_CID = re.compile(r"(?:/?ipfs/)?(Qm[1-9A-HJ-NP-Za-km-z]{44}|b[a-z2-7]{58,110})(/.*)?", re.DOTALL)
_BASE64 = re.compile(r"[A-Za-z0-9+/_=\s-]{16,}")
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
    if found is not None and "," in stripped and not _JSON.fullmatch(found[1].strip()):
        note("tokenURI", f"the media type {quoted(found[1])}", "application/json")
        return f"data:{found[2]}"
    return stripped


def _inline(text: str) -> tuple[bytes, str] | None:
    """Return the file that the text itself contains, and its format."""
    if text[:1] in {"{", "["}:
        return text.encode("utf-8", "replace"), "the file itself"
    if text[:3].lower() in {"%7b", "%5b"}:
        return unquote_to_bytes(text.encode("utf-8", "replace")), "the file itself"
    if _CID.fullmatch(text) or not _BASE64.fullmatch(text):
        return None
    content = from_base64(text.encode("ascii"))
    if content is None or content[:1] not in {b"{", b"[", b"\x1f"}:
        return None
    return content, "the file itself in base64"
