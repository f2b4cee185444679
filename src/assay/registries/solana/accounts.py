"""Decodes account data of the registry, the ATOM engine and Metaplex Core. Pure.

Layouts, discriminators and bounds: solana-registry.md#account-layouts (npm 8004-solana 0.8.3, borsh
schemas), which the golden accounts confirm. Data comes from a node and is validated like all
untrusted input.
"""

import math
import struct
from dataclasses import dataclass

from assay.chains.model import PUBLIC_KEY_BYTES
from assay.common.base58 import encode
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
