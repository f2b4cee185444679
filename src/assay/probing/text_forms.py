"""Finds a word in a text in any form: spaced, reversed, encoded or in look-alikes. Pure.

A text is read in bounded slices (`common.sliced_work`). Only words of at least eight letters are
searched: a shorter one occurs in some long text by chance.
"""

import base64
import codecs
import re
import unicodedata
from collections.abc import Sequence

from assay.common.sliced_work import Meter, Sliced

TEXT_MAX = 65_536
"""Characters read of one answer."""

_PIECE = 1_024

LOOK_ALIKE = str.maketrans(
    "\u0430\u0432\u0435\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445\u0456\u0458\u0455\u0501"
    "\u0261\u0131\u04bb\u03b1\u03b2\u03b5\u03b9\u03ba\u03bf\u03c1\u03c4\u03c5\u03bd\u03c7\u03b7\u0501",
    "abekmhopctyxijsdgihabeikoptuvxnd",
)
"""Cyrillic and Greek letters as the Latin ones they look like. Source: Unicode TR39."""

_LEET = str.maketrans("013457$@", "oieastsa")


def skeleton(text: str) -> str:
    """Return text in lower case, look-alikes as Latin letters, without marks and hidden signs."""
    if text.isascii():
        return text.casefold()
    parts = unicodedata.normalize("NFKD", text).casefold()
    seen = "".join(c for c in parts if unicodedata.category(c) not in {"Mn", "Cf"})
    return seen.translate(LOOK_ALIKE)


def letters(text: str) -> str:
    """Return the letters and digits of a text's skeleton, concatenated."""
    return "".join(filter(str.isalnum, skeleton(text)))


def find_letters(text: str) -> Sliced[str]:
    """Like `letters`, for the first `TEXT_MAX` characters, piece by piece.

    Ordering the marks of one letter is quadratic.
    """
    meter, parts = Meter(), list[str]()
    for at in range(0, min(len(text), TEXT_MAX), _PIECE):
        parts.append(letters(text[at : at + _PIECE]))
        if meter.spend(_PIECE):
            yield
    return "".join(parts)


def find_word(text: str, words: Sequence[str]) -> Sliced[str | None]:
    """Return the first of `words` (lower-case Latin letters) that the text has in any form."""
    cut, meter = text[:TEXT_MAX], Meter()
    plain = yield from find_letters(cut)
    unspaced = "".join(cut.split())
    forms = (plain, plain.translate(_LEET), codecs.encode(plain, "rot13"))
    for word in words:
        if any(word in form or word[::-1] in form for form in forms) or _is_encoded(unspaced, word):
            return word
        if meter.spend(len(plain)):
            yield
    return None


def _is_encoded(unspaced: str, word: str) -> bool:
    """Return whether it occurs in base64 (at any offset), base32 or hexadecimal; in either case."""
    for spelled in (word, word.upper(), word.capitalize(), word[::-1]):
        data = spelled.encode()
        if data.hex() in unspaced.casefold().replace("\\x", "").replace("%", ""):
            return True
        if any(part in unspaced for part in _base64_parts(data)):
            return True
        if base64.b32encode(data).decode().rstrip("=")[:-1] in unspaced.upper():
            return True
    return False


def _base64_parts(data: bytes) -> list[str]:
    """Return what every base64 text with `data` contains, for each possible offset."""
    parts: list[str] = []
    for offset in range(3):
        coded = base64.b64encode(b"\0" * offset + data).decode().rstrip("=")
        begin = (offset * 8 + 5) // 6  # The first sign made only of our bits.
        whole = (offset + len(data)) * 8 // 6
        parts.append(coded[begin:whole])
    return parts


def decoded(text: str, meter: Meter) -> Sliced[str]:
    """Return the text of the longest base64 and hexadecimal runs that encode text.

    A run may be broken into lines.
    """
    if meter.spend(len(text)):
        yield
    joined = _BROKEN.sub("", text[:_CODED_MAX])
    runs = sorted(_CODED.findall(joined), key=len, reverse=True)[:_RUNS_MAX]
    return "\n".join(filter(None, map(_plain, runs)))


def _plain(run: str) -> str:
    try:
        data = bytes.fromhex(run) if _HEX.fullmatch(run) else _from_base64(run)
        return data.decode("utf-8")
    except ValueError:
        return ""


def _from_base64(run: str) -> bytes:
    whole = run[: len(run) - (len(run) % 4 == 1)]
    return base64.urlsafe_b64decode(
        whole.replace("+", "-").replace("/", "_") + "=" * (-len(whole) % 4)
    )


_CODED = re.compile(r"[A-Za-z0-9+/_-]{32,4096}")
_BROKEN = re.compile(r"(?<=[A-Za-z0-9+/_-]{20})\s{1,4}(?=[A-Za-z0-9+/_-]{4})")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2})+")
_CODED_MAX = 16_384
"""Characters of an answer that are searched for encoded text."""

_RUNS_MAX = 8
