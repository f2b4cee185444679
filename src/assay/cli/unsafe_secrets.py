"""Unsafe settings of secrets and of keys that spend. No value of theirs is ever repeated."""

import math
from collections import Counter
from collections.abc import Iterator
from itertools import combinations, pairwise

from pydantic import SecretStr

from assay.kit.json import is_array
from assay.settings import PREFIX, Settings, is_in_environment
from assay.wiring import address_of_key

DISTINCT_CHARS_MIN = 8
ENTROPY_BITS_MIN = 80
"""What 32 hexadecimal digits drawn at random have: 14 different ones on average, and 115 bits by
their frequencies. Fewer than 8, or 80, happen less than once in ten million draws."""

_STEPS_SHARE = 0.5
"""The share of neighbouring characters one code point apart, from which text counts up or down."""

_WORDS = ("changeme", "default", "example", "insecure", "letmein", "password", "secret", "testtest")

_NOBODYS = frozenset(
    int(text, 16)
    for text in (
        "000000000000000000000000000000000000dead",
        "dead000000000000000000000000000000000000",
        "dead000000000000000042069420694206942069",
        "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee",
        "ffffffffffffffffffffffffffffffffffffffff",
    )
)
_PRECOMPILES_MAX = 0x1FF
"""Source: EIP-7951 has the highest precompiled contract so far, at 0x100."""


def weak(settings: Settings) -> Iterator[str]:
    """Secrets that somebody made up."""
    for name, secret in _secrets(settings):
        reason = _weakness(secret)
        if reason is not None:
            yield f"{name} {reason}"


def equal(settings: Settings) -> Iterator[str]:
    """One secret for two purposes, or twice in one ring."""
    for (one, first), (other, second) in combinations(_secrets(settings), 2):
        if first == second:
            twice = "holds the same secret twice" if one == other else f"equals {other}"
            yield f"{one} {twice}"


def open_sign_up(settings: Settings) -> Iterator[str]:
    """Anybody may have an account, and accounts spend."""
    key = _spending_key(settings)
    if settings.sign_up == "open" and key is not None:
        yield f"ASSAY_SIGN_UP is open, and {key} is set"


def stranger_write_back(settings: Settings) -> Iterator[str]:
    """Anybody may trigger evaluations, and those are written to a chain."""
    if settings.solana_keypair is not None and "trigger-sandbox" in settings.open_endpoints:
        yield "ASSAY_OPEN_ENDPOINTS contains trigger-sandbox, and ASSAY_SOLANA_KEYPAIR is set"


def key_in_environment(settings: Settings) -> Iterator[str]:
    """Keys with money, where they are easily shown."""
    if settings.x402_private_key is not None and is_in_environment("x402_private_key"):
        yield "ASSAY_X402_PRIVATE_KEY is an environment variable"
    keypair = settings.solana_keypair
    if keypair is not None and is_in_environment("solana_keypair") and is_inline(keypair):
        yield "ASSAY_SOLANA_KEYPAIR is an environment variable that holds the key itself"


def is_inline(keypair: SecretStr) -> bool:
    """Whether it is the JSON array, and no file's name."""
    return keypair.get_secret_value().lstrip().startswith("[")


def payout_address(settings: Settings) -> Iterator[str]:
    """A wallet that nobody can spend from, or that a thief of the settling key can."""
    address = settings.payout_address
    if address is None:
        return
    number = int(address, 16)
    if number <= _PRECOMPILES_MAX or number in _NOBODYS:
        yield f"ASSAY_PAYOUT_ADDRESS is {address}, which nobody owns"
    if number == _settling_wallet(settings):
        yield "ASSAY_PAYOUT_ADDRESS is the wallet of ASSAY_X402_PRIVATE_KEY"


def _settling_wallet(settings: Settings) -> int | None:
    if settings.x402_private_key is None:
        return None
    try:
        return int(address_of_key(settings.x402_private_key.get_secret_value()), 16)
    except ValueError:  # the start refuses such a key, and says so
        return None


def _spending_key(settings: Settings) -> str | None:
    if settings.x402_private_key is not None:
        return "ASSAY_X402_PRIVATE_KEY"
    return None if settings.solana_keypair is None else "ASSAY_SOLANA_KEYPAIR"


def _secrets(settings: Settings) -> list[tuple[str, str]]:
    """Every secret that signs or encrypts, under its setting's name; rings one by one."""
    found: list[tuple[str, str]] = []
    for name in type(settings).model_fields:
        if "secret" in name:
            value: object = getattr(settings, name)
            found += [(PREFIX + name.upper(), text) for text in _texts(value)]
    return found


def _texts(value: object) -> list[str]:
    ring = value if is_array(value) else (value,)
    return [item.get_secret_value() for item in ring if isinstance(item, SecretStr)]


def _weakness(secret: str) -> str | None:
    word = next((word for word in _WORDS if word in secret.lower()), None)
    if word is not None:
        return "contains a common word"
    if secret in (secret + secret)[1:-1]:
        return "repeats itself"
    if sum(abs(ord(b) - ord(a)) == 1 for a, b in pairwise(secret)) > _STEPS_SHARE * len(secret):
        return "counts up or down"
    if len(set(secret)) < DISTINCT_CHARS_MIN or _entropy_bits(secret) < ENTROPY_BITS_MIN:
        return "uses few different characters"
    return None


def _entropy_bits(text: str) -> float:
    """Shannon's, by the frequencies of the text's own characters. An upper bound at best."""
    size = len(text)
    return -sum(n * math.log2(n / size) for n in Counter(text).values())
