"""Services whose site asks us not to test them, as announced visits read it."""

from assay.egress.ports import EgressError
from assay.probing.ports import BudgetExhausted, Visited
from assay.probing.robots import opted_out, refused_prefixes
from assay.probing.visiting import VisitHttp
from assay.trust.sources import Sources


async def wants_none(visited: Visited, http: VisitHttp, sources: Sources) -> bool:
    """Whether the service's robots.txt asks for no visit; it is asked, and kept for a day."""
    endpoint = visited.service.endpoint
    try:
        if await opted_out(endpoint, http):
            return True
        refused = await refused_prefixes(endpoint, http)  # the same request, asked once
    except (BudgetExhausted, EgressError):
        return False
    if sources.visits is not None and refused is not None:
        await sources.visits.keep_robots(endpoint, refused)
    return False
