"""Reads JSON from `data:` URIs (RFC 2397), within a size limit."""

import base64
import binascii
import re
from urllib.parse import unquote_to_bytes

_JSON = re.compile(r"(?:application|text)/(?:[a-z0-9.+-]+\+)?json|", re.IGNORECASE)
"""JSON media types, or no media type: published registration files often omit it."""

_PERCENT = 3
_SPACE = re.compile(rb"\s+")


class DataUriError(ValueError):
    """The URI carries no document; the message may be shown to the caller."""


def read_data_uri(uri: str, bytes_max: int) -> bytes:
    """Return the bytes that `uri` (beginning with `data:`) carries. Raises `DataUriError`."""
    head, comma, payload = uri[len("data:") :].partition(",")
    if not comma:
        raise DataUriError("the data URI has no comma before its content")
    media_type, *parameters = (part.strip() for part in head.split(";"))
    if not _JSON.fullmatch(media_type):
        raise DataUriError("the data URI does not carry JSON")
    # Refused before decoding: an escaped byte takes at most three characters.
    if len(payload) > _PERCENT * 2 * bytes_max:
        raise DataUriError(f"the document is larger than {bytes_max} bytes")
    content = unquote_to_bytes(payload.encode("utf-8", "replace"))
    if any(parameter.lower() == "base64" for parameter in parameters):
        content = _from_base64(content)
    if len(content) > bytes_max:
        raise DataUriError(f"the document is larger than {bytes_max} bytes")
    return content


def _from_base64(text: bytes) -> bytes:
    """Decode either base64 alphabet, with or without padding and line breaks."""
    plain = _SPACE.sub(b"", text).translate(bytes.maketrans(b"-_", b"+/")).rstrip(b"=")
    try:
        return base64.b64decode(plain + b"=" * (-len(plain) % 4), validate=True)
    except binascii.Error:
        raise DataUriError("the data URI is not valid base64") from None
