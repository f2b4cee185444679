"""The 8004 registry on Solana: its addresses, accounts, history and the feedback instruction.

Decodes account data of the registry, the ATOM engine and Metaplex Core. Pure.

Layouts, discriminators and bounds: solana-registry.md#account-layouts (npm 8004-solana 0.8.3, borsh
schemas), which the golden accounts confirm. Data comes from a node and is validated like all
untrusted input.

Program-derived addresses of the registry's accounts.

Source: solana-registry.md#derived-addresses.

Encodes the instruction give_feedback, byte for byte as the registry's own SDK does. Pure.

Source: solana-registry.md#feedback-instruction (program v0.5.3, npm 8004-solana 0.8.3) and its
golden vectors.

Reads an address's history on a Solana cluster (conventions.md#signals-and-score).

Any party can name another's address in a transaction, so a mention proves nothing: only the age of
a transaction that the address itself signed counts.
"""

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from assay.chains.model import PUBLIC_KEY_BYTES, Account, Network
from assay.chains.rpc import Rpc
from assay.chains.solana.clusters import PROGRAMS, SYSTEM_PROGRAM
from assay.common.addresses import encode
from assay.common.clock import Clock
from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.common.numbers import NotANumber, whole_number
from assay.registries.model import AtomStats

AGENT_DISCRIMINATOR = bytes.fromhex("f177458ce9097032")
ATOM_DISCRIMINATOR = bytes.fromhex("bebb323bcb2788f4")
"""sha256("account:Name")[0..8]."""

AGENT_BYTES_MIN = 266
ATOM_BYTES = 561
URI_BYTES_MAX, NAME_BYTES_MAX = 250, 32

OWNER_AT, ASSET_AT, WALLET_AT = 72, 104, 138
"""Offsets of an AgentAccount's (cached) owner, its asset and its wallet's tag."""

_ATOM_ENABLED_AT = 137
_DIGEST_AND_COUNT = PUBLIC_KEY_BYTES + 8
_CORE_ASSET_V1 = 1
_CORE_BURNT = b"\0"

_EMA_SLOW_AT, _HLL_AT, _QUALITY_AT, _CONFIDENCE_AT = 98, 116, 547, 557
_HLL_BYTES = 128
_TIERS = ("Unrated", "Bronze", "Silver", "Gold", "Platinum")
_ALPHA = 0.7213 / (1 + 1.079 / 256)


class BadAccount(ValueError):
    """The data is not the expected account; the message is for logs."""


@dataclass(frozen=True, slots=True)
class AgentAccount:
    """The registry's own record of an agent. `owner` is a copy that may be out of date."""

    collection: str
    creator: str
    owner: str
    asset: str
    atom_enabled: bool
    wallet: str | None
    feedback_count: int
    uri: str
    name: str


class _Reader:
    """Reads forward; data that does not fit raises `BadAccount`."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self.at = at

    def take(self, count: int) -> bytes:
        piece = self._data[self.at : self.at + count]
        if len(piece) < count:
            raise BadAccount(f"the data ends at byte {len(self._data)}")
        self.at += count
        return piece

    def key(self) -> str:
        return encode(self.take(PUBLIC_KEY_BYTES))

    def flag(self) -> bool:
        """Read a borsh Option's tag, or a bool."""
        tag = self.take(1)[0]
        if tag > 1:
            raise BadAccount(f"an option's tag is {tag}")
        return tag == 1

    def optional_key(self) -> str | None:
        return self.key() if self.flag() else None

    def u64(self) -> int:
        return int.from_bytes(self.take(8), "little")

    def text(self, bytes_max: int) -> str:
        length = int.from_bytes(self.take(4), "little")
        if length > bytes_max:
            raise BadAccount(f"a text says it has {length} bytes")
        try:
            return self.take(length).decode("utf-8")
        except UnicodeDecodeError:
            raise BadAccount("a text is not UTF-8") from None


