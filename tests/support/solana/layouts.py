"""Accounts of the registry, the ATOM engine and Metaplex Core, to bytes and back.

Every byte of a golden account comes out again, leftovers behind the last string included.
"""

import hashlib
import struct
from dataclasses import dataclass, field, fields
from itertools import islice
from typing import Any

from solders.pubkey import Pubkey

NOBODY = bytes(32)
AGENT_SIZE = 748
METADATA_SIZE = 332


def discriminator(name: str) -> bytes:
    """The first eight bytes of an account of Anchor."""
    return hashlib.sha256(f"account:{name}".encode()).digest()[:8]


class WrongAccount(ValueError):
    """These bytes are no such account."""


@dataclass
class Cursor:
    """Reads borsh from the front."""

    data: bytes
    at: int = 0

    def take(self, length: int) -> bytes:
        if self.at + length > len(self.data):
            raise WrongAccount("cut short")
        self.at += length
        return self.data[self.at - length : self.at]

    def number(self, size: int, *, signed: bool = False) -> int:
        return int.from_bytes(self.take(size), "little", signed=signed)

    def flag(self) -> bool:
        if (tag := self.number(1)) > 1:
            raise WrongAccount("neither yes nor no")
        return tag == 1

    def key(self) -> Pubkey:
        return Pubkey.from_bytes(self.take(32))

    def optional_key(self) -> Pubkey | None:
        return self.key() if self.flag() else None

    def text(self, bytes_max: int = 2**32) -> str:
        length = self.number(4)
        if length > bytes_max:
            raise WrongAccount("longer than the program lets it be")
        return self.take(length).decode()


def blob(data: bytes) -> bytes:
    return len(data).to_bytes(4, "little") + data


def _optional(key: Pubkey | None) -> bytes:
    return b"\0" if key is None else b"\1" + bytes(key)


@dataclass(frozen=True)
class Chain:
    """How many entries there are, and the digest that runs over them."""

    digest: bytes = NOBODY
    count: int = 0

    def encoded(self) -> bytes:
        return self.digest + self.count.to_bytes(8, "little")

    @staticmethod
    def read(cursor: Cursor) -> "Chain":
        return Chain(cursor.take(32), cursor.number(8))


