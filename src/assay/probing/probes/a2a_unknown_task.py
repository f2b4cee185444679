"""Is a task nobody gave it refused?

Source: A2A 1.0, section 9.4.3 (and 7.3 of 0.3): TaskNotFoundError.
"""

import json
from dataclasses import replace
from typing import ClassVar, Final

from assay.common.json import JsonObject, is_object
from assay.net.egress.ports import EgressResponse
from assay.probing.ports import Finding, Probe, ProbeSession, Severity
from assay.probing.probe_client import ask, canary, decode, first, post_json, rpc_url

METHODS = {"GetTask": "1.0", "tasks/get": "0.3"}
"""Methods with the version they are of; an agent speaks one of them."""

NOT_FOUND = -32001


class A2aUnknownTask:
    """Asked for a task that does not exist, it says so instead of making one up."""

    name: ClassVar[str] = "a2a_unknown_task"
    family: ClassVar[str] = "a2a"
    severity: ClassVar[Severity] = Severity.MINOR

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        service = first(visit, "a2a")
        url = None if service is None else await rpc_url(visit, service)
        if url is None:
            return None
        return {method: await _asked(visit, url, method) for method in METHODS}

    def weigh(self, seen: JsonObject) -> Finding:
        if "made up" in seen.values():
            return Finding("fail", "It answers for a task that nobody gave it.")
        if "not found" in seen.values():
            return Finding("pass", "A task that nobody gave it is not found.")
        return Finding("not_tested", "What it says of an unknown task could not be judged.")


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


PROBE: Final[Probe] = A2aUnknownTask()
