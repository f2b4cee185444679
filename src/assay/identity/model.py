"""Challenge, session and the proof of an agent's identity, and for which agent it acts.

Source: interface.md#challenge, #states, #agent-identity.

Decides whether a proven address acts for an agent.
"""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from assay.common import addresses
from assay.common.errors import Unauthorized
from assay.http1.model import Target
from assay.net.egress.url import EgressPolicy, parse_target
from assay.registries.model import Subject

_EVM_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_SOLANA_ADDRESS_BYTES = 32

CHALLENGE_TTL = timedelta(minutes=5)
"""Lifetime of an unsigned challenge. Source: interface.md#limits."""

SESSION_TTL = timedelta(hours=1)
"""Lifetime of an agent session. Source: interface.md#limits."""


class IdentityRequired(Unauthorized):
    """`x-agent-address` is missing or malformed (interface.md#agent-identity, step 1)."""

    code = "identity_required"


class ChallengeRequired(Unauthorized):
    """The caller must sign a challenge first; carries `challenge`, `agentAddress`, `expiresAt`.

    Source: interface.md#agent-identity, step 2.
    """

    code = "challenge_required"


class SignatureInvalid(Unauthorized):
    """The signature is not this address's over this challenge."""

    code = "signature_invalid"


class IdentityMismatch(Unauthorized):
    """The proven address does not control the named agent (conventions.md#agent-identity)."""

    code = "identity_mismatch"


class WebBotAuthRefused(Unauthorized):
    """A Web Bot Auth signature does not prove the agent; `reason` says why (`web_bot_auth_...`)."""

    code = "web_bot_auth_refused"


def canonical_address(text: str) -> str | None:
    """Return an EVM address in lower case, a Solana address unchanged, or None for neither."""
    if is_evm(text):
        return text.lower()
    decoded = addresses.decode(text)
    return text if decoded is not None and len(decoded) == _SOLANA_ADDRESS_BYTES else None


def is_evm(address: str) -> bool:
    """Return whether it is 0x and 40 hexadecimal digits."""
    return _EVM_ADDRESS.fullmatch(address) is not None


@dataclass(frozen=True, slots=True)
class ContractProof:
    """The chains on which a contract at the address accepted the signature (ERC-1271).

    On any other chain the same address may belong to another party, so the proof is valid only
    there.
    """

    chains: tuple[str, ...]
    """CAIP-2 names."""
    is_home: bool
    """Whether it includes the first configured chain, which is also proof for key agents."""


@dataclass(frozen=True, slots=True)
class DomainProof:
    """A domain's key signed the request for one agent (ADR 0047). Valid for that request alone."""

    origin: str
    """Scheme, host and port of the domain, such as `https://agent.example:443`."""
    subject_key: str
    """The agent that has proven control of the whole origin."""


AgentProof: TypeAlias = ContractProof | DomainProof
"""What gave a proof, if the key of the address did not."""


@dataclass(frozen=True, slots=True)
class Challenge:
    """A text to be signed with the address's key, once, before it expires."""

    text: str
    agent_address: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Session:
    """A proven address. `token` is given to the agent; `id` identifies a revocation."""

    id: str
    agent_address: str
    expires_at: datetime
    token: str
    contract: ContractProof | None = None
    """The contract that proved the address; None if a key did, which is valid on any chain."""


@dataclass(frozen=True, slots=True)
class AgentHeaders:
    """The identity headers of a request, as sent (interface.md#agent-identity)."""

    address: str | None = None
    session: str | None = None
    signature: str | None = None
    challenge: str | None = None
    signature_agent: str | None = None
    """The domain whose key signed the request (Web Bot Auth)."""


@dataclass(frozen=True, slots=True)
class AgentPrincipal:
    """A proven address. `new_session` is set when this request began a session."""

    address: str
    new_session: Session | None = None
    contract: ContractProof | None = None
    """The contract that gave the proof; None if a key did, which is valid on any chain."""

    @property
    def is_key_agent(self) -> bool:
        """Return whether it acts for the key agent of its address."""
        return self.contract is None or self.contract.is_home


@dataclass(frozen=True, slots=True)
class KeyAgent:
    """The record of an address that has proven itself at least once."""

    address: str
    verified_at: datetime


def require_control(address: str, subject: Subject, proof: AgentProof | None = None) -> None:
    """Raise `IdentityMismatch` unless the address controls the subject.

    An agent id is a claim until proven. An address that is only asserted is treated the same:
    trusting a header does not mean trusting one that contradicts the registry. Source:
    conventions.md#agent-identity.
    """
    if controls(address, subject, proof):
        return
    if isinstance(proof, DomainProof):
        raise WebBotAuthRefused(
            "The agent's registration declares no service at the domain of Signature-Agent.",
            reason="web_bot_auth_domain_not_named",
            agentId=subject.agent_id,
        )
    raise IdentityMismatch(
        "This address does not control the named agent: prove its owner or agentWallet.",
        agentId=subject.agent_id,
        agentAddress=address,
    )


def controls(address: str, subject: Subject, proof: AgentProof | None = None) -> bool:
    """Return whether the address controls the subject.

    An address proven by a contract controls only on the chains it was proven on: another party may
    own a contract at the same address of another chain. A domain controls only the agent it was
    proven for, while the agent's registration declares a service at it.
    """
    agent = subject.agent
    if isinstance(proof, DomainProof):
        declared = agent.registration.services if agent and agent.registration else ()
        return proof.subject_key == subject.key and any(
            _is_at(service.endpoint, proof.origin) for service in declared[:SERVICES_MAX]
        )
    if agent is None:
        return address == subject.agent_id and (proof is None or proof.is_home)
    on_chain = proof is None or subject.network.caip2 in proof.chains
    return on_chain and address in agent.controllers


_ANY = EgressPolicy(allow_private=True, require_https=False)

SERVICES_MAX = 200
"""Declared services that are compared with a domain."""


def _is_at(endpoint: str, origin: str) -> bool:
    """Return whether a declared address is at the origin, read as it would be dialled."""
    target = parse_target(endpoint, _ANY)
    if not isinstance(target, Target):
        return False
    host = f"[{target.host}]" if ":" in target.host else target.host
    return f"{target.scheme}://{host}:{target.port}" == origin
