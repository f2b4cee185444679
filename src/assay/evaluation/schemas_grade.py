"""A grade in responses: each signal's part in it, the place on the ladder, what would raise it.

Explains a score in responses: every signal's part in it.

What would raise a score, in responses (beyond the specification).

An agent's place on the ladder, in responses (docs/grades.md#the-ladder).
"""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from assay.evaluation.demands import Demand
from assay.evaluation.explanations import Improvement
from assay.evaluation.model import Contribution, Score, SignalName, SignalResult
from assay.server.schemas import NetworkSlug, ResponseModel, ScoreValue, Sentences, ShownAgentId

Share = Annotated[float, Field(examples=[0.8], ge=0, le=1)]
Points = Annotated[float, Field(examples=[83.64], ge=0, le=100)]


class SignalResponse(ResponseModel):
    """One signal: its worth, and how far it moved the score."""

    signal: Annotated[str, Field(examples=["sandbox"])]
    """The signal's name."""
    available: bool
    """Whether it could be collected."""
    value: Points | None
    """What it says, 0 to 100; null if it is not available."""
    weight: Share | None
    """Its share in the score, 0 to 1; null if it has none."""
    confidence: Share
    """How much evidence supports it, 0 (none) to 1."""
    contribution: Annotated[
        float | None, Field(examples=[3.4], description="Points above or below the prior.")
    ]
    reasons: Sentences
    """What decided the grade, in sentences, strongest first."""


class EvidencedSignalResponse(SignalResponse):
    """A signal with the evidence it rests on."""

    evidence: Annotated[
        dict[str, object] | None, Field(description="What was seen; its members may change.")
    ]


def signals(score: Score) -> list[SignalResponse]:
    """Return every signal of a score, including the missing ones."""
    return [_signal(c) for c in score.contributions] + [
        _missing(name) for name in score.unavailable
    ]


def evidenced_signals(
    score: Score, collected: tuple[SignalResult, ...]
) -> list[EvidencedSignalResponse]:
    """Return the same, each with its evidence."""
    evidence: dict[str, dict[str, object]] = {
        c.signal.value: dict(c.evidence.data) for c in collected
    }
    return [
        EvidencedSignalResponse(
            **shape.model_dump(by_alias=False), evidence=evidence.get(shape.signal)
        )
        for shape in signals(score)
    ]


def _missing(name: SignalName) -> SignalResponse:
    return SignalResponse(
        signal=name.value,
        available=False,
        value=None,
        weight=None,
        confidence=0.0,
        contribution=None,
        reasons=[],
    )


def _signal(contribution: Contribution) -> SignalResponse:
    return SignalResponse(
        signal=contribution.signal.value,
        available=True,
        value=contribution.value,
        weight=contribution.weight,
        confidence=contribution.confidence,
        contribution=contribution.points,
        reasons=list(contribution.reasons),
    )


class ImprovementResponse(ResponseModel):
    """A finding or missing evidence, what to do about it, and what that gains."""

    slug: Annotated[str, Field(examples=["secure_transport"])]
    """A stable name of the finding."""
    finding: Annotated[
        str,
        Field(
            examples=["A service is reached without TLS."],
            description="What counts against the agent, in a sentence.",
        ),
    ]
    action: Annotated[
        str,
        Field(examples=["Serve it over HTTPS."], description="What to do about it, in a sentence."),
    ]
    points: Annotated[
        float,
        Field(
            examples=[2.5], description="What that alone is worth, recomputed from the evidence."
        ),
    ]
    score_after: ScoreValue
    """The score after that, 0 to 100."""
    at_most: Annotated[
        bool, Field(description="Whether it depends on what the evidence then says.")
    ]
    docs: Annotated[
        str,
        Field(
            examples=["docs/probes.md"], description="The page of this project that documents it."
        ),
    ]


Improvements = Annotated[
    list[ImprovementResponse],
    Field(description="What would raise the score: caps first, then by points; bounded."),
]


