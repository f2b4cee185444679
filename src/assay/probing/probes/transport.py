"""Whether connections are secure and responses are harmless to a client."""

from dataclasses import replace
from ipaddress import ip_address
from urllib.parse import urljoin

from assay.common.json import JsonObject, JsonValue
from assay.net.egress.address import classify
from assay.net.egress.ports import EgressError, EgressResponse, OutboundRequest
from assay.probing.conversations import CONFIRMED_FROM, SPLIT_HEADER, forwarding_request
from assay.probing.ports import Finding, ProbeSession, Severity, probe
from assay.probing.probe_client import LIMITS, answer_class, ask, first, host_of
from assay.probing.session import VisitHttp


def _weigh_secure_transport(seen: JsonObject) -> Finding:
    if seen["plain"]:
        return Finding(
            "fail", "A service is declared without TLS: anybody on the way can alter it."
        )
    return Finding("pass", "Every service is declared with TLS.")


@probe("secure_transport", "domain", Severity.MINOR, weigh=_weigh_secure_transport)
async def secure_transport(visit: ProbeSession) -> JsonObject | None:
    """Requires https of every declared endpoint, except addresses in one's own network.

    Source: checks.md#domain-and-tls.
    """
    endpoints = [v.service.endpoint for v in visit.services]
    public = [url for url in endpoints if not _is_inside(host_of(url))]
    if not public:
        return None
    return {"plain": sum(url.lower().startswith("http://") for url in public)}


def _is_inside(host: str) -> bool:
    try:
        return classify(ip_address(host)) is not None
    except ValueError:
        return host == "localhost"


def _weigh_strict_transport(seen: JsonObject) -> Finding:
    if seen["promised"]:
        return Finding("pass", "Its domain promises to stay on TLS.")
    return Finding("not_tested", "Its domain does not promise to stay on TLS.")


@probe("strict_transport", "domain", Severity.INFO, weigh=_weigh_strict_transport)
async def strict_transport(visit: ProbeSession) -> JsonObject | None:
    """Checks `Strict-Transport-Security` on the first https endpoint: useful, but not required.

    Source: RFC 6797; checks.md#domain-and-tls (info).
    """
    urls = [v.service.endpoint for v in visit.services]
    secure = next((url for url in urls if url.lower().startswith("https://")), None)
    response = None if secure is None else await ask(visit, OutboundRequest("GET", secure))
    if not isinstance(response, EgressResponse):
        return None
    return {"promised": response.header("strict-transport-security") is not None}


def _weigh_no_downgrade(seen: JsonObject) -> Finding:
    if seen["down"]:
        return Finding("fail", "A service with TLS sends its callers on to plain http.")
    if not seen["answered"]:
        return Finding("not_tested", "No service with TLS answered.")
    return Finding("pass", "No service with TLS sends its callers to plain http.")


@probe("no_downgrade", "domain", Severity.MAJOR, weigh=_weigh_no_downgrade)
async def no_downgrade(visit: ProbeSession) -> JsonObject | None:
    """Requires that no https endpoint redirects its callers to plain http.

    Source: checks.md#domain-and-tls (no downgrade).
    """
    urls = [v.service.endpoint for v in visit.services]
    secure = [url for url in urls if url.lower().startswith("https://")][:3]
    if not secure:
        return None
    response = [(url, await ask(visit, OutboundRequest("GET", url))) for url in secure]
    moved = [_target(url, reply) for url, reply in response if isinstance(reply, EgressResponse)]
    answered = sum(answer_class(reply) not in {"timeout", "unreachable"} for _, reply in response)
    return {"answered": answered, "down": sum(t.startswith("http://") for t in moved)}


def _target(url: str, reply: EgressResponse) -> str:
    location = reply.header("location")
    if not location or answer_class(reply) != "redirect":
        return ""
    try:
        return urljoin(url, location).lower()
    except ValueError:  # Brackets without an IPv6 address lead nowhere.
        return ""


_REDIRECTS = range(300, 400)


