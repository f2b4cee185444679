"""An agent's place on the ladder, in responses (docs/grades.md#the-ladder)."""

from typing import Annotated

from pydantic import Field

from assay.evaluation.ladder import Demand
from assay.evaluation.model import Score
from assay.server.schemas_base import ResponseModel

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
