"""Reads a document of a host, following redirects on its site."""

from typing import Final
from urllib.parse import urljoin

from assay.control.ports import LookUpUnavailable
from assay.control.scope import scope_of
from assay.control.statements_in_documents import BYTES_MAX
from assay.net.egress.ports import (
    EgressClient,
    EgressError,
    EgressResponse,
    Failure,
    OutboundRequest,
)

_REDIRECT = frozenset({301, 302, 303, 307, 308})
_NOTHING: Final = EgressResponse(0, (), b"", truncated=False, elapsed_ms=0.0)


async def fetch(http: EgressClient, url: str, redirects: int = 0) -> EgressResponse:
    """Return the reply, after at most `redirects` redirects within the same site.

    If it cannot be reached or read, the reply has status 0. Raises `LookUpUnavailable` if our own
    budget is used up.
    """
    site = scope.site if (scope := scope_of(url)) else ""
    for hops in range(redirects + 1):
        try:
            request = OutboundRequest("GET", url, {"accept": "application/json"}, is_bare=True)
            reply = await http.send(request)
        except EgressError as error:
            if error.failure is Failure.BUDGET:
                raise LookUpUnavailable from error
            return _NOTHING
        if reply.truncated or len(reply.body) > BYTES_MAX:
            return _NOTHING
        moved = _moved(url, reply, site) if hops < redirects else None
        if moved is None:
            return reply
        url = moved
    return _NOTHING


def _moved(url: str, reply: EgressResponse, site: str) -> str | None:
    """Return the target of a redirect if it stays on the site and on https, else None."""
    if reply.status not in _REDIRECT:
        return None
    try:
        target = urljoin(url, reply.header("location") or "")
    except ValueError:
        return None
    scope = scope_of(target)
    if scope is None or scope.site != site:
        return None
    if url.lower().startswith("https:") and not target.lower().startswith("https:"):
        return None
    return target
