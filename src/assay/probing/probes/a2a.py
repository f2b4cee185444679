"""Whether an A2A agent keeps to the protocol: card, answers, errors."""

import json
from collections.abc import Iterable
from dataclasses import replace

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.net.egress.ports import EgressResponse
from assay.probing.ports import AgentCallFailed, Finding, ProbeSession, Severity, probe
from assay.probing.probe_client import (
    MALFORMED_RPC,
    answer_class,
    ask,
    called_at,
    canary,
    decode,
    failure_class,
    first,
    host_of,
    interfaces,
    post_json,
    rpc_url,
    same_site,
    speaks,
)

_TEXTS = ("name", "description", "version")

_LISTS = ("defaultInputModes", "defaultOutputModes", "skills")

_SKILL_TEXTS = ("id", "name", "description")

_PASSING = frozenset({"busy", "closed", "timeout", "unreachable"})


def _weigh_a2a_card_valid(seen: JsonObject) -> Finding:
    card, wrong = seen["card"], seen["wrong"]
    if card in _PASSING:
        return Finding("not_tested", "The agent card could not be had.")
    if card != "read":
        return Finding("fail", "There is no agent card that the official client can read.")
    if is_array(wrong) and wrong:
        listed = ", ".join(str(field) for field in wrong)
        return Finding("fail", f"The agent card lacks or misstates: {listed}.")
    return Finding("pass", "The agent card follows the specification.")


@probe("a2a_card_valid", "a2a", Severity.MAJOR, weigh=_weigh_a2a_card_valid)
async def a2a_card_valid(visit: ProbeSession) -> JsonObject | None:
    """Passes if the official client reads the card, and required fields exist with their types.

    Both forms in use are accepted: 1.0 (`supportedInterfaces`) and 0.3 (`url`).

    Source: A2A 1.0, section 4.4.1 (AgentCard).
    """
    service = first(visit, "a2a")
    if service is None:
        return None
    try:
        async with visit.dialers.a2a(service.service.endpoint, visit.http) as agent:
            return {"card": "read", "wrong": sorted(set(_wrong(agent.card)))}
    except AgentCallFailed as error:
        return {"card": failure_class(error), "wrong": []}


def _wrong(card: JsonObject) -> Iterable[str]:
    yield from (key for key in _TEXTS if not _is_text(card.get(key)))
    yield from (key for key in _LISTS if not is_array(card.get(key)))
    if not is_object(card.get("capabilities")):
        yield "capabilities"
    declared = interfaces(card)
    if not declared or not all(host_of(url) for binding, url in declared if binding != "GRPC"):
        yield "supportedInterfaces"
    skills = card.get("skills")
    if is_array(skills) and not all(_is_skill(skill) for skill in skills):
        yield "skills"


def _is_skill(skill: JsonValue) -> bool:
    return (
        is_object(skill)
        and all(_is_text(skill.get(key)) for key in _SKILL_TEXTS)
        and is_array(skill.get("tags"))
    )


def _is_text(value: JsonValue) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _weigh_a2a_card_own_site(seen: JsonObject) -> Finding:
    if seen["own_site"]:
        return Finding("pass", "The agent card points at its own site.")
    return Finding("fail", "The agent card points at somebody else's site only.")


@probe("a2a_card_own_site", "a2a", Severity.MINOR, weigh=_weigh_a2a_card_own_site)
async def a2a_card_own_site(visit: ProbeSession) -> JsonObject | None:
    """Passes if an interface is on the card's host, or on one above or below it.

    The specification allows a card to point elsewhere. But then the card's host speaks for another
    party's service, and no caller can tell a partner from a victim.

    Source: checks.md#a2a-services.
    """
    service = first(visit, "a2a")
    if service is None:
        return None
    try:
        async with visit.dialers.a2a(service.service.endpoint, visit.http) as agent:
            declared = interfaces(agent.card)
            urls = [one for named, url in declared for one in called_at(named, url) or [url]]
            return {"own_site": any(same_site(url, agent.card_url) for url in urls)}
    except AgentCallFailed:
        return None


GREETING = "Hello, my reference is {word}. What can you do for me? Please use one sentence."


def _weigh_a2a_answers(seen: JsonObject) -> Finding:
    answer = seen["answer"]
    if answer in {"no_grpc", "no_callback"}:
        return Finding("not_tested", "This service has no means to talk to the agent.")
    if answer in {"ok", "own_error"}:
        return Finding("pass", "A message to the agent is answered.")
    if answer in {"closed", "busy"}:
        return Finding("not_tested", "The agent wants credentials, payment or time first.")
    return Finding("fail", "A message to the agent gets no valid A2A answer.")


