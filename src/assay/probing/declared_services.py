"""The services an agent declares: which are visited, and which protocol is tried first.

A name is only a hint at the protocol: services with uninformative names are tried as well, and
probed as the protocol that is found. Source: evidence.md#asking-the-endpoint.
"""

from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import urlsplit

from assay.common.json import JsonObject
from assay.probing.ports import ServiceKind, VisitedService
from assay.registries.model import Service, Subject

SERVICES_MAX = 6
"""Services visited, in the order declared; the first of a kind is probed in depth. Those whose name
or address tells the protocol precede the others."""

URL_MAX = 2048

_HINTS: Final = {
    "a2a": ("a2a", "agent-card", "agentcard", "agent.json"),
    "mcp": ("mcp", "/sse"),
    "grpc": ("grpc",),
    "x402": ("x402",),
}
_HTTP_NAMES: Final = frozenset({"web", "http", "https", "api", "openapi", "rest"})
"""Names, in lower case, under which HTTP is declared. Source: EIP-8004's examples and
erc8004.md#registration-files-in-use for published names."""


def hint_of(service: Service) -> str:
    """Return the protocol to try first, by name, then by address.

    `a2a`, `mcp`, `grpc`, `x402`, `http`.
    """
    if service.endpoint.casefold().startswith("grpc"):
        return "grpc"
    for text in (service.name.casefold(), urlsplit(service.endpoint).path.casefold()):
        for kind, marks in _HINTS.items():
            if any(mark in text for mark in marks):
                return kind
    return "http"


def declared_services(subject: Subject) -> tuple[list[VisitedService], list[str]]:
    """Return the services that can be visited, in the order declared, and the others' names."""
    registration = subject.agent.registration if subject.agent else None
    found: list[VisitedService] = []
    ignored: set[str] = set()
    for service in registration.services if registration else ():
        hint = hint_of(service) if _is_address(service.endpoint) else "grpc"
        if hint == "grpc":  # HTTP is not spoken there.
            ignored.add(_clean(service.name)[:64])
            continue
        is_known = hint != "http" or service.name.strip().lower() in _HTTP_NAMES
        found.append(VisitedService(_kind(hint), service, is_known))
    kept = sorted(range(len(found)), key=lambda place: not found[place].is_known)[:SERVICES_MAX]
    ignored |= {_clean(v.service.name)[:64] for n, v in enumerate(found) if n not in kept}
    return [found[place] for place in sorted(kept)], sorted(ignored)


def as_spoken(
    services: Sequence[VisitedService], spoken: Mapping[str, str]
) -> tuple[VisitedService, ...]:
    """Return the services to probe, each as the protocol that was found.

    A service with an uninformative name is left out if it is a page, and, if there are others,
    until a protocol was found.
    """
    found: list[VisitedService] = []
    kinds = {visited.kind for visited in services}
    for visited in services:
        protocol = spoken.get(visited.service.endpoint)
        if protocol in kinds and visited.is_known:
            protocol = visited.kind  # Of one host: what is declared beside it represents it.
        if protocol in {None, "page"}:
            found += [visited] if visited.is_known else []
        elif visited.kind == "http" or protocol in {"a2a", "mcp"}:
            found.append(VisitedService(_kind(str(protocol)), visited.service))
        else:
            found.append(visited)  # Declared as a protocol it does not speak: what is found counts.
    unheard = (v for v in services if spoken.get(v.service.endpoint) != "page")
    return tuple(found) or tuple(unheard)


def _kind(spoken: str) -> ServiceKind:
    return "a2a" if spoken == "a2a" else "mcp" if spoken == "mcp" else "http"


def _is_address(endpoint: str) -> bool:
    """Return whether it is http(s) and parses: one that does not would end every probe."""
    try:
        parts = urlsplit(endpoint)
        return len(endpoint) <= URL_MAX and parts.scheme in {"http", "https"}
    except ValueError:
        return False


def service_row(visited: VisitedService, state: str) -> JsonObject:
    """Return one service's row of the evidence."""
    return {
        "kind": visited.kind,
        "name": _clean(visited.service.name)[:64],
        "endpoint": _clean(visited.service.endpoint),
        "state": state,
    }


def _clean(text: str) -> str:
    """Return text that can be hashed: without lone surrogates from JSON escapes."""
    return text.encode("utf-8", "replace").decode("utf-8")
