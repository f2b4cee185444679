"""Whether the services answer, the same way every time, with honest statuses."""

from collections import Counter
from collections.abc import Mapping
from statistics import median

from assay.common.json import JsonObject, is_array, is_object
from assay.net.egress.ports import EgressResponse, Failure, OutboundRequest
from assay.probing.ports import (
    AgentCallFailed,
    Finding,
    ProbeSession,
    Severity,
    VisitedService,
    probe,
)
from assay.probing.probe_client import (
    answer_class,
    ask,
    ask_class,
    failure_class,
    first,
    is_html,
    unknown_url,
)
from assay.probing.session import VisitHttp

ATTEMPTS = 2
"""A single lost packet is not an outage."""

_SILENT = frozenset({"timeout", "unreachable", "cut", "broken", "busy"})


def _weigh_reachable(seen: JsonObject) -> Finding:
    rows = seen["services"]
    services = [row for row in rows if is_object(row)] if is_array(rows) else []
    silent = sorted({str(row["kind"]) for row in services if not row["answers"]})
    if silent:
        return Finding("fail", f"A declared service does not answer: {', '.join(silent)}.")
    return Finding("pass", "Every declared service answers.")


@probe("reachable", "reachability", Severity.MAJOR, weigh=_weigh_reachable)
async def reachable(visit: ProbeSession) -> JsonObject | None:
    """Requires an answer of the declared kind at each endpoint, even a demand for credentials.

    Source: checks.md#reachability.
    """
    if not visit.services:
        return None
    return {
        "services": [
            {"kind": service.kind, "answers": await _answers(visit, service)}
            for service in visit.services
        ]
    }


async def _answers(visit: ProbeSession, visited: VisitedService) -> bool:
    url = visited.service.endpoint
    for attempt in range(ATTEMPTS):
        if visited.kind == "http":
            headers = VisitHttp.FRESH if attempt else {}
            response = answer_class(await ask(visit, OutboundRequest("GET", url, headers)))
        else:
            response = await _dialled(visit, visited)
        if response not in _SILENT:
            return True
    return False


async def _dialled(visit: ProbeSession, visited: VisitedService) -> str:
    dial = visit.dialers.mcp if visited.kind == "mcp" else visit.dialers.a2a
    try:
        async with dial(visited.service.endpoint, visit.http):
            return "ok"
    except AgentCallFailed as error:
        return failure_class(error)


CALLS: Mapping[str, int] = {"http": 4, "a2a": 2}
"""Calls to an HTTP service, the first of them shared with other probes, and to an agent card: proof
of function calls the agent behind the card repeatedly anyway."""

FAST_MS, SLOW_MS = 1000, 3000
"""If half of the answers take less than the first, the service is fast; more than the second, too
slow to build on. Wide classes, so that an agent stays in its class at every visit."""

_GOOD = frozenset({"ok", "redirect", "refused", "closed"})


def _weigh_steady_answers(seen: JsonObject) -> Finding:
    services = [row for row in seen.values() if is_object(row)]
    if any(not row["steady"] for row in services):
        return Finding("fail", "Equal calls are answered differently, or with errors.")
    if any(row["latency"] == "very slow" for row in services):
        return Finding("fail", "Answers take more than three seconds.")
    if any(row["latency"] == "slow" for row in services):
        return Finding("pass", "Equal calls are answered equally, if slowly.")
    return Finding("pass", "Equal calls are answered equally and fast.")


@probe("steady_answers", "reachability", Severity.MAJOR, weigh=_weigh_steady_answers)
async def steady_answers(visit: ProbeSession) -> JsonObject | None:
    """Requires that equal calls to a service get one class of answer, and not a failing one.

    Source: checks.md#reachability.
    """
    urls = {"http": _http_url(visit), "a2a": await _card_url(visit)}
    seen = {kind: await _called(visit, kind, url) for kind, url in urls.items() if url}
    return seen or None


async def _called(visit: ProbeSession, kind: str, url: str) -> JsonObject:
    times_ms: list[float] = []
    classes: Counter[str] = Counter()
    for number in range(CALLS[kind]):
        response = await _call(visit, url, is_shared=kind == "http" and number == 0)
        classes[answer_class(response)] += 1
        times_ms.append(
            response.elapsed_ms if isinstance(response, EgressResponse) else SLOW_MS + 1
        )
    steady = len(classes) == 1 and classes.keys() <= _GOOD
    return {"steady": steady, "latency": _latency(median(times_ms))}


async def _call(visit: ProbeSession, url: str, *, is_shared: bool) -> EgressResponse | Failure:
    if is_shared:
        return await ask(visit, OutboundRequest("GET", url))
    return await ask_class(visit, OutboundRequest("GET", url, VisitHttp.FRESH))


def _latency(p50_ms: float) -> str:
    if p50_ms < FAST_MS:
        return "fast"
    return "slow" if p50_ms <= SLOW_MS else "very slow"


def _http_url(visit: ProbeSession) -> str | None:
    service = first(visit, "http")
    return service.service.endpoint if service else None


async def _card_url(visit: ProbeSession) -> str | None:
    service = first(visit, "a2a")
    if service is None:
        return None
    try:
        async with visit.dialers.a2a(service.service.endpoint, visit.http) as agent:
            return agent.card_url
    except AgentCallFailed:
        return None


def _weigh_honest_status(seen: JsonObject) -> Finding:
    answer = seen["answer"]
    if answer == "ok" and not seen["page"]:
        return Finding("fail", "A path that does not exist is answered with success.")
    if answer == "broken":
        return Finding("fail", "A path that does not exist is answered with a server error.")
    if answer in {"refused", "redirect"}:
        return Finding("pass", "A path that does not exist is refused.")
    return Finding("not_tested", "What is said of an unknown path could not be judged.")


@probe("honest_status", "http", Severity.MINOR, weigh=_weigh_honest_status)
async def honest_status(visit: ProbeSession) -> JsonObject | None:
    """Requires that an unknown path is not answered with success.

    A page for people is accepted: single-page sites answer every path with themselves.

    Source: checks.md#http-services; RFC 9110, section 15.5.5.
    """
    service = first(visit, "http")
    if service is None:
        return None
    response = await ask(
        visit, OutboundRequest("GET", unknown_url(visit, service.service.endpoint))
    )
    return {"answer": answer_class(response), "page": is_html(response)}
