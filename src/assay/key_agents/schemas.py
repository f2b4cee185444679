"""Key agents in requests and responses: challenge, verification, profile.

Source: interface.md#key-agent-profile, #challenge, #key-agents.
"""

from typing import Annotated

from pydantic import Field

from assay.common.clock import iso
from assay.evaluation.model import Attestation
from assay.evaluation.schemas_grade import LadderResponse, ladder
from assay.identity.challenge import CHALLENGE_CHARS_MAX, SIGNATURE_BYTES_MAX
from assay.identity.model import Challenge
from assay.key_agents.profile import KeyProfile
from assay.registries.schemas import ADDRESS
from assay.server.schemas import (
    DisplayName,
    EvmAddress,
    HashText,
    RequestModel,
    ResponseModel,
    RiskLevelName,
    RouteName,
    ScoreValue,
    Sentences,
    TierName,
    Timestamp,
    UrlText,
)

Address = Annotated[
    str, Field(pattern=ADDRESS, examples=["0x52908400098527886E0F7030069857D2E4169EE7"])
]
"""The example is one of EIP-55's."""


class VerifyRequest(RequestModel):
    """The answer to a challenge."""

    agent_address: Address
    """The key agent's address."""
    challenge: Annotated[
        str,
        Field(
            examples=["Sign to prove that this address is yours: 5c1f"],
            max_length=CHALLENGE_CHARS_MAX,
            description="The text that was signed, exactly.",
        ),
    ]
    signature: Annotated[
        str,
        Field(
            examples=["0x" + "1f" * 65],
            max_length=2 * SIGNATURE_BYTES_MAX + 2,
            description="Of an EIP-191 personal message, or what an ERC-1271 wallet takes; hex.",
        ),
    ]


class ChallengeResponse(ResponseModel):
    """A text to sign as an EIP-191 personal message."""

    challenge: Annotated[str, Field(examples=["Sign to prove that this address is yours: 5c1f"])]
    """The text to sign, exactly."""
    expires_at: Timestamp
    """When it ends."""
    agent_address: EvmAddress
    """The key agent's address."""


class HandleResponse(ResponseModel):
    """A profile of the human owner."""

    source: Annotated[str, Field(examples=["github"])]
    """The network of the profile."""
    handle: Annotated[str, Field(examples=["ada"])]
    """The owner's name there."""


class AttestationResponse(ResponseModel):
    """A trusted attester's statement about the owner: context, not a social connection."""

    attested: bool
    """Whether a trusted attester vouches for the owner."""
    uid: HashText | None = None
    """The attestation's id; null without one."""
    owner: EvmAddress | None = None
    """The owner's address; null without an attestation."""
    verified_handles: list[HandleResponse] = Field(default_factory=list[HandleResponse])
    """The owner's verified profiles."""
    organization: DisplayName | None = None
    """The owner's organisation; null if none is named."""
    profile_url: UrlText | None = None
    """A profile of the owner; null if none is named."""
    credential_url: UrlText | None = None
    """The attestation's page; null if none is named."""


class AttestationContextResponse(ResponseModel):
    """The attestation context of a key agent (interface.md#attestation-context)."""

    agent_address: EvmAddress
    """The key agent's address."""
    attestation: AttestationResponse
    """What a trusted attester says about the owner."""


class KeyProfileResponse(ResponseModel):
    """A key agent (interface.md#key-agent-profile)."""

    agent_address: EvmAddress
    """The key agent's address."""
    verified: bool
    """Whether the address has signed a challenge."""
    score: ScoreValue | None
    """The trust score, 0 to 100; null before there is behaviour."""
    tier: TierName | None
    """The letter grade, `AAA` (best) to `C`."""
    risk_level: RiskLevelName | None
    """`GREEN`, `YELLOW` or `RED`; it follows from the tier."""
    route: RouteName | None
    """How to treat the agent: `prod`, `prod_throttled`, `sandbox` or `sandbox_only`."""
    attestation: AttestationResponse | None
    """What a trusted attester says about the owner; null if nothing is known."""
    reasons: Sentences
    """What decided the grade, in sentences, strongest first."""
    score_low: Annotated[
        float | None, Field(description="Had every check that was not made failed.")
    ] = None
    score_high: Annotated[
        float | None, Field(description="Had every check that was not made passed.")
    ] = None
    ladder: Annotated[
        LadderResponse | None, Field(description="Null until the agent has behavioural data.")
    ] = None
    timestamp: Timestamp
    """When this response was made."""


class AgentSessionEnded(ResponseModel):
    """The session is no longer valid."""

    ok: bool
    """Always true in a success."""
    agent_address: EvmAddress
    """The key agent's address."""


def challenge(issued: Challenge) -> ChallengeResponse:
    """Return a challenge as a response."""
    return ChallengeResponse(
        challenge=issued.text,
        expires_at=iso(issued.expires_at),
        agent_address=issued.agent_address,
    )


def key_profile(profile: KeyProfile) -> KeyProfileResponse:
    """Return a key agent profile as a response."""
    grade, explained = profile.grade, profile.explained
    return KeyProfileResponse(
        agent_address=profile.agent_address,
        verified=profile.verified,
        score=profile.score,
        tier=grade.tier if grade else None,
        risk_level=grade.risk_level if grade else None,
        route=grade.route if grade else None,
        attestation=attestation(profile.attestation) if profile.attestation else None,
        reasons=list(profile.reasons),
        score_low=explained.low if explained else None,
        score_high=explained.high if explained else None,
        ladder=ladder(explained) if explained else None,
        timestamp=iso(profile.at),
    )


def attestation(found: Attestation | None) -> AttestationResponse:
    """Return an attestation as a response; without one, `attested: false`."""
    if found is None:
        return AttestationResponse(attested=False)
    return AttestationResponse(
        attested=True,
        uid=found.uid,
        owner=found.owner,
        verified_handles=[HandleResponse(source=h.source, handle=h.handle) for h in found.handles],
        organization=found.organization,
        profile_url=found.profile_url,
        credential_url=found.credential_url,
    )
