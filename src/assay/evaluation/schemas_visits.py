"""Agents in the schedule of visits, on the wire."""

from assay.common.clock import iso
from assay.evaluation.enrolment import VisitRequest
from assay.server.schemas_base import ResponseModel, Timestamp
from assay.server.schemas_page import PageResponse, Part


class EnrolledResponse(ResponseModel):
    """The agent is visited regularly, or no more."""

    ok: bool
    agent_id: str
    chain: str


class EnrolmentResponse(ResponseModel):
    """An agent somebody asked to be visited."""

    agent_id: str
    chain: str
    since: Timestamp


class EnrolmentsResponse(PageResponse):
    """Every agent the caller asked for, oldest first."""

    items: list[EnrolmentResponse]


def enrolments(part: Part[VisitRequest]) -> EnrolmentsResponse:
    """A page of what a holder asked for."""
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
