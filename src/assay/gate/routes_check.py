"""The gate for reverse proxies: the status is the decision (conventions.md#gate-check).

A proxy forwards the caller's headers, adds the operator's key, and lets a request through on 200
alone. All but the key and the policy's name is the caller's, and hostile.
"""

import hashlib
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Request

from assay.accounts.api_keys import ApiKeys, ValidKey
from assay.accounts.auth import KEY_SECURITY, actor_of, bearer, dashboard_token
from assay.accounts.model import ApiKeyNotFound, InvalidCredentials, Operator, Scope
from assay.chains.networks import Networks
from assay.common.cache import BoundedMap, SingleFlight
from assay.common.errors import InvalidRequest, NotFound, ServiceError, Unavailable
from assay.gate.decision import Denied
from assay.gate.model import Decision, GateInput, GatePolicy
from assay.gate.routes import GateHandlerDependencies, Renderer, last_fields
from assay.gate.schemas import GatePoliciesRequest, GatePoliciesResponse, GateResponse
from assay.gate.service import Gate, GateCaller
from assay.identity.auth import AGENT_SECURITY, agent_headers, send_session
from assay.identity.http_signatures import SignedRequest
from assay.identity.model import AgentHeaders, AgentPrincipal, IdentityRequired
from assay.identity.service import agent_address
from assay.identity.web_bot_auth import is_domain_signed
from assay.registries.model import subject_key
from assay.registries.subjects import named_agent_id
from assay.server.errors import envelope
from assay.server.rate_limits import RateLimit
from assay.server.request_context import (
    CHECK_PREFIX,
    JSON,
    AsgiScope,
    Receive,
    RequestContext,
    Send,
    answer,
    exchange_of,
)
from assay.server.route import read, route, service
from assay.server.schemas import ErrorResponse

REPEATED_S: Final = 30.0
"""Seconds for which the same proof gets the same session, and for which a caller counts once: a
proxy that fetches the reasons of a refusal asks twice."""

DEFAULT: Final = "default"
"""The policy of `/gate/check`. A key without a policy of this name has the gate's defaults."""

_PROOFS_MAX = 20_000
_COUNTED_MAX = 50_000
_POINTS = re.compile(r"\d{1,3}(\.\d{1,12})?", re.ASCII)
_POINTS_MAX = 100.0

_CALLERS_FAULT = (InvalidRequest, NotFound)
"""What is 400 or 404 elsewhere: a proxy would take these for a failure of the service."""


class PolicyNotFound(NotFound):
    """The key has no policy of this name."""

    code = "gate_policy_not_found"


