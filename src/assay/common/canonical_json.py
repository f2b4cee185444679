"""One text for one value: canonical JSON (RFC 8785) and its SHA-256."""

import hashlib

import rfc8785

from assay.common.json import JsonValue


def canonical_bytes(value: JsonValue) -> bytes:
    """The RFC 8785 form of `value`: the same value gives the same bytes on any machine.

    Raises `ValueError` for what has no such form (NaN, integers beyond 2^53, lone surrogates).
    """
    try:
        return rfc8785.dumps(value)
    except rfc8785.CanonicalizationError as error:
        raise ValueError(str(error)) from error


def sha256_hex(data: bytes) -> str:
    """`0x` and 64 hex digits."""
    return "0x" + hashlib.sha256(data).hexdigest()
