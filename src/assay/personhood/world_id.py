"""Hashes World ID proofs, version 3, and encodes the router's call. Pure.

Source: worldcoin/world-id-contracts (`WorldIDRouter`, `ByteHasher`); personhood-proofs.md#world-id.
A real proof is the vector `tests/vectors/world_id.json`.
"""

import re

from assay.chains.evm.abi import word
from assay.chains.rpc import ContractCall
from assay.common.keccak import keccak256

FIELD = 21888242871839275222246405745257275088548364400416034343698204186575808495617
"""Order of the scalar field of BN254: every public input is below it. Source: EIP-196."""

ORB_GROUP = 1
"""The only group on chain. Source: personhood-proofs.md#world-id."""

ROOT_REVERTS = frozenset({bytes.fromhex("ddae3b71"), bytes.fromhex("3ae7359e")})
"""`NonExistentRoot`, `ExpiredRoot`."""

PROOF_WORDS = 8
_HEX = re.compile(r"0x(?:[0-9a-fA-F]{2})*")


def hash_to_field(content: bytes) -> int:
    """Return keccak-256, shifted to fit the field."""
    return int.from_bytes(keccak256(content)) >> 8


def signal_hash(signal: str) -> int:
    """Hash what the proof was made for: hex as the bytes it spells, other text as text."""
    content = bytes.fromhex(signal[2:]) if _HEX.fullmatch(signal) else signal.encode()
    return hash_to_field(content)


def external_nullifier(app_id: str, action: str) -> int:
    """Return the scope of nullifiers: a human has one nullifier for each."""
    return hash_to_field(word(hash_to_field(app_id.encode())) + action.encode())


def verify_proof(
    router: str, root: int, signal: int, nullifier: int, external: int, proof: tuple[int, ...]
) -> ContractCall:
    """Call `verifyProof(root, groupId, signalHash, nullifierHash, externalNullifierHash, proof)`.

    It returns nothing for a valid proof, and reverts for any other.
    """
    words = (root, ORB_GROUP, signal, nullifier, external, *proof)
    return ContractCall(
        router, bytes.fromhex("3bc778e3") + b"".join(word(number) for number in words)
    )
