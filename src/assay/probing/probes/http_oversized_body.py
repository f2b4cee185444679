"""Is a body of unreasonable size survived? Source: checks.md#http-services, #resilience."""

from typing import ClassVar, Final

from assay.common.json import JsonObject
from assay.net.egress.ports import OutboundRequest
from assay.probing.ports import Finding, Probe, ProbeSession, Severity
from assay.probing.probe_client import answer_class, ask, first, json_target, post_json
from assay.probing.session import VisitHttp

BODY = b'{"assay": "' + b"a" * (1536 * 1024)
"""1.5 MiB: above the 1 MiB that common proxies take (nginx `client_max_body_size`), and never
closed, so that no reader can act on it."""


class HttpOversizedBody:
    """It is refused (413, or any 4xx, or a closed connection), and the service lives on."""

    name: ClassVar[str] = "http_oversized_body"
    family: ClassVar[str] = "resilience"
    severity: ClassVar[Severity] = Severity.MINOR

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        service = first(visit, "http")
        if service is None:
            return None
        if not visit.may_burden(service.service.endpoint):
            return {"answer": "not_sent", "documented": False, "alive": True}
        target, documented = await json_target(visit, service.service.endpoint)
        response = await ask(visit, post_json(target, BODY))
        after = await ask(visit, OutboundRequest("GET", service.service.endpoint, VisitHttp.FRESH))
        return {
            "answer": answer_class(response),
            "documented": documented,
            "alive": answer_class(after) not in {"timeout", "unreachable", "cut"},
        }

    def weigh(self, seen: JsonObject) -> Finding:
        answer = seen["answer"]
        if answer == "not_sent":
            return Finding("not_tested", "Large bodies are sent only to hosts that name the agent.")
        if not seen["alive"]:
            return Finding("fail", "After a large body the service no longer answers.")
        if answer in {"broken", "timeout"}:
            return Finding("fail", "A large body makes the service crash or hang.")
        if answer == "ok" and seen["documented"]:
            return Finding("fail", "A large malformed body is answered with success.")
        if answer in {"refused", "cut"}:
            return Finding("pass", "A large body is refused.")
        return Finding("not_tested", "What is said of a large body could not be judged.")


PROBE: Final[Probe] = HttpOversizedBody()
