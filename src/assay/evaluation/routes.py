"""Trust profiles, wallets, snapshots and sandbox runs (interface.md#trust-evaluation)."""

from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Final, TypeAlias

from fastapi import APIRouter, Path, Request

from assay.accounts.auth import Credential
from assay.app import App
from assay.chains.model import is_address, parse_wallet
from assay.common.costs import Cost
from assay.common.errors import InvalidRequest, Problem, TooMany
from assay.common.tasks import both
from assay.evaluation import schemas as wire
from assay.evaluation.behaviour import summary
from assay.evaluation.model import SignalName
from assay.evaluation.schemas_snapshots import SnapshotResponse
from assay.evaluation.schemas_snapshots import snapshot as snapshot_answer
from assay.evaluation.tiers import MIN_SCORE_DEFAULT
from assay.identity.controllers import controls
from assay.identity.model import canonical_address
from assay.liveness.schemas import LivenessResponse, liveness_report
from assay.registries.model import number_asked
from assay.registries.schemas import ADDRESS
from assay.registries.schemas_parameters import AgentId, OnNetwork
from assay.registries.subject import Subject
from assay.server.rate_limits import caller_of, rate_limit
from assay.server.request_context import RequestContext, exchange_of
from assay.server.route import app_of, route

Wallet = Annotated[
    str,
    Path(
        max_length=100,
        description="0x and 40 hexadecimal digits; on Solana a base-58 public key.",
        examples=["0x8004a169fb4a3325136eb29fa0ceb6d2e539a432"],
    ),
]


CredentialOf: TypeAlias = Callable[[str], Credential]

STRANGERS_PART: Final = 2
"""Callers who show nothing share one half of the evaluations of an agent; the rest is left to its
owner and to operators."""


