"""Signs EIP-1559 transactions."""

from dataclasses import dataclass
from typing import TypeAlias, Union

from coincurve import PrivateKey

from assay.chains.evm.eip191 import address_of
from assay.common.keccak import keccak256

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
