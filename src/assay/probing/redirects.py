"""Follows redirects within a site, and recognises agent cards."""

from dataclasses import replace
from urllib.parse import urljoin

from assay.common.json import JsonObject, is_array
from assay.net.egress.ports import EgressClient, EgressResponse, Limits, OutboundRequest
from assay.probing.probe_client import LIMITS, same_site

REDIRECTS_MAX = 3
"""Redirects followed on one site: https, a new path and a slash."""

_REDIRECTS = frozenset({301, 302, 303, 307, 308})


async def follow(
    http: EgressClient, request: OutboundRequest, limits: Limits = LIMITS
) -> tuple[str, EgressResponse]:
    """Return where a GET ends after redirects that stay on its site, and the reply there.

    A redirect to another site is returned as the reply. Raises `EgressError`.
    """
    url = request.url
    reply = await http.send(request, limits)
    for _ in range(REDIRECTS_MAX):
        location = reply.header("location") if reply.status in _REDIRECTS else None
        try:
            following = urljoin(url, location) if location else ""
        except ValueError:
            break
        if not same_site(following, url) or is_downgrade(url, following):
            break
        url = following
        reply = await http.send(replace(request, url=url), limits)
    return url, reply


def is_downgrade(url: str, following: str) -> bool:
    """Return whether a redirect leads from https to http."""
    return url.lower().startswith("https:") and not following.lower().startswith("https:")


def is_agent_card(document: JsonObject) -> bool:
    """Return whether a document is an A2A card, of 0.3 or of 1.0."""
    return is_array(document.get("skills")) and bool(
        document.keys() & {"url", "supportedInterfaces", "protocolVersion", "capabilities"}
    )
