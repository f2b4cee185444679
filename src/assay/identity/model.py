"""Challenge, session and the proof that an agent is who it says (spec 2.4, 3, 5.3)."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from assay.common import base58
from assay.common.errors import Unauthorized

_EVM_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_SOLANA_ADDRESS_BYTES = 32

CHALLENGE_TTL = timedelta(minutes=5)
"""Lifetime of an unsigned challenge. Source: spec, section 8."""

SESSION_TTL = timedelta(hours=1)
"""Lifetime of an agent session. Source: spec, section 8."""


class IdentityRequired(Unauthorized):
    """`x-agent-address` is missing or malformed (spec 5.3 step 1)."""

    code = "identity_required"


class ChallengeRequired(Unauthorized):
    """Sign this first; carries `challenge`, `agentAddress`, `expiresAt` (spec 5.3 step 2)."""

    code = "challenge_required"


class SignatureInvalid(Unauthorized):
    """The signature is not this address's over this challenge."""

    code = "signature_invalid"


class IdentityMismatch(Unauthorized):
    """The proven address does not control the named agent (decisions, section 6)."""

    code = "identity_mismatch"


def canonical_address(text: str) -> str | None:
    """An EVM address in lower case, a Solana address as it stands, or None for neither."""
    if is_evm(text):
        return text.lower()
    decoded = base58.decode(text)
    return text if decoded is not None and len(decoded) == _SOLANA_ADDRESS_BYTES else None


def is_evm(address: str) -> bool:
    """Whether it is 0x and 40 hexadecimal digits."""
    return _EVM_ADDRESS.fullmatch(address) is not None


@dataclass(frozen=True, slots=True)
class ContractProof:
    """A contract at the address accepted the signature (ERC-1271), and on which chains.

    On any other chain the same address can be somebody else's: the proof holds on these alone.
    """

    chains: tuple[str, ...]
    """CAIP-2 names."""
    is_home: bool
    """Whether the first configured chain is among them: that one speaks for key agents too."""


@dataclass(frozen=True, slots=True)
class Challenge:
    """A text to be signed with the address's key, once, before it expires."""

    text: str
    agent_address: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Session:
    """A proven address. `token` goes back to the agent; `id` is what a revocation names."""

    id: str
    agent_address: str
    expires_at: datetime
    token: str
    contract: ContractProof | None = None
    """How far it reaches, where a contract proved the address; None: a key did, on any chain."""


@dataclass(frozen=True, slots=True)
class AgentHeaders:
    """The identity headers of a request, as sent (spec 5.3)."""

    address: str | None = None
    session: str | None = None
    signature: str | None = None
    challenge: str | None = None


@dataclass(frozen=True, slots=True)
class AgentPrincipal:
    """An address whose owner has proven it. `new_session` is set when this request began one."""

    address: str
    new_session: Session | None = None
    contract: ContractProof | None = None
    """How far the proof reaches, where a contract gave it; None: a key did, on any chain."""

    @property
    def is_key_agent(self) -> bool:
        """Whether it speaks for the key agent of its address."""
        return self.contract is None or self.contract.is_home


@dataclass(frozen=True, slots=True)
class KeyAgent:
    """What is kept of an address that proved itself at least once."""

    address: str
    verified_at: datetime
