"""Reads what hosts allow: their own file that names the agent, and robots.txt.

Reads which sites ask not to be tested. Source: checks.md#rules-of-a-visit.

Reads the consent of hosts: their own file names the agent registered with them.

Both directions are required: the registry's file declares the host, and the host's file names the
agent. Sources: EIP-8004, "Endpoint Domain Verification"; ADR 0016.
"""

from collections.abc import Sequence
from urllib.parse import urljoin, urlsplit

from assay.common.egress_budget import BudgetRules
from assay.common.json import JsonValue, is_array, is_object
from assay.http1.model import Target
from assay.net.egress.consent import Consents, origin_of
from assay.net.egress.ports import (
    EgressClient,
    EgressError,
    EgressResponse,
    Limits,
    OutboundRequest,
)
from assay.net.egress.url import EgressPolicy, is_exempt, parse_target
from assay.probing.ports import BudgetExhausted
from assay.probing.probe_client import decode
from assay.registries.model import Subject

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


WELL_KNOWN = "/.well-known/agent-registration.json"
"""Source: EIP-8004, "Endpoint Domain Verification"."""

_OK = 200


class HostConsents:
    """Reads and stores hosts' consents; implements `probing.ports.ReadsConsents`."""

    def __init__(self, consents: Consents, policy: EgressPolicy, rules: BudgetRules) -> None:
        self._consents = consents
        self._policy = policy
        self._rules = rules

    async def read(
        self, subject: Subject, endpoints: Sequence[str], http: EgressClient
    ) -> frozenset[str]:
        """Implement `ReadsConsents.read`: one request for each origin, within its budget."""
        targets = [parse_target(endpoint, self._policy) for endpoint in endpoints]
        origins = {origin_of(t): t for t in targets if isinstance(t, Target)}
        return frozenset(
            [
                origin
                for origin, target in sorted(origins.items())
                if await self._agrees(subject, origin, target, http)
            ]
        )

    async def _agrees(
        self, subject: Subject, origin: str, target: Target, http: EgressClient
    ) -> bool:
        if is_exempt(target.host, self._policy, self._rules):
            return True
        try:
            reply = await http.send(binding_request(origin))
        except (EgressError, BudgetExhausted):
            return False  # An earlier consent is valid until it expires.
        if lists_agent(reply, subject) and reply.address is not None:
            await self._consents.record(origin, subject.key, reply.address)
            return True
        if not reply.over_budget:
            await self._consents.withdraw(origin, subject.key)
        return False


def binding_request(url: str) -> OutboundRequest:
    """Return the request for the file of the host of `url`, the same for all callers."""
    return OutboundRequest("GET", urljoin(url, WELL_KNOWN), {"accept": "application/json"})


def lists_agent(reply: EgressResponse, subject: Subject) -> bool | None:
    """Return whether the host's file lists this agent; None if there is no such file."""
    document = decode(reply.body) if reply.status == _OK else None
    listed = document.get("registrations") if is_object(document) else None
    if not is_array(listed) or not listed:
        return None
    return any(_names(row, subject) for row in listed)


def _names(row: JsonValue, subject: Subject) -> bool:
    registry = subject.network.agent_registry.lower()
    return (
        is_object(row)
        and str(row.get("agentId")) == subject.agent_id
        and str(row.get("agentRegistry")).lower() == registry
    )
