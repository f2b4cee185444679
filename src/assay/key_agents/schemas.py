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
from assay.server.schemas import RequestModel, ResponseModel, Timestamp

Address = Annotated[
    str, Field(pattern=ADDRESS, examples=["0x52908400098527886E0F7030069857D2E4169EE7"])
]
"""The example is one of EIP-55's."""


class VerifyRequest(RequestModel):
    """The answer to a challenge."""

    agent_address: Address
    challenge: Annotated[
        str, Field(max_length=CHALLENGE_CHARS_MAX, description="The text that was signed, exactly.")
    ]
    signature: Annotated[
        str,
        Field(
            max_length=2 * SIGNATURE_BYTES_MAX + 2,
            description="Of an EIP-191 personal message, or what an ERC-1271 wallet takes; hex.",
        ),
    ]


class ChallengeResponse(ResponseModel):
    """A text to sign as an EIP-191 personal message."""

    challenge: str
    expires_at: Timestamp
    agent_address: str


class HandleResponse(ResponseModel):
    """A profile of the human owner."""

    source: str
    handle: str


class AttestationResponse(ResponseModel):
    """A trusted attester's statement about the owner: context, not a social connection."""

    attested: bool
    uid: str | None = None
    owner: str | None = None
    verified_handles: list[HandleResponse] = Field(default_factory=list[HandleResponse])
    organization: str | None = None
    profile_url: str | None = None
    credential_url: str | None = None


class AttestationContextResponse(ResponseModel):
    """The attestation context of a key agent (interface.md#attestation-context)."""

    agent_address: str
    attestation: AttestationResponse


class KeyProfileResponse(ResponseModel):
    """A key agent (interface.md#key-agent-profile)."""

    agent_address: str
    verified: bool
    score: float | None
    tier: str | None
    risk_level: str | None
    route: str | None
    attestation: AttestationResponse | None
    reasons: list[str]
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


class AgentSessionEnded(ResponseModel):
    """The session is no longer valid."""

    ok: bool
    agent_address: str


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
