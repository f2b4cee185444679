"""Is JSON that parsers stumble over survived? Source: checks.md#resilience."""

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

BODIES = (
    b'{"a": "\xff\xfe\xc0", "a": 1, ',
    b'{"n": 1' + b"0" * 5000 + b"e999999, ",
)
"""Invalid UTF-8 and a name twice; a number of five thousand digits. None of them ends, so that
nobody could act on one."""


class OddJsonSurvived:
    """Bytes that are no text and numbers beyond reason crash or hang nothing."""

    name: ClassVar[str] = "odd_json_survived"
    family: ClassVar[str] = "resilience"
    severity: ClassVar[Severity] = Severity.MINOR

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        http, a2a = first(visit, "http"), first(visit, "a2a")
        url = None
        if http is not None:
            url, _ = await json_target(visit, http.service.endpoint)
        elif a2a is not None:
            url = await rpc_url(visit, a2a)
        if url is None:
            return None
        return {
            "answers": [answer_class(await ask_class(visit, post_json(url, b))) for b in BODIES]
        }

    def weigh(self, seen: JsonObject) -> Finding:
        answers = seen["answers"]
        response = set(answers) if isinstance(answers, list) else set[object]()
        if response & {"broken", "timeout", "cut"}:
            return Finding("fail", "JSON that parsers stumble over makes it crash or hang.")
        if response & {"refused", "ok"}:
            return Finding("pass", "JSON that parsers stumble over is survived.")
        return Finding("not_tested", "What odd JSON does to it could not be judged.")


PROBE: Final[Probe] = OddJsonSurvived()
