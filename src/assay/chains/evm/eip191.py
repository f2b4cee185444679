"""EIP-191 personal messages over secp256k1, by libsecp256k1 (coincurve)."""

from coincurve import PrivateKey, PublicKey

from assay.common.keccak import keccak256

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
