"""Calls a target for an operator, or tries an endpoint as an agent would, without paying.

Calls a target for an operator through the egress guard.

Source: interface.md#blocked-addresses.

A path is one of the operator's own wrappers: its upstream is called with its secret and its trust
rule, but no payment is charged and no limit is counted. An absolute URL is called directly.
Source: interface.md#proxy-and-playground-results, #proxy-and-playground.
"""

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import ceil
from typing import Final

from assay.accounts.allowance import require
from assay.accounts.model import Feature, Operator
from assay.chains.model import Network, is_address
from assay.common.egress_budget import EgressUse, egress_use
from assay.common.errors import InvalidRequest, Problem
from assay.evaluation.profile import Profiles
from assay.gate.model import Decision, GateInput
from assay.gate.service import Asker, Gate
from assay.key_agents.profile import KeyProfiles
from assay.net.egress.credentials import REQUEST_FIELDS, OwnCredentials, via_mark
from assay.net.egress.ports import (
    EgressClient,
    EgressError,
    EgressResponse,
    Failure,
    Limits,
    OutboundRequest,
)
from assay.net.egress.url import EgressPolicy, RefusedUrl, parse_target
from assay.playground.model import (
    HEADER_CHARS_MAX,
    HEADERS_MAX,
    METHODS,
    EgressBudgetSpent,
    ProxyCall,
    ProxyFailed,
    ProxyReply,
    ProxyResult,
)
from assay.registries.subjects import canonical_agent_id
from assay.wrappers.model import RouteMatch, WrapperRoute
from assay.wrappers.route_table import Routes

LIMITS: Final = Limits(connect_s=5.0, total_s=20.0, body_bytes_max=1024 * 1024)

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
_VALUE = re.compile(r"[\t\x20-\x7e\xa0-\xff]*")
_DECODED: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})
"""Headers that no longer describe a body after it was decoded and read to its end."""

_SAID: Final = {
    Failure.NAME: "The target's name could not be resolved.",
    Failure.CONNECT: "The target could not be connected to.",
    Failure.TLS: "The target's certificate does not hold.",
    Failure.TIMEOUT: "The target did not answer in time.",
    Failure.PROTOCOL: "The target did not answer with HTTP.",
}


