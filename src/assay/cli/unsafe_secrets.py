"""Finds unsafe secrets, keys that spend, and files that hold them. It never repeats a value."""

import hashlib
import json
import math
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator
from itertools import combinations, pairwise
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr

from assay.app import address_of_key
from assay.app.secrets import generated_secrets
from assay.cli.unsafe_addresses import passwords, split
from assay.common.clock import SystemClock
from assay.common.json import is_array
from assay.settings import PREFIX, SECRET_CHARS_MIN, Settings, config_file, is_in_environment

DISTINCT_CHARS_MIN = 8
ENTROPY_BITS_MIN = 80
"""What 32 hexadecimal digits drawn at random have: 14 different ones on average, and 115 bits by
their frequencies. Fewer than 8, or 80, happen less than once in ten million draws."""

_PASSWORD_REST_MIN = 4
"""A password to another service is weak when it is a common word and less than this besides."""

_STEPS_SHARE = 0.5
"""The share of neighbouring characters one code point apart, from which text counts up or down."""

# fmt: off
WALLET_KEYS = ("x402_private_key", "payout_key", "paid_calls_key", "mcp_payer_key")
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
    """Find secrets that a person made up."""
    words = _words(settings)
    for name, secret in _secrets(settings):
        reason = weakness(secret, words)
        if reason is not None:
            yield f"{name} {reason}"
    for name, password in passwords(settings):
        if len(_without_typed(password, words)) < _PASSWORD_REST_MIN <= len(password):
            yield f"{name} holds a password that is a common word"


def equal(settings: Settings) -> Iterator[str]:
    """Find a secret with two purposes, twice in one ring, or as part of another."""
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
    """Return why the secret can be guessed, without the secret itself; otherwise None."""
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
    """Return common words and the installation's own name."""
    host = urlsplit(settings.address).hostname
    return _WORDS if host is None else (*_WORDS, host)


def _without_typed(text: str, words: tuple[str, ...]) -> str:
    """Return the secret without words, keyboard runs and the separators of words."""
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
    """Return hexadecimal digits in one spelling."""
    return secret.strip().lower().removeprefix("0x")


def _secrets(settings: Settings) -> list[tuple[str, str]]:
    """Yield each secret that signs, encrypts or grants access, with its setting's name."""
    found: list[tuple[str, str]] = []
    for name in type(settings).model_fields:
        if "secret" in name or name.endswith("_token"):
            value: object = getattr(settings, name)
            found += [(PREFIX + name.upper(), text) for text in _texts(value)]
    return found


def _wallet_keys(settings: Settings) -> list[tuple[str, str]]:
    """Yield the keys of wallets on EVM chains, with their settings' names."""
    found = ((name, getattr(settings, name)) for name in WALLET_KEYS)
    return [(PREFIX + name.upper(), text) for name, key in found for text in _texts(key)]


def _generated(settings: Settings) -> list[tuple[str, str]]:
    """Return the generated secrets; none if start-up would refuse the file."""
    try:
        rings = generated_secrets(settings, SystemClock().now())
    except RuntimeError:
        return []
    return [(f"{name} of secrets.json", text) for name, ring in rings.items() for text in ring]


def _texts(value: object) -> list[str]:
    ring = value if is_array(value) else (value,)
    return [item.get_secret_value() for item in ring if isinstance(item, SecretStr)]


def _entropy_bits(text: str) -> float:
    """Return the Shannon entropy by the text's own character frequencies, an upper bound."""
    size = len(text)
    return -sum(n * math.log2(n / size) for n in Counter(text).values())


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

_EXAMPLES = frozenset(
    int(text, 16)
    for text in (
        "5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
        "fB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
        "dbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
        "D1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
    )
)
"""Source: EIP-55, "Test Cases"."""

_KNOWN = frozenset(
    int(text, 16)
    for text in (
        "f39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
        "70997970C51812dc3A010C7d01b50e0d17dc79C8",
        "3C44CdDdB6a900fa2b585dd299e03d12FA4293BC",
        "90F79bf6EB2c4f870365E785982E1f101E93b906",
        "15d34AAf54267DB7D7c367839AAf71A00a2C6A65",
        "9965507D1a55bcC2695C58ba16FB37d819B0A4dc",
        "976EA74026E726554dB657fA54763abd0C3a0aa9",
        "14dC79964da2C08b23698B3D3cc7Ca32193d9955",
        "23618e81E3f5cdF7f54C3d65f7FBc0aBf5B21E8f",
        "a0Ee7A142d267C1f36714E4a8F75612F20a79720",
        "Bcd4042DE499D14e55001CcbB24a551F3b954096",
        "71bE63f3384f5fb98995898A86B02Fb2426c5788",
        "FABB0ac9d68B0B445fB7357272Ff202C5651694a",
        "1CBd3b2770909D4e10f157cABC84C7264073C9Ec",
        "dF3e18d64BC6A983f673Ab319CCaE4f1a57C7097",
        "cd3B766CCDd6AE721141F452C550Ca635964ce71",
        "2546BcD3c84621e976D8185a91A922aE77ECEc30",
        "bDA5747bFD65F08deb54cb465eB87D40e51B197E",
        "dD2FD4581271e230360230F9337D5c0430Bf44C0",
        "8626f6940E2eb28930eFb4CeF49B2d1F2C9C1199",
    )
)
"""Accounts 0 to 19 of `test test ... junk`, the mnemonic that Anvil and Hardhat print."""

