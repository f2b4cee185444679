"""External dependencies of key identity."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from assay.identity.model import ContractProof, KeyAgent, Session


class MessageSignatures(Protocol):
    """Verifies EIP-191 personal messages."""

    def digest(self, text: str) -> bytes:
        r"""Return keccak256("\x19Ethereum Signed Message:\n" + byte length + text), 32 bytes."""
        ...

    def recover(self, text: str, signature: bytes) -> str | None:
        """Return the lower-case address that signed, or None.

        Only 65 bytes r||s||v with v in {0, 1, 27, 28} and s in the lower half are accepted.
        """
        ...


class KeySignatures(Protocol):
    """Verifies signatures of keys that are themselves addresses: Ed25519 on Solana."""

    def verify(self, address: str, text: str, signature: str) -> bool:
        """Return whether the base-58 address signed the text's bytes; False for malformed input.

        The signature is 64 bytes in base58, base64 or hex.
        """
        ...


class ContractWallets(Protocol):
    """Asks wallet contracts to validate signatures."""

    async def accept(self, address: str, digest: bytes, signature: bytes) -> ContractProof | None:
        """Return the chains where a contract at `address` accepts (ERC-1271); None if none does.

        Raises `common.errors.Unavailable` if none accepts and one could not be asked, and `TooMany`
        for a caller that has too many signatures checked.
        """
        ...


@dataclass(frozen=True, slots=True)
class Verifiers:
    """Signature verifiers by kind of address."""

    messages: MessageSignatures
    keys: KeySignatures
    wallets: ContractWallets


class SessionTokens(Protocol):
    """Creates and reads signed session tokens, bound to address and expiry."""

    def issue(
        self,
        session_id: str,
        agent_address: str,
        expires_at: datetime,
        contract: ContractProof | None = None,
    ) -> str:
        """Return the token of a session."""
        ...

    def read(self, token: str, now: datetime) -> Session | None:
        """Return the session of an authentic, unexpired token, or None."""
        ...


class KeyAgentStore(Protocol):
    """Stores addresses that proved themselves."""

    async def remember(self, agent: KeyAgent) -> None:
        """Store an agent; a later proof keeps the first `verified_at`."""
        ...

    async def find(self, address: str) -> KeyAgent | None:
        """Return the key agent of this lower-case address."""
        ...