def read_agent(data: bytes) -> AgentAccount:
    """Decode an AgentAccount, ignoring what follows its last text. Raises `BadAccount`."""
    if len(data) < AGENT_BYTES_MIN or not data.startswith(AGENT_DISCRIMINATOR):
        raise BadAccount("the data is no AgentAccount")
    reader = _Reader(data, len(AGENT_DISCRIMINATOR))
    collection, creator, owner, asset = (reader.key() for _ in range(4))
    reader.at = WALLET_AT
    wallet = reader.optional_key()
    reader.take(PUBLIC_KEY_BYTES)
    feedback_count = reader.u64()
    reader.take(2 * _DIGEST_AND_COUNT)
    reader.optional_key()  # The parent asset.
    reader.take(2)  # Whether parent and collection are locked.
    uri, name = reader.text(URI_BYTES_MAX), reader.text(NAME_BYTES_MAX)
    return AgentAccount(
        collection=collection,
        creator=creator,
        owner=owner,
        asset=asset,
        atom_enabled=data[_ATOM_ENABLED_AT] == 1,
        wallet=wallet,
        feedback_count=feedback_count,
        uri=uri,
        name=name,
    )


def read_atom(data: bytes) -> AtomStats:
    """Decode the ATOM engine's figures of one agent. Raises `BadAccount`."""
    if len(data) < ATOM_BYTES or not data.startswith(ATOM_DISCRIMINATOR):
        raise BadAccount("the data is no AtomStats")
    quality, risk, _, tier = struct.unpack_from("<HBBB", data, _QUALITY_AT)
    (confidence,) = struct.unpack_from("<H", data, _CONFIDENCE_AT)
    (slow,) = struct.unpack_from("<H", data, _EMA_SLOW_AT)
    return AtomStats(
        trust_tier=_TIERS[tier] if tier < len(_TIERS) else "Unknown",
        quality_score=quality,
        confidence=confidence,
        risk_score=risk,
        unique_callers=_estimate(data[_HLL_AT : _HLL_AT + _HLL_BYTES]),
        average_score=slow / 100,
    )


def is_burnt(data: bytes) -> bool:
    """Return whether a Metaplex Core asset was burnt: one byte remains to reserve its address.

    Source: mpl-core, `Key::Uninitialized` and `close_program_account`.
    """
    return data[:1] == _CORE_BURNT


def read_core_owner(data: bytes) -> str:
    """Return the owner of a Metaplex Core asset, which is authoritative. Raises `BadAccount`."""
    if len(data) <= PUBLIC_KEY_BYTES or data[0] != _CORE_ASSET_V1:
        raise BadAccount("the data is no Core asset")
    return encode(data[1 : 1 + PUBLIC_KEY_BYTES])


def _estimate(packed: bytes) -> int:
    """Estimate how many callers 256 registers of four bits saw, low half first.

    Source: Flajolet et al. 2007 (HyperLogLog), with the linear counting the SDK uses below 640.
    """
    registers = [half for byte in packed for half in (byte & 0x0F, byte >> 4)]
    count = len(registers)
    estimate = _ALPHA * count * count / sum(2.0**-register for register in registers)
    zeros = registers.count(0)
    if estimate <= 2.5 * count and zeros:
        estimate = count * math.log(count / zeros)
    return math.floor(estimate + 0.5)


@lru_cache(maxsize=4096)
def agent_address(cluster: str, asset: str) -> str:
    """Return the AgentAccount of an asset."""
    return _derived(PROGRAMS[cluster].registry, b"agent", asset)


@lru_cache(maxsize=4096)
def atom_address(cluster: str, asset: str) -> str:
    """Return the AtomStats of an asset, whether the account exists or not."""
    return _derived(PROGRAMS[cluster].atom, b"atom_stats", asset)


@lru_cache(maxsize=8)
def atom_config_address(cluster: str) -> str:
    """Return the ATOM engine's configuration."""
    return _derived(PROGRAMS[cluster].atom, b"atom_config")


@lru_cache(maxsize=8)
def cpi_authority_address(cluster: str) -> str:
    """Return the authority with which the registry calls the ATOM engine."""
    return _derived(PROGRAMS[cluster].registry, b"atom_cpi_authority")


