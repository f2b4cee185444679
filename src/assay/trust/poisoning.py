"""What hidden text and instructions to the reader look like. Pure.

Precision before recall: an honest agent that is accused loses its grade, a dishonest one meets
several probes. So a pattern is in here only when ordinary tool descriptions do not match it. Every
quantifier is bounded: the text is hostile. So is the work: a text is read in windows of fixed size,
normalised piece by piece, and the computations yield after every few thousand characters
(`kit.slices`).
Sources: facts (security, section 1: poisoning); Unicode Technical Report 36.
"""

import base64
import binascii
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator

from assay.kit.slices import Meter, Sliced, occurs, whole

DESCRIPTION_MAX = 262_144
"""Characters read of one description; the rest of a longer one is not judged."""

DOCUMENT_MAX = 524_288
"""Characters read of all the descriptions of one document; the rest is not judged."""

TEXTS_MAX = 50_000
"""Texts read of one document."""

_PIECE = 1_024
"""Characters normalised at once: ordering the combining marks of one letter takes the square."""

_TEXT_COSTS = 32
"""What a text costs beside its characters, counted as characters."""

_COMMENT_COSTS = 16
"""What an HTML comment costs beside its characters: it may have none."""

_DESCRIPTION_REACH = 256
"""Longest match that is found, beyond a window."""

_NAME_CHARS = 256
_WORD_CHARS = 32

_INSTRUCTIONS = re.compile(
    r"\b(?:ignore|disregard|forget) (?:all |any |the |your |every |of ){0,4}"
    r"(?:previous|prior|above|earlier|preceding) (?:\w{1,20} ){0,2}"
    r"(?:instructions?|prompts?|directives)\b"
    r"|\b(?:do not|don't|never|without) (?:ever )?(?:tell|mention|inform|reveal|telling"
    r"|mentioning|informing|revealing)(?: \w{1,20}){0,4} (?:to )?the user\b"
    r"|\b(?:reveal|print|output|repeat|include|send|disclose) (?:\w{1,20} ){0,4}"
    r"(?:your (?:system|hidden) prompt|your (?:hidden|secret|system) instructions)\b"
    r"|<\|(?:im_start|im_end|system|endoftext)\|>|<<sys>>|\[/?inst\]",
)
_QUOTING = re.compile(
    r"detect|prevent|block|filter|guard|flag|scan|classif|protect|sanitiz|jailbreak|such as|e\.g\."
    r"|for example|attempts?|attack"
)
_QUOTING_CHARS = 80
_COMMANDING = re.compile(
    r"\b(?:you must|you should|always|never|ignore|secretly|do not|don't|send|forward|call|execute"
    r"|upload|exfiltrate|read)\b"
)
_RUN = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{32,}+={0,2}")
"""Tried once a run: from every place of runs that are too short it takes sixteen times as long."""

_BLOB_CHARS = (32, 4_000)
_BLOBS_MAX = 40
_ZERO_WIDTH = "\u200b\u2060\ufeff\u180e"
_SPLIT_WORD = re.compile(rf"[A-Za-z][{_ZERO_WIDTH}\u200c\u200d][A-Za-z]")
_HIDDEN_RUN = re.compile(rf"[{_ZERO_WIDTH}\u200c\u200d]{{4,}}")
_OVERRIDES = re.compile("[\u202d\u202e]")
_TAGS = re.compile("[\U000e0020-\U000e007e]+")
_FLAG = "\U0001f3f4"
_WIDE = re.compile(
    "[\u2057\u2152\u2167\u2177\u247d-\u2487\u2a0c\u321d\u321e\u3300-\u3302\u3304\u3307\u3308\u330c"
    "\u330d\u3312\u3313\u3315-\u3317\u3319-\u331b\u331f-\u3321\u332b\u332d\u332e\u3332-\u3334\u3336"
    "\u333d\u3343\u3347\u3348\u334a\u334c\u334d\u3351\u3354\u3356\u337f\u3389\u33a8\u33ae\u33af\u33c2"
    "\u33c6\u33d8\ufdf2-\ufdf8\ufdfa-\ufdfc]"
)
"""Characters that NFKC makes more than three of: U+FDFA becomes 18. Words of an instruction are
written with none of them; they are read as a space."""

_ANSI = re.compile(r"\x1b\[|\x9b[0-9;]{1,20}[A-Za-z]")


def poison(text: str) -> frozenset[str]:
    """What in a description is meant for the model that reads it and not for the person."""
    return whole(find_poison([text]))


def find_poison(texts: Iterable[str], meter: Meter | None = None) -> Sliced[frozenset[str]]:
    """What in a document's descriptions is meant for the model that reads them.

    Of a document with more than `DOCUMENT_MAX` characters or `TEXTS_MAX` texts the first are read.
    """
    found: set[str] = set()
    meter = meter or Meter()
    left = DOCUMENT_MAX
    for _, text in zip(range(TEXTS_MAX), texts, strict=False):
        if meter.spend(_TEXT_COSTS):
            yield
        if not _is_word(text):
            found |= yield from _poison_of(text[: min(DESCRIPTION_MAX, left)], meter)
        left -= len(text)
        if left <= 0:
            break
    return frozenset(found)


