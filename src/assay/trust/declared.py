"""The services an agent declares, as far as we can speak to them."""

from urllib.parse import urlsplit

from assay.kit.json import JsonObject
from assay.trust.model import Subject
from assay.trust.ports import ServiceKind, Visited

SERVICES_MAX = 6
"""Services visited, in the order declared; the first of a kind is probed in depth."""

URL_MAX = 2048

_KINDS: dict[str, ServiceKind] = {
    "a2a": "a2a",
    "mcp": "mcp",
    **dict.fromkeys(("web", "http", "https", "api", "openapi", "rest"), "http"),
}
"""Declared names, in lower case, and what is spoken there. Source: EIP-8004's examples and facts
(evm, section 1.4) for names in the wild."""


def declared_services(subject: Subject) -> tuple[list[Visited], list[str]]:
    """The services we can speak to, in the order declared, and the names of the others."""
    registration = subject.agent.registration if subject.agent else None
    visited: list[Visited] = []
    ignored: set[str] = set()
    for service in registration.services if registration else ():
        kind = _KINDS.get(service.name.strip().lower())
        web = len(service.endpoint) <= URL_MAX and _is_address(service.endpoint)
        if kind and web and len(visited) < SERVICES_MAX:
            visited.append(Visited(kind, service))
        else:
            ignored.add(_clean(service.name)[:64])
    return visited, sorted(ignored)


def _is_address(endpoint: str) -> bool:
    """Whether it is http(s), and can be taken apart: one that cannot would end every probe."""
    try:
        return urlsplit(endpoint).scheme in {"http", "https"}
    except ValueError:
        return False


def service_row(visited: Visited, state: str) -> JsonObject:
    """One service, as it stands in the evidence."""
    return {
        "kind": visited.kind,
        "name": _clean(visited.service.name)[:64],
        "endpoint": _clean(visited.service.endpoint),
        "state": state,
    }


def _clean(text: str) -> str:
    """Text as it can be hashed: without the lone surrogates that JSON escapes can smuggle in."""
    return text.encode("utf-8", "replace").decode("utf-8")
