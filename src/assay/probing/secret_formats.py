"""Recognises leaked secrets, settings and internals by their formats. Pure.

Recognises leaked secrets by their real formats, except those public by design.

A key counts only if it has the entropy of a real one, a valid checksum if its format has one, and
does not look like a placeholder. Browser keys (Firebase `apiKey`, maps, search-only and publishable
keys) are made to be public. Ambiguous ones do not count if the service's own public pages show the
same. Every quantifier is bounded and the computation yields (`common.sliced_work`).
Sources: GitHub, "Behind GitHub's new authentication token formats" (checksum); AWS, "IAM unique
identifiers"; evidence.md#leaks.

Detects settings in an answer: an environment, or a configuration with a secret.

Three or more upper-case names with values, of which one names a secret and has a value that is
neither hidden nor a placeholder. Publicly readable settings do not count.

Patterns of leaked internals.

Precision before recall: an honest agent that is accused loses its grade, a dishonest one meets
several probes. So it contains only patterns that ordinary error messages do not match. Every
quantifier is bounded, because the text is hostile. So is the work: a text is read in windows of
fixed size, and the computations yield after every few thousand characters (`common.sliced_work`).
Source: checks.md#error-bodies.
"""

import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from itertools import pairwise
from math import log2

from assay.common.sliced_work import Meter, Sliced, occurs, whole
from assay.probing.hidden_texts import decoded

TEXT_MAX = 65_536
"""Characters read of one answer."""

TEXTS_MAX = 10_000
"""Answers read of one agent: a visit makes far fewer requests."""

ENTROPY_MIN = 3.0
"""Bits a character, by the characters' own frequencies: random hexadecimal of 20 has about 3.5."""

_TEXT_COSTS = 64
_REACH = 768
_AROUND = 160
_MATCHES_MAX = 50

_PLACEHOLDER = re.compile(
    r"x{4}|\*{3}|\.{3}|<|\$\{|\{\{|example|sample|placeholder|your|dummy|redacted|changeme|insert"
    r"|replace|fake|secret_?key|api_?key|0{6}|1234567|abcdefg",
    re.IGNORECASE,
)
_PUBLIC_VALUE = re.compile(r"(?:phc_|pk[_.]|pub|AIza|G-|UA-|ca-pub-|6L|anon|NEXT_PUBLIC)")
_PUBLIC_CONTEXT = re.compile(
    r"authDomain|projectId|app(?:lication)?_?Id\b|messagingSender|search|publishable|NEXT_PUBLIC|VITE_"
    r"|REACT_APP|mapbox|measurement|site_?key|index_?Name|analytics|captcha|writeKey|Credential=",
    re.IGNORECASE,
)
_WEAK_PASSWORDS = frozenset(
    [
        "password",
        "pass",
        "passwd",
        "pwd",
        "secret",
        "changeme",
        "postgres",
        "root",
        "admin",
        "user",
        "test",
        "mysql",
        "guest",
    ]
)


@dataclass(frozen=True, slots=True)
class SecretFormat:
    """A format: its name, where it may occur, and what makes it real."""

    kind: str
    pattern: re.Pattern[str]
    is_real: Callable[[re.Match[str]], bool]
    is_ambiguous: bool = False
    """Whether the service's own public pages may contain it."""


def entropy(text: str) -> float:
    """Return the Shannon entropy of the text's characters, in bits a character."""
    counts = Counter(text)
    return -sum(n / len(text) * log2(n / len(text)) for n in counts.values()) if text else 0.0


def _is_placeholder(value: str) -> bool:
    """Return whether a value is a placeholder that the reader must replace, or a hidden value."""
    return _PLACEHOLDER.search(value) is not None


def _is_random(value: str) -> bool:
    """Return whether it may be a random key: entropy, two kinds of character, no placeholder."""
    kinds = [any(map(test, value)) for test in (str.isdigit, str.islower, str.isupper)]
    steps = sum(ord(b) - ord(a) == 1 for a, b in pairwise(value))
    return (
        entropy(value) >= ENTROPY_MIN
        and kinds[0]
        and sum(kinds) > 1
        and steps * 2 < len(value)
        and not _PLACEHOLDER.search(value)
    )