def find_alike(names: Iterable[str]) -> Sliced[bool]:
    """Whether one of a document's names looks like another."""
    meter = Meter()
    for _, name in zip(range(TEXTS_MAX), names, strict=False):
        if not name.isascii() and looks_alike(name):
            return True
        if meter.spend(_TEXT_COSTS + min(len(name), _NAME_CHARS)):
            yield
    return False


def looks_alike(name: str) -> bool:
    """Whether a name mixes Latin letters with Cyrillic or Greek ones that look the same."""
    letters = (c for c in name[:_NAME_CHARS] if c.isalpha())
    scripts = {unicodedata.name(c, "").partition(" ")[0] for c in letters}
    return "LATIN" in scripts and bool(scripts & {"CYRILLIC", "GREEK"})


def _is_word(text: str) -> bool:
    """Short, and of letters and digits alone: no pattern matches it."""
    return len(text) < _WORD_CHARS and text.isascii() and text.replace("_", "a").isalnum()


def _poison_of(text: str, meter: Meter) -> Sliced[set[str]]:
    found = yield from _hidden(text, meter)
    if (yield from _instructs(text, meter)):
        found.add("instructions to the reader")
    for comment in _comments(text):
        if meter.spend(_COMMENT_COSTS):
            yield
        if (yield from _commands(comment, meter)):
            found.add("hidden comment")
            break
    if (yield from _encodes(text, meter)):
        found.add("encoded instructions")
    return found


def _hidden(text: str, meter: Meter) -> Sliced[set[str]]:
    found: set[str] = set()
    for kind, pattern, accept in _HIDDEN:
        if kind not in found and (
            yield from occurs(pattern, text, meter, _DESCRIPTION_REACH, accept)
        ):
            found.add(kind)
    return found


def _is_no_flag(match: re.Match[str]) -> bool:
    """But for the flags of England, Scotland and Wales."""
    return match.string[max(0, match.start() - 1) : match.start()] != _FLAG


_HIDDEN: tuple[tuple[str, re.Pattern[str], Callable[[re.Match[str]], bool] | None], ...] = (
    ("zero-width characters", _SPLIT_WORD, None),
    ("zero-width characters", _HIDDEN_RUN, None),
    ("bidirectional override", _OVERRIDES, None),
    ("invisible tag characters", _TAGS, _is_no_flag),
    ("terminal escape", _ANSI, None),
)


def _instructs(text: str, meter: Meter) -> Sliced[bool]:
    """An instruction that is not quoted as an example of one (guards and scanners do that)."""
    plain = yield from _plain(text, meter)
    return (yield from occurs(_INSTRUCTIONS, plain, meter, _DESCRIPTION_REACH, _is_meant))


def _is_meant(match: re.Match[str]) -> bool:
    before = match.string[max(0, match.start() - _QUOTING_CHARS) : match.start()]
    quoted = before.endswith(("'", '"', "`", "\u201c", "\u2018"))
    return not quoted and not _QUOTING.search(before)


def _commands(comment: str, meter: Meter) -> Sliced[bool]:
    plain = yield from _plain(comment, meter)
    return (yield from occurs(_COMMANDING, plain, meter, _DESCRIPTION_REACH))


def _encodes(text: str, meter: Meter) -> Sliced[bool]:
    """Whether what base64 and hexadecimal runs say, where they say text, is an instruction."""
    for _, blob in zip(range(_BLOBS_MAX), _blobs(text), strict=False):
        for decode in (_from_hex, _from_base64):
            decoded = decode(blob)
            if (
                decoded is not None
                and "".join(decoded.split()).isprintable()
                and (yield from _instructs(decoded, meter))
            ):
                return True
    return False


def _blobs(text: str) -> Iterator[str]:
    """What may be encoded text, a longer run in pieces."""
    least, most = _BLOB_CHARS
    for match in _RUN.finditer(text):
        run = match.group()
        for at in range(0, len(run), most):
            if len(run[at : at + most].rstrip("=")) >= least:
                yield run[at : at + most]


def _plain(text: str, meter: Meter) -> Sliced[str]:
    """As a model would read it: compatibility forms folded, invisible characters gone."""
    parts: list[str] = []
    gap = ""
    for piece in _pieces(text):
        folded = _folded(piece)
        if words := " ".join(folded.split()):
            parts.append((" " if folded[0].isspace() and parts else gap) + words)
            gap = ""
        if folded[-1:].isspace() and parts:
            gap = " "
        if meter.spend(len(piece)):
            yield
    return "".join(parts)


def _folded(piece: str) -> str:
    if piece.isascii():
        return piece.casefold()
    folded = unicodedata.normalize("NFKC", _WIDE.sub(" ", piece))
    return "".join(c for c in folded if unicodedata.category(c) != "Cf").casefold()


def _pieces(text: str) -> Iterator[str]:
    """Cut where nothing composes over the cut if there is such a place: before an ASCII character.

    A text that has none for a whole piece is cut in the middle of it.
    """
    at = 0
    while at < len(text):
        end = min(len(text), at + _PIECE)
        cut = end
        while end < len(text) and cut > at + 1 and not text[cut].isascii():
            cut -= 1
        cut = cut if cut > at + 1 else end
        yield text[at:cut]
        at = cut


def _comments(text: str) -> Iterable[str]:
    """The insides of HTML comments. By hand: a lazy pattern is quadratic on many openings."""
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
