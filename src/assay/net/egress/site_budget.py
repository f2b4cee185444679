"""A daily number of requests to one site from all callers, on top of the egress budget."""

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from assay.common.egress_budget import current_use
from assay.net.egress.domain import domain_of
from assay.net.egress.ports import (
    EgressClient,
    EgressError,
    EgressResponse,
    Failure,
    Limits,
    OutboundRequest,
)


class SiteBudgetHttp:
    """Limits another `net.egress.ports.EgressClient` to a daily number of requests per site.

    Every request counts, including each hop of a redirect, so that no site can make us call a third
    host often. Requests to the IPFS gateway have a budget of their own and pass.
    """

    def __init__(self, http: EgressClient, take: Callable[[str], Awaitable[bool]]) -> None:
        """Create it.

        `take` counts a request to a registrable domain, False if none are left today.
        """
        self._http = http
        self._take = take

    async def send(self, request: OutboundRequest, limits: Limits = Limits()) -> EgressResponse:  # noqa: B008 - frozen
        """Send like the wrapped client; raises `Failure.BUDGET` if the site's day is used up."""
        if not current_use().is_document:
            try:
                host = urlsplit(request.url).hostname or ""
            except ValueError:
                host = ""
            if not await self._take(domain_of(host)):
                raise EgressError(Failure.BUDGET, "the site has had its share of files today")
        return await self._http.send(request, limits)
