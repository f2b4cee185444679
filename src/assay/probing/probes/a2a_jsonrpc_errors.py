"""Do bad JSON-RPC requests get the right errors?

Source: JSON-RPC 2.0, section 5.1; A2A 1.0, section 9.5.
"""

from typing import ClassVar, Final

from assay.common.json import JsonObject, is_object
from assay.net.egress.ports import EgressResponse
from assay.probing.ports import Finding, Probe, ProbeSession, Severity
from assay.probing.probe_client import (
    MALFORMED_RPC,
    answer_class,
    ask,
    decode,
    first,
    post_json,
    rpc_url,
)

REQUESTS: dict[str, tuple[bytes, frozenset[int]]] = {
    "malformed": (MALFORMED_RPC, frozenset({-32700})),
    "invalid": (b'{"jsonrpc": "2.0", "id": 2}', frozenset({-32600})),
    "unknown": (
        b'{"jsonrpc": "2.0", "id": 3, "method": "assay/no-such-method", "params": {}}',
        frozenset({-32601}),
    ),
}
"""What is sent, and the error that belongs to it."""


class A2aJsonrpcErrors:
    """Malformed gets -32700, invalid -32600, an unknown method -32601, with any HTTP status.

    A plain 4xx before JSON-RPC is reached (a proxy, a framework's own parser) is let pass.
    """

    name: ClassVar[str] = "a2a_jsonrpc_errors"
    family: ClassVar[str] = "a2a"
    severity: ClassVar[Severity] = Severity.MINOR

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        service = first(visit, "a2a")
        url = None if service is None else await rpc_url(visit, service)
        if url is None:
            return None
        return {
            name: _verdict(await ask(visit, post_json(url, body)), right)
            for name, (body, right) in REQUESTS.items()
        }

    def weigh(self, seen: JsonObject) -> Finding:
        wrong = sorted(name for name, verdict in seen.items() if verdict == "wrong")
        if wrong:
            listed = ", ".join(wrong)
            return Finding("fail", f"JSON-RPC requests without the right error: {listed}.")
        if "right" in seen.values():
            return Finding("pass", "Bad JSON-RPC requests get the errors that belong to them.")
        return Finding("not_tested", "The agent wants credentials, payment or time first.")


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


PROBE: Final[Probe] = A2aJsonrpcErrors()