class GateCheckHandler:
    """Answers every method at `/gate/check` and `/gate/refusal`, and below.

    200 means allow, and nothing else does. A caller's fault is 401 or 403, never a status that a
    proxy takes for a failure of the service. `/gate/refusal` answers alike, but never 200.
    """

    prefix = CHECK_PREFIX
    route = "/gate/check/{policy}"

    def __init__(self, needs: GateHandlerDependencies, cold: RateLimit) -> None:
        self._needs = needs
        self._cold = cold
        self._renderer = Renderer(needs.tokens, needs.clock)
        self._proofs: BoundedMap[str, tuple[AgentPrincipal, float]] = BoundedMap(_PROOFS_MAX)
        self._proving: SingleFlight[AgentPrincipal] = SingleFlight()
        self._counted: BoundedMap[tuple[str, ...], float] = BoundedMap(_COUNTED_MAX)

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Answer one check; the body of the request is not read."""
        del receive
        exchange = exchange_of(scope)
        kind, name = _asked(scope["path"])
        try:
            decision, caller, request = await self._decide(scope, exchange, kind, name)
            stale = self._needs.stale_of(decision, exchange)
            if stale is not None:
                said = f"{stale.what}; age={int(stale.age_s)}"
                exchange.answer_headers.append((b"x-assay-stale", said.encode()))
            _let_in(decision, kind, name)
        except ServiceError as error:
            exchange.answer_headers.append((b"x-assay-error", error.code.encode()))
            if isinstance(challenge := error.extras.get("challenge"), str):
                exchange.answer_headers.append((b"x-agent-challenge", challenge.encode()))
            if isinstance(error, PolicyNotFound) or not isinstance(error, _CALLERS_FAULT):
                raise
            await answer(send, 403, envelope(error, exchange.request_id))
            return
        rendered = self._renderer.render(decision, caller, request, stale=stale)
        headers = [
            JSON,
            (b"x-assay-agent", decision.evaluation.subject_key.encode()),
            (b"x-assay-tier", decision.grade.tier.encode()),
            (b"x-assay-score", f"{decision.score.value:g}".encode()),
            (b"x-assay-route", decision.grade.route.encode()),
            (b"x-assay-identity-proven", b"true" if caller.proven else b"false"),
            (b"x-assay-decision-token", rendered.token.encode()),
        ]
        await answer(send, 200, rendered.body, headers)

    async def _key(self, scope: AsgiScope, exchange: RequestContext) -> ValidKey:
        """Return the operator's key. Raises `InvalidCredentials` and `InsufficientScope`."""
        if sum(name == b"authorization" for name, _ in scope["headers"]) > 1:
            # A caller's own key must not replace the one that a careless proxy adds to it.
            raise InvalidCredentials("Only one Authorization header is accepted here.")
        found = await self._needs.keys.find(
            bearer(exchange.headers), Scope.GATE, exchange.key_digest
        )
        exchange.account = found.operator
        return found

    async def _decide(
        self, scope: AsgiScope, exchange: RequestContext, kind: str, name: str
    ) -> tuple[Decision, GateCaller, GateInput]:
        """Return the decision on the caller's agent, counted once within `REPEATED_S`."""
        key = await self._key(scope, exchange)
        policy = _policy(key, name)
        headers, fields, needs = exchange.headers, _query_fields(scope), self._needs
        by_domain = bool(policy.authorities) and is_domain_signed(
            agent_headers(headers), headers.get("x-agent-id")
        )
        asked = headers.get("x-agent-id") or (None if by_domain else fields.get("agentId"))
        caller = None if by_domain else await self._caller(exchange, key.operator)
        request = _raised(policy.input, headers.get("x-min-score"), fields.get("minScore"))
        queried = None if by_domain else fields.get("chain")  # a domain does not sign the query
        named = headers.get("x-chain") or queried or policy.chain
        network = needs.networks.by_slug(named[:64]) if named else needs.networks.default
        agent_id = named_agent_id(network, asked, caller.agent_address if caller else None)
        if agent_id is None:
            raise IdentityRequired("Send x-agent-id: on this chain an address is no agent.")
        if caller is None:
            signed = SignedRequest(scope["headers"], policy.authorities, {})
            # `/gate/refusal` lets nobody in, and is asked after the check with the same signature.
            subject = subject_key(network, agent_id)
            proof = await needs.web_bot_auth.prove(signed, subject, spends=kind == "check")
            caller = GateCaller(key.operator, proof.origin, proven=True, proof=proof)
        once = (key.operator.id, name, caller.agent_address, network.slug, agent_id)
        metered = self._counts(once)
        try:
            decision = needs.gate.check_cached(
                caller, network, agent_id, request, metered=metered
            ) or await needs.gate.check(caller, network, agent_id, request, metered=metered)
        except BaseException:
            if metered:
                self._counted.pop(once)
            raise
        if decision.is_throttled:
            await self._cold.require(f"{key.operator.id} {decision.subject.key}")
        needs.write_back_cached(decision)
        return decision, caller, request

    def _counts(self, once: tuple[str, ...]) -> bool:
        """Return whether this check counts against the allowance, and remember that it does."""
        now = self._needs.clock.monotonic_s()
        if (until := self._counted.get(once)) is not None and now < until:
            return False
        self._counted.put(once, now + REPEATED_S)
        return True

    async def _caller(self, exchange: RequestContext, operator: Operator) -> GateCaller:
        """Return the agent by session, signature or allowed claim; send a new session with it."""
        identity, headers = self._needs.identity, agent_headers(exchange.headers)
        presented = headers.session is not None or headers.signature is not None
        if self._needs.takes_asserted and not presented:
            return GateCaller(operator, agent_address(headers), proven=False)
        principal = identity.prove_cached(headers)
        if principal is None and headers.signature is None:
            principal = await identity.prove(headers)
        if principal is None:
            principal = await self._signed(operator, headers)
        send_session(exchange, principal)
        return GateCaller(operator, principal.address, proven=True, proof=principal.contract)

    async def _signed(self, operator: Operator, headers: AgentHeaders) -> AgentPrincipal:
        """Redeem a signed challenge; the same one again is the same session for `REPEATED_S`."""
        identity, clock = self._needs.identity, self._needs.clock
        digest = hashlib.sha256(repr((operator.id, headers)).encode()).hexdigest()
        known = self._proofs.get(digest)
        if known is None or known[1] <= clock.monotonic_s():
            principal = await self._proving.run(digest, lambda: identity.prove(headers))
            if principal.new_session is not None:
                self._proofs.put(digest, (principal, clock.monotonic_s() + REPEATED_S))
            return principal
        if (session := known[0].new_session) is not None:  # it may have been revoked
            await identity.prove(AgentHeaders(headers.address, session.token, None, None))
        return known[0]