def _derived(program: str, seed: bytes, asset: str | None = None) -> str:
    from solders.pubkey import Pubkey  # noqa: PLC0415 - 25 ms and 14 MiB that only Solana needs

    seeds = [seed] if asset is None else [seed, bytes(Pubkey.from_string(asset))]
    return str(Pubkey.find_program_address(seeds, Pubkey.from_string(program))[0])


DISCRIMINATOR = bytes.fromhex("91887b03d7a56229")
"""sha256("global:give_feedback")[0..8]."""

TAG = "starred"
"""The attribution tag of what we write. Source: interface.md#write-back-to-solana."""

SCORE_MAX, DECIMALS_MAX = 100, 18
TAG_BYTES_MAX, FEEDBACK_URI_BYTES_MAX = 32, 250
HASH_BYTES = 32
_VALUE_BYTES = 16


@dataclass(frozen=True, slots=True)
class SolanaFeedback:
    """A piece of feedback. `value` is an i128 with `decimals` places; `score` 0 to 100.

    Without a score the ATOM engine does not count it.
    """

    value: int
    score: int | None = None
    decimals: int = 0
    file_hash: bytes | None = None
    tag1: str = TAG
    tag2: str = ""
    endpoint: str = ""
    uri: str = ""


@dataclass(frozen=True, slots=True)
class AccountMeta:
    """An account of an instruction."""

    key: str
    is_signer: bool = False
    is_writable: bool = False


@dataclass(frozen=True, slots=True)
class GiveFeedback:
    """The instruction: its program, its accounts and its data."""

    program: str
    accounts: tuple[AccountMeta, ...]
    data: bytes


def give_feedback(
    cluster: str, client: str, asset: str, collection: str, given: SolanaFeedback
) -> GiveFeedback:
    """Return feedback signed and paid by `client`. Raises `ValueError` beyond the program's bounds.

    All nine accounts are always named, also for agents without ATOM figures: the program accepts no
    shorter list.
    """
    programs = PROGRAMS[cluster]
    accounts = (
        AccountMeta(client, is_signer=True, is_writable=True),
        AccountMeta(agent_address(cluster, asset), is_writable=True),
        AccountMeta(asset),
        AccountMeta(collection),
        AccountMeta(SYSTEM_PROGRAM),
        AccountMeta(atom_config_address(cluster)),
        AccountMeta(atom_address(cluster, asset), is_writable=True),
        AccountMeta(programs.atom),
        AccountMeta(cpi_authority_address(cluster)),
    )
    return GiveFeedback(programs.registry, accounts, _data(given))


def _data(given: SolanaFeedback) -> bytes:
    if given.score is not None and not 0 <= given.score <= SCORE_MAX:
        raise ValueError(f"a score is 0 to {SCORE_MAX}")
    if not 0 <= given.decimals <= DECIMALS_MAX:
        raise ValueError(f"decimals are 0 to {DECIMALS_MAX}")
    if given.file_hash is not None and len(given.file_hash) != HASH_BYTES:
        raise ValueError(f"a file hash has {HASH_BYTES} bytes")
    try:
        value = given.value.to_bytes(_VALUE_BYTES, "little", signed=True)
    except OverflowError:
        raise ValueError("a value is a signed number of 128 bits") from None
    return b"".join(
        (
            DISCRIMINATOR,
            value,
            bytes([given.decimals]),
            _option(None if given.score is None else bytes([given.score])),
            _option(given.file_hash),
            _text("tag1", given.tag1, TAG_BYTES_MAX),
            _text("tag2", given.tag2, TAG_BYTES_MAX),
            _text("endpoint", given.endpoint, FEEDBACK_URI_BYTES_MAX),
            _text("feedbackUri", given.uri, FEEDBACK_URI_BYTES_MAX),
        )
    )


def _option(value: bytes | None) -> bytes:
    return b"\0" if value is None else b"\1" + value


