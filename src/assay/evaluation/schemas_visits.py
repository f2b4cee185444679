"""Agents in the schedule of visits, in responses."""

from assay.common.clock import iso
from assay.evaluation.enrolment import VisitRequest
from assay.server.schemas_base import ResponseModel, Timestamp
from assay.server.schemas_page import PageResponse, Part


class EnrolledResponse(ResponseModel):
    """Whether the agent is visited regularly."""

    ok: bool
    agent_id: str
    chain: str


class EnrolmentResponse(ResponseModel):
    """An agent for which visits were requested."""

    agent_id: str
    chain: str
    since: Timestamp


class EnrolmentsResponse(PageResponse):
    """Every agent the caller requested, oldest first."""

    items: list[EnrolmentResponse]


def enrolments(part: Part[VisitRequest]) -> EnrolmentsResponse:
    """Return a page of a holder's requests."""
    rows = [
        EnrolmentResponse(agent_id=one.agent_id, chain=one.chain, since=iso(one.since))
        for one in part.items
    ]
    return EnrolmentsResponse(
        items=rows,
        total=part.total,
        limit=part.limit,
        offset=part.offset,
        next_cursor=part.next_cursor,
    )
