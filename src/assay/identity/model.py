"""Challenge, session and the proof that an agent is who it says (spec 2.4, 3, 5.3)."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from assay.kit.errors import Unauthorized

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


@dataclass(frozen=True, slots=True)
class Challenge:
    """A text to be signed as an EIP-191 personal message, once, before it expires."""

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


@dataclass(frozen=True, slots=True)
class KeyAgent:
    """What is kept of an address that proved itself at least once."""

    address: str
    verified_at: datetime
