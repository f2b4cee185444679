"""What would raise a score, in responses (beyond the specification)."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from assay.evaluation.explanations import Improvement
from assay.server.schemas_base import ResponseModel


class ImprovementResponse(ResponseModel):
    """A finding or missing evidence, what to do about it, and what that gains."""

    slug: Annotated[str, Field(examples=["secure_transport"])]
    finding: Annotated[str, Field(description="What counts against the agent, in a sentence.")]
    action: Annotated[str, Field(description="What to do about it, in a sentence.")]
    points: Annotated[
        float, Field(description="What that alone is worth, recomputed from the evidence.")
    ]
    score_after: float
    at_most: Annotated[
        bool, Field(description="Whether it depends on what the evidence then says.")
    ]
    docs: Annotated[str, Field(description="The page of this project that documents it.")]


Improvements = Annotated[
    list[ImprovementResponse],
    Field(description="What would raise the score: caps first, then by points; bounded."),
]


class AgentHintResponse(ResponseModel):
    """A registered agent for which the judged address acts."""

    agent_id: str
    chain: str
    send: Annotated[str, Field(description="The header to send.", examples=["x-agent-id: 22"])]


def improvements(listed: Sequence[Improvement]) -> list[ImprovementResponse]:
    """Return improvements as a response."""
    return [ImprovementResponse.model_validate(one.document()) for one in listed]
