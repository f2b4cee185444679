"""Unsafe settings of keys that spend, and of where revenue goes. No key is ever repeated."""

import json
from collections.abc import Iterator
from pathlib import Path

from pydantic import SecretStr

from assay.app import address_of_key
from assay.cli.unsafe_secrets import WALLET_KEYS, weakness
from assay.common.json import is_array
from assay.settings import Settings, is_in_environment

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
    """Anybody may have an account, and accounts spend."""
    if settings.sign_up == "open":
        for key in _spending_keys(settings)[:1]:
            yield f"ASSAY_SIGN_UP is open, and {key} is set"


def stranger_write_back(settings: Settings) -> Iterator[str]:
    """Anybody may trigger evaluations, and those are written to a chain."""
    if _is_solana_funded(settings) and "trigger-sandbox" in settings.open_endpoints:
        yield "ASSAY_OPEN_ENDPOINTS contains trigger-sandbox, and ASSAY_SOLANA_KEYPAIR is set"


def key_in_environment(settings: Settings) -> Iterator[str]:
    """Keys with money, where they are easily shown."""
    for field, key in _wallet_keys(settings):
        if key is not None and is_in_environment(field):
            yield f"ASSAY_{field.upper()} is an environment variable"
    keypair = settings.solana_keypair
    is_given = is_in_environment("solana_keypair") and _is_solana_funded(settings)
    if keypair is not None and is_given and is_inline(keypair):
        yield "ASSAY_SOLANA_KEYPAIR is an environment variable that holds the key itself"


def known_key(settings: Settings) -> Iterator[str]:
    """Keys that somebody made up, or that everybody has."""
    for field, key in _wallet_keys(settings):
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
    """Whether it is the JSON array, and no file's name."""
    return keypair.get_secret_value().lstrip().startswith("[")


def payout_address(settings: Settings) -> Iterator[str]:
    """A wallet that nobody can spend from, that everybody can, or a thief of the settling key."""
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


def _wallet_keys(settings: Settings) -> tuple[tuple[str, SecretStr | None], ...]:
    """The keys of our wallets on EVM chains, by their fields."""
    return tuple((name, getattr(settings, name)) for name in WALLET_KEYS)


def _wallet(key: SecretStr | None) -> int | None:
    if key is None:
        return None
    try:
        return int(address_of_key(key.get_secret_value()), 16)
    except ValueError:  # the start refuses such a key, and says so
        return None


def _spending_keys(settings: Settings) -> list[str]:
    """Those in use: beside a facilitator the private key pays for nothing."""
    settles = settings.x402_private_key is not None and not settings.x402_facilitator_url
    buys = settings.paid_calls_key is not None and settings.paid_calls_usd_per_day > 0
    used = {
        "ASSAY_X402_PRIVATE_KEY": settles,
        "ASSAY_SOLANA_KEYPAIR": _is_solana_funded(settings),
        "ASSAY_PAID_CALLS_KEY": buys,
    }
    return [name for name, is_used in used.items() if is_used]


def _is_solana_funded(settings: Settings) -> bool:
    """Whether the keypair may hold money; on devnet everybody is given some."""
    return settings.solana_keypair is not None and settings.solana_cluster == "mainnet-beta"


def _seed(keypair: SecretStr | None) -> str | None:
    """The secret half in hexadecimal digits; None where the start refuses it."""
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