def _has_github_checksum(token: str) -> bool:
    """Return whether the last six characters are the base-62 CRC32 of the thirty before them."""
    body = token.rpartition("_")[2]
    number, digits = zlib.crc32(body[:-6].encode()), ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        digits = _BASE62[digit] + digits
    return body[-6:] == digits


_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_CURVE_ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
"""Source: SEC 2, secp256k1: a private key is below it."""


def _value(match: re.Match[str]) -> str:
    return match["value"]


def _private_key(match: re.Match[str]) -> bool:
    value = "".join(_value(match).split())
    return entropy(value) > ENTROPY_MIN and not _PLACEHOLDER.search(value)


def _cloud_key(match: re.Match[str]) -> bool:
    before = match.string[max(0, match.start() - 20) : match.start()]
    return not match.group().endswith("EXAMPLE") and "credential" not in before.casefold()


def _checked(match: re.Match[str]) -> bool:
    return _has_github_checksum(match.group())


def _database(match: re.Match[str]) -> bool:
    password, host = match["value"], match["host"].casefold()
    is_local = host.startswith(("localhost", "127.", "example.", "host", "[::1"))
    is_weak = password.casefold() in _WEAK_PASSWORDS or password == match["user"]
    return not (is_local or is_weak or _PLACEHOLDER.search(password))


def _wallet_key(match: re.Match[str]) -> bool:
    value = _value(match)
    return 0 < int(value, 16) < _CURVE_ORDER and len(set(value.casefold())) > 8  # noqa: PLR2004 - of 16


def _named(match: re.Match[str]) -> bool:
    text, value = match.string, _value(match)
    around = text[max(0, match.start() - _AROUND) : match.end() + _AROUND]
    is_public = _PUBLIC_VALUE.match(value) or _PUBLIC_CONTEXT.search(around)
    return not is_public and _is_random(value)


FORMATS: tuple[SecretFormat, ...] = (
    SecretFormat(
        "private key",
        re.compile(
            r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY-----(?:\\[nr]|\s){1,4}"
            r"(?P<value>[A-Za-z0-9+/=]{40,80})"
        ),
        _private_key,
    ),
    SecretFormat("cloud key", re.compile(r"\b(?:AKIA|ASIA)[A-Z2-7]{16}\b"), _cloud_key),
    SecretFormat("API key", re.compile(r"\b(?:gh[pousr]|npm)_[0-9A-Za-z]{36}\b"), _checked),
    SecretFormat(
        "API key",
        re.compile(
            r"\bsk-(?:[a-z]{2,8}\d{0,2}-){0,3}(?P<value>[A-Za-z0-9_]{20,200})"
            r"|\b(?:sk|rk)_live_(?P<stripe>[0-9A-Za-z]{16,99})\b"
            r"|\bxox[abprs]-(?P<slack>[0-9A-Za-z-]{20,200})\b"
            r"|\b(?:glpat-|GOCSPX-|hf_|shpat_|dop_v1_|github_pat_|SG\.)(?P<other>[\w.-]{20,99})"
            r"|\b\d{8,10}:AA(?P<bot>[\w-]{33})\b"
        ),
        lambda match: _is_random(next(filter(None, match.groups()))),
    ),
    SecretFormat(
        "credentials",
        re.compile(
            r"\b(?:postgres(?:ql)?|mysql|mongodb(?:\+srv)?|redis|amqp)://(?P<user>[^\s:/@]{1,64})"
            r":(?P<value>[^\s@/]{3,99})@(?P<host>[^\s/@:]{0,99})",
            re.IGNORECASE,
        ),
        _database,
        is_ambiguous=True,
    ),
    SecretFormat(
        "private key",
        re.compile(
            r"\b(?:private|wallet|signer|deployer)_?(?:private)?_?key['\"]?\s{0,3}[=:]\s{0,3}['\"]?"
            r"(?:0x)?(?P<value>[0-9a-f]{64})\b",
            re.IGNORECASE,
        ),
        _wallet_key,
    ),
    SecretFormat(
        "credentials",
        re.compile(
            r"\b(?:[A-Za-z]{1,20}[_-]){0,3}(?:api[_-]key|secret|secret[_-]?key|access[_-]?token"
            r"|auth[_-]token|client[_-]secret|password)['\"]?\s{0,3}[=:]\s{0,3}['\"]?"
            r"(?P<value>[A-Za-z0-9_+/-]{16,200})",
            re.IGNORECASE,
        ),
        _named,
        is_ambiguous=True,
    ),
    SecretFormat(
        "credentials",
        re.compile(
            r"\b(?:api|access|auth|service|secret|bearer|admin|client)[ _-](?:key|token|password)"
            r"(?: is| of|:)?\s{1,3}['\"`]?(?P<value>(?!0x|eyJ)[A-Za-z0-9_+/-]{20,200})",
            re.IGNORECASE,
        ),
        _named,
        is_ambiguous=True,
    ),
)