def _weigh_no_open_redirect(seen: JsonObject) -> Finding:
    if seen["splits"]:
        return Finding("fail", "A line break in a parameter becomes a header of the answer.")
    if seen["redirects"]:
        return Finding("fail", "Callers are redirected to whatever host a parameter names.")
    return Finding("pass", "Parameters decide neither redirects nor headers.")


@probe("no_open_redirect", "ssrf", Severity.MAJOR, weigh=_weigh_no_open_redirect)
async def no_open_redirect(visit: ProbeSession) -> JsonObject | None:
    """Requires that an address in a parameter causes no redirect, and a line break no header.

    One request, which the probes of leaks make as well; it is repeated if it shows a fault.
    """
    service = first(visit, "http")
    if service is None:
        return None
    request = forwarding_request(visit, service.service.endpoint)
    found = _faults(await ask(visit, request))
    if found is None:
        return None
    if found:
        again = OutboundRequest(request.method, request.url, VisitHttp.FRESH)
        found = sorted(set(found) & set(_faults(await ask(visit, again)) or ()))
    return {"redirects": "redirects" in found, "splits": "splits" in found}


def _faults(response: EgressResponse | object) -> list[str] | None:
    if not isinstance(response, EgressResponse):
        return None
    target = host_of(response.header("location") or "") if response.status in _REDIRECTS else ""
    redirects = ["redirects"] if target.endswith(".invalid") else []
    return redirects + (["splits"] if response.header(SPLIT_HEADER) is not None else [])


LOOKED_AT = 3

BYTES_MAX = 8 * 1024 * 1024
"""Large enough that the ratio, and not the size, is what cuts a bomb."""

_WHOLE = replace(LIMITS, body_bytes_max=BYTES_MAX)


def _weigh_no_bombs(seen: JsonObject) -> Finding:
    sightings = seen.get("sightings", CONFIRMED_FROM)
    if seen["bombs"] and isinstance(sightings, int) and sightings < CONFIRMED_FROM:
        return Finding("not_tested", "It answered with a decompression bomb once, not again.")
    if seen["bombs"]:
        return Finding("fail", "It answers with a decompression bomb.")
    if seen.get("unread"):
        return Finding("not_tested", "Long answers are read only of hosts that name the agent.")
    return Finding("pass", "Its answers expand as honest ones do.")


@probe("no_bombs", "resilience", Severity.CRITICAL, weigh=_weigh_no_bombs)
async def no_bombs(visit: ProbeSession) -> JsonObject | None:
    """Requires that no service answers with a body that fills its reader's memory.

    A compressed answer larger than a visit reads is requested again, to see whether it is large or
    a bomb; a bomb is requested again too, because a finding must be seen twice.

    Source: checks.md#response-bounds.
    """
    urls = [v.service.endpoint for v in visit.services][:LOOKED_AT]
    response = [(url, await ask(visit, OutboundRequest("GET", url))) for url in urls]
    answered = [(url, reply) for url, reply in response if isinstance(reply, EgressResponse)]
    if not answered:
        return None
    unread = sum(not visit.may_burden(url) and _is_long(reply) for url, reply in answered)
    seen: dict[str, JsonValue] = {"unread": unread} if unread else {}
    bombs = [url for url, reply in answered if await _is_bomb(visit, url, reply)]
    if bombs:
        again = await ask(visit, OutboundRequest("GET", bombs[0], VisitHttp.FRESH), _WHOLE)
        seen["sightings"] = 1 + (isinstance(again, EgressResponse) and again.is_bomb)
    return {"bombs": len(bombs), **seen}


def _is_long(reply: EgressResponse) -> bool:
    """Return whether a compressed answer was cut for its size, before its ratio was known."""
    is_compressed = reply.header("content-encoding") is not None
    return reply.truncated and is_compressed and not reply.is_bomb


async def _is_bomb(visit: ProbeSession, url: str, reply: EgressResponse) -> bool:
    if not _is_long(reply) or not visit.may_burden(url):
        return reply.is_bomb
    try:
        again = OutboundRequest("GET", url, VisitHttp.FRESH)
        return (await visit.http.send(again, _WHOLE)).is_bomb
    except EgressError:
        return False
