"""Tries an endpoint as an agent would, without paying.

A path is one of the operator's own wrappers: its upstream is called with its secret and its trust
rule, but no payment is charged and no limit is counted. An absolute URL is called directly.
Source: interface.md#proxy-and-playground-results, #proxy-and-playground.
"""

from dataclasses import dataclass, replace
from typing import Final

from assay.chains.model import Network, is_address
from assay.common.errors import InvalidRequest, Problem
from assay.evaluation.profile import Profiles
from assay.gate.model import Decision, GateInput
from assay.gate.service import Asker, Gate
from assay.key_agents.profile import KeyProfiles
from assay.playground.call import ProxyCaller
from assay.playground.model import ProxyCall, ProxyReply
from assay.registries.subjects import canonical_agent_id
from assay.wrappers.model import RouteMatch, WrapperRoute
from assay.wrappers.route_table import Routes

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
