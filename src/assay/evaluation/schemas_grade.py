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
from assay.server.schemas import ResponseModel

Share = Annotated[float, Field(ge=0, le=1)]
Points = Annotated[float, Field(ge=0, le=100)]


class SignalResponse(ResponseModel):
    """One signal: its worth, and how far it moved the score."""

    signal: Annotated[str, Field(examples=["sandbox"])]
    available: bool
    value: Points | None
    weight: Share | None
    confidence: Share
    contribution: Annotated[float | None, Field(description="Points above or below the prior.")]
    reasons: list[str]


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


ScoreLow = Annotated[
    float,
    Field(ge=0, le=100, description="The score had every check that was not made failed."),
]
ScoreHigh = Annotated[
    float,
    Field(ge=0, le=100, description="The score had every check that was not made passed."),
]


class DemandResponse(ResponseModel):
    """A missing demand of a rung."""

    name: Annotated[str, Field(description="A slug.", examples=["control"])]
    state: Annotated[
        str,
        Field(
            description="`missing`, or `unknown`: we could not find out yet, which costs nobody"
            " a rung that was held."
        ),
    ]
    asks: Annotated[str, Field(description="What is asked for, with what there is now.")]
    why: Annotated[
        str, Field(description="A slug, such as `control_unproven`; empty: it is not there.")
    ]
    action: Annotated[
        str, Field(description="The file or record to publish, or what else to do; or empty.")
    ]


class ChecksResponse(ResponseModel):
    """How many of the checks that apply to the agent could be made."""

    made: Annotated[int, Field(ge=0)]
    applicable: Annotated[int, Field(ge=0)]
    summary: Annotated[str, Field(examples=["9 of 22 applicable checks"])]


class LadderResponse(ResponseModel):
    """The highest rung whose evidence is complete, which bounds the score."""

    rung: Annotated[int, Field(ge=0, le=4)]
    name: Annotated[
        str, Field(description="`unproven`, `functional`, `steady`, `used` or `vouched`.")
    ]
    ceiling: Annotated[
        float, Field(ge=0, le=100, description="Highest score on this rung, whatever is selected.")
    ]
    unconfirmed: Annotated[
        bool,
        Field(description="The rung was held before, and is being looked at again."),
    ]
    before_ceiling: Annotated[
        float, Field(ge=0, le=100, description="Formula, bonus and caps, before the ceiling.")
    ]
    hidden_bonus: Annotated[
        float, Field(ge=0, description="Points of the personhood bonus that the ceiling hides.")
    ]
    checks: ChecksResponse
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
