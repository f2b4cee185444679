"""What key identity needs from outside."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from assay.identity.model import ContractProof, KeyAgent, Session


class MessageSignatures(Protocol):
    """EIP-191 personal messages."""

    def digest(self, text: str) -> bytes:
        r"""keccak256("\x19Ethereum Signed Message:\n" + byte length + text), 32 bytes."""
        ...

    def recover(self, text: str, signature: bytes) -> str | None:
        """The lower-case address that signed, or None.

        Only 65 bytes r||s||v with v in {0, 1, 27, 28} and s in the lower half are accepted.
        """
        ...


class KeySignatures(Protocol):
    """Signatures of keys that are addresses themselves: Ed25519 on Solana."""

    def verify(self, address: str, text: str, signature: str) -> bool:
        """Whether the base-58 address signed the text's bytes; False for whatever is malformed.

        The signature is 64 bytes in base58, base64 or hex.
        """
        ...


class ContractWallets(Protocol):
    """Wallets that are contracts and judge signatures themselves."""

    async def accept(self, address: str, digest: bytes, signature: bytes) -> ContractProof | None:
        """On which of the chains we ask a contract at `address` accepts (ERC-1271); None: on none.

        Raises `common.errors.Unavailable` when none accepts and one could not be asked, and
        `TooMany` for a caller that has too many signatures looked at.
        """
        ...


@dataclass(frozen=True, slots=True)
class Verifiers:
    """Who judges signatures, by kind of address."""

    messages: MessageSignatures
    keys: KeySignatures
    wallets: ContractWallets


class SessionTokens(Protocol):
    """Signed session tokens, bound to address and expiry."""

    def issue(
        self,
        session_id: str,
        agent_address: str,
        expires_at: datetime,
        contract: ContractProof | None = None,
    ) -> str:
        """The token of a session."""
        ...

    def read(self, token: str, now: datetime) -> Session | None:
        """The session of an authentic, unexpired token, or None."""
        ...


class KeyAgentStore(Protocol):
    """Addresses that proved themselves."""

    async def remember(self, agent: KeyAgent) -> None:
        """Store; a later proof keeps the first `verified_at`."""
        ...

    async def find(self, address: str) -> KeyAgent | None:
        """The key agent of this lower-case address."""
        ...
