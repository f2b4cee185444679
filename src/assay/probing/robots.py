"""Reads which sites ask not to be tested. Source: checks.md#rules-of-a-visit."""

from urllib.parse import urlsplit

from assay.net.egress.ports import EgressClient, EgressError, Limits, OutboundRequest

ROBOTS_LIMITS = Limits(connect_s=2.0, total_s=2.0, body_bytes_max=65536)
"""A site that has rules serves them quickly; a dead one must not cost half of the visit's time."""


async def opted_out(url: str, http: EgressClient) -> bool:
    """Return whether the site of `url` asks Assay by name not to test this address."""
    refused = await refused_prefixes(url, http)
    return any((urlsplit(url).path or "/").startswith(prefix) for prefix in refused or ())


async def refused_prefixes(url: str, http: EgressClient) -> list[str] | None:
    """Return the path prefixes that the site of `url` closes to Assay; None without an answer.

    Only a robots.txt group that names `Assay` counts: `User-agent: *` is about uninvited crawlers,
    and a registered service invites callers. Source: RFC 9309, section 2.2.
    """
    parts = urlsplit(url)  # The URL of a declared service, so it can be parsed.
    robots = f"{parts.scheme}://{parts.netloc}/robots.txt"
    try:
        reply = await http.send(OutboundRequest("GET", robots, is_bare=True), ROBOTS_LIMITS)
    except EgressError:
        return None
    if reply.status != 200:  # noqa: PLR2004 - else there is none: RFC 9309, section 2.3.1
        return []
    return _disallowed(reply.body.decode("utf-8", "replace"))


def _disallowed(robots: str) -> list[str]:
    """Return the path prefixes disallowed to the group that names `Assay`."""
    prefixes: list[str] = []
    ours = naming = False
    for line in robots.splitlines():
        field, _, value = line.partition("#")[0].partition(":")
        field, value = field.strip().lower(), value.strip()
        if field == "user-agent":
            ours = (ours and naming) or value.lower() == "assay"
            naming = True
        elif field:
            naming = False
            if ours and field == "disallow" and value:
                prefixes.append(value.rstrip("*"))
    return prefixes
