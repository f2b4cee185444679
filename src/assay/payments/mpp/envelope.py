"""A payer's Tempo transaction in the one encoding under which the chain knows it.

Recovery ids 0 and 1 mean 27 and 28, and nodes take either; the hash is of the latter. Source:
pympp, `mpp.methods.tempo.intents`, which broadcasts the same; Tempo's transaction type 0x76.
"""

from importlib import import_module
from typing import Any, Final

from assay.common.json import is_object
from assay.common.keccak import keccak256
from assay.payments.model import LedgerEntry
from assay.payments.outcomes import SettlementAttempt

_TYPE: Final = b"\x76"
_FIELDS: Final = (14, 15)
_SIGNATURE_LEN: Final = 65
_KEYCHAIN: Final = (0x03, 0x04)
_KEYCHAIN_LEN: Final = 21
"""Its type and the account it signs for; the signature follows."""


def attempt_of(raw: str) -> SettlementAttempt:
    """What is broadcast for a payer's transaction, and its hash. Raises `ValueError` for no hex."""
    sent = _canonical(bytes.fromhex(raw.removeprefix("0x")))
    return SettlementAttempt("0x" + keccak256(sent).hex(), "0x" + sent.hex())


def attempt_of_entry(entry: LedgerEntry) -> SettlementAttempt:
    """The transaction that a kept payment was made with, or is to be made with."""
    payload = entry.credential.get("payload")
    if not is_object(payload):
        return entry.attempt
    if payload.get("type") == "hash":
        return SettlementAttempt(str(payload.get("hash")))
    return attempt_of(str(payload.get("signature")))


def _canonical(transaction: bytes) -> bytes:
    """Unchanged where it is no transaction of that type, or is in its form already."""
    if transaction[:1] != _TYPE:
        return transaction
    rlp: Any = import_module("rlp")
    try:
        fields: Any = rlp.decode(transaction[1:])
    except rlp.exceptions.RLPException:
        return transaction
    if len(fields) not in _FIELDS:
        return transaction
    signature: Any = fields[-1]  # a number where all of it is one string of bytes
    if not isinstance(signature, bytes) or (made := _signature(signature)) == signature:
        return transaction
    return _TYPE + rlp.encode([*fields[:-1], made])


def _signature(signature: bytes) -> bytes:
    """Its recovery id as 27 or 28; of a signature by an access key, that of what is inside."""
    inside = 0
    while len(signature) - inside > _KEYCHAIN_LEN and signature[inside] in _KEYCHAIN:
        if len(signature) - inside == _SIGNATURE_LEN and signature[-1] in (0, 1):
            break
        inside += _KEYCHAIN_LEN
    if len(signature) - inside == _SIGNATURE_LEN and signature[-1] in (0, 1):
        return signature[:-1] + bytes([signature[-1] + 27])
    return signature
