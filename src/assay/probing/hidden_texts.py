"""Finds and reads texts that are hidden from a human reader, or written in another form. Pure.

Detects terminal sequences that hide text on a screen, and reads the hidden text.

Colours hide nothing; test runners and builds use them. Hidden are: concealed text, letters in the
colour of the background, and lines that are overwritten or erased.
Source: ECMA-48, sections 8.3.39, 8.3.41 and 8.3.117.

Finds a word in a text in any form: spaced, reversed, encoded or in look-alikes.

A text is read in bounded slices (`common.sliced_work`). Only words of at least eight letters are
searched: a shorter one occurs in some long text by chance.

Detects ways to hide a text from a human reader, and reads the hidden text.

Sources: checks.md#poisoning; Unicode Technical Report 36.
"""

import base64
import binascii
import codecs
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import unescape
from itertools import islice

from assay.common.sliced_work import Meter, Sliced, occurs

SEQUENCES_MAX = 400
"""Sequences read of one text."""

_CHARS = 2_000
"""Characters read of one sequence."""

SEQUENCE = re.compile(r"(?:\x1b\[|\x9b)([0-9;:]{0,40})([@-~])")
_LINES = 3
_CONCEALED = 8


def hidden_passages(text: str) -> Iterator[str]:
    """Yield passages of the text that no screen shows."""
    for match in _sequences(text):
        if match[2] == "m" and _is_unseen(match[1]):
            yield SEQUENCE.split(text[match.end() : match.end() + _CHARS], maxsplit=1)[0]


def wiped_passages(text: str) -> Iterator[str]:
    """Yield passages that a screen shows only for a moment: progress, or hidden text."""
    for match in _sequences(text):
        if match[2] in "JK" and match[1] in {"1", "2", "3"}:
            yield _wiped(text[max(0, match.start() - _CHARS) : match.start()])


def _sequences(text: str) -> Iterator[re.Match[str]]:
    return islice(SEQUENCE.finditer(text), SEQUENCES_MAX)


def _is_unseen(numbers: str) -> bool:
    """Return whether letters are concealed, or have the colour of the background."""
    codes = [int(code) for code in numbers.replace(":", ";").split(";") if len(code) in {1, 2, 3}]
    letters = background = ""
    while codes:
        code, *codes = codes
        if code == _CONCEALED:
            return True
        if code in {38, 48} and codes:
            size = {5: 2, 2: 4}.get(codes[0], 0)
            colour, codes = str(codes[1:size]), codes[size:]
        elif code // 10 in {3, 4, 9, 10}:
            colour = f"{code % 10} {code // 10 > 4}"  # noqa: PLR2004 - bright ones begin at 90
        else:
            continue
        if code == 38 or code // 10 in {3, 9}:  # noqa: PLR2004 - the code of a colour for letters
            letters = colour
        else:
            background = colour
    return letters == background != ""


def _wiped(before: str) -> str:
    """Return the erased line, and those above it that the cursor moved up to."""
    return "\n".join(SEQUENCE.sub("", before).split("\n")[-_LINES:])


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
        for decoded in (_from_hex(blob), _text_of_base64(blob)):
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


def _text_of_base64(blob: str) -> str | None:
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
