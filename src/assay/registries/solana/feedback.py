"""Encodes the instruction give_feedback, byte for byte as the registry's own SDK does. Pure.

Source: solana-registry.md#feedback-instruction (program v0.5.3, npm 8004-solana 0.8.3) and its
golden vectors.
"""

from dataclasses import dataclass

from assay.chains.solana.clusters import PROGRAMS, SYSTEM_PROGRAM
from assay.registries.solana.addresses import (
    agent_address,
    atom_address,
    atom_config_address,
    cpi_authority_address,
)

DISCRIMINATOR = bytes.fromhex("91887b03d7a56229")
"""sha256("global:give_feedback")[0..8]."""

TAG = "starred"
"""The attribution tag of what we write. Source: interface.md#write-back-to-solana."""

SCORE_MAX, DECIMALS_MAX = 100, 18
TAG_BYTES_MAX, URI_BYTES_MAX = 32, 250
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
            _text("endpoint", given.endpoint, URI_BYTES_MAX),
            _text("feedbackUri", given.uri, URI_BYTES_MAX),
        )
    )


def _option(value: bytes | None) -> bytes:
    return b"\0" if value is None else b"\1" + value


def _text(name: str, text: str, bytes_max: int) -> bytes:
    written = text.encode("utf-8")
    if len(written) > bytes_max:
        raise ValueError(f"{name} has more than {bytes_max} bytes")
    return len(written).to_bytes(4, "little") + written
