"""Guards an application: asks the gate about each caller, by the policy of its operator.

The caller names itself by `x-agent-id`, `x-agent-address` and a proof. It chooses nothing else.
If the gate cannot decide, the request is refused, unless the policy says `fail_open`.
"""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from assay_client.client import Assay, AsyncAssay
from assay_client.errors import (
    AllowanceUsedUp,
    AssayError,
    ChallengeRequired,
    ConnectionFailed,
    IdentityMismatch,
    IdentityRequired,
    InvalidInput,
    InvalidRequest,
    NotFound,
    ServiceRefusal,
    SignatureInvalid,
    TooManyRequests,
    Unavailable,
    UnexpectedResponse,
)
from assay_client.flow import Core, Steps
from assay_client.models import ColdStart, Decision, GateOptions
from assay_client.operations import gate_steps

_FIELDS = (
    "x-agent-id",
    "x-agent-address",
    "x-agent-session",
    "x-agent-challenge",
    "x-agent-signature",
    "x-chain",
)
_CALLERS_FAULTS = (
    InvalidRequest,
    IdentityRequired,
    ChallengeRequired,
    SignatureInvalid,
    IdentityMismatch,
    NotFound,
)
"""Refusals that are about the caller and reach it as they are. All others are the operator's."""

_PHRASES = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    429: "Too Many Requests",
    503: "Service Unavailable",
}
_POLICY_VIOLATION = 1008
"""Close code of a refused WebSocket. Source: RFC 6455, section 7.4.1."""


@dataclass(frozen=True)
class GatePolicy:
    """What the application's operator asks of callers; no caller can change it."""

    min_score: float = 65
    ttl_ms: float | None = None
    trust_signals: tuple[str, ...] = ()
    cold_start: ColdStart | None = None
    chains: tuple[str, ...] = ()
    """Chains that a caller may name in `x-chain`; without any, the service's default chain."""
    fail_open: bool = False
    """Whether callers pass without a decision while the service is unreachable or answers 5xx."""
    open_paths: frozenset[str] = frozenset()
    """Exact paths that need no decision, such as `/health`."""


@dataclass(frozen=True)
class Passed:
    """The caller passes. `decision` is None on an open path, and where the gate failed open."""

    decision: Decision | None
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """To add to the response: the session that began, if one did."""


@dataclass(frozen=True)
class Refused:
    """The caller is refused with this response."""

    status: int
    members: Mapping[str, object]
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    @property
    def body(self) -> bytes:
        """Return the body, in the form of the service's errors."""
        return json.dumps(self.members).encode()

    @property
    def all_headers(self) -> Mapping[str, str]:
        """Return the headers with type and length; nothing may store the response."""
        fixed = {"content-type": "application/json", "cache-control": "no-store"}
        return {**fixed, "content-length": str(len(self.body)), **self.headers}


def check(
    core: Core, policy: GatePolicy, headers: Iterable[tuple[str, str]]
) -> Steps[Passed | Refused]:
    """Ask the gate about the caller that sent these headers (names in lower case)."""
    try:
        agent_id, options = _asked(policy, headers)
        decision = yield from gate_steps(core, agent_id, options)
    except AssayError as error:
        return _without_decision(policy, error)
    session = _session(decision.agent_session)
    return Passed(decision, session) if decision.allow else _denied(decision, session)


def _asked(policy: GatePolicy, headers: Iterable[tuple[str, str]]) -> tuple[str, GateOptions]:
    """Return whom to ask about and how; raises `InvalidInput`."""
    found: dict[str, str] = {}
    for name, value in headers:
        if name in _FIELDS:
            if name in found:
                raise InvalidInput(f"The header {name} is there twice.")
            found[name] = value
    chain = found.get("x-chain")
    if chain is not None and chain not in policy.chains:
        raise InvalidInput("The header x-chain names a chain that is not accepted here.")
    agent_id = found.get("x-agent-id") or found.get("x-agent-address")
    if agent_id is None:
        raise _NobodyNamed
    return agent_id, {
        "address": found.get("x-agent-address"),
        "session": found.get("x-agent-session"),
        "challenge": found.get("x-agent-challenge"),
        "signature": found.get("x-agent-signature"),
        "chain": chain,
        "min_score": policy.min_score,
        "ttl_ms": policy.ttl_ms,
        "trust_signals": policy.trust_signals,
        "cold_start": policy.cold_start,
    }


class _NobodyNamed(AssayError):
    """The request names no agent."""


def _session(token: str | None) -> Mapping[str, str]:
    return {} if token is None else {"x-agent-session": token}


def _denied(decision: Decision, session: Mapping[str, str]) -> Refused:
    """Return the 403 of a denial, with the members of a wrapper's (interface.md#wrapper-errors)."""
    names = ("tier", "score", "scoreLow", "scoreHigh", "minScore", "denialReason", "reasons")
    more = {
        name: decision.raw[name]
        for name in (*names, "improve", "problems", "didYouMean")
        if name in decision.raw
    }
    message = f"The agent's score of {decision.score:g} does not pass here."
    return Refused(403, _form("trust_denied", message) | more, session)


