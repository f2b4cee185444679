"""Detects ways to hide a text from a human reader, and reads the hidden text. Pure.

Sources: checks.md#poisoning; Unicode Technical Report 36.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from html import unescape

from assay.common.sliced_work import Meter, Sliced, occurs
from assay.probing.escapes import hidden_passages, wiped_passages
from assay.probing.text_forms import LOOK_ALIKE

REACH = 256
"""Longest match that is found beyond a window."""

_RUN = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{32,}+={0,2}")
"""Matched once a run: trying every position of too short runs takes sixteen times as long."""

_BLOB_CHARS = (32, 4_000)
_BLOBS_MAX = 40
_ZERO_WIDTH = "\u200b\u2060\ufeff\u180e"
_FLAG = "\U0001f3f4"
COMMON = frozenset({"hidden comment", "encoded instructions", "coded letters"})
"""Common in honest documents: the hidden text must itself be a clear instruction."""

SECRETIVE = frozenset(
    {
        "bidirectional override",
        "invisible tag characters",
        "look-alike letters",
        "spaced letters",
        "terminal escape",
        "wiped lines",
        "zero-width characters",
    }
)
"""With any sign in the hidden text, they count as two signs."""


def find_disguises(text: str, meter: Meter) -> Sliced[set[str]]:
    """Return the ways in which a text may hide something; `concealed` decides whether it does."""
    found = {kind for kind, sign in _SIMPLE.items() if sign in text}
    if (yield from occurs(_RUN_BEGINS, text, meter, REACH)):
        found.add("encoded instructions")
    if (yield from occurs(_SPACED_BEGINS, text, meter, REACH)):
        found.add("spaced letters")
    if text.isascii():
        return found

    def collect(match: re.Match[str]) -> bool:
        found.update(_invisible(match))
        return False

    yield from occurs(_INVISIBLE_RUN, text, meter, REACH, collect)
    if (yield from occurs(_MIXED_LETTERS, text, meter, REACH)):
        found.add("look-alike letters")
    return found


_SIMPLE: Mapping[str, str] = {
    "hidden comment": "<!--",
    "terminal escape": "\x1b[",
    "wiped lines": "\x1b[",
    "coded letters": "&#",
}
_RUN_BEGINS = re.compile(r"[A-Za-z0-9+/_-]{32}")
_SPACED_BEGINS = re.compile(r"[A-Za-z] (?:[A-Za-z] {1,3}){7}")
_MIXED_LETTERS = re.compile("[a-z][\u0370-\u04ff][a-z]|[\u0370-\u04ff][a-z][\u0370-\u04ff]")
_INVISIBLE_RUN = re.compile(
    f"[{_ZERO_WIDTH}\u200c\u200d\u202d\u202e\ufe00-\ufe0f\U000e0020-\U000e007e\U000e0100-\U000e01ef]"
    "{1,250}"
)
_DATA_FROM = 32
_SELECTORS_FROM = 8
_RUN_FROM = 4


def _invisible(match: re.Match[str]) -> Iterator[str]:
    """Yield the kind of a run of invisible characters; a single one joins emojis and letters."""
    run = match.group()
    before = match.string[max(0, match.start() - 1) : match.start()]
    after = match.string[match.end() : match.end() + 1]
    tags = sum("\U000e0020" <= c <= "\U000e007e" for c in run)
    selectors = sum("\ufe00" <= c <= "\ufe0f" or c >= "\U000e0100" for c in run)
    joiners = sum(c in _JOINERS for c in run)
    if joiners >= _DATA_FROM or selectors >= _SELECTORS_FROM:
        yield "hidden data"
    if joiners >= _RUN_FROM or (joiners and _is_letter(before) and _is_letter(after)):
        yield "zero-width characters"
    if "\u202d" in run or "\u202e" in run:
        yield "bidirectional override"
    if tags and before != _FLAG:
        yield "invisible tag characters"


def _is_letter(character: str) -> bool:
    return character.isascii() and character.isalpha()


_JOINERS = frozenset(_ZERO_WIDTH + "\u200c\u200d")


def concealed(text: str, disguises: set[str]) -> Iterator[str]:
    """Yield the text for models that people do not see, for each disguise found in it."""
    for name, read in _READERS.items():
        if name in disguises:
            yield from read(text)


def encoded_texts(text: str) -> Iterator[str]:
    """Yield the text of base64 and hexadecimal runs that encode text."""
    for _, blob in zip(range(_BLOBS_MAX), blobs(text), strict=False):
        for decoded in (_from_hex(blob), _from_base64(blob)):
            if decoded is not None and "".join(decoded.split()).isprintable():
                yield decoded


def _tagged(text: str) -> Iterator[str]:
    yield "".join(chr(ord(c) - 0xE0000) for c in text if "\U000e0020" <= c <= "\U000e007e")


def _overridden(text: str) -> Iterator[str]:
    yield from (part[::-1] for part in re.split("[\u202d\u202e]", text)[1:20])


def _despaced(text: str) -> Iterator[str]:
    yield from (_joined(run) for run in _SPACED.finditer(text))


def _joined(run: re.Match[str]) -> str:
    return run.group().replace("  ", "\0").replace(" ", "").replace("\0", " ")


_SPACED = re.compile(r"(?:\b[A-Za-z0-9.,;] {1,3}){8,400}")


def blobs(text: str) -> Iterator[str]:
    """Yield possible encoded text, a longer run in pieces."""
    least, most = _BLOB_CHARS
    for match in _RUN.finditer(text):
        run = match.group()
        for at in range(0, len(run), most):
            if len(run[at : at + most].rstrip("=")) >= least:
                yield run[at : at + most]


def _comments(text: str) -> Iterable[str]:
    """Yield the contents of HTML comments; a lazy pattern would be quadratic on many openings."""
    start = text.find("<!--")
    while start >= 0 and (end := text.find("-->", start)) >= 0:
        yield text[start + 4 : end]
        start = text.find("<!--", end)


def _from_hex(blob: str) -> str | None:
    try:
        return bytes.fromhex(blob).decode("utf-8")
    except ValueError:
        return None


def _from_base64(blob: str) -> str | None:
    standard = blob.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(standard + "=" * (-len(standard) % 4)).decode("utf-8")
    except (binascii.Error, ValueError):
        return None


def _unescaped(text: str) -> Iterator[str]:
    yield from (unescape(run.group()) for run in _ENTITIES.finditer(text))


_ENTITIES = re.compile(r"(?:&#x?[0-9A-Fa-f]{2,6};\s?){4,400}")


def _split(text: str) -> Iterator[str]:
    """Yield text with many invisible characters close together, without those characters."""
    for _, match in zip(range(_BLOBS_MAX), _SPACED_LETTERS.finditer(text), strict=False):
        part = text[max(0, match.start() - _SPLIT_GAP) : match.end() - 1 + _SPLIT_GAP]
        for joiner in _JOINERS:
            part = part.replace(joiner, "")
        yield part


_SPLIT_GAP = 16
_SPACED_LETTERS = re.compile(
    f"[{''.join(_JOINERS)}](?:[^{''.join(_JOINERS)}]{{0,{_SPLIT_GAP - 1}}}+[{''.join(_JOINERS)}])++"
)
"""Nothing is tried twice: a whole text can be one such run."""


_READERS: Mapping[str, Callable[[str], Iterable[str]]] = {
    "hidden comment": _comments,
    "encoded instructions": encoded_texts,
    "invisible tag characters": _tagged,
    "coded letters": _unescaped,
    "spaced letters": _despaced,
    "bidirectional override": _overridden,
    "terminal escape": hidden_passages,
    "wiped lines": wiped_passages,
    "zero-width characters": _split,
    "look-alike letters": lambda text: [text.casefold().translate(LOOK_ALIKE)],
}
