"""Proofs of personhood (interface.md#personhood-verification, #personhood)."""

from typing import Annotated

from pydantic import ConfigDict, Field

from assay.common.clock import iso
from assay.personhood.model import Personhood, PersonhoodProof
from assay.personhood.service import parse_proof
from assay.server.schemas import RequestModel, ResponseModel, ShownAgentId, Timestamp

Number = Annotated[
    str, Field(examples=["0x1f"], max_length=80, description="In hex with 0x, or decimal.")
]


class ProofRequest(RequestModel):
    """A World ID proof, its members named as the provider names them."""

    model_config = ConfigDict(
        alias_generator=None, frozen=True, strict=True, extra="forbid", allow_inf_nan=False
    )

    merkle_root: Number
    nullifier_hash: Number
    proof: Annotated[
        str,
        Field(
            examples=["0x" + "1f" * 256],
            max_length=4096,
            description="256 bytes in hex, or a JSON list of 8 numbers.",
        ),
    ]
    signal: Annotated[
        str,
        Field(
            examples=["22"],
            max_length=200,
            description="What the proof was made for: it names the agent.",
        ),
    ]
    verification_level: Annotated[str | None, Field(max_length=32)] = None
    """The provider's level, such as `orb` or `device`; absent: unknown."""

    def parsed(self) -> PersonhoodProof:
        """Return the proof; raises `InvalidRequest`."""
        return parse_proof(
            merkle_root=self.merkle_root,
            nullifier_hash=self.nullifier_hash,
            proof=self.proof,
            signal=self.signal,
            level=self.verification_level,
        )


class StatusResponse(ResponseModel):
    """Whether a human has proven to back the agent."""

    verified: bool
    """Whether a valid proof is known."""
    level: Annotated[str, Field(examples=["orb"])] | None
    """The proof's level, such as `orb` or `device`; null without one."""
    verified_at: Timestamp | None
    """When it was verified; null if it was not."""


class PersonhoodVerifiedResponse(StatusResponse):
    """The same for a named agent."""

    agent_id: ShownAgentId
    """The agent's id: a token id, a Solana public key, or a key agent's address."""


class PersonhoodProfileResponse(ResponseModel):
    """An agent and the human who backs it."""

    agent_id: ShownAgentId
    """The agent's id: a token id, a Solana public key, or a key agent's address."""
    personhood: StatusResponse
    """What is known of the human."""


def status(found: Personhood | None) -> StatusResponse:
    """Return what is known as a response."""
    if found is None:
        return StatusResponse(verified=False, level=None, verified_at=None)
    return StatusResponse(verified=True, level=found.level, verified_at=iso(found.verified_at))


def verified(found: Personhood) -> PersonhoodVerifiedResponse:
    """Return the response to a valid proof."""
    return PersonhoodVerifiedResponse(
        agent_id=found.agent_id,
        verified=True,
        level=found.level,
        verified_at=iso(found.verified_at),
    )