def leaked_secrets(text: str) -> frozenset[str]:
    """Return the kinds of secret in a text."""
    return frozenset(whole(find_secrets([text])))


def find_secrets(
    texts: Iterable[str], public_pages: Sequence[str] = (), whole_ones: set[str] | None = None
) -> Sliced[Mapping[str, str]]:
    """Return the kinds of secret in answers, each with the beginning of its match.

    The result has only the part that all secrets of that format share, never the secret:
    `whole_ones` receives those, to be compared with another answer and then discarded.
    """
    found: dict[str, str] = {}
    meter = Meter()
    for _, text in zip(range(TEXTS_MAX), texts, strict=False):
        if meter.spend(_TEXT_COSTS):
            yield
        cut = text[:TEXT_MAX]
        coded = yield from decoded(cut, meter)
        for known in FORMATS:
            first = _First(known, public_pages)
            if (yield from occurs(known.pattern, cut, meter, _REACH, first)) or (
                coded
                and not known.is_ambiguous
                and (yield from occurs(known.pattern, coded, meter, _REACH, first))
            ):
                found.setdefault(known.kind, first.shown)
                if whole_ones is not None:
                    whole_ones.add(first.secret)
    return found


class _First:
    """Accepts the first real match; of very many only some are examined."""

    def __init__(self, known: SecretFormat, public_pages: Sequence[str]) -> None:
        self._known = known
        self._pages = public_pages if known.is_ambiguous else ()
        self._left = _MATCHES_MAX
        self.shown = self.secret = ""

    def __call__(self, match: re.Match[str]) -> bool:
        self._left -= 1
        if self._left < 0 or not self._known.is_real(match):
            return False
        if any(match["value"] in page for page in self._pages):
            return False
        self.shown, self.secret = redacted(match), match.group()
        return True


def redacted(match: re.Match[str]) -> str:
    """Return what precedes the secret part, and a mark for the rest."""
    begins = [match.start(name) for name in match.re.groupindex if match.start(name) >= 0]
    first = min(begins, default=match.start())
    return match.string[match.start() : first][:60] + "[redacted]"


def without_secrets(text: str) -> str:
    """Return a text of at most a few thousand characters without possible secrets."""
    for known in FORMATS:
        text = known.pattern.sub(f"[{known.kind}]", text)
    return text


def environment_lines(text: str) -> Iterator[str]:
    """Yield the names that an environment file sets, one a line."""
    for line in text[:TEXT_MAX].splitlines()[:200]:
        match = _ASSIGNMENT.fullmatch(line.strip())
        if match is not None:
            yield match[1]


_ASSIGNMENT = re.compile(r"(?:export )?([A-Z][A-Z0-9_]{2,60})=\S.{0,400}")


NAMES_MIN = 3
SETTINGS_MAX = 500
VALUE_MIN = 6

_SETTING = re.compile(
    r"(?<![\w$])\\?[\"']?([A-Z][A-Z0-9_]{2,60})\\?[\"']?\s{0,3}[:=]\s{0,3}"
    r"(?:\\?[\"']([^\"'\\\n]{1,200})|([^\s\"',;{}\[\]()]{1,200}))"
)
_SECRETS = (
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "SECRET",
    "TOKEN",
    "API_?KEY",
    "PRIVATE",
    "CREDENTIAL",
)
_SECRET_NAME = re.compile("|".join(_SECRETS))


def find_settings(text: str, public_pages: Sequence[str] = ()) -> Sliced[bool]:
    """Return whether a text contains such settings."""
    meter, cut = Meter(), text[:TEXT_MAX]
    coded = yield from decoded(cut, meter)
    for form in (cut, coded):
        if meter.spend(len(form)):
            yield
        settings = dict(_settings(form))
        secret = [value for name, value in settings.items() if _is_secret(name, value)]
        known = "".join(public_pages)
        if len(settings) >= NAMES_MIN and any(value not in known for value in secret):
            return True
    return False


