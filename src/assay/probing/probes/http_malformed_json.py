"""Is broken JSON refused? Source: checks.md#http-services; RFC 9110, section 15.5.1."""

from typing import ClassVar, Final

from assay.common.json import JsonObject
from assay.probing.ports import Finding, Probe, ProbeSession, Severity
from assay.probing.probe_client import (
    MALFORMED_JSON,
    answer_class,
    ask,
    first,
    json_target,
    post_json,
)


class HttpMalformedJson:
    """A body that is not JSON gets a 4xx: not a crash, and not a success where JSON is read."""

    name: ClassVar[str] = "http_malformed_json"
    family: ClassVar[str] = "http"
    severity: ClassVar[Severity] = Severity.MINOR

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        service = first(visit, "http")
        if service is None:
            return None
        target, documented = await json_target(visit, service.service.endpoint)
        response = await ask(visit, post_json(target, MALFORMED_JSON))
        return {"answer": answer_class(response), "documented": documented}

    def weigh(self, seen: JsonObject) -> Finding:
        answer = seen["answer"]
        if answer == "broken":
            return Finding("fail", "A malformed JSON body is answered with a server error.")
        if answer == "ok" and seen["documented"]:
            return Finding("fail", "A malformed JSON body is answered with success.")
        if answer == "refused":
            return Finding("pass", "A malformed JSON body is refused.")
        return Finding("not_tested", "What is said of a malformed body could not be judged.")


PROBE: Final[Probe] = HttpMalformedJson()