def _asked(path: str) -> tuple[str, str]:
    """Return `check` or `refusal`, and the policy's name; what follows is the caller's path.

    Raises `NotFound`.
    """
    kind, slash, rest = path.removeprefix(GateCheckHandler.prefix).partition("/")
    if kind not in {"check", "refusal"}:
        raise NotFound("There is nothing at this path.")
    return kind, rest.partition("/")[0] if slash else DEFAULT


def _query_fields(scope: AsgiScope) -> Mapping[str, str]:
    """Return the query's fields; without an agent's id in it, it belongs to the API behind."""
    query: bytes = scope["query_string"]
    return last_fields(query) if b"agentId=" in query else {}


def _let_in(decision: Decision, kind: str, name: str) -> None:
    """Raise `Denied`, or `Unavailable` to a caller that is let in but asks for its refusal."""
    if not decision.allow:
        raise Denied.of(decision, f"the policy {name}")
    if kind == "refusal":
        raise Unavailable("The agent is let in now: repeat the request.", retry_after_s=1)


def _policy(key: ValidKey, name: str) -> GatePolicy:
    """Return the key's policy. Raises `PolicyNotFound`."""
    found = _policies(key.gate_policies).policies.get(name)
    if found is not None:
        return found.policy()
    if name != DEFAULT:
        raise PolicyNotFound("This API key has no gate policy of this name.")
    return GatePolicy()


@lru_cache(maxsize=4096)
def _policies(stored: str) -> GatePoliciesRequest:
    return GatePoliciesRequest.model_validate_json(stored or '{"policies": {}}')


def _raised(policy: GateInput, *asked: str | None) -> GateInput:
    """Return the policy's input with the highest `minScore` that is asked, never a lower one."""
    highest = policy.min_score
    for points in filter(None, asked):
        if _POINTS.fullmatch(points) is None or float(points) > _POINTS_MAX:
            raise InvalidRequest("The least score must be a number from 0 to 100.")
        highest = max(highest, float(points))
    if highest == policy.min_score:
        return policy
    return GateInput(highest, policy.ttl_ms, policy.signals, policy.cold_start)


# -- the policies of a key ------------------------------------------------------------------------

router = APIRouter(tags=["Accounts and keys"])