def _settings(text: str) -> Iterator[tuple[str, str]]:
    for _, match in zip(range(SETTINGS_MAX), _SETTING.finditer(text), strict=False):
        yield match[1], (match[2] or match[3] or "").strip()


def _is_secret(name: str, value: str) -> bool:
    is_shown = len(value) >= VALUE_MIN and len(set(value)) > 3  # noqa: PLR2004 - not "******"
    return bool(is_shown and _SECRET_NAME.search(name)) and not _is_placeholder(value)


ERROR_MAX = 65_536
"""Characters read of one error message."""


_ERROR_REACH = 768
"""Longest match that is found beyond a window. A longer file path is not recognised."""

_INTERNALS = {
    "stack trace": re.compile(
        r"Traceback \(most recent call last\)|^\s{0,8}File \"[^\"\n]{1,300}\", line \d{1,7}"
        r"|\bat [\w.$<>\[\] ]{1,120} ?\((?:file://|node:|/|[A-Z]:\\)[^\s()]{1,300}:\d{1,7}:\d{1,7}\)"
        r"|\bat [\w.$<>]{1,160}\([\w$]{1,80}\.(?:java|kt|scala):\d{1,7}\)"
        r"|\bgoroutine \d{1,9} \[running\]|\bthread '[^'\n]{1,80}' panicked at"
        r"|\bin /[^\s]{1,200}\.php(?: on line |:)\d{1,7}",
        re.MULTILINE,
    ),
    "file path": re.compile(
        r"(?<![\w.:/])/(?:home|root|usr|var|opt|srv|app|Users|tmp)(?:/[\w.@+-]{1,80}){1,20}"
        r"\.(?:py|js|mjs|cjs|ts|rb|php|go|rs|java|env|pem|key|sqlite3?)\b"
        r"|\b[A-Z]:\\(?:[\w .@-]{1,80}\\){1,20}[\w.-]{1,80}"
    ),
}
_IPV4 = re.compile(r"(?<![\w.-])(?<!\w/)(?:\d{1,3}\.){3}\d{1,3}(?![\w.]|-\d)")
_INTERNAL_HOST = re.compile(
    r"(?<![\w-])[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){0,4}\.(?:svc\.cluster\.local|internal|intranet)\b"
)
_FOUND_MAX = 50
"""Addresses and names of one text that are examined."""


def leaked_internals(text: str, own_hosts: Iterable[str]) -> frozenset[str]:
    """Return the kinds of internal detail in a text, except the agent's own public hosts."""
    return whole(find_internals([text], own_hosts))


def find_internals(texts: Iterable[str], own_hosts: Iterable[str]) -> Sliced[frozenset[str]]:
    """Return the kinds of internal detail in error messages, except the agent's public hosts."""
    own = frozenset(own_hosts)
    found: set[str] = set()
    meter = Meter()
    for _, text in zip(range(TEXTS_MAX), texts, strict=False):
        if meter.spend(_TEXT_COSTS):
            yield
        cut = text[:ERROR_MAX]
        for kind, pattern in _INTERNALS.items():
            if (yield from occurs(pattern, cut, meter, _ERROR_REACH)):
                found.add(kind)
        for pattern, is_leak in ((_INTERNAL_HOST, _is_foreign), (_IPV4, _is_internal)):
            leaks = _FirstFew(own, is_leak)
            if (yield from occurs(pattern, cut, meter, _ERROR_REACH, leaks)):
                found.add("internal address")
    return frozenset(found)


class _FirstFew:
    """Examines the first matches of a text; the agent's own hosts are not leaks."""

    def __init__(self, own: frozenset[str], is_leak: Callable[[str], bool]) -> None:
        self._own = own
        self._is_leak = is_leak
        self._left = _FOUND_MAX

    def __call__(self, match: re.Match[str]) -> bool:
        self._left -= 1
        name = match.group()
        return self._left >= 0 and name not in self._own and self._is_leak(name)


def _is_foreign(name: str) -> bool:
    del name
    return True


def _is_internal(address: str) -> bool:
    """Return whether it is private or link-local. Loopback reveals nothing about a network."""
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    return (ip.is_private or ip.is_link_local) and not (ip.is_loopback or ip.is_unspecified)