def _without_decision(policy: GatePolicy, error: AssayError) -> Passed | Refused:
    """Return what a failed gate call means for the caller. Only its own faults reach it in full."""
    if isinstance(error, _NobodyNamed):
        message = (
            "Send x-agent-address, and x-agent-id for a registered agent, and prove the address."
        )
        return Refused(401, _form("identity_required", message))
    if isinstance(error, InvalidInput):
        return Refused(400, _form("invalid_request", str(error)))
    if isinstance(error, _CALLERS_FAULTS):
        return Refused(error.status, error.body.members, _session(error.agent_session))
    session = _session(error.agent_session if isinstance(error, ServiceRefusal) else None)
    if isinstance(error, (ConnectionFailed, UnexpectedResponse, Unavailable)) and policy.fail_open:
        return Passed(None, session)
    wait_s = error.retry_after_s if isinstance(error, (TooManyRequests, Unavailable)) else None
    if isinstance(error, TooManyRequests) and not isinstance(error, AllowanceUsedUp):
        retry = {"retry-after": f"{wait_s or 1:.0f}"}
        return Refused(
            429, _form("rate_limited", "Too many requests: try again later."), {**session, **retry}
        )
    retry = {"retry-after": f"{wait_s or 5:.0f}"}
    message = "The gate cannot decide about callers now: try again later."
    return Refused(503, _form("gate_unavailable", message), {**session, **retry})


def _form(code: str, message: str) -> dict[str, object]:
    return {"error": code, "code": code, "message": message}


AsgiScope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
AsgiApp = Callable[[AsgiScope, Receive, Send], Awaitable[None]]


def without_claims(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return ASGI headers without `X-Assay-*`: no caller may say what the gate decided."""
    return [h for h in headers if not h[0].lower().replace(b"_", b"-").startswith(b"x-assay-")]


class AsgiGate:
    """ASGI middleware: only callers that pass the gate reach `app`, over HTTP or WebSocket.

    The decision is in `scope["state"]["assay_decision"]`. The application closes the client.
    """

    def __init__(self, app: AsgiApp, client: AsyncAssay, policy: GatePolicy | None = None) -> None:
        self._app, self._client, self._policy = app, client, policy or GatePolicy()

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] not in {"http", "websocket"}:
            await self._app(scope, receive, send)
            return
        scope = {**scope, "headers": without_claims(scope["headers"])}
        outcome: Passed | Refused = Passed(None)
        if scope["path"] not in self._policy.open_paths:
            headers = [(n.decode("latin-1"), v.decode("latin-1")) for n, v in scope["headers"]]
            outcome = await self._client.run(check(self._client.core, self._policy, headers))
        if isinstance(outcome, Refused):
            await _refuse(scope, receive, send, outcome)
            return
        scope["state"] = {**scope.get("state", {}), "assay_decision": outcome.decision}
        await self._app(scope, receive, partial(_send_with, send, outcome.headers))


async def _send_with(
    send: Send, headers: Mapping[str, str], message: MutableMapping[str, Any]
) -> None:
    """Send a message of the application, with these headers where a response starts."""
    if headers and message["type"] in {"http.response.start", "websocket.accept"}:
        message["headers"] = [*message.get("headers", []), *_encoded(headers)]
    await send(message)


async def _refuse(scope: AsgiScope, receive: Receive, send: Send, refused: Refused) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
        return
    headers = _encoded(refused.all_headers)
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": refused.body})


def _encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]


Environ = MutableMapping[str, Any]
StartResponse = Callable[..., Any]
WsgiApp = Callable[[Environ, StartResponse], Iterable[bytes]]


class WsgiGate:
    """WSGI middleware: only callers that pass the gate reach `app`.

    The decision is in `environ["assay.decision"]`.
    """

    def __init__(self, app: WsgiApp, client: Assay, policy: GatePolicy | None = None) -> None:
        self._app, self._client, self._policy = app, client, policy or GatePolicy()

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve one request."""
        outcome = check_environ(self._client, self._policy, environ)
        if isinstance(outcome, Refused):
            status = f"{outcome.status} {_PHRASES.get(outcome.status, 'Refused')}"
            start_response(status, list(outcome.all_headers.items()))
            return [outcome.body]
        environ["assay.decision"] = outcome.decision
        added = list(outcome.headers.items())

        def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            return start_response(status, [*headers, *added], *rest)

        return self._app(environ, start)


def check_environ(client: Assay, policy: GatePolicy, environ: Environ) -> Passed | Refused:
    """Ask the gate about the caller of a WSGI request; removes `X-Assay-*` from the environ."""
    headers = headers_of(environ)
    if environ.get("PATH_INFO", "") in policy.open_paths:
        return Passed(None)
    return client.run(check(client.core, policy, headers))


def headers_of(environ: Environ) -> list[tuple[str, str]]:
    """Return a WSGI request's headers; removes `X-Assay-*` from the environ."""
    names = [name for name in environ if name.startswith("HTTP_")]
    for name in names:
        if name.startswith("HTTP_X_ASSAY_"):
            del environ[name]
    found = ((name, environ[name]) for name in names if name in environ)
    return [(name[5:].replace("_", "-").lower(), str(value)) for name, value in found]
