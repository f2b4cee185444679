"""The ERC-8004 registries' calls and answers, as bytes. Pure.

Selectors and layouts: EIP-8004 and the deployed contracts, version 2.0.0 (erc-8004-contracts,
commit b9e466c). Everything decoded here comes from a node that may lie: what does not decode
raises `BadAnswer`.
"""

from collections.abc import Sequence
from decimal import Context, Decimal
from typing import Any

from eth_abi.abi import decode, encode
from eth_abi.exceptions import DecodingError

from assay.chains.model import Feedback
from assay.chains.ports import Call

VERSION = "2.0.0"
"""What `getVersion()` answers on every registry that is the real one."""

NONEXISTENT_TOKEN = bytes.fromhex("7e273289")
"""`ERC721NonexistentToken(uint256)`: the one revert that means that there is no such agent."""

ERC1271_MAGIC = bytes.fromhex("1626ba7e")
"""Source: ERC-1271."""

DECIMALS_MAX = 18
VALUE_MAX = 10**38
"""Bounds the registry itself enforces ("too many decimals", "value too large")."""

TAG_CHARS_MAX = 200
URI_CHARS_MAX = 64 * 1024

_EXACT = Context(prec=60)
_ZERO = "0x" + "0" * 40


class BadAnswer(Exception):
    """The bytes are not what the contract answers."""


def owner_of(registry: str, agent_id: str) -> Call:
    """`ownerOf(uint256)`."""
    return _call(registry, "6352211e", ["uint256"], [int(agent_id)])


def token_uri(registry: str, agent_id: str) -> Call:
    """`tokenURI(uint256)`."""
    return _call(registry, "c87b56dd", ["uint256"], [int(agent_id)])


def agent_wallet(registry: str, agent_id: str) -> Call:
    """`getAgentWallet(uint256)`."""
    return _call(registry, "00339509", ["uint256"], [int(agent_id)])


def version(registry: str) -> Call:
    """`getVersion()`."""
    return _call(registry, "0d8e6e2c", [], [])


def identity_registry(registry: str) -> Call:
    """`getIdentityRegistry()` of the reputation registry."""
    return _call(registry, "bc4d861b", [], [])


def clients(registry: str, agent_id: str) -> Call:
    """`getClients(uint256)`."""
    return _call(registry, "42dd519c", ["uint256"], [int(agent_id)])


def all_feedback(registry: str, agent_id: str, of: Sequence[str] = ()) -> Call:
    """`readAllFeedback`, unrevoked entries of the clients `of` (none named: of everybody)."""
    types = ["uint256", "address[]", "string", "string", "bool"]
    return _call(registry, "d9d84224", types, [int(agent_id), list(of), "", "", False])


def valid_signature(wallet: str, digest: bytes, signature: bytes) -> Call:
    """`isValidSignature(bytes32,bytes)` (ERC-1271)."""
    return _call(wallet, "1626ba7e", ["bytes32", "bytes"], [digest, signature])


def read_address(data: bytes) -> str | None:
    """An address in lower case; the zero address is None."""
    (address,) = _decode(["address"], data)
    return None if address == _ZERO else address.lower()


def read_addresses(data: bytes) -> tuple[str, ...]:
    """A list of addresses in lower case."""
    (addresses,) = _decode(["address[]"], data)
    return tuple(address.lower() for address in addresses)


def read_text(data: bytes) -> str:
    """A string, at most `URI_CHARS_MAX` characters; bytes that are no UTF-8 are replaced."""
    (text,) = _decode(["bytes"], data)
    return text.decode("utf-8", "replace")[:URI_CHARS_MAX]


def read_feedback(data: bytes) -> tuple[Feedback, ...]:
    """The seven parallel lists of `readAllFeedback` as entries, in the registry's order."""
    types = ["address[]", "uint64[]", "int128[]", "uint8[]", "bytes[]", "bytes[]", "bool[]"]
    columns = _decode(types, data)
    if len({len(column) for column in columns}) != 1:
        raise BadAnswer("the lists of readAllFeedback differ in length")
    return tuple(_entry(*row[:6]) for row in zip(*columns, strict=True) if not row[6])


def _entry(
    client: str, index: int, value: int, decimals: int, tag1: bytes, tag2: bytes
) -> Feedback:
    if decimals > DECIMALS_MAX or abs(value) > VALUE_MAX:
        raise BadAnswer("a feedback value the registry does not accept")
    return Feedback(
        client=client.lower(),
        index=index,
        value=_EXACT.scaleb(Decimal(value), -decimals),
        decimals=decimals,
        tag1=_tag(tag1),
        tag2=_tag(tag2),
    )


def _tag(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")[:TAG_CHARS_MAX]


def _call(to: str, selector: str, types: Sequence[str], values: Sequence[Any]) -> Call:
    return Call(to, bytes.fromhex(selector) + encode(types, values))


def _decode(types: Sequence[str], data: bytes) -> tuple[Any, ...]:
    try:
        return decode(types, data)
    except (DecodingError, OverflowError, ValueError) as error:
        raise BadAnswer(str(error)) from error