def _text(name: str, text: str, bytes_max: int) -> bytes:
    written = text.encode("utf-8")
    if len(written) > bytes_max:
        raise ValueError(f"{name} has more than {bytes_max} bytes")
    return len(written).to_bytes(4, "little") + written


SIGNATURES_READ = 1000
"""Newest transactions examined: the most a node lists at once."""

DAY_S = 86_400
LAMPORT_IN_WEI = 10**9
"""A lamport is 10^-9 SOL; balances are compared on the scale of coins with 18 decimals."""


class Histories:
    """Reads the history of addresses."""

    def __init__(self, rpc: Rpc, clock: Clock) -> None:
        self._rpc = rpc
        self._clock = clock

    async def account(self, network: Network, address: str) -> Account:
        """Return what is known of an address now. Raises `ChainUnavailable`."""
        options = {"commitment": "confirmed"}
        answer = await self._rpc.request(network, "getBalance", [address, options])
        balance = _count(answer.get("value")) if is_object(answer) else None
        oldest = await self._oldest(network, [address])
        first_s, count = oldest.get(address, (None, None))
        return Account(
            transactions=count,
            is_contract=not _on_curve(address),
            balance=None if balance is None else balance * LAMPORT_IN_WEI,
            since_days=None if first_s is None else self._days_since(first_s),
        )

    def _days_since(self, time_s: int) -> int:
        return max(0, int(self._clock.now().timestamp()) - time_s) // DAY_S

    async def _oldest(
        self, network: Network, addresses: Sequence[str]
    ) -> Mapping[str, tuple[int | None, int]]:
        """Return by address the oldest transaction's time, if it signed that, and a count."""
        options: JsonObject = {"limit": SIGNATURES_READ, "commitment": "confirmed"}
        asked = [("getSignaturesForAddress", (address, options)) for address in addresses]
        listed = await self._rpc.request_all(network, asked)
        rows = {a: _last(r) for a, r in zip(addresses, listed, strict=True) if is_array(r)}
        signatures = [str(row.get("signature")) for row in rows.values() if row is not None]
        transactions = await self._transactions(network, signatures)
        found: dict[str, tuple[int | None, int]] = {}
        for address, answer in zip(addresses, listed, strict=True):
            row = rows.get(address)
            if is_array(answer):
                signed = row is not None and address in _signers(
                    transactions.get(str(row.get("signature")))
                )
                time_s = _count(row.get("blockTime")) if row is not None and signed else None
                found[address] = (time_s, len(answer))
        return found

    async def _transactions(
        self, network: Network, signatures: Sequence[str]
    ) -> Mapping[str, JsonValue]:
        options: JsonObject = {
            "encoding": "json",
            "commitment": "confirmed",
            "maxSupportedTransactionVersion": 0,
        }
        asked = [("getTransaction", (one, options)) for one in signatures]
        answers = await self._rpc.request_all(network, asked) if asked else ()
        return dict(zip(signatures, answers, strict=True))


def _count(value: JsonValue) -> int | None:
    """Return lamports or seconds: numbers that fit 64 bits."""
    try:
        return whole_number(value, 2**64 - 1)
    except NotANumber:
        return None


def _last(rows: Sequence[JsonValue]) -> JsonObject | None:
    """Return the oldest row: nodes list the newest first."""
    last = rows[-1] if rows else None
    return last if is_object(last) else None


def _signers(answer: JsonValue) -> Sequence[JsonValue]:
    """Return the first accounts of a message, its signers. Source: Solana's transaction format."""
    transaction = answer.get("transaction") if is_object(answer) else None
    message = transaction.get("message") if is_object(transaction) else None
    if not is_object(message):
        return ()
    keys, header = message.get("accountKeys"), message.get("header")
    count = header.get("numRequiredSignatures") if is_object(header) else None
    return keys[:count] if is_array(keys) and isinstance(count, int) and count > 0 else ()


def _on_curve(address: str) -> bool:
    """Return whether a key can sign for the address; the others belong to programs."""
    from solders.pubkey import Pubkey  # noqa: PLC0415 - 25 ms and 14 MiB that only Solana needs

    return Pubkey.from_string(address).is_on_curve()