@dataclass(frozen=True, kw_only=True)
class AgentAccount:
    collection: Pubkey
    creator: Pubkey
    owner: Pubkey
    """As cached by the registry; the Core asset knows better."""
    asset: Pubkey
    bump: int
    atom_enabled: bool = False
    wallet: Pubkey | None = None
    feedback: Chain = Chain()
    responses: Chain = Chain()
    revocations: Chain = Chain()
    parent: Pubkey | None = None
    parent_locked: bool = False
    col_locked: bool = False
    uri: str = ""
    name: str = "Agent"
    col: str = ""
    tail: bytes = b""
    """What earlier, longer contents left behind; filled up with zeros."""

    DISCRIMINATOR = discriminator("AgentAccount")

    def encoded(self) -> bytes:
        keys = (self.collection, self.creator, self.owner, self.asset)
        chains = (self.feedback, self.responses, self.revocations)
        texts = (self.uri, self.name, self.col)
        parts = [
            self.DISCRIMINATOR, *map(bytes, keys), bytes([self.bump, self.atom_enabled]),
            _optional(self.wallet), *(chain.encoded() for chain in chains),
            _optional(self.parent), bytes([self.parent_locked, self.col_locked]),
            *(blob(text.encode()) for text in texts), self.tail,
        ]  # fmt: skip
        return b"".join(parts).ljust(AGENT_SIZE, b"\0")

    @staticmethod
    def decoded(data: bytes) -> "AgentAccount":
        """Raises `WrongAccount`."""
        it = Cursor(data)
        if it.take(8) != AgentAccount.DISCRIMINATOR:
            raise WrongAccount("not an AgentAccount")
        return AgentAccount(
            collection=it.key(), creator=it.key(), owner=it.key(), asset=it.key(),
            bump=it.number(1), atom_enabled=it.flag(), wallet=it.optional_key(),
            feedback=Chain.read(it), responses=Chain.read(it), revocations=Chain.read(it),
            parent=it.optional_key(), parent_locked=it.flag(), col_locked=it.flag(),
            uri=it.text(250), name=it.text(32), col=it.text(128), tail=data[it.at:].rstrip(b"\0"),
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class AtomNumbers:
    """AtomStats without its keys, field by field in the order of the account."""

    first_feedback_slot: int = 0
    last_feedback_slot: int = 0
    feedback_count: int = 0
    ema_fast: int = 0
    ema_slow: int = 0
    volatility: int = 0
    arrival_log: int = 0
    peak: int = 0
    max_drawdown: int = 0
    epoch_count: int = 0
    current_epoch: int = 0
    min_score: int = 0
    max_score: int = 0
    first_score: int = 0
    last_score: int = 0
    hll: bytes = bytes(128)
    """256 registers of four bits, the low half of a byte first."""
    hll_salt: int = 0
    recent_callers: tuple[int, ...] = (0,) * 24
    burst_pressure: int = 0
    updates_since_hll_change: int = 0
    neg_pressure: int = 0
    eviction_cursor: int = 0
    ring_base_slot: int = 0
    quality_velocity: int = 0
    velocity_epoch: int = 0
    freeze_epochs: int = 0
    quality_floor: int = 0
    bypass_count: int = 0
    bypass_score_avg: int = 0
    bypass_fingerprints: tuple[int, ...] = (0,) * 10
    bypass_cursor: int = 0
    loyalty: int = 0
    quality_score: int = 0
    """0 to 10,000, as the confidence."""
    risk_score: int = 0
    """0 to 100, high is bad."""
    diversity_ratio: int = 0
    trust_tier: int = 0
    """0 to 4: Unrated, Bronze, Silver, Gold, Platinum."""
    tier_candidate: int = 0
    tier_candidate_epoch: int = 0
    tier_confirmed: int = 0
    flags: int = 0
    confidence: int = 0


MANY = {"recent_callers": 24, "bypass_fingerprints": 10}
"""Fields that hold several numbers."""


@dataclass(frozen=True, kw_only=True)
class AtomStats:
    collection: Pubkey
    asset: Pubkey
    numbers: AtomNumbers = field(default_factory=AtomNumbers)
    bump: int
    version: int = 1

    DISCRIMINATOR = discriminator("AtomStats")
    LAYOUT = struct.Struct("<8s32s32s 3Q8H4B128sQ24Q4BQ2H4B10QB2H4BH2BH 2B")

    def encoded(self) -> bytes:
        flat: list[object] = []
        for one in fields(self.numbers):
            value = getattr(self.numbers, one.name)
            flat.extend(value if one.name in MANY else [value])
        keys = (bytes(self.collection), bytes(self.asset))
        return self.LAYOUT.pack(self.DISCRIMINATOR, *keys, *flat, self.bump, self.version)

    @staticmethod
    def decoded(data: bytes) -> "AtomStats":
        """Raises `WrongAccount`."""
        if len(data) != AtomStats.LAYOUT.size or data[:8] != AtomStats.DISCRIMINATOR:
            raise WrongAccount("not an AtomStats")
        _, collection, asset, *flat, bump, version = AtomStats.LAYOUT.unpack(data)
        values = iter(flat)
        numbers: dict[str, Any] = {
            one.name: tuple(islice(values, MANY[one.name])) if one.name in MANY else next(values)
            for one in fields(AtomNumbers)
        }
        return AtomStats(
            collection=Pubkey.from_bytes(collection),
            asset=Pubkey.from_bytes(asset),
            numbers=AtomNumbers(**numbers),
            bump=bump,
            version=version,
        )


ATOM_DEFAULTS = (
    30, 5, 20, 10, 10, 5, 25, 30, 70, 3, 4, 2, 3, 2, 1, 50, 30, 2000, 1500, 500,
    7000, 15, 6000, 5000, 30, 4500, 3000, 50, 3000, 1000, 70, 800,
    5, 15, 4000, 400, 15, 5, 2000, 20, 500,
)  # fmt: skip
"""Weights and thresholds of the ATOM engine, as it is set up."""

_ATOM_CONFIG = struct.Struct("<8s32s32s 9H8B3H HBHHBHHBHHBH 6HIBH 3B5x")


def atom_config(authority: Pubkey, registry: Pubkey, bump: int, *, paused: bool = False) -> bytes:
    head = (discriminator("AtomConfig"), bytes(authority), bytes(registry))
    return _ATOM_CONFIG.pack(*head, *ATOM_DEFAULTS, bump, 1, paused)


def root_config(collection: Pubkey, authority: Pubkey, bump: int) -> bytes:
    return discriminator("RootConfig") + bytes(collection) + bytes(authority) + bytes([bump])


def registry_config(collection: Pubkey, authority: Pubkey, bump: int) -> bytes:
    return discriminator("RegistryConfig") + bytes(collection) + bytes(authority) + bytes([bump])


def metadata_entry(asset: Pubkey, key: str, value: bytes, bump: int) -> bytes:
    head = discriminator("MetadataEntryPda") + bytes(asset) + bytes([False, bump])
    return (head + blob(key.encode()) + blob(value)).ljust(METADATA_SIZE, b"\0")


def core_asset(owner: Pubkey, collection: Pubkey, name: str, uri: str) -> bytes:
    """An AssetV1 whose updates belong to its collection."""
    names = blob(name.encode()) + blob(uri.encode())
    return b"\1" + bytes(owner) + b"\2" + bytes(collection) + names + b"\0"


def core_owner(data: bytes) -> Pubkey | None:
    """Who owns a Core asset; None where this is none."""
    return Pubkey.from_bytes(data[1:33]) if len(data) >= 33 and data[0] == 1 else None