class ProxyCaller:
    """Sends operators' requests to addresses that they name, under our own name.

    The target sees the caller in `User-Agent` and `Via`. It receives neither fields reserved for a
    proxy or us, nor any credential of ours (`net.egress.credentials`).
    """

    def __init__(
        self, http: EgressClient, egress: EgressPolicy, credentials: OwnCredentials, address: str
    ) -> None:
        """Create it; `address` is this service's own."""
        self._http = http
        self._egress = egress
        self._credentials = credentials
        self._named = {
            "user-agent": f"Assay-Proxy/1 (calls made for an operator; {address})",
            "via": f"1.1 {via_mark(address).decode()}",
        }

    def check(self, asked: ProxyCall, field: str = "targetUrl") -> None:
        """Refuse a request that cannot be sent, before any look-up or request.

        `field` is the address's name in a refusal. Raises `InvalidRequest`.
        """
        found = _problems(asked)
        target = parse_target(asked.url, self._egress)
        if isinstance(target, RefusedUrl):
            found.append(Problem(("body", field), target.why))
        if found:
            raise InvalidRequest("The request cannot be sent like this.", details=found[:20])

    async def call(
        self,
        operator_id: str,
        asked: ProxyCall,
        field: str = "targetUrl",
        added: Mapping[str, str] | None = None,
    ) -> ProxyReply:
        """Return the target's answer, whatever its status; redirects are left to the operator.

        `added` are headers of ours, with lower-case names; they replace the operator's. The call
        counts in the egress budget of the target's host, of which an operator may use at most a
        quarter; an answer is cut when the budget is used up. Raises `InvalidRequest` like `check`,
        also for a name that resolves to an internal address, `EgressBudgetSpent` and `ProxyFailed`.
        """
        self.check(asked, field)
        body = (asked.body or "").encode()
        headers = self._headers(asked.headers) | self._named | dict(added or {})
        outgoing = OutboundRequest(asked.method, self._url(asked.url), headers, body)
        try:
            with egress_use(EgressUse(account=operator_id)):
                reply = await self._http.send(outgoing, LIMITS)
        except EgressError as error:
            if error.failure is Failure.REFUSED_ADDRESS:
                details = [Problem(("body", field), "this address is not called")]
                raise InvalidRequest("The address is not called.", details=details) from error
            if error.failure is Failure.BUDGET:
                raise EgressBudgetSpent(
                    "This service has sent the target's host what it may in a minute: try later.",
                    detail=error.detail,
                    retry_after_s=max(1, ceil(error.retry_s)),
                ) from error
            said = _SAID[error.failure]
            raise ProxyFailed(said, detail=error.detail, reason=error.failure.value) from error
        return _reply(reply)

    def _headers(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return those headers of an operator that are forwarded, by lower-case names."""
        raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in given.items()]
        passed = [header for header in raw if REQUEST_FIELDS.passes(header[0])]
        kept = self._credentials.headers(passed)
        return {name.decode(): value.decode("latin-1") for name, value in kept}

    def _url(self, url: str) -> str:
        """Return the address without credentials of ours in its query."""
        base, mark, query = url.partition("#")[0].partition("?")
        if not mark:
            return url
        kept = self._credentials.query(query)
        return base if kept is None else f"{base}?{kept}"


class Proxy:
    """The proxy of the Pro plan."""

    def __init__(self, caller: ProxyCaller, gate: Gate, upgrade_url: str) -> None:
        self._caller = caller
        self._gate = gate
        self._upgrade_url = upgrade_url

    async def call(
        self, operator: Operator, network: Network, agent_id: str, asked: ProxyCall
    ) -> ProxyResult:
        """Return the target's answer and the agent's grade.

        Raises `PlanRequired`, `InvalidRequest`, `AgentNotFound`, `ChainUnavailable`,
        `EvidenceUnavailable` and `ProxyFailed`.
        """
        require(operator.plan, Feature.PROXY, self._upgrade_url)
        self._caller.check(asked)
        known = canonical_agent_id(network, agent_id)
        decision = self._gate.assess_cached(network, known, GateInput())
        if decision is None:
            asker = Asker(operator.id)
            decision = await self._gate.assess(network, known, GateInput(), asker)
        return ProxyResult(await self._caller.call(operator.id, asked), decision)


def _problems(asked: ProxyCall) -> list[Problem]:
    found: list[Problem] = []
    if asked.method not in METHODS:
        found.append(Problem(("body", "method"), f"must be one of {', '.join(sorted(METHODS))}"))
    if len(asked.headers) > HEADERS_MAX:
        found.append(Problem(("body", "headers"), f"are more than {HEADERS_MAX}"))
    for name, value in asked.headers.items():
        if (
            not _NAME.fullmatch(name)
            or len(value) > HEADER_CHARS_MAX
            or not _VALUE.fullmatch(value)
        ):
            found.append(Problem(("body", "headers", name[:100]), "is no header that can be sent"))
    if asked.body and any("\ud800" <= char <= "\udfff" for char in asked.body):
        found.append(Problem(("body", "body"), "is not Unicode text"))
    return found


def _reply(reply: EgressResponse) -> ProxyReply:
    headers: dict[str, str] = {}
    for name, value in reply.headers:
        if name not in _DECODED:
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
    # A truncated text may end within a character; base64 would hide its readable part.
    errors = "ignore" if reply.truncated else "strict"
    try:
        body, encoding = reply.body.decode("utf-8", errors), "utf-8"
    except UnicodeDecodeError:
        body, encoding = base64.b64encode(reply.body).decode(), "base64"
    return ProxyReply(
        status=reply.status,
        headers=headers,
        body=body,
        encoding="utf-8" if encoding == "utf-8" else "base64",
        truncated=reply.truncated,
        elapsed_ms=round(reply.elapsed_ms, 3),
    )


PATH_CHARS_MAX: Final = 8192


@dataclass(frozen=True, slots=True)
class PlaygroundTrial:
    """What to try: `call.url` is a path of an own wrapper or an absolute URL."""

    agent_id: str
    call: ProxyCall


@dataclass(frozen=True, slots=True)
class PlaygroundResult:
    """The answer, or None if the agent did not pass the wrapper's trust rule."""

    reply: ProxyReply | None
    decision: Decision
    min_score: float | None


@dataclass(frozen=True, slots=True)
class DryRun:
    """What would be called, and what is known of the agent; nothing was sent to the target."""

    agent_id: str
    chain: str
    tier: str | None
    route: str | None
    price: int | None
    """Micro-dollars a call; None if it is not a wrapper."""
    registered: bool
    onchain_score: float
    feedback_count: int


@dataclass(frozen=True, slots=True)
class PlaygroundDependencies:
    """Dependencies of the playground."""

    caller: ProxyCaller
    gate: Gate
    routes: Routes
    profiles: Profiles
    key_profiles: KeyProfiles


class Playground:
    """Tries endpoints for the operator that owns them."""

    def __init__(self, needs: PlaygroundDependencies) -> None:
        self._needs = needs

    async def call(
        self, operator_id: str, network: Network, trial: PlaygroundTrial
    ) -> PlaygroundResult:
        """Call it. Raises like `Proxy.call`, and `WrapperNotFound` for a path without a wrapper."""
        gate = self._needs.gate
        agent_id = canonical_agent_id(network, trial.agent_id)
        found = await self._route(operator_id, trial.call)
        route = None if found is None else found.route
        if route is None:
            self._needs.caller.check(trial.call, "path")
        request = GateInput() if route is None else route.gate_request
        decision = gate.assess_cached(network, agent_id, request)
        if decision is None:
            decision = await gate.assess(network, agent_id, request, Asker(operator_id))
        min_score = None
        if route is not None and route.config.trust_enabled:
            min_score = route.config.min_score
            if not decision.allow:
                return PlaygroundResult(None, decision, min_score)
        call, added = trial.call, {}
        if found is not None:
            call = replace(call, url=_forwarded_url(call, found))
            added = _added(found.route, decision)
        reply = await self._needs.caller.call(operator_id, call, "path", added)
        return PlaygroundResult(reply, decision, min_score)

    async def dry_run(self, operator_id: str, network: Network, trial: PlaygroundTrial) -> DryRun:
        """Return what would be called, without calling it or running a sandbox.

        Raises `InvalidRequest`, `AgentNotFound` and `ChainUnavailable`.
        """
        agent_id = canonical_agent_id(network, trial.agent_id)
        path = _own_path(trial.call)
        config = None
        if path is not None:
            config = await self._needs.routes.registered(operator_id, trial.call.method, path)
        price = None if config is None else config.price
        if is_address(agent_id):
            known = (agent_id, network.slug)
            key = await self._needs.key_profiles.profile(agent_id)
            tier = key.grade.tier if key.grade else None
            to = key.grade.route if key.grade else None
            return DryRun(*known, tier, to, price, config is not None, 0.0, 0)
        profile = await self._needs.profiles.profile(network, agent_id)
        return DryRun(
            profile.subject.agent_id,
            network.slug,
            profile.grade.tier,
            profile.grade.route,
            price,
            config is not None,
            profile.average_score,
            profile.feedback_count,
        )

    async def _route(self, operator_id: str, call: ProxyCall) -> RouteMatch | None:
        """Return the operator's own wrapper for a path; None for an absolute URL."""
        path = _own_path(call)
        if path is None:
            return None
        return await self._needs.routes.find(operator_id, call.method, path)


def _own_path(call: ProxyCall) -> str | None:
    """Return the path of an own wrapper; None for an absolute URL. Raises `InvalidRequest`."""
    url = call.url
    if not url.startswith("/"):
        if "://" not in url:
            said = "must be an absolute URL, or a path of yours that begins with /"
            raise InvalidRequest("There is no such target.", details=[_problem(said)])
        return None
    if len(url) > PATH_CHARS_MAX or not url.isascii() or not url.isprintable() or " " in url:
        said = "must be a percent-encoded path"
        raise InvalidRequest("There is no such target.", details=[_problem(said)])
    return url.partition("#")[0].partition("?")[0]


def _forwarded_url(call: ProxyCall, found: RouteMatch) -> str:
    """Return the URL to which the wrapper would forward it."""
    _, mark, query = call.url.partition("#")[0].partition("?")
    return f"{found.route.config.target_url}{found.path}{mark}{query}"


def _added(route: WrapperRoute, decision: Decision) -> dict[str, str]:
    """Return the headers that the wrapper would add: the caller's, and the upstream's secret."""
    added = {"x-assay-agent": decision.subject.agent_id, "x-assay-tier": decision.grade.tier}
    if route.upstream_header is not None:
        name, value = route.upstream_header
        added[name.decode("ascii").lower()] = value.decode("latin-1")
    return added


def _problem(said: str) -> Problem:
    return Problem(("body", "path"), said)