@probe("a2a_answers", "a2a", Severity.MAJOR, weigh=_weigh_a2a_answers)
async def a2a_answers(visit: ProbeSession) -> JsonObject | None:
    """Passes if a greeting through the official client gets a message or a task.

    The content is not judged, an earlier answered message of this visit suffices, and a refusal by
    one of A2A's own protocol errors (such as "content type not supported") is an answer.

    Source: checks.md#a2a-services; A2A 1.0, section 3.1.1 (Send Message).
    """
    service = first(visit, "a2a")
    if service is None:
        return None
    try:
        async with visit.dialers.a2a(service.service.endpoint, visit.http) as agent:
            if not speaks(agent):
                return None
            if not agent.has_answered:
                await agent.send_text(GREETING.format(word=canary(visit, "greeting")))
    except AgentCallFailed as error:
        return {"answer": _refined(error)}
    return {"answer": "ok"}


def _refined(error: AgentCallFailed) -> str:
    """Classify like `failure_class`, but separate A2A's own errors (-32001 to -32099)."""
    if error.code is not None and -32099 <= error.code <= -32001:  # noqa: PLR2004 - A2A, 5.4
        return "own_error"
    return failure_class(error)


REQUESTS: dict[str, tuple[bytes, frozenset[int]]] = {
    "malformed": (MALFORMED_RPC, frozenset({-32700})),
    "invalid": (b'{"jsonrpc": "2.0", "id": 2}', frozenset({-32600})),
    "unknown": (
        b'{"jsonrpc": "2.0", "id": 3, "method": "assay/no-such-method", "params": {}}',
        frozenset({-32601}),
    ),
}
"""The requests, and the correct error of each."""


def _weigh_a2a_jsonrpc_errors(seen: JsonObject) -> Finding:
    wrong = sorted(name for name, verdict in seen.items() if verdict == "wrong")
    if wrong:
        listed = ", ".join(wrong)
        return Finding("fail", f"JSON-RPC requests without the right error: {listed}.")
    if "right" in seen.values():
        return Finding("pass", "Bad JSON-RPC requests get the errors that belong to them.")
    return Finding("not_tested", "The agent wants credentials, payment or time first.")


@probe("a2a_jsonrpc_errors", "a2a", Severity.MINOR, weigh=_weigh_a2a_jsonrpc_errors)
async def a2a_jsonrpc_errors(visit: ProbeSession) -> JsonObject | None:
    """Requires -32700 for malformed, -32600 for invalid, -32601 for unknown methods.

    The HTTP status does not matter. A plain 4xx before JSON-RPC is reached (a proxy, a framework's
    own parser) is accepted.

    Source: JSON-RPC 2.0, section 5.1; A2A 1.0, section 9.5.
    """
    service = first(visit, "a2a")
    url = None if service is None else await rpc_url(visit, service)
    if url is None:
        return None
    return {
        name: _verdict(await ask(visit, post_json(url, body)), right)
        for name, (body, right) in REQUESTS.items()
    }


def _verdict(response: object, right: frozenset[int]) -> str:
    if not isinstance(response, EgressResponse):
        return "wrong"
    document = decode(response.body)
    error = document.get("error") if is_object(document) else None
    if is_object(error) and "code" in error and answer_class(response) not in {"closed", "busy"}:
        return "right" if error["code"] in right else "wrong"
    answer = answer_class(response)
    if answer in {"closed", "busy"}:
        return "closed"
    return "right" if answer == "refused" else "wrong"


METHODS = {"GetTask": "1.0", "tasks/get": "0.3"}
"""Methods and their versions; an agent supports one of them."""

NOT_FOUND = -32001


def _weigh_a2a_unknown_task(seen: JsonObject) -> Finding:
    if "made up" in seen.values():
        return Finding("fail", "It answers for a task that nobody gave it.")
    if "not found" in seen.values():
        return Finding("pass", "A task that nobody gave it is not found.")
    return Finding("not_tested", "What it says of an unknown task could not be judged.")


@probe("a2a_unknown_task", "a2a", Severity.MINOR, weigh=_weigh_a2a_unknown_task)
async def a2a_unknown_task(visit: ProbeSession) -> JsonObject | None:
    """Requires that a request for a nonexistent task is refused, not answered with a task.

    Source: A2A 1.0, section 9.4.3 (and 7.3 of 0.3): TaskNotFoundError.
    """
    service = first(visit, "a2a")
    url = None if service is None else await rpc_url(visit, service)
    if url is None:
        return None
    return {method: await _asked(visit, url, method) for method in METHODS}


async def _asked(visit: ProbeSession, url: str, method: str) -> str:
    params = {"id": canary(visit, "unknown task")}
    body = json.dumps({"jsonrpc": "2.0", "id": 4, "method": method, "params": params})
    request = post_json(url, body.encode())
    headers = {**request.headers, "a2a-version": METHODS[method]}
    response = await ask(visit, replace(request, headers=headers))
    document = decode(response.body) if isinstance(response, EgressResponse) else None
    if not is_object(document):
        return "unclear"
    error = document.get("error")
    if is_object(error):
        return "not found" if error.get("code") == NOT_FOUND else "unclear"
    return "made up" if document.get("result") is not None else "unclear"
