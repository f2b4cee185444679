"""Does an answer expand without measure? Source: checks.md#response-bounds."""

from dataclasses import replace
from typing import ClassVar, Final

from assay.common.json import JsonObject, JsonValue
from assay.net.egress.ports import EgressError, EgressResponse, OutboundRequest
from assay.probing.conversations import CONFIRMED_FROM
from assay.probing.ports import Finding, Probe, ProbeSession, Severity
from assay.probing.probe_client import LIMITS, ask
from assay.probing.session import VisitHttp

LOOKED_AT = 3
BYTES_MAX = 8 * 1024 * 1024
"""So much that the ratio, and not the size, is what a bomb is cut at."""

_WHOLE = replace(LIMITS, body_bytes_max=BYTES_MAX)


class NoBombs:
    """No service answers with a body that fills its reader's memory.

    A compressed answer that is larger than a visit reads is asked for again, to see whether it is
    large or a bomb; and so is a bomb, as a finding is what is seen twice.
    """

    name: ClassVar[str] = "no_bombs"
    family: ClassVar[str] = "resilience"
    severity: ClassVar[Severity] = Severity.CRITICAL

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
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

    def weigh(self, seen: JsonObject) -> Finding:
        sightings = seen.get("sightings", CONFIRMED_FROM)
        if seen["bombs"] and isinstance(sightings, int) and sightings < CONFIRMED_FROM:
            return Finding("not_tested", "It answered with a decompression bomb once, not again.")
        if seen["bombs"]:
            return Finding("fail", "It answers with a decompression bomb.")
        if seen.get("unread"):
            return Finding("not_tested", "Long answers are read only of hosts that name the agent.")
        return Finding("pass", "Its answers expand as honest ones do.")


def _is_long(reply: EgressResponse) -> bool:
    """Whether a compressed answer was cut for its size, before its ratio could be known."""
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


PROBE: Final[Probe] = NoBombs()
