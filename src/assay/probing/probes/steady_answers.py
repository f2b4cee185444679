"""Is the same question answered the same way? Source: checks.md#reachability."""

from collections import Counter
from collections.abc import Mapping
from statistics import median
from typing import ClassVar, Final

from assay.common.json import JsonObject, is_object
from assay.net.egress.ports import EgressResponse, Failure, OutboundRequest
from assay.probing.ports import AgentCallFailed, Finding, Probe, ProbeSession, Severity
from assay.probing.probe_client import answer_class, ask, ask_class, first
from assay.probing.session import VisitHttp

CALLS: Mapping[str, int] = {"http": 4, "a2a": 2}
"""Calls put to an HTTP service, of which the first is one that others made too, and to an agent
card: proof of function asks the agent behind the card again and again as it is."""

FAST_MS, SLOW_MS = 1000, 3000
"""Half of the answers sooner than this are fast; later than that, too slow to build on. Wide
classes, so that the same agent falls into the same one at every visit."""

_GOOD = frozenset({"ok", "redirect", "refused", "closed"})


class SteadyAnswers:
    """Equal calls to a service get one class of answer, and not a failing one."""

    name: ClassVar[str] = "steady_answers"
    family: ClassVar[str] = "reachability"
    severity: ClassVar[Severity] = Severity.MAJOR

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        urls = {"http": _http_url(visit), "a2a": await _card_url(visit)}
        seen = {kind: await _called(visit, kind, url) for kind, url in urls.items() if url}
        return seen or None

    def weigh(self, seen: JsonObject) -> Finding:
        services = [row for row in seen.values() if is_object(row)]
        if any(not row["steady"] for row in services):
            return Finding("fail", "Equal calls are answered differently, or with errors.")
        if any(row["latency"] == "very slow" for row in services):
            return Finding("fail", "Answers take more than three seconds.")
        if any(row["latency"] == "slow" for row in services):
            return Finding("pass", "Equal calls are answered equally, if slowly.")
        return Finding("pass", "Equal calls are answered equally and fast.")


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


PROBE: Final[Probe] = SteadyAnswers()
