"""Unsafe settings of secrets. No value of theirs is ever repeated."""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import combinations, pairwise
from urllib.parse import urlsplit

from pydantic import SecretStr

from assay.app.secrets import generated_secrets
from assay.cli.unsafe_hosts import passwords
from assay.common.clock import SystemClock
from assay.common.json import is_array
from assay.settings import PREFIX, SECRET_CHARS_MIN, Settings

DISTINCT_CHARS_MIN = 8
ENTROPY_BITS_MIN = 80
"""What 32 hexadecimal digits drawn at random have: 14 different ones on average, and 115 bits by
their frequencies. Fewer than 8, or 80, happen less than once in ten million draws."""

_PASSWORD_REST_MIN = 4
"""A password to another service is weak when it is a common word and less than this besides."""

_STEPS_SHARE = 0.5
"""The share of neighbouring characters one code point apart, from which text counts up or down."""

# fmt: off
WALLET_KEYS = ("x402_private_key", "payout_key", "paid_calls_key")
"""Settings that hold the key of a wallet of ours on EVM chains."""

_WORDS = (
    "admin", "assay", "battery", "bits", "change", "changeme", "characters", "correct", "default",
    "dev", "example", "for", "here", "horse", "insecure", "jwt", "key", "least", "letmein",
    "long", "my", "new", "old", "passw0rd", "passwd", "password", "payment", "please", "prod",
    "production", "random", "replace", "root", "secret", "session", "signing", "snapshot",
    "staging", "staple", "string", "super", "test", "the", "this", "token", "upstream", "user",
    "value", "with", "your",
)
# fmt: on
_LINES = (
    "abcdefghijklmnopqrstuvwxyz",
    "01234567890",
    "0123456789abcdef",
    "qwertyuiop",
    "asdfghjkl",
    "zxcvbnm",
)
_RUN_CHARS = 4
_RUNS = frozenset(
    line[at : at + _RUN_CHARS]
    for text in _LINES
    for line in (text, text[::-1])
    for at in range(len(text) - _RUN_CHARS + 1)
)
"""What is typed and not drawn: the alphabet, digits, a keyboard's rows, both ways."""


def weak(settings: Settings) -> Iterator[str]:
    """Secrets that somebody made up."""
    words = _words(settings)
    for name, secret in _secrets(settings):
        reason = weakness(secret, words)
        if reason is not None:
            yield f"{name} {reason}"
    for name, password in passwords(settings):
        if len(_without_typed(password, words)) < _PASSWORD_REST_MIN <= len(password):
            yield f"{name} holds a password that is a common word"


def equal(settings: Settings) -> Iterator[str]:
    """One secret for two purposes, twice in one ring, or as part of another."""
    given = _secrets(settings)
    others = [(f"the password in {name}", text) for name, text in passwords(settings)]
    keys = _wallet_keys(settings)
    others += _generated(settings) + keys
    pairs = [*combinations(given, 2), *((one, other) for one in given for other in others)]
    for (one, first), (other, second) in [*pairs, *combinations(keys, 2)]:
        relation = _relation(_normal(first), _normal(second))
        if relation is not None:
            same = "holds the same secret twice" if relation == "equals" else "is made of its old"
            yield f"{one} {same}" if one == other else f"{one} {relation} {other}"


def weakness(secret: str, words: tuple[str, ...] = _WORDS) -> str | None:
    """Why it can be guessed, if it can; never with the secret in it."""
    if secret in (secret + secret)[1:-1]:
        return "repeats itself"
    if secret.lower() in {hashlib.sha256(word.encode()).hexdigest() for word in ("", *words)}:
        return "is the hash of a common word"
    if sum(abs(ord(b) - ord(a)) == 1 for a, b in pairwise(secret)) > _STEPS_SHARE * len(secret):
        return "counts up or down"
    if len(set(secret)) < DISTINCT_CHARS_MIN or _entropy_bits(secret) < ENTROPY_BITS_MIN:
        return "uses few different characters"
    if _entropy_bits(_without_typed(secret, words)) < ENTROPY_BITS_MIN:
        return "is made of common words, or of keys that lie side by side"
    return None


def _words(settings: Settings) -> tuple[str, ...]:
    """Common ones, and the installation's own name."""
    host = urlsplit(settings.address).hostname
    return _WORDS if host is None else (*_WORDS, host)


def _without_typed(text: str, words: tuple[str, ...]) -> str:
    """What is left of it without words, runs of keys, and what stands between words."""
    longest_first = sorted(words, key=len, reverse=True)
    rest = re.sub("|".join(map(re.escape, longest_first)), "", text.lower())
    typed = {
        at + offset
        for at in range(len(rest))
        if rest[at : at + _RUN_CHARS] in _RUNS
        for offset in range(_RUN_CHARS)
    }
    return "".join(char for at, char in enumerate(rest) if at not in typed and char.isalnum())


def _relation(first: str, second: str) -> str | None:
    if first == second:
        return "equals"
    shorter, longer = sorted((first, second), key=len)
    return (
        "shares its text with" if len(shorter) >= SECRET_CHARS_MIN and shorter in longer else None
    )


def _normal(secret: str) -> str:
    """One spelling of hexadecimal digits."""
    return secret.strip().lower().removeprefix("0x")


def _secrets(settings: Settings) -> list[tuple[str, str]]:
    """Every secret that signs, encrypts or lets in, under its setting's name; rings one by one."""
    found: list[tuple[str, str]] = []
    for name in type(settings).model_fields:
        if "secret" in name or name.endswith("_token"):
            value: object = getattr(settings, name)
            found += [(PREFIX + name.upper(), text) for text in _texts(value)]
    return found


def _wallet_keys(settings: Settings) -> list[tuple[str, str]]:
    """The keys of wallets on EVM chains, under their settings' names."""
    found = ((name, getattr(settings, name)) for name in WALLET_KEYS)
    return [(PREFIX + name.upper(), text) for name, key in found for text in _texts(key)]


def _generated(settings: Settings) -> list[tuple[str, str]]:
    """Those that were drawn; none where the start refuses the file."""
    try:
        rings = generated_secrets(settings, SystemClock().now())
    except RuntimeError:
        return []
    return [(f"{name} of secrets.json", text) for name, ring in rings.items() for text in ring]


def _texts(value: object) -> list[str]:
    ring = value if is_array(value) else (value,)
    return [item.get_secret_value() for item in ring if isinstance(item, SecretStr)]


def _entropy_bits(text: str) -> float:
    """Shannon's, by the frequencies of the text's own characters. An upper bound at best."""
    size = len(text)
    return -sum(n * math.log2(n / size) for n in Counter(text).values())
