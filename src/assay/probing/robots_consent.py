"""Decides which services may be visited, by their sites' robots.txt, kept for a day."""

import asyncio

from assay.net.egress.ports import EgressError
from assay.probing.ports import BudgetExhausted, VisitedService
from assay.probing.robots import opted_out, refused_prefixes
from assay.probing.session import VisitHttp
from assay.probing.unannounced import UnannouncedVisits


async def allowed(
    declared: list[VisitedService],
    http: VisitHttp,
    visits: UnannouncedVisits | None,
    *,
    announced: bool,
) -> tuple[tuple[VisitedService, ...], tuple[VisitedService, ...]]:
    """Return the services that may be visited, and those whose site asks us not to.

    An unannounced visit was planned by what an announced one read.
    """
    if not announced:
        return tuple(declared), ()
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(wants_none(v, http, visits)) for v in declared]
    answers = [task.result() for task in asked]
    pairs = list(zip(declared, answers, strict=True))
    return tuple(v for v, no in pairs if not no), tuple(v for v, no in pairs if no)


async def wants_none(
    visited: VisitedService, http: VisitHttp, visits: UnannouncedVisits | None
) -> bool:
    """Return whether the service's robots.txt forbids visits; it is fetched, and kept for a day."""
    endpoint = visited.service.endpoint
    try:
        if await opted_out(endpoint, http):
            return True
        refused = await refused_prefixes(endpoint, http)  # The same request, sent once.
    except (BudgetExhausted, EgressError):
        return False
    if visits is not None and refused is not None:
        await visits.keep_robots(endpoint, refused)
    return False
