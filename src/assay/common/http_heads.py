"""What the bytes of an HTTP head say of themselves, without a parser."""

from collections.abc import Sequence
from typing import TypeAlias

END = b"\r\n\r\n"
"""Where a head ends, if it is plain."""


def is_plain(raw: bytes, headers: int) -> bool:
    """Whether every line of a head is its first line or one header, and all end in CRLF.

    Else where the head ends is a parser's to say, and not to be guessed from its bytes: a bare LF,
    a folded line or an empty one before the first make the count differ.
    """
    return raw.count(b"\n") == raw.count(b"\r\n") == headers + 2


HeaderPairs: TypeAlias = Sequence[tuple[bytes, bytes]]
"""As they came: names in lower case, repeated ones repeated."""
