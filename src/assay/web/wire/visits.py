"""Agents in the schedule of visits, on the wire."""

from typing import Annotated

from pydantic import Field

from assay.evaluation.enrolment import VisitRequest
from assay.kit.clock import iso
from assay.web.wire.shape import Answer, Timestamp


class EnrolledShape(Answer):
    """The agent is visited regularly, or no more."""

    ok: bool
    agent_id: str
    chain: str


class EnrolmentShape(Answer):
    """An agent somebody asked to be visited."""

    agent_id: str
    chain: str
    since: Timestamp


class EnrolmentsShape(Answer):
    """Every agent the caller asked for, oldest first."""

    items: list[EnrolmentShape]
    total: int
    limit: Annotated[int, Field(description="Agents the caller may have in the schedule.")]
    offset: int
    next_cursor: str | None


def enrolments(found: "list[VisitRequest]", limit: int) -> EnrolmentsShape:
    """What a holder asked for."""
    rows = [
        EnrolmentShape(agent_id=one.agent_id, chain=one.chain, since=iso(one.since))
        for one in found
    ]
    return EnrolmentsShape(items=rows, total=len(rows), limit=limit, offset=0, next_cursor=None)
