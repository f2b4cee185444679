"""The gate's raw handler (interface.md#trust-evaluation; conventions.md#gate; ADR 0006).

Order: operator key, agent identity, body, plan, control of the agent, allowance, decision. What is
in memory is answered from memory, whole answers included.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from pydantic import ValidationError

from assay.accounts.api_keys import ApiKeys
from assay.accounts.auth import KEY_SECURITY, operator_by_key
from assay.accounts.model import Scope
from assay.chains.model import Network, is_address
from assay.chains.networks import Networks
from assay.common.clock import Clock
from assay.common.errors import InvalidRequest, MethodNotAllowed, NotFound
from assay.gate.decision_token import DecisionTokens
from assay.gate.model import Decision, GateInput, Stale
from assay.gate.schemas import GateRequest, GateResponse, StaleResponse, gate
from assay.gate.service import Gate, GateCaller
from assay.identity.auth import AGENT_SECURITY, agent_headers, prove_agent
from assay.identity.service import AgentIdentity, agent_address
from assay.identity.web_bot_auth import WebBotAuth
from assay.registries.model import number_asked
from assay.reputation.write_back import FeedbackPublisher
from assay.server.request_context import (
    AsgiScope,
    Receive,
    RequestContext,
    Send,
    answer,
    exchange_of,
    read_body,
)
from assay.server.route import ALWAYS, FORBIDDEN, UNAUTHORIZED, invalid_body
from assay.server.schemas import ErrorResponse

ANSWER_REUSED_S = 30.0
"""Seconds for which one rendered answer is sent again: its token is valid for five minutes."""

_ANSWERS_MAX = 20_000
_DEFAULTS = GateInput()
_CHAIN_CHARS_MAX = 64

_PROOF = {
    "x-agent-challenge": "A challenge that this service issued, instead of a session.",
    "x-agent-signature": "Its signature by the agent's address (EIP-191), 0x and hexadecimal.",
}
"""A call may carry a signed challenge instead of a session (interface.md#agent-identity, step
3)."""
_QUERY_FIELDS_MAX = 50

_Key = tuple[str, float, str | None, str, str, bool, bool, GateInput, int | None]
"""It includes the score: a proven human changes the meaning of the same evaluation."""


class Rendered(NamedTuple):
    """A decision as JSON, and the decision token in it."""

    body: bytes
    token: str


class Renderer:
    """Renders decisions; cached ones once for `ANSWER_REUSED_S`."""

    def __init__(self, tokens: DecisionTokens, clock: Clock) -> None:
        self._tokens = tokens
        self._clock = clock
        self._answers: OrderedDict[_Key, tuple[Rendered, float]] = OrderedDict()

    def render(
        self,
        decision: Decision,
        caller: GateCaller,
        request: GateInput,
        number: int | None = None,
        stale: Stale | None = None,
    ) -> Rendered:
        """Return the decision as JSON; `number` is the sequential id of the request."""
        if not decision.cached or stale is not None:
            return self._render(decision, caller, number, stale)
        now = self._clock.monotonic_s()
        key = (
            decision.evaluation.id,
            decision.score.value,
            decision.cached_reason,
            caller.operator.id,
            caller.agent_address,
            caller.proven,
            caller.is_by_domain,
            request,
            number,
        )
        known = self._answers.get(key)
        if known is not None and known[1] > now:
            return known[0]
        rendered = self._render(decision, caller, number)
        self._answers[key] = (rendered, now + ANSWER_REUSED_S)
        self._answers.move_to_end(key)
        if len(self._answers) > _ANSWERS_MAX:
            self._answers.popitem(last=False)
        return rendered

    def _render(
        self,
        decision: Decision,
        caller: GateCaller,
        number: int | None,
        stale: Stale | None = None,
    ) -> Rendered:
        # A domain's key proves no address: the token then names the agent's registered one.
        by_domain = caller.is_by_domain
        address = decision.subject.wallet if by_domain else caller.agent_address
        token = self._tokens.issue(decision, caller.operator.id, address, self._clock.now())
        shape = gate(
            *(decision, token),
            proven=caller.proven,
            number=number,
            by_domain=by_domain,
        )
        if stale is not None:
            shape = shape.model_copy(update={"stale": StaleResponse.of(stale)})
        return Rendered(shape.model_dump_json(by_alias=True).encode(), token)


@dataclass(frozen=True, slots=True)
class GateHandlerDependencies:
    """What the gate's operation uses."""

    gate: Gate
    keys: ApiKeys
    identity: AgentIdentity
    web_bot_auth: WebBotAuth
    networks: Networks
    tokens: DecisionTokens
    write_back: FeedbackPublisher | None
    """Receives answers from the cache, if `writes_every_answer`."""
    clock: Clock
    body_bytes_max: int
    takes_asserted: bool
    """Whether an agent that names its address is accepted without proof."""
    writes_every_answer: bool

    def write_back_cached(self, decision: Decision) -> None:
        """Write back an answer from the cache, if asked to; evaluations are as they end."""
        subject = decision.subject
        if decision.cached and self.writes_every_answer and self.write_back and subject.agent:
            self.write_back.offer(subject.network.slug, subject.agent_id, decision.evaluation.score)

    def stale_of(self, decision: Decision, exchange: RequestContext) -> Stale | None:
        """Return the oldest part of an answer that could not be read again, or None."""
        found, digest = self.gate.stale_of(decision), exchange.key_digest
        key_s = None if digest is None else self.keys.stale_s(digest)
        if key_s is None or (found is not None and found.age_s >= key_s):
            return found
        return Stale("key", key_s)


