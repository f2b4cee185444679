"""Ed25519 signatures over the bytes of a text, as Solana wallets sign messages."""

import base64
import binascii

from assay.common import base58

SIGNATURE_BYTES = 64
_HEX_CHARS = 2 * SIGNATURE_BYTES
_TEXT_CHARS_MAX = 130


class SolanaSignatures:
    """Verifies with Solana's own runtime; implements `identity.ports.KeySignatures`.

    That verification is strict (RFC 8032 and no keys of small order), so that no signature is valid
    for an address without a key, such as the system program's.
    """

    def verify(self, address: str, text: str, signature: str) -> bool:
        from solders.pubkey import Pubkey  # noqa: PLC0415 - 25 ms and 14 MiB that only Solana needs
        from solders.signature import Signature  # noqa: PLC0415 - as above

        signed = _bytes_of(signature)
        if signed is None:
            return False
        try:
            key = Pubkey.from_string(address)
        except ValueError:
            return False
        message = text.encode("utf-8", "surrogatepass")
        return Signature.from_bytes(signed).verify(key, message)


def _bytes_of(signature: str) -> bytes | None:
    """Return the 64 bytes from hex, base64 (as wallets produce) or base58, or None."""
    text = signature.removeprefix("0x")
    if len(text) > _TEXT_CHARS_MAX:
        return None
    try:
        if len(text) == _HEX_CHARS:
            found = bytes.fromhex(text)
        elif text.endswith("="):
            found = base64.b64decode(text, validate=True)
        else:
            found = base58.decode(text) or b""
    except (ValueError, binascii.Error):
        return None
    return found if len(found) == SIGNATURE_BYTES else None
