"""Whether wrong, odd and oversized requests are refused cleanly."""

from assay.common.json import JsonObject
from assay.net.egress.ports import OutboundRequest
from assay.probing.ports import Finding, ProbeSession, Severity, probe
from assay.probing.probe_client import (
    MALFORMED_JSON,
    answer_class,
    ask,
    ask_class,
    canary,
    first,
    is_html,
    json_target,
    post_json,
    rpc_url,
)
from assay.probing.session import VisitHttp

METHOD = "PROPFIND"
"""Defined (RFC 4918, section 9.1), so that servers parse it; safe, so that it changes nothing; and
offered only by file shares."""


def _weigh_http_wrong_method(seen: JsonObject) -> Finding:
    answer = seen["answer"]
    if answer == "ok" and not seen["page"]:
        return Finding("fail", "A method that is not offered is answered with success.")
    if answer == "broken":
        return Finding("fail", "A method that is not offered is answered with a server error.")
    if answer == "refused":
        return Finding("pass", "A method that is not offered is refused.")
    return Finding("not_tested", "What is said of a wrong method could not be judged.")


@probe("http_wrong_method", "http", Severity.MINOR, weigh=_weigh_http_wrong_method)
async def http_wrong_method(visit: ProbeSession) -> JsonObject | None:
    """Requires that an unoffered method is refused, neither served nor a crash.

    Source: checks.md#http-services; RFC 9110, section 15.5.6.
    """
    service = first(visit, "http")
    if service is None:
        return None
    response = await ask_class(visit, OutboundRequest(METHOD, service.service.endpoint))
    return {"answer": answer_class(response), "page": is_html(response)}


def _weigh_http_wrong_type(seen: JsonObject) -> Finding:
    answer = seen["answer"]
    if answer in {"broken", "timeout", "cut"}:
        return Finding("fail", "A body of an unknown type makes it crash or hang.")
    if answer == "ok" and seen["documented"]:
        return Finding("fail", "A body of an unknown type is taken where JSON is documented.")
    if answer == "refused":
        return Finding("pass", "A body of an unknown type is refused.")
    return Finding("not_tested", "What it does with a body of an unknown type is not known.")


@probe("http_wrong_type", "http", Severity.MINOR, weigh=_weigh_http_wrong_type)
async def http_wrong_type(visit: ProbeSession) -> JsonObject | None:
    """Requires that a documented JSON operation refuses a body in no known format.

    Source: checks.md#http-services; RFC 9110, section 15.5.16.
    """
    service = first(visit, "http")
    if service is None:
        return None
    url, documented = await json_target(visit, service.service.endpoint)
    headers = {"content-type": "application/x-assay", "accept": "application/json"}
    body = canary(visit, "wrong type").encode()
    response = await ask_class(visit, OutboundRequest("POST", url, headers, body))
    return {"answer": answer_class(response), "documented": documented}


def _weigh_http_malformed_json(seen: JsonObject) -> Finding:
    answer = seen["answer"]
    if answer == "broken":
        return Finding("fail", "A malformed JSON body is answered with a server error.")
    if answer == "ok" and seen["documented"]:
        return Finding("fail", "A malformed JSON body is answered with success.")
    if answer == "refused":
        return Finding("pass", "A malformed JSON body is refused.")
    return Finding("not_tested", "What is said of a malformed body could not be judged.")


@probe("http_malformed_json", "http", Severity.MINOR, weigh=_weigh_http_malformed_json)
async def http_malformed_json(visit: ProbeSession) -> JsonObject | None:
    """Requires a 4xx for a body that is not JSON: no crash, and no success where JSON is read.

    Source: checks.md#http-services; RFC 9110, section 15.5.1.
    """
    service = first(visit, "http")
    if service is None:
        return None
    target, documented = await json_target(visit, service.service.endpoint)
    response = await ask(visit, post_json(target, MALFORMED_JSON))
    return {"answer": answer_class(response), "documented": documented}


OVERSIZED_BODY = b'{"assay": "' + b"a" * (1536 * 1024)
"""1.5 MiB: above the 1 MiB that common proxies accept (nginx `client_max_body_size`), and never
closed, so that it has no effect."""