_KeyId = Annotated[str, Path(alias="keyId", max_length=64, description="Id of the API key.")]


@route(
    router,
    "GET",
    "/operator/keys/{keyId}/gate-policies",
    operation="list_gate_policies",
    auth=dashboard_token,
    answers=GatePoliciesResponse,
)
async def list_gate_policies(request: Request, key_id: _KeyId) -> GatePoliciesResponse:
    """List the policies that proxies with this API key may check."""
    operator: Operator = request.state.principal
    for key in await service(request, ApiKeys).list(operator.id):
        if key.id == key_id:
            return GatePoliciesResponse.of(_policies(key.gate_policies))
    raise ApiKeyNotFound("You have no API key of this id.")


@route(
    router,
    "PUT",
    "/operator/keys/{keyId}/gate-policies",
    operation="set_gate_policies",
    auth=dashboard_token,
    body=GatePoliciesRequest,
    answers=GatePoliciesResponse,
)
async def set_gate_policies(request: Request, key_id: _KeyId) -> GatePoliciesResponse:
    """Replace the policies that proxies with this API key may check, at once."""
    body = read(GatePoliciesRequest, await request.body())
    operator: Operator = request.state.principal
    networks, gate = service(request, Networks), service(request, Gate)
    for policy in body.policies.values():
        gate.require_signals(operator, policy.request())
        if policy.chain is not None:
            networks.by_slug(policy.chain, "body")
    shown = GatePoliciesResponse.of(body)
    keys, actor = service(request, ApiKeys), actor_of(request)
    await keys.set_gate_policies(operator.id, key_id, shown.stored(), actor)
    return shown


def operations() -> dict[str, Any]:
    """Return the checks' paths of the OpenAPI document: GET stands for every method."""
    paths = {
        "/gate/check": ("check_gate", "Check", False),
        "/gate/check/{policy}": ("check_gate_policy", "Check a policy", True),
        "/gate/refusal/{policy}": ("explain_refusal", "Explain a refusal", True),
    }
    return {path: {"get": _operation(*what)} for path, what in paths.items()}


def _operation(operation_id: str, summary: str, has_policy: bool) -> dict[str, Any]:  # noqa: FBT001
    refused = {
        "application/json": {"schema": {"$ref": f"#/components/schemas/{ErrorResponse.__name__}"}}
    }
    shown = {
        "application/json": {"schema": {"$ref": f"#/components/schemas/{GateResponse.__name__}"}}
    }
    given = {
        "x-agent-id": "The agent; without it the key agent of x-agent-address.",
        "x-chain": "The chain of the agent.",
        "x-min-score": "Points from 0 to 100; they raise the policy's `minScore`.",
        "x-agent-challenge": "A challenge that the agent signed, instead of a session.",
        "x-agent-signature": "The signature over the challenge.",
        "signature-agent": "The domain whose key signed the request (Web Bot Auth).",
        "signature-input": "What it signed, for one of the policy's `authorities`.",
        "signature": "That signature.",
    }
    text = {"type": "string"}
    policy = {
        "name": "policy",
        "in": "path",
        "required": True,
        "schema": text,
        "description": "A policy of the API key; the rest of the path is ignored.",
    }
    named = [
        {"name": name, "in": "header", "required": False, "schema": text, "description": said}
        for name, said in given.items()
    ]
    refusals = {
        status: {"description": "Do not let the request through.", "content": refused}
        for status in ("401", "403", "404", "429", "500", "503")
    }
    return {
        "tags": ["Trust"],
        "operationId": operation_id,
        "summary": summary,
        "description": "For a reverse proxy: let the request through on 200 alone. Every method is"
        " answered alike.",
        "security": [KEY_SECURITY | AGENT_SECURITY],
        "parameters": [policy, *named] if has_policy else named,
        "responses": {"200": {"description": "Allow.", "content": shown}, **refusals},
    }
