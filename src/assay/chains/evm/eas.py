"""Attestations of the Ethereum Attestation Service: calls, answers and fields. Pure.

Anyone may attest anything about anyone: the value of an attestation depends on its attester.
Source: EAS contracts 1.x (`IEAS`, `Common.sol`); eas.md#attestations (layouts, and why
`isAttestationValid` is not used).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assay.chains.evm.abi import WORD, AbiReader, BadAnswer
from assay.chains.rpc import ContractCall

ATTESTED = "0x8bf46bf4cfd674fa735a3d63ec1c9ad4153f033c290341f3a588b75685141b35"
"""`Attested(address indexed recipient, address indexed attester, bytes32 uid, bytes32 indexed)`."""

ITEMS_MAX = 50
"""Strings read from one list."""

_WORD_TYPES = re.compile(r"(address|bool|u?int[0-9]{0,3}|bytes[0-9]{1,2})")
_FIELD = re.compile(r"\s*([a-z0-9]+(?:\[\])?)\s+([A-Za-z_][A-Za-z0-9_]{0,63})\s*")

AttestationField = str | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OnchainAttestation:
    """An attestation as the contract stores it. Times are unix seconds, 0 for none."""

    uid: str
    schema: str
    expires_s: int
    revoked_s: int
    recipient: str
    attester: str
    data: bytes


def get_attestation(eas: str, uid: bytes) -> ContractCall:
    """`getAttestation(bytes32)`."""
    return ContractCall(eas, bytes.fromhex("a3112a64") + uid)


def read_attestation(answer: bytes) -> OnchainAttestation:
    """Decode the answer of `getAttestation`. Raises `BadAnswer`."""
    reader = AbiReader(answer)
    at = reader.number(0)
    return OnchainAttestation(
        uid=f"0x{reader.number(at):064x}",
        schema=f"0x{reader.number(at + WORD):064x}",
        expires_s=reader.number(at + 3 * WORD, 64),
        revoked_s=reader.number(at + 4 * WORD, 64),
        recipient=reader.address(at + 6 * WORD),
        attester=reader.address(at + 7 * WORD),
        data=reader.content(at + reader.number(at + 9 * WORD)),
    )


def parse_schema(text: str) -> tuple[tuple[str, str], ...]:
    """Return type and name of each field of a schema such as `string source, string handle`.

    Raises `ValueError` with a plain sentence for an unsupported type.
    """
    fields: list[tuple[str, str]] = []
    for part in text.split(","):
        found = _FIELD.fullmatch(part)
        if found is None:
            raise ValueError(f"the attestation field {part.strip()!r} is not `type name`")
        kind, name = found[1], found[2]
        if kind not in {"string", "string[]", "bytes"} and not _WORD_TYPES.fullmatch(kind):
            raise ValueError(f"the attestation field {name} has a type that cannot be read: {kind}")
        fields.append((kind, name))
    return tuple(fields)


def read_fields(fields: Sequence[tuple[str, str]], data: bytes) -> Mapping[str, AttestationField]:
    """Return the texts of an attestation by name; skip other types. Raises `BadAnswer`."""
    reader = AbiReader(data)
    found: dict[str, AttestationField] = {}
    for place, (kind, name) in enumerate(fields):
        if kind == "string":
            found[name] = _text(reader, reader.number(place * WORD))
        elif kind == "string[]":
            start = reader.number(place * WORD)
            heads = reader.items(start)
            if len(heads) > ITEMS_MAX:
                raise BadAnswer("more texts than are read")
            found[name] = tuple(_text(reader, heads.start + reader.number(at)) for at in heads)
        elif not data[place * WORD :]:
            raise BadAnswer("fewer fields than the schema has")
    return found


def _text(reader: AbiReader, at: int) -> str:
    return reader.content(at).decode("utf-8", "replace")