class GateHandler:
    """Answers POST /operator/gate/{agentId}."""

    prefix = "/operator/gate/"
    route = "/operator/gate/{agentId}"

    def __init__(self, needs: GateHandlerDependencies) -> None:
        self._needs = needs
        self._renderer = Renderer(needs.tokens, needs.clock)

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Answer one gate call; refusals are raised."""
        agent_id: str = scope["path"][len(self.prefix) :]
        if not agent_id or "/" in agent_id:
            raise NotFound("There is nothing at this path.")
        exchange = exchange_of(scope)
        if scope["method"] != "POST":
            exchange.answer_headers.append((b"allow", b"POST"))
            raise MethodNotAllowed("The gate takes POST.")
        caller = await self._caller(exchange)
        body = await read_body(scope, receive, self._needs.body_bytes_max)
        request = _request(body)
        network = self._network(scope, exchange)
        gatekeeper = self._needs.gate
        decision = gatekeeper.check_cached(caller, network, agent_id, request)
        if decision is None:
            decision = await gatekeeper.check(caller, network, agent_id, request)
        self._needs.write_back_cached(decision)
        number = None if is_address(agent_id) else number_asked(network, agent_id)
        stale = self._needs.stale_of(decision, exchange)
        rendered = self._renderer.render(decision, caller, request, number, stale)
        await answer(send, 200, rendered.body)

    async def _caller(self, exchange: RequestContext) -> GateCaller:
        """Return the operator by its key, and the agent by session, signature or allowed claim."""
        needs = self._needs
        operator = await operator_by_key(needs.keys, exchange, Scope.GATE)
        headers = agent_headers(exchange.headers)
        principal = needs.identity.prove_cached(headers)
        if principal is not None:
            return GateCaller(operator, principal.address, proven=True, proof=principal.contract)
        if needs.takes_asserted and headers.session is None and headers.signature is None:
            return GateCaller(operator, agent_address(headers), proven=False)
        principal = await prove_agent(needs.identity, exchange)
        return GateCaller(operator, principal.address, proven=True, proof=principal.contract)

    def _network(self, scope: AsgiScope, exchange: RequestContext) -> Network:
        """Return the network of `?chain=`, else of `x-chain`, else the default."""
        networks = self._needs.networks
        query: bytes = scope["query_string"]
        if not query and "x-chain" not in exchange.headers:
            return networks.default
        named = last_fields(query).get("chain")
        if named is None:
            named = exchange.headers.get("x-chain", networks.default.slug)
        return networks.by_slug(named[:_CHAIN_CHARS_MAX])


def last_fields(query: bytes) -> Mapping[str, str]:
    """Return a query's fields; the last of equal names counts, as at every other operation."""
    text = query.decode("latin-1")
    try:
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=_QUERY_FIELDS_MAX))
    except ValueError:
        message = f"The query has more than {_QUERY_FIELDS_MAX} fields."
        raise InvalidRequest(message) from None


def _request(body: bytes) -> GateInput:
    if not body:
        return _DEFAULTS
    try:
        return GateRequest.model_validate_json(body).request()
    except ValidationError as error:
        raise invalid_body(error) from None


def operation() -> Mapping[str, Any]:
    """Return the gate's part of the OpenAPI document, from the handler's own types."""
    error = {
        "application/json": {"schema": {"$ref": f"#/components/schemas/{ErrorResponse.__name__}"}}
    }
    statuses = sorted({*ALWAYS, UNAUTHORIZED, FORBIDDEN})
    refusals = {str(s): {"description": "A refusal.", "content": error} for s in statuses}
    shown = {
        "application/json": {"schema": {"$ref": f"#/components/schemas/{GateResponse.__name__}"}}
    }
    body = {
        "application/json": {"schema": {"$ref": f"#/components/schemas/{GateRequest.__name__}"}}
    }
    text = {"type": "string"}
    chain = {"type": "string", "maxLength": _CHAIN_CHARS_MAX}
    optional = {
        ("chain", "query"): (chain, "Slug of the chain; wins over `x-chain`."),
        ("x-chain", "header"): (chain, "Slug of the chain; absent: the default."),
        **{(name, "header"): (text, said) for name, said in _PROOF.items()},
    }
    agent_id = "The agent's id: a token id, a Solana public key, or a key agent's address."
    return {
        "tags": ["Trust"],
        "operationId": "gate",
        "summary": "Gate",
        "description": "Allow or deny, for a service to enforce. A denial is no error.",
        "security": [KEY_SECURITY | AGENT_SECURITY],
        "parameters": [
            {
                "name": "agentId",
                "in": "path",
                "required": True,
                "schema": text,
                "description": agent_id,
            },
            *(
                {"name": n, "in": at, "required": False, "schema": schema, "description": said}
                for (n, at), (schema, said) in optional.items()
            ),
        ],
        "requestBody": {"required": False, "content": body},
        "responses": {"200": {"description": "The decision.", "content": shown}, **refusals},
    }
