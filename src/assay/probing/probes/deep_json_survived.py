"""Is JSON nested beyond reason survived? Source: facts, "resilience" (depth 1,000)."""

from typing import ClassVar, Final

from assay.common.json import JsonObject
from assay.probing.ports import Finding, Probe, ProbeSession, Severity
from assay.probing.probe_client import (
    answer_class,
    ask_class,
    first,
    json_target,
    post_json,
    rpc_url,
)

DEPTH = 1000
"""Source: facts, "resilience"."""

BODY = b"[" * DEPTH
"""Never closed: deep for the parser, and nothing anybody could act on."""


class DeepJsonSurvived:
    """A thousand open brackets do not crash or hang a service that reads JSON."""

    name: ClassVar[str] = "deep_json_survived"
    family: ClassVar[str] = "resilience"
    severity: ClassVar[Severity] = Severity.MINOR

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        seen: dict[str, str] = {}
        for kind, url in (await _targets(visit)).items():
            seen[kind] = answer_class(await ask_class(visit, post_json(url, BODY)))
        return seen or None

    def weigh(self, seen: JsonObject) -> Finding:
        answers = set(seen.values())
        if answers & {"broken", "timeout", "cut"}:
            return Finding("fail", "Deeply nested JSON makes a service crash or hang.")
        if answers & {"refused", "ok"}:
            return Finding("pass", "Deeply nested JSON is survived.")
        return Finding("not_tested", "What deeply nested JSON does could not be judged.")


async def _targets(visit: ProbeSession) -> dict[str, str]:
    http, a2a = first(visit, "http"), first(visit, "a2a")
    found: dict[str, str] = {}
    if http is not None:
        found["http"], _ = await json_target(visit, http.service.endpoint)
    if a2a is not None and (url := await rpc_url(visit, a2a)) is not None:
        found["a2a"] = url
    return found


PROBE: Final[Probe] = DeepJsonSurvived()
