"""Signs messages (EIP-191) and transactions (EIP-1559), by libsecp256k1 (coincurve).

EIP-191 personal messages over secp256k1, by libsecp256k1 (coincurve).

Signs EIP-1559 transactions.
"""

from dataclasses import dataclass
from typing import TypeAlias, Union

from coincurve import PrivateKey, PublicKey

from assay.common.addresses import keccak256

HALF_ORDER = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0
"""Half the order of secp256k1; a larger s is the mirror image of a signature. Source: EIP-2."""

_SIGNATURE_BYTES = 65


def address_of(public_key: PublicKey) -> str:
    """Return the lower-case address of a key. Source: Yellow Paper, appendix F."""
    return "0x" + keccak256(public_key.format(compressed=False)[1:])[-20:].hex()


class Eip191Signatures:
    """Recovers the signer of a message."""

    def digest(self, text: str) -> bytes:
        message = text.encode("utf-8", "surrogatepass")
        return keccak256(b"\x19Ethereum Signed Message:\n%d" % len(message) + message)

    def recover(self, text: str, signature: bytes) -> str | None:
        if len(signature) != _SIGNATURE_BYTES or signature[64] not in {0, 1, 27, 28}:
            return None
        if not 0 < int.from_bytes(signature[32:64]) <= HALF_ORDER:
            return None
        plain = signature[:64] + bytes([signature[64] % 27])
        try:
            key = PublicKey.from_signature_and_message(plain, self.digest(text), hasher=None)
        except Exception:  # noqa: BLE001 - coincurve raises bare Exception for an r off the curve
            return None
        return address_of(key)


def sign_message(private_key: str, text: str) -> str:
    """Return `0x` and the 65-byte signature of a message.

    Raises `ValueError` for an invalid key.
    """
    key = _key(private_key)
    digest = Eip191Signatures().digest(text)
    plain = key.sign_recoverable(  # pyright: ignore[reportUnknownMemberType] - half-typed upstream
        digest, hasher=None
    )
    return "0x" + (plain[:64] + bytes([plain[64] + 27])).hex()


def address_of_key(private_key: str) -> str:
    """Return the lower-case address of a private key of 64 hex digits; raises `ValueError`."""
    return address_of(_key(private_key).public_key)


def _key(private_key: str) -> PrivateKey:
    digits = private_key.removeprefix("0x")
    if len(digits) != 64:  # noqa: PLR2004 - 32 bytes
        raise ValueError("a private key has 64 hexadecimal digits")
    return PrivateKey(bytes.fromhex(digits))


Rlp: TypeAlias = Union[bytes, "list[Rlp]"]

_TYPE = b"\x02"
_SHORT_MAX = 55
_BYTE_MAX = 0x7F
_LIST = 0xC0


@dataclass(frozen=True, slots=True)
class EvmTransaction:
    """A call of a contract that carries no ether. Amounts in wei. Source: EIP-1559."""

    chain_id: int
    nonce: int
    priority_fee: int
    fee: int
    gas: int
    to: str
    data: bytes


class TransactionSigner:
    """Signs transactions with one key, without checking them."""

    def __init__(self, private_key: str) -> None:
        """Load the key. Raises `ValueError` unless it is a key of 64 hex digits."""
        digits = private_key.removeprefix("0x")
        if len(digits) != 64:  # noqa: PLR2004 - 32 bytes
            raise ValueError("a private key has 64 hexadecimal digits")
        self._key = PrivateKey(bytes.fromhex(digits))
        self.address = address_of(self._key.public_key)

    def sign(self, transaction: EvmTransaction) -> tuple[str, str]:
        """Return the raw transaction and its hash, both `0x` hex."""
        fields: list[Rlp] = [
            _number(transaction.chain_id),
            _number(transaction.nonce),
            _number(transaction.priority_fee),
            _number(transaction.fee),
            _number(transaction.gas),
            bytes.fromhex(transaction.to[2:]),
            b"",
            transaction.data,
            [],
        ]
        content = b"".join(map(rlp, fields))
        digest = keccak256(_TYPE + _list(content))
        plain = self._key.sign_recoverable(  # pyright: ignore[reportUnknownMemberType] - half-typed
            digest, hasher=None
        )
        r, s = int.from_bytes(plain[:32]), int.from_bytes(plain[32:64])
        signature = (_number(plain[64]), _number(r), _number(s))
        raw = _TYPE + _list(content + b"".join(map(rlp, signature)))
        return "0x" + raw.hex(), "0x" + keccak256(raw).hex()

    def has_signed(self, raw: str) -> bool:
        """Return whether this key signed a raw transaction: its signatures are deterministic."""
        return self.sign(transaction_of(raw))[0] == raw


def transaction_of(raw: str) -> EvmTransaction:
    """Decode a result of `TransactionSigner.sign`."""
    fields = _items(bytes.fromhex(raw.removeprefix("0x"))[len(_TYPE) :])
    chain_id, nonce, priority_fee, fee, gas = (int.from_bytes(one) for one in fields[:5])
    return EvmTransaction(
        chain_id, nonce, priority_fee, fee, gas, "0x" + fields[5].hex(), fields[7]
    )


def _items(data: bytes) -> list[bytes]:
    """Return the contents of a list's items."""
    place, end = _span(data, 0)
    items: list[bytes] = []
    while place < end:
        first, place = _span(data, place)
        items.append(data[first:place])
    return items


def _span(data: bytes, place: int) -> tuple[int, int]:
    """Return where the content of the item at `place` begins and ends."""
    head = data[place]
    if head <= _BYTE_MAX:
        return place, place + 1
    size = head - (0x80 if head < _LIST else _LIST)
    if size <= _SHORT_MAX:
        return place + 1, place + 1 + size
    first = place + 1 + size - _SHORT_MAX
    return first, first + int.from_bytes(data[place + 1 : first])


def rlp(value: Rlp) -> bytes:
    """Encode by recursive length prefix. Source: Yellow Paper, appendix B."""
    if isinstance(value, bytes):
        if len(value) == 1 and value[0] <= _BYTE_MAX:
            return value
        return _length(len(value), 0x80) + value
    return _list(b"".join(map(rlp, value)))


def _list(content: bytes) -> bytes:
    return _length(len(content), _LIST) + content


def _length(size: int, offset: int) -> bytes:
    if size <= _SHORT_MAX:
        return bytes([offset + size])
    digits = _number(size)
    return bytes([offset + _SHORT_MAX + len(digits)]) + digits


def _number(value: int) -> bytes:
    return value.to_bytes((value.bit_length() + 7) // 8, "big")
