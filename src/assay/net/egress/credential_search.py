"""Searches requests for our own credentials, in a bounded number of steps.

Pure. The speed of this decides what a hostile request costs all other callers: it decodes and
searches whole heads at the speed of memory, and counts each item that it inspects separately.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from typing import Final

from assay.net.egress.fields import as_gateways_read

API_KEY_MARK: Final = b"svc_op_"
"""Prefix of every API key. Source: interface.md#api-key-record."""

_NAMES: Final = tuple(
    name.encode()
    for name in (
        *("x-agent-session", "x-agent-signature", "x-agent-challenge", "x-payment"),
        *("payment-signature", "payment-authorization", "assay-session"),
    )
)
"""Substrings of all our names, in lower case and with dashes."""

_FOLDED = bytes(
    byte + 32 if 65 <= byte <= 90 else byte if chr(byte).isalnum() and byte < 128 else 45  # noqa: PLR2004
    for byte in range(256)
)

# Each begins with a literal, which is found at the speed of memory: a pattern that has to be tried
# at every byte would make a long request cost ten times as much as all other work on it.
_RUN_END = re.compile(rb"[\w-]*+", re.ASCII)
_TWO_MORE_RUNS = re.compile(rb"\.[\w-]++\.[\w-]*+", re.ASCII)
_TOKEN_START = b"eyJ"
_SESSION_MARK = b"MD"
_SESSION = re.compile(rb"MD(?=([\w-]{9}t[\w-]{12}L[\w-]{6}t[\w-]{16}f[\w-]{0,150}))", re.ASCII)
"""In base64: an id that begins with `0`, its dashes in their places, the bar after it, and enough
characters for address and expiry."""
_BASIC = re.compile(rb"basic[\s+]++([a-z0-9_+/=-]++)", re.ASCII)
"""In lower case."""
_SESSION_TEXT = re.compile(rb"[0-9a-f-]{36}\|[0-9A-Za-z]{32,44}\|[0-9]{10,16}")

TOKEN_CHARS_MAX: Final = 4096
"""A longer token is not ours and is not decoded."""

CANDIDATES_MAX: Final = 32
"""Largest number of candidate credentials inspected in one value."""

STEPS_MAX: Final = 1200
"""Bound on the search in one request's headers, or in its query, in steps of about a microsecond.
Two thirds of them suffice to decode a whole head as often as it may be encoded. Beyond the bound,
values that may hold a credential are not sent."""

_DECODED_BYTES_A_STEP = 256
_DOUBLE_SIGNS_A_STEP = 4
_SESSION_MARKS_A_STEP = 8
_READING_STEPS = 4
_PAIR_STEPS = 8
_CANDIDATE_STEPS = 8

_DECODINGS = 3
"""How often a value is percent-decoded to find a credential in it."""


class _Spent(Exception):
    """The search used up the steps of its request."""


