"""Encodes calls to the ERC-8004 registries and decodes their answers. Pure.

Selectors and layouts: EIP-8004 and the deployed contracts, version 2.0.0 (erc-8004-contracts,
commit b9e466c). Everything decoded here comes from a node that may lie: data that does not decode
raises `BadAnswer`.
"""

from collections.abc import Sequence
from decimal import Context, Decimal

from assay.chains.evm.abi import WORD, AbiReader, BadAnswer, address_word, counted, word
from assay.chains.rpc import ContractCall
from assay.registries.model import Feedback

VERSION = "2.0.0"
"""The answer of `getVersion()` on every genuine registry."""

NONEXISTENT_TOKEN = bytes.fromhex("7e273289")
"""`ERC721NonexistentToken(uint256)`: the only revert that means that the agent does not exist."""

ERC1271_MAGIC = bytes.fromhex("1626ba7e")
"""Source: ERC-1271."""

SIGNATURE_GAS_MAX = 3_000_000
"""Gas limit of a signature check. A P-256 signature verified in a contract takes about 0.4 million,
a multisig wallet of ten owners 0.1 million; a node spends 3 million in tens of milliseconds."""

ZERO_ADDRESS = "0x" + "0" * 40

DECIMALS_MAX = 18
VALUE_MAX = 10**38
"""Bounds that the registry itself enforces ("too many decimals", "value too large")."""

TAG_CHARS_MAX = 200

_EXACT = Context(prec=60)


def owner_of(registry: str, agent_id: str) -> ContractCall:
    """`ownerOf(uint256)`."""
    return _call(registry, "6352211e", word(int(agent_id)))


def token_uri(registry: str, agent_id: str) -> ContractCall:
    """`tokenURI(uint256)`."""
    return _call(registry, "c87b56dd", word(int(agent_id)))


def agent_wallet(registry: str, agent_id: str) -> ContractCall:
    """`getAgentWallet(uint256)`."""
    return _call(registry, "00339509", word(int(agent_id)))


def version(registry: str) -> ContractCall:
    """`getVersion()`."""
    return _call(registry, "0d8e6e2c")


def identity_registry(registry: str) -> ContractCall:
    """`getIdentityRegistry()` of the reputation registry."""
    return _call(registry, "bc4d861b")


def clients(registry: str, agent_id: str) -> ContractCall:
    """`getClients(uint256)`."""
    return _call(registry, "42dd519c", word(int(agent_id)))


def all_feedback(registry: str, agent_id: str, of: Sequence[str] = ()) -> ContractCall:
    """Call `readAllFeedback(id, of, "", "", false)`: unrevoked entries.

    Without `of`, entries of all reviewers.
    """
    names = word(len(of)) + b"".join(address_word(client) for client in of)
    any_tag, head = counted(b""), 5 * WORD
    return _call(
        registry,
        "d9d84224",
        word(int(agent_id)),
        word(head),
        word(head + len(names)),
        word(head + len(names) + len(any_tag)),
        word(0),
        names,
        any_tag,
        any_tag,
    )


def valid_signature(wallet: str, digest: bytes, signature: bytes) -> ContractCall:
    """`isValidSignature(bytes32,bytes)` (ERC-1271)."""
    return _call(wallet, "1626ba7e", digest, word(2 * WORD), counted(signature))


def says_valid(data: bytes) -> bool:
    """Return whether `isValidSignature` answered its magic value and nothing else in that word.

    The whole word is checked: a contract that echoes its input begins with the same four bytes.
    """
    return data[:WORD] == ERC1271_MAGIC.ljust(WORD, b"\0")


def read_address(data: bytes) -> str | None:
    """Read an address in lower case; the zero address is None."""
    address = AbiReader(data).address(0)
    return None if address == ZERO_ADDRESS else address


def read_addresses(data: bytes) -> tuple[str, ...]:
    """Read a list of addresses in lower case."""
    reader = AbiReader(data)
    return tuple(reader.address(at) for at in reader.items(reader.number(0)))


def read_text(data: bytes) -> str:
    """Read a string; invalid UTF-8 is replaced."""
    reader = AbiReader(data)
    return reader.content(reader.number(0)).decode("utf-8", "replace")


def read_feedback(data: bytes) -> tuple[Feedback, ...]:
    """Read the seven parallel lists of `readAllFeedback` as entries, in the registry's order."""
    reader = AbiReader(data)
    columns = [reader.items(reader.number(column * WORD)) for column in range(7)]
    if len({len(column) for column in columns}) != 1:
        raise BadAnswer("the lists of readAllFeedback differ in length")
    rows = zip(*columns, strict=True)
    tags = columns[4].start, columns[5].start
    return tuple(_entry(reader, row, tags) for row in rows if not reader.number(row[6], 1))


def _entry(reader: AbiReader, row: Sequence[int], tags: tuple[int, int]) -> Feedback:
    """Read one entry at these positions; tags are offsets from the starts of their lists."""
    value, decimals = reader.signed(row[2], 128), reader.number(row[3], 8)
    if decimals > DECIMALS_MAX or abs(value) > VALUE_MAX:
        raise BadAnswer("a feedback value the registry does not accept")
    return Feedback(
        client=reader.address(row[0]),
        index=reader.number(row[1], 64),
        value=_EXACT.scaleb(Decimal(value), -decimals),
        decimals=decimals,
        tag1=_tag(reader, tags[0] + reader.number(row[4])),
        tag2=_tag(reader, tags[1] + reader.number(row[5])),
    )


def _tag(reader: AbiReader, at: int) -> str:
    raw = reader.content(at)[: 4 * TAG_CHARS_MAX]
    return raw.decode("utf-8", "replace")[:TAG_CHARS_MAX]


def _call(to: str, selector: str, *words: bytes) -> ContractCall:
    return ContractCall(to, bytes.fromhex(selector) + b"".join(words))