def _weigh_http_oversized_body(seen: JsonObject) -> Finding:
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


@probe("http_oversized_body", "resilience", Severity.MINOR, weigh=_weigh_http_oversized_body)
async def http_oversized_body(visit: ProbeSession) -> JsonObject | None:
    """Requires that it is refused (413, any 4xx, or a closed connection) without a crash.

    Source: checks.md#http-services, #resilience.
    """
    service = first(visit, "http")
    if service is None:
        return None
    if not visit.may_burden(service.service.endpoint):
        return {"answer": "not_sent", "documented": False, "alive": True}
    target, documented = await json_target(visit, service.service.endpoint)
    response = await ask(visit, post_json(target, OVERSIZED_BODY))
    after = await ask(visit, OutboundRequest("GET", service.service.endpoint, VisitHttp.FRESH))
    return {
        "answer": answer_class(response),
        "documented": documented,
        "alive": answer_class(after) not in {"timeout", "unreachable", "cut"},
    }


ODD_BODIES = (
    b'{"a": "\xff\xfe\xc0", "a": 1, ',
    b'{"n": 1' + b"0" * 5000 + b"e999999, ",
)
"""Invalid UTF-8 and a duplicate name; a number of five thousand digits. None of them ends, so that
they have no effect."""


def _weigh_odd_json_survived(seen: JsonObject) -> Finding:
    answers = seen["answers"]
    response = set(answers) if isinstance(answers, list) else set[object]()
    if response & {"broken", "timeout", "cut"}:
        return Finding("fail", "JSON that parsers stumble over makes it crash or hang.")
    if response & {"refused", "ok"}:
        return Finding("pass", "JSON that parsers stumble over is survived.")
    return Finding("not_tested", "What odd JSON does to it could not be judged.")


@probe("odd_json_survived", "resilience", Severity.MINOR, weigh=_weigh_odd_json_survived)
async def odd_json_survived(visit: ProbeSession) -> JsonObject | None:
    """Requires that invalid bytes and huge numbers neither crash nor hang a service.

    Source: checks.md#resilience.
    """
    http, a2a = first(visit, "http"), first(visit, "a2a")
    url = None
    if http is not None:
        url, _ = await json_target(visit, http.service.endpoint)
    elif a2a is not None:
        url = await rpc_url(visit, a2a)
    if url is None:
        return None
    return {
        "answers": [answer_class(await ask_class(visit, post_json(url, b))) for b in ODD_BODIES]
    }


DEPTH = 1000
"""Source: checks.md#resilience."""

DEEP_BODY = b"[" * DEPTH
"""Never closed: deep for the parser, but without effect."""


def _weigh_deep_json_survived(seen: JsonObject) -> Finding:
    answers = set(seen.values())
    if answers & {"broken", "timeout", "cut"}:
        return Finding("fail", "Deeply nested JSON makes a service crash or hang.")
    if answers & {"refused", "ok"}:
        return Finding("pass", "Deeply nested JSON is survived.")
    return Finding("not_tested", "What deeply nested JSON does could not be judged.")


@probe("deep_json_survived", "resilience", Severity.MINOR, weigh=_weigh_deep_json_survived)
async def deep_json_survived(visit: ProbeSession) -> JsonObject | None:
    """Requires that a thousand open brackets neither crash nor hang a service that reads JSON.

    Source: checks.md#resilience (depth 1,000).
    """
    seen: dict[str, str] = {}
    for kind, url in (await _targets(visit)).items():
        seen[kind] = answer_class(await ask_class(visit, post_json(url, DEEP_BODY)))
    return seen or None


async def _targets(visit: ProbeSession) -> dict[str, str]:
    http, a2a = first(visit, "http"), first(visit, "a2a")
    found: dict[str, str] = {}
    if http is not None:
        found["http"], _ = await json_target(visit, http.service.endpoint)
    if a2a is not None and (url := await rpc_url(visit, a2a)) is not None:
        found["a2a"] = url
    return found
