"""Which services of a visit may be visited: robots.txt of their sites, kept for a day."""

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
    """The services that may be visited, and those whose site asks us not to.

    A visit that is not announced was planned by what an announced one read.
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
    """Whether the service's robots.txt asks for no visit; it is asked, and kept for a day."""
    endpoint = visited.service.endpoint
    try:
        if await opted_out(endpoint, http):
            return True
        refused = await refused_prefixes(endpoint, http)  # the same request, asked once
    except (BudgetExhausted, EgressError):
        return False
    if visits is not None and refused is not None:
        await visits.keep_robots(endpoint, refused)
    return False