class AgentHintResponse(ResponseModel):
    """A registered agent for which the judged address acts."""

    agent_id: ShownAgentId
    """The agent's id: a token id, a Solana public key, or a key agent's address."""
    chain: NetworkSlug
    """The agent's network, by its slug."""
    send: Annotated[str, Field(description="The header to send.", examples=["x-agent-id: 22"])]


def improvements(listed: Sequence[Improvement]) -> list[ImprovementResponse]:
    """Return improvements as a response."""
    return [ImprovementResponse.model_validate(one.document()) for one in listed]


ScoreLow = Annotated[
    float,
    Field(
        examples=[78.2],
        ge=0,
        le=100,
        description="The score had every check that was not made failed.",
    ),
]
ScoreHigh = Annotated[
    float,
    Field(
        examples=[88.0],
        ge=0,
        le=100,
        description="The score had every check that was not made passed.",
    ),
]


class DemandResponse(ResponseModel):
    """A missing demand of a rung."""

    name: Annotated[str, Field(description="A slug.", examples=["control"])]
    state: Annotated[
        str,
        Field(
            examples=["missing"],
            description="`missing`, or `unknown`: we could not find out yet, which costs nobody"
            " a rung that was held.",
        ),
    ]
    asks: Annotated[
        str,
        Field(
            examples=["control of the declared host"],
            description="What is asked for, with what there is now.",
        ),
    ]
    why: Annotated[
        str,
        Field(
            examples=["control_unproven"],
            description="A slug, such as `control_unproven`; empty: it is not there.",
        ),
    ]
    action: Annotated[
        str,
        Field(
            examples=["Publish the DNS record."],
            description="The file or record to publish, or what else to do; or empty.",
        ),
    ]


class ChecksResponse(ResponseModel):
    """How many of the checks that apply to the agent could be made."""

    made: Annotated[int, Field(examples=[9], ge=0)]
    """Checks that were made."""
    applicable: Annotated[int, Field(examples=[22], ge=0)]
    """Checks that apply to the agent."""
    summary: Annotated[str, Field(examples=["9 of 22 applicable checks"])]
    """The same in words."""


class LadderResponse(ResponseModel):
    """The highest rung whose evidence is complete, which bounds the score."""

    rung: Annotated[int, Field(examples=[2], ge=0, le=4)]
    """The rung, 0 (nothing proven) to 4."""
    name: Annotated[
        str,
        Field(
            examples=["steady"],
            description="`unproven`, `functional`, `steady`, `used` or `vouched`.",
        ),
    ]
    ceiling: Annotated[
        float,
        Field(
            examples=[89.0],
            ge=0,
            le=100,
            description="Highest score on this rung, whatever is selected.",
        ),
    ]
    unconfirmed: Annotated[
        bool,
        Field(description="The rung was held before, and is being looked at again."),
    ]
    before_ceiling: Annotated[
        float,
        Field(
            examples=[83.64],
            ge=0,
            le=100,
            description="Formula, bonus and caps, before the ceiling.",
        ),
    ]
    hidden_bonus: Annotated[
        float,
        Field(
            examples=[0.0],
            ge=0,
            description="Points of the personhood bonus that the ceiling hides.",
        ),
    ]
    checks: ChecksResponse
    """Checks that could be made, of those that apply."""
    next_rung: Annotated[
        list[DemandResponse],
        Field(description="What the next rung asks for; empty on the highest."),
    ]


def ladder(score: Score) -> LadderResponse:
    """Return the ladder's part of a score as a response."""
    place, made, of = score.place, score.checks_made, score.checks_applicable
    return LadderResponse(
        rung=place.rung,
        name=place.name,
        ceiling=place.ceiling,
        unconfirmed=place.is_unconfirmed,
        before_ceiling=score.before_ceiling,
        hidden_bonus=score.hidden_bonus,
        checks=ChecksResponse(
            made=made, applicable=of, summary=f"{made} of {of} applicable checks"
        ),
        next_rung=[_demand(d) for d in place.next_demands],
    )


def _demand(demand: Demand) -> DemandResponse:
    return DemandResponse(
        name=demand.name,
        state=demand.state,
        asks=demand.asks,
        why=demand.why,
        action=demand.action,
    )
