"""Trust profiles, wallets, snapshots and sandbox runs (interface.md#trust-evaluation)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Final, TypeAlias

from fastapi import APIRouter, Path, Request

from assay.accounts.auth import api_key, public_within
from assay.accounts.model import Scope
from assay.chains.model import Network, is_address, parse_wallet
from assay.common.clock import Clock
from assay.common.costs import Cost, CostLedger
from assay.common.errors import InvalidRequest, Problem, TooMany
from assay.common.quota_lease import QuotaLease
from assay.common.tasks import both
from assay.evaluation import schemas as wire
from assay.evaluation.behaviour import summary
from assay.evaluation.causes import Explainer
from assay.evaluation.explanations import Explanation
from assay.evaluation.model import SignalName
from assay.evaluation.profile import AgentProfile, Profiles
from assay.evaluation.schemas import SnapshotResponse
from assay.evaluation.schemas import snapshot as snapshot_answer
from assay.evaluation.scoring import MIN_SCORE_DEFAULT
from assay.evaluation.service import Evaluator
from assay.identity.model import canonical_address, controls
from assay.identity.service import AgentIdentity, Sessions
from assay.liveness.schemas import LivenessResponse, liveness_report
from assay.liveness.service import Liveness
from assay.probing.ports import Probe
from assay.registries.model import Subject, number_asked
from assay.registries.schemas_parameters import AgentAddress, AgentId, OnNetwork
from assay.registries.subjects import Subjects, WalletResolver
from assay.server.rate_limits import caller_of, rate_limit
from assay.server.request_context import RequestContext, exchange_of
from assay.server.route import Auth, route, service

Wallet = Annotated[
    str,
    Path(
        max_length=100,
        description="0x and 40 hexadecimal digits; on Solana a base-58 public key.",
        examples=["0x8004a169fb4a3325136eb29fa0ceb6d2e539a432"],
    ),
]


AuthOf: TypeAlias = Callable[[str], Auth]

STRANGERS_PART: Final = 2
"""Anonymous callers share one part in this many of an agent's evaluations; the rest is reserved for
its owner and for operators."""


class EvaluationLimits:
    """Limits how often one service evaluates: each evaluation costs the agent real requests.

    Limited per caller and per agent. A caller is an operator if the request has an operator's
    credential, else an address.
    """

    def __init__(
        self,
        sessions: Sessions,
        clock: Clock,
        quota_lease: QuotaLease | None,
        *,
        per_caller: int,
        per_agent: int,
    ) -> None:
        """Create it; both limits are per minute."""
        of_strangers = max(1, per_agent // STRANGERS_PART)
        self._sessions = sessions
        self._by_caller = rate_limit("sandbox", per_caller, clock, quota_lease)
        self._by_agent = rate_limit("sandbox agent", per_agent, clock, quota_lease)
        self._by_strangers = rate_limit("sandbox strangers", of_strangers, clock, quota_lease)
        self.liveness = rate_limit("liveness", per_caller, clock, quota_lease)

    async def admit(self, request: Request, subject: Subject) -> None:
        """Count one evaluation of the subject; raises `TooMany`."""
        await self._by_caller.require(_caller(request))
        is_stranger = not await _is_known(self._sessions, exchange_of(request.scope), subject)
        if is_stranger:
            await self._by_strangers.require(subject.key)
        try:
            await self._by_agent.require(subject.key)
        except TooMany:
            if is_stranger:
                self._by_strangers.give_back(subject.key)
            raise


@dataclass(frozen=True, slots=True)
class OnDemandEvaluations:
    """The dependencies and the time limit of an evaluation on request."""

    evaluator: Evaluator
    profiles: Profiles
    explainer: Explainer
    probes: Mapping[str, Probe]
    limit_s: float

    async def evaluate(self, subject: Subject) -> wire.SandboxResponse:
        """Evaluate a subject now; return the result and what would raise its score."""
        completed = await self.evaluator.evaluate(subject, self.limit_s)
        made = completed.evaluation
        seen = next((c for c in made.collected if c.signal is SignalName.SANDBOX), None)
        verdict = summary(seen.evidence, self.probes) if seen else {"status": "inconclusive"}
        found = self.profiles.explain(made)
        why = self.explainer.explain(made.agent_id, made.collected, found)
        return wire.sandbox(subject, completed, found, why, verdict, MIN_SCORE_DEFAULT)


@lru_cache(maxsize=64)
def build_router(open_endpoints: frozenset[str]) -> APIRouter:
    """Return the routes.

    Those in `open_endpoints` need no API key (conventions.md#open-endpoints).
    """
    router = APIRouter(tags=["Trust"])

    def auth(endpoint: str) -> Auth:
        declared = public_within if endpoint in open_endpoints else api_key
        return declared(Scope.EVALUATE)

    _declare_agent(router, auth)
    _declare_wallet(router, auth)
    _declare_sandbox(router, auth)
    _declare_liveness(router, auth)
    return router


def _declare_agent(router: APIRouter, auth: AuthOf) -> None:
    @route(
        router,
        "GET",
        "/operator/agent/{agentId}",
        operation="agent",
        auth=api_key(Scope.EVALUATE),
        answers=wire.AgentProfileResponse,
    )
    async def agent(
        request: Request, agent_id: AgentId, network: OnNetwork
    ) -> wire.AgentProfileResponse:
        """Return the trust profile of a registered agent, recomputable from its contents."""
        profile = await service(request, Profiles).profile(network, agent_id)
        why = _why(request, profile)
        number = number_asked(network, agent_id)
        return wire.agent_profile(profile, why, MIN_SCORE_DEFAULT, number)

    @route(
        router,
        "GET",
        "/operator/agent/{agentId}/snapshot",
        operation="snapshot",
        auth=auth("snapshot"),
        answers=SnapshotResponse,
    )
    async def snapshot(request: Request, agent_id: AgentId, network: OnNetwork) -> SnapshotResponse:
        """Return the newest link in the agent's chain of evaluations."""
        found = await service(request, Profiles).snapshot(network, agent_id)
        number = None if is_address(agent_id) else number_asked(network, agent_id)
        return snapshot_answer(found, number)

    _ = (agent, snapshot)


def _declare_wallet(router: APIRouter, auth: AuthOf) -> None:
    @route(
        router,
        "GET",
        "/operator/wallet/{wallet}",
        operation="wallet_profile",
        auth=auth("wallet"),
        answers=wire.AgentProfileResponse,
    )
    async def wallet_profile(
        request: Request, wallet: Wallet, network: OnNetwork
    ) -> wire.AgentProfileResponse:
        """Return the trust profile of the agent that a wallet acts for."""
        resolved = await service(request, WalletResolver).resolve(
            network, parse_wallet(network, wallet, "wallet")
        )
        profile = await service(request, Profiles).profile(network, resolved.agent_id)
        why = _why(request, profile)
        return wire.agent_profile(profile, why, MIN_SCORE_DEFAULT)

    @route(
        router,
        "GET",
        "/operator/resolve-wallet/{wallet}",
        operation="resolve_wallet",
        auth=auth("resolve-wallet"),
        answers=wire.ResolutionResponse,
    )
    async def resolve_wallet(
        request: Request, wallet: Wallet, network: OnNetwork
    ) -> wire.ResolutionResponse:
        """Return the agent that a wallet acts for, as owner or as agentWallet."""
        address = parse_wallet(network, wallet, "wallet")
        return wire.resolution(await service(request, WalletResolver).resolve(network, address))

    _ = (wallet_profile, resolve_wallet)


def _why(request: Request, profile: AgentProfile) -> Explanation:
    explainer = service(request, Explainer)
    return explainer.explain(profile.subject.agent_id, profile.collected, profile.score)


async def _is_known(sessions: Sessions, exchange: RequestContext, subject: Subject) -> bool:
    """Return whether the caller is an operator, or an agent with a session for the subject."""
    if exchange.counted_for is not None:
        return True
    address, session = (exchange.headers.get(f"x-agent-{part}") for part in ("address", "session"))
    named = None if address is None else canonical_address(address)
    if named is None or session is None:
        return False
    known = await sessions.check(named, session)
    return known is not None and controls(named, subject, known.contract)


def _caller(request: Request) -> str:
    exchange = exchange_of(request.scope)
    return exchange.counted_for or caller_of(exchange.client_address)


def _declare_sandbox(router: APIRouter, auth: AuthOf) -> None:
    @route(
        router,
        "POST",
        "/operator/trigger-sandbox/{agentId}",
        operation="trigger_sandbox",
        auth=auth("trigger-sandbox"),
        answers=wire.SandboxResponse,
    )
    async def trigger_sandbox(
        request: Request, agent_id: AgentId, network: OnNetwork
    ) -> wire.SandboxResponse:
        """Evaluate the agent now; answers within 25 seconds."""
        subject = await _admitted(request, network, agent_id)
        running = service(request, OnDemandEvaluations).evaluate(subject)
        if subject.agent is None or network.family != "solana":
            return await running
        shape, report = await both(running, service(request, Liveness).report(subject))
        return wire.on_solana(shape, report, number_asked(network, agent_id))

    @route(
        router,
        "POST",
        "/operator/trigger-sandbox-key/{agentAddress}",
        operation="trigger_sandbox_key",
        auth=auth("trigger-sandbox-key"),
        answers=wire.SandboxResponse,
    )
    async def trigger_sandbox_key(
        request: Request,
        agent_address: AgentAddress,
        network: OnNetwork,
    ) -> wire.SandboxResponse:
        """Evaluate a key agent now. Beyond the specification's tables."""
        subject = await service(request, Subjects).find(network, agent_address)
        await service(request, EvaluationLimits).admit(request, subject)
        if not await service(request, AgentIdentity).has_proven(subject.agent_id):
            costs = service(request, CostLedger)
            costs.require(Cost.UNPROVEN_EVALUATIONS)
            costs.charge(Cost.UNPROVEN_EVALUATIONS)
        return await service(request, OnDemandEvaluations).evaluate(subject)

    _ = (trigger_sandbox, trigger_sandbox_key)


async def evaluate_now(request: Request, network: Network, agent_id: str) -> None:
    """Evaluate an agent as the open operation does, within its limits, for a page that shows it."""
    subject = await _admitted(request, network, agent_id)
    await service(request, OnDemandEvaluations).evaluate(subject)


async def _admitted(request: Request, network: Network, agent_id: str) -> Subject:
    subject = await service(request, Subjects).find(network, agent_id)
    await service(request, EvaluationLimits).admit(request, subject)
    return subject


def _declare_liveness(router: APIRouter, auth: AuthOf) -> None:
    @route(
        router,
        "GET",
        "/operator/agent/{agentId}/liveness",
        operation="liveness",
        auth=auth("liveness"),
        answers=LivenessResponse,
    )
    async def liveness(request: Request, agent_id: AgentId, network: OnNetwork) -> LivenessResponse:
        """Check now whether the services a Solana agent declares answer."""
        if network.family != "solana":
            message = "liveness is known of Solana agents only: add chain=solana"
            raise InvalidRequest(message, details=[Problem(("query", "chain"), message)])
        await service(request, EvaluationLimits).liveness.require(_caller(request))
        number = number_asked(network, agent_id)
        subject = await service(request, Subjects).find(network, agent_id)
        report = await service(request, Liveness).report(subject)
        return liveness_report(subject, report, number)

    _ = liveness