class EvaluationLimits:
    """How often one service evaluates: each evaluation costs the agent real requests.

    Limited per caller and per agent. A caller is an operator where the request has a credential
    of one, else an address.
    """

    def __init__(self, app: App) -> None:
        settings, clock, leases = app.settings, app.clock, app.leases
        per_agent = settings.sandbox_per_agent_minute
        of_strangers = max(1, per_agent // STRANGERS_PART)
        self._app = app
        self._by_caller = rate_limit("sandbox", settings.sandbox_per_minute, clock, leases)
        self._by_agent = rate_limit("sandbox agent", per_agent, clock, leases)
        self._by_strangers = rate_limit("sandbox strangers", of_strangers, clock, leases)
        self.liveness = rate_limit("liveness", settings.sandbox_per_minute, clock, leases)

    async def admit(self, request: Request, subject: Subject) -> None:
        """Count one evaluation of the subject; raises `TooMany`."""
        await self._by_caller.require(_caller(request))
        is_stranger = not await _is_known(self._app, exchange_of(request.scope), subject)
        if is_stranger:
            await self._by_strangers.require(subject.key)
        try:
            await self._by_agent.require(subject.key)
        except TooMany:
            if is_stranger:
                self._by_strangers.give_back(subject.key)
            raise


def _limits_of(request: Request) -> EvaluationLimits:
    return request.app.state.evaluation_limits


@lru_cache(maxsize=64)
def build_router(open_endpoints: frozenset[str]) -> APIRouter:
    """The routes, of which these need no API key (conventions.md#open-endpoints)."""
    router = APIRouter(tags=["Trust"])

    def credential(endpoint: str) -> Credential:
        return Credential.NONE if endpoint in open_endpoints else Credential.OP_KEY

    _declare_agent(router, credential)
    _declare_wallet(router, credential)
    _declare_sandbox(router, credential)
    _declare_liveness(router, credential)
    return router


def _declare_agent(router: APIRouter, credential: CredentialOf) -> None:
    @route(
        router,
        "GET",
        "/operator/agent/{agentId}",
        operation="agent",
        credential=Credential.OP_KEY,
        answers=wire.AgentProfileResponse,
    )
    async def agent(
        request: Request, agent_id: AgentId, network: OnNetwork
    ) -> wire.AgentProfileResponse:
        """The trust profile of a registered agent, recomputable from what it carries."""
        app = app_of(request)
        profile = await app.profiles.profile(network, agent_id)
        why = app.explainer.explain(profile.subject.agent_id, profile.collected, profile.score)
        number = number_asked(network, agent_id)
        return wire.agent_profile(profile, why, MIN_SCORE_DEFAULT, number)

    @route(
        router,
        "GET",
        "/operator/agent/{agentId}/snapshot",
        operation="snapshot",
        credential=credential("snapshot"),
        answers=SnapshotResponse,
    )
    async def snapshot(request: Request, agent_id: AgentId, network: OnNetwork) -> SnapshotResponse:
        """The newest link in the agent's chain of evaluations."""
        found = await app_of(request).profiles.snapshot(network, agent_id)
        number = None if is_address(agent_id) else number_asked(network, agent_id)
        return snapshot_answer(found, number)

    _ = (agent, snapshot)


def _declare_wallet(router: APIRouter, credential: CredentialOf) -> None:
    @route(
        router,
        "GET",
        "/operator/wallet/{wallet}",
        operation="wallet_profile",
        credential=credential("wallet"),
        answers=wire.AgentProfileResponse,
    )
    async def wallet_profile(
        request: Request, wallet: Wallet, network: OnNetwork
    ) -> wire.AgentProfileResponse:
        """The trust profile of the agent a wallet speaks for."""
        app = app_of(request)
        resolved = await app.resolver.resolve(network, parse_wallet(network, wallet, "wallet"))
        profile = await app.profiles.profile(network, resolved.agent_id)
        why = app.explainer.explain(profile.subject.agent_id, profile.collected, profile.score)
        return wire.agent_profile(profile, why, MIN_SCORE_DEFAULT)

    @route(
        router,
        "GET",
        "/operator/resolve-wallet/{wallet}",
        operation="resolve_wallet",
        credential=credential("resolve-wallet"),
        answers=wire.ResolutionResponse,
    )
    async def resolve_wallet(
        request: Request, wallet: Wallet, network: OnNetwork
    ) -> wire.ResolutionResponse:
        """Which agent a wallet speaks for, as owner or as agentWallet."""
        address = parse_wallet(network, wallet, "wallet")
        return wire.resolution(await app_of(request).resolver.resolve(network, address))

    _ = (wallet_profile, resolve_wallet)


async def _is_known(app: App, exchange: RequestContext, subject: Subject) -> bool:
    """Whether an operator asks, or an agent with a session that controls the subject."""
    if exchange.counted_for is not None:
        return True
    address, session = (exchange.headers.get(f"x-agent-{part}") for part in ("address", "session"))
    named = None if address is None else canonical_address(address)
    if named is None or session is None:
        return False
    known = await app.sessions.check(named, session)
    return known is not None and controls(named, subject, known.contract)


def _caller(request: Request) -> str:
    exchange = exchange_of(request.scope)
    return exchange.counted_for or caller_of(exchange.client_address)


async def _evaluate(app: App, subject: Subject) -> wire.SandboxResponse:
    """Evaluate a subject now, and say what was found and what would raise its score."""
    news = await app.evaluator.evaluate(subject, app.settings.sandbox_evaluation_s)
    seen = next((c for c in news.evaluation.collected if c.signal is SignalName.SANDBOX), None)
    told = summary(seen.evidence, app.probes) if seen else {"status": "inconclusive"}
    made = news.evaluation
    found = app.profiles.explain(made)
    why = app.explainer.explain(made.agent_id, made.collected, found)
    return wire.sandbox(subject, news, found, why, told, MIN_SCORE_DEFAULT)


def _declare_sandbox(router: APIRouter, credential: CredentialOf) -> None:
    @route(
        router,
        "POST",
        "/operator/trigger-sandbox/{agentId}",
        operation="trigger_sandbox",
        credential=credential("trigger-sandbox"),
        answers=wire.SandboxResponse,
    )
    async def trigger_sandbox(
        request: Request, agent_id: AgentId, network: OnNetwork
    ) -> wire.SandboxResponse:
        """Evaluate the agent now; answers within 25 seconds."""
        app = app_of(request)
        subject = await app.subjects.find(network, agent_id)
        await _limits_of(request).admit(request, subject)
        if subject.agent is None or network.family != "solana":
            return await _evaluate(app, subject)
        shape, report = await both(_evaluate(app, subject), app.liveness.report(subject))
        return wire.on_solana(shape, report, number_asked(network, agent_id))

    @route(
        router,
        "POST",
        "/operator/trigger-sandbox-key/{agentAddress}",
        operation="trigger_sandbox_key",
        credential=credential("trigger-sandbox-key"),
        answers=wire.SandboxResponse,
    )
    async def trigger_sandbox_key(
        request: Request,
        agent_address: Annotated[str, Path(alias="agentAddress", pattern=ADDRESS)],
        network: OnNetwork,
    ) -> wire.SandboxResponse:
        """Evaluate a key agent now. Beyond the specification's tables."""
        app = app_of(request)
        subject = await app.subjects.find(network, agent_address)
        await _limits_of(request).admit(request, subject)
        if await app.identity.has_proven(subject.agent_id):
            return await _evaluate(app, subject)
        app.costs.require(Cost.UNPROVEN_EVALUATIONS)
        app.costs.charge(Cost.UNPROVEN_EVALUATIONS)
        return await _evaluate(app, subject)

    _ = (trigger_sandbox, trigger_sandbox_key)


def _declare_liveness(router: APIRouter, credential: CredentialOf) -> None:
    @route(
        router,
        "GET",
        "/operator/agent/{agentId}/liveness",
        operation="liveness",
        credential=credential("liveness"),
        answers=LivenessResponse,
    )
    async def liveness(request: Request, agent_id: AgentId, network: OnNetwork) -> LivenessResponse:
        """Whether the services a Solana agent declares answer; asks them now."""
        if network.family != "solana":
            message = "liveness is known of Solana agents only: add chain=solana"
            raise InvalidRequest(message, details=[Problem(("query", "chain"), message)])
        await _limits_of(request).liveness.require(_caller(request))
        number = number_asked(network, agent_id)
        app = app_of(request)
        subject = await app.subjects.find(network, agent_id)
        report = await app.liveness.report(subject)
        return liveness_report(subject, report, number)

    _ = liveness