_SMALL_KEYS = 16
"""Keys 1 to 16 are in every list of a bot's."""

_SEED_BYTES = 32
_KEY_FILE_BYTES_MAX = 4096


def open_sign_up(settings: Settings) -> Iterator[str]:
    """Find open sign-up together with a key that accounts spend from."""
    if settings.sign_up == "open":
        for key in _spending_keys(settings)[:1]:
            yield f"ASSAY_SIGN_UP is open, and {key} is set"


def stranger_write_back(settings: Settings) -> Iterator[str]:
    """Find open triggers of evaluations that are written to a chain."""
    if _is_solana_funded(settings) and "trigger-sandbox" in settings.open_endpoints:
        yield "ASSAY_OPEN_ENDPOINTS contains trigger-sandbox, and ASSAY_SOLANA_KEYPAIR is set"


def key_in_environment(settings: Settings) -> Iterator[str]:
    """Find keys with money in places that are easily shown."""
    for field, key in _spending_key_settings(settings):
        if key is not None and is_in_environment(field):
            yield f"ASSAY_{field.upper()} is an environment variable"
    keypair = settings.solana_keypair
    is_given = is_in_environment("solana_keypair") and _is_solana_funded(settings)
    if keypair is not None and is_given and is_inline(keypair):
        yield "ASSAY_SOLANA_KEYPAIR is an environment variable that holds the key itself"


def known_key(settings: Settings) -> Iterator[str]:
    """Find keys that a person made up or that are public."""
    for field, key in _spending_key_settings(settings):
        if key is None:
            continue
        digits = key.get_secret_value().strip().lower().removeprefix("0x")
        reason = weakness(digits)
        if _wallet(key) in _known_wallets():
            reason = "is a key of a development network"
        if reason is not None:
            yield f"ASSAY_{field.upper()} {reason}"
    seed = _seed(settings.solana_keypair)
    reason = None if seed is None else weakness(seed)
    if reason is not None:
        yield f"ASSAY_SOLANA_KEYPAIR {reason}"


def is_inline(keypair: SecretStr) -> bool:
    """Return whether it is the JSON array instead of a file's name."""
    return keypair.get_secret_value().lstrip().startswith("[")


def payout_address(settings: Settings) -> Iterator[str]:
    """Find a payout wallet that nobody or everybody can spend from, or that is online."""
    address = settings.payout_address
    if address is None:
        return
    number = int(address, 16)
    for wallets, said in (
        (_NOBODYS | set(range(_PRECOMPILES_MAX + 1)), "which nobody owns"),
        (_EXAMPLES, "which is an example of EIP-55"),
        (_known_wallets(), "whose key everybody knows"),
    ):
        if number in wallets:
            yield f"ASSAY_PAYOUT_ADDRESS is {address}, {said}"
    if number == _wallet(settings.x402_private_key):
        yield "ASSAY_PAYOUT_ADDRESS is the wallet of ASSAY_X402_PRIVATE_KEY"


def _known_wallets() -> frozenset[int]:
    small = (address_of_key(f"{key:064x}") for key in range(1, _SMALL_KEYS + 1))
    return _KNOWN | {int(address, 16) for address in small}


def _spending_key_settings(settings: Settings) -> tuple[tuple[str, SecretStr | None], ...]:
    """Return the keys of our wallets on EVM chains, by field."""
    return tuple((name, getattr(settings, name)) for name in WALLET_KEYS)


def _wallet(key: SecretStr | None) -> int | None:
    if key is None:
        return None
    try:
        return int(address_of_key(key.get_secret_value()), 16)
    except ValueError:  # the start refuses such a key, and says so
        return None


def _spending_keys(settings: Settings) -> list[str]:
    """Return the keys in use; with a facilitator the private key pays for nothing."""
    settles = settings.x402_private_key is not None and not settings.x402_facilitator_url
    buys = settings.paid_calls_key is not None and settings.paid_calls_usd_per_day > 0
    used = {
        "ASSAY_X402_PRIVATE_KEY": settles,
        "ASSAY_SOLANA_KEYPAIR": _is_solana_funded(settings),
        "ASSAY_PAID_CALLS_KEY": buys,
    }
    return [name for name, is_used in used.items() if is_used]


def _is_solana_funded(settings: Settings) -> bool:
    """Return whether the keypair may hold money; on devnet it is free."""
    return settings.solana_keypair is not None and settings.solana_cluster == "mainnet-beta"


