"""So many requests a day to one site, whoever asks, on top of the egress budget."""

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
    """Implements `net.egress.ports.EgressClient` over another one.

    Every request counts, each hop of a redirect too: nobody makes us call a third host often by way
    of their own. Requests to the IPFS gateway have a budget of theirs, and are let through.
    """

    def __init__(self, http: EgressClient, take: Callable[[str], Awaitable[bool]]) -> None:
        """`take` counts a request to a registrable domain; false when the day's are used up."""
        self._http = http
        self._take = take

    async def send(self, request: OutboundRequest, limits: Limits = Limits()) -> EgressResponse:  # noqa: B008 - frozen
        """As the other one; `Failure.BUDGET` when the site has had its share of the day."""
        if not current_use().is_document:
            try:
                host = urlsplit(request.url).hostname or ""
            except ValueError:
                host = ""
            if not await self._take(domain_of(host)):
                raise EgressError(Failure.BUDGET, "the site has had its share of files today")
        return await self._http.send(request, limits)
