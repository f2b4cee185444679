"""Signatures other than secp256k1: Ed25519, and contract wallets (ERC-1271).

Ed25519 signatures over the bytes of a text, as Solana wallets sign messages.

Verifies signatures of contract wallets on the configured chains.

Source: conventions.md#agent-identity.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence

from assay.chains.model import Family, Network
from assay.common import addresses
from assay.common.costs import Cost, CostLedger
from assay.common.errors import Unavailable
from assay.identity.model import ContractProof
from assay.registries.ports import ChainReader

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
            found = addresses.decode(text) or b""
    except (ValueError, binascii.Error):
        return None
    return found if len(found) == SIGNATURE_BYTES else None


CHAINS_MAX = 8
"""Most chains in one proof; a session stores them in its token."""


class OnchainWallets:
    """ERC-1271 by `eth_call` on each of `networks`; the first is the home chain of key agents."""

    def __init__(
        self,
        readers: Mapping[Family, ChainReader],
        networks: Sequence[Network],
        costs: CostLedger,
    ) -> None:
        self._readers = readers
        self._networks = networks
        self._costs = costs

    async def accept(self, address: str, digest: bytes, signature: bytes) -> ContractProof | None:
        self._costs.require(Cost.RPC_CALLS)
        accepted: list[Network] = []
        failure: Unavailable | None = None
        for network in self._networks:
            reader = self._readers[network.family]
            try:
                if await reader.accepts_signature(network, address, digest, signature):
                    accepted.append(network)
            except Unavailable as error:
                failure = error
        if accepted:
            chains = tuple(network.caip2 for network in accepted[:CHAINS_MAX])
            return ContractProof(chains, accepted[0] is self._networks[0])
        if failure is not None:
            raise failure
        return None