def _seed(keypair: SecretStr | None) -> str | None:
    """Return the secret half as hexadecimal, or None if start-up would refuse it."""
    if keypair is None:
        return None
    text = keypair.get_secret_value()
    try:
        if not is_inline(keypair):
            with Path(text).expanduser().open("rb") as file:
                text = file.read(_KEY_FILE_BYTES_MAX).decode("ascii")
        numbers: object = json.loads(text)
        if not is_array(numbers):
            return None
        return bytes(n for n in numbers[:_SEED_BYTES] if isinstance(n, int)).hex()
    except (OSError, ValueError, RecursionError):
        return None


OTHERS = 0o077
OTHERS_WRITE = 0o022
"""What the group and everybody else may do."""

_EVERYBODY_WRITES = 0o002
_TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - they are what is looked for
_TEMPORARY_DEPTH = 2
"""Folders that lie deeper are those of tests and builds."""

_SHOWN_MAX = 3


def data_directory(settings: Settings) -> Iterator[str]:
    """Find an unsafe folder of the database, the generated secrets and the snapshots."""
    folder = settings.data_dir
    yield from _temporary(folder)
    yield from _replaceable(folder)
    found = _status(folder)
    if found is None:
        return
    if found.st_mode & OTHERS_WRITE:
        yield f"{folder} has mode {_mode(found)}"
    user = os.geteuid()
    if user != 0 and found.st_uid not in {user, 0}:
        yield f"{folder} belongs to user {found.st_uid}"
    open_files = [one for one in _children(folder) if _mode_of(one) & OTHERS]
    if open_files:
        names = ", ".join(f"{one.name} ({_mode_of(one):04o})" for one in open_files[:_SHOWN_MAX])
        more = f" and {len(open_files) - _SHOWN_MAX} more" if len(open_files) > _SHOWN_MAX else ""
        yield f"{folder} holds what others can read: {names}{more}"


def file_mode(settings: Settings) -> Iterator[str]:
    """Find unsafe modes of the settings file and of the Solana keypair file."""
    config, keypair = config_file(), settings.solana_keypair
    if config is not None:
        yield from _exposed(config, settings, OTHERS if _has_secret(settings) else OTHERS_WRITE)
    if keypair is not None and not is_inline(keypair):
        yield from _exposed(Path(keypair.get_secret_value()).expanduser(), settings, OTHERS)


def _exposed(path: Path, settings: Settings, forbidden: int) -> Iterator[str]:
    found = _status(path)
    if found is None:
        return
    if found.st_mode & forbidden:
        yield f"{path} has mode {_mode(found)}"
    user = _service_user(settings)
    if user is not None and found.st_uid not in {user, 0}:
        yield f"{path} belongs to user {found.st_uid}"
    yield from _replaceable(path)


def _service_user(settings: Settings) -> int | None:
    """Return the user who runs this; for root, the owner of an existing data directory."""
    user, folder = os.geteuid(), _status(settings.data_dir)
    if user != 0:
        return user
    return None if folder is None else folder.st_uid


def _has_secret(settings: Settings) -> bool:
    """Return whether the settings file holds a key, a secret or a password."""
    in_file = (name for name in settings.model_fields_set if not is_in_environment(name))
    return any(_is_secret(name, getattr(settings, name)) for name in in_file)


def _is_secret(name: str, value: object) -> bool:
    if is_array(value):
        return any(isinstance(one, SecretStr) for one in value)
    if not isinstance(value, SecretStr):
        return False
    if name.endswith("_url"):
        parts = split(value.get_secret_value())
        return parts is None or parts.password is not None
    return name != "solana_keypair" or is_inline(value)


def _temporary(folder: Path) -> Iterator[str]:
    """Find a data directory in a place that is emptied or that another user can prepare."""
    for place in _TEMPORARY:
        inside = folder.relative_to(place).parts if folder.is_relative_to(place) else None
        if inside is not None and len(inside) <= _TEMPORARY_DEPTH:
            yield f"{folder} is in {place}"


def _replaceable(path: Path) -> Iterator[str]:
    """Return whether a parent folder lets everyone rename it; a sticky one does not."""
    try:
        parents = path.resolve().parents
    except (OSError, RuntimeError, ValueError):  # a loop of links, a name with a zero byte
        return
    for parent in parents:
        found = _status(parent)
        if found is not None and found.st_mode & (_EVERYBODY_WRITES | stat.S_ISVTX) == (
            _EVERYBODY_WRITES
        ):
            yield f"{parent}, which holds {path}, has mode {_mode(found)}"


def _children(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _mode_of(path: Path) -> int:
    found = _status(path)
    return 0 if found is None else stat.S_IMODE(found.st_mode)


def _mode(found: os.stat_result) -> str:
    return f"{stat.S_IMODE(found.st_mode):04o}"


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except (OSError, ValueError):  # absent, or no path at all: not a question of modes
        return None