class Search:
    """Searches one request for our own credentials, in a bounded number of steps.

    A value that is too expensive to inspect counts as a credential: no honest request has so much,
    and a longer search would delay all other callers.
    """

    __slots__ = ("_is_dashboard_token", "_left")

    def __init__(self, is_dashboard_token: Callable[[str], bool]) -> None:
        self._is_dashboard_token = is_dashboard_token
        self._left = STEPS_MAX

    def finds_in(self, value: bytes) -> bool:
        """Return whether a header's value holds a credential of ours."""
        try:
            return any(map(self._are_plainly_in, self._readings(value)))
        except _Spent:
            return True

    def finds_named_in(self, values: bytes) -> bool:
        """Return whether any of these may be ours, by name or value.

        One search clears most requests.
        """
        try:
            return any(_is_named(r) or self._are_plainly_in(r) for r in self._readings(values))
        except _Spent:
            return True

    def is_own_pair(self, pair: bytes, names: frozenset[bytes]) -> bool:
        """Return whether a cookie or parameter has one of these names or holds our credential."""
        try:
            self._take(_PAIR_STEPS)
            return any(
                _name(reading.partition(b"=")[0]) in names or self._are_plainly_in(reading)
                for reading in self._readings(pair)
            )
        except _Spent:
            return True

    def _take(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise _Spent

    def _readings(self, value: bytes) -> Iterator[bytes]:
        """Yield the value as servers may read it: undecoded, and decoded once or a few times."""
        yield value
        for _ in range(_DECODINGS):
            if b"%" not in value:
                return
            doubled = value.count(b"%%") // _DOUBLE_SIGNS_A_STEP
            self._take(_READING_STEPS + len(value) // _DECODED_BYTES_A_STEP + doubled)
            value = percent_decoded(value)
            yield value

    def _are_plainly_in(self, value: bytes) -> bool:
        if self._are_bare_in(value):
            return True
        low = value.lower()
        return b"basic" in low and any(
            self._first(
                (value[slice(*found.span(1))] for found in _BASIC.finditer(low)), self._is_in_basic
            )
        )

    def _are_bare_in(self, value: bytes) -> bool:
        return (
            API_KEY_MARK in value
            or (_TOKEN_START in value and any(self._first(self._tokens_in(value), self._is_token)))
            or (_SESSION_MARK in value and any(self._first(self._sessions_in(value), _is_session)))
        )

    def _first(self, candidates: Iterator[bytes], judge: Callable[[bytes], bool]) -> Iterator[bool]:
        """Yield the verdict on each of the first candidates; True if there are more than that."""
        for count, candidate in enumerate(candidates):
            self._take(_CANDIDATE_STEPS)
            yield count >= CANDIDATES_MAX or judge(candidate)

    def _tokens_in(self, value: bytes) -> Iterator[bytes]:
        """Yield every substring that looks like a compact JWS, wherever it begins."""
        start = value.find(_TOKEN_START)
        while start >= 0:
            self._take(1)
            end = _end_of_run(value, start)
            rest = _TWO_MORE_RUNS.match(value, end)
            if rest is not None:
                yield value[value.rfind(_TOKEN_START, start, end) : end] + rest[0]
            start = value.find(_TOKEN_START, end)

    def _sessions_in(self, value: bytes) -> Iterator[bytes]:
        """Yield every substring that looks like an agent session, as much as is needed to tell."""
        self._take(value.count(_SESSION_MARK) // _SESSION_MARKS_A_STEP)
        for found in _SESSION.finditer(value):
            yield found[0] + found[1]

    def _is_token(self, text: bytes) -> bool:
        return len(text) <= TOKEN_CHARS_MAX and self._is_dashboard_token(text.decode("ascii"))

    def _is_in_basic(self, text: bytes) -> bool:
        """Return whether user name or password hold one. Source: RFC 7617, section 2."""
        plain = _decoded(text)
        return bool(plain) and any(map(self._are_bare_in, (plain, *plain.split(b":", 8))))


def percent_decoded(value: bytes) -> bytes:
    """Decode like `urllib.parse.unquote_to_bytes`, but turn line ends and NUL into spaces.

    The standard function takes 100 times as long. This one uses quoted-printable decoding, which
    differs in its sign, in its handling of a doubled sign, and in skipping line ends; `=` is
    swapped with NUL meanwhile. A sign at the end is lost.
    """
    if b"%%" in value:  # Twice: one pass misses every other sign of a row.
        value = value.replace(b"%%", b"%25%").replace(b"%%", b"%25%")
    value = value.replace(b"%00", b" ").replace(b"%3D", b"=").replace(b"%3d", b"=")
    return binascii.a2b_qp(value.translate(_TO_QUOTED)).translate(_FROM_QUOTED)


_TO_QUOTED = bytes.maketrans(b"\r\n\0=%", b"   \0=")
_FROM_QUOTED = bytes.maketrans(b"\r\n\0=", b"  =%")


def _is_named(values: bytes) -> bool:
    folded = values.translate(_FOLDED)
    if b"payment" in folded or b"x-agent" in folded or b"assay" in folded:
        return any(name in folded for name in _NAMES)
    return False


def may_be_in(values: bytes) -> bool:
    """Return whether any of these values may hold a credential of ours, by name or value.

    Called once for every outbound request; most contain none of these marks.
    """
    low = values.lower()
    return (
        b"svc_op_" in low
        or b"eyj" in low
        or b"%" in low
        or b"payment" in low
        or b"x-agent" in low  # Not `agent` alone, which many User-Agent values contain.
        or b"x_agent" in low
        or b"x.agent" in low
        or b"assay" in low
        or b"basic" in low
        or _SESSION_MARK in values
    )


def _is_session(text: bytes) -> bool:
    """Return whether it begins with an agent session (`identity.tokens.HmacSessionTokens`).

    Only the form of its text is checked: other text may be appended to it.
    """
    return _SESSION_TEXT.match(_decoded(text[: len(text) // 4 * 4])) is not None


def _decoded(text: bytes) -> bytes:
    """Decode either base64 alphabet, padded or not; return nothing if it is invalid."""
    text = text.rstrip(b"=").translate(_TO_URL_SAFE)
    try:
        return base64.b64decode(text + b"=" * (-len(text) % 4), b"-_", validate=True)
    except (binascii.Error, ValueError):
        return b""


_TO_URL_SAFE = bytes.maketrans(b"+/", b"-_")


def _end_of_run(value: bytes, start: int) -> int:
    found = _RUN_END.match(value, start)
    return start if found is None else found.end()


def _name(text: bytes) -> bytes:
    """Normalise a cookie's or parameter's name like our own names; PHP reads `a[]` as `a`."""
    return as_gateways_read(text.strip().lower()).rstrip(b"-")
