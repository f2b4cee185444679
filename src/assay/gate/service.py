"""The gate: identifies caller and agent, checks control and allowance, and decides.

Source: interface.md#trust-evaluation.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from assay.accounts.allowance import Allowance, require
from assay.accounts.model import Feature, Operator
from assay.chains.model import Network
from assay.common.cache import BoundedMap, SingleFlight
from assay.common.clock import Clock
from assay.common.egress_budget import (
    EGRESS_BUDGET,
    BudgetSpent,
    EgressUse,
    UseClass,
    current_use,
    egress_use,
)
from assay.common.errors import InvalidRequest, Problem, ServiceError
from assay.evaluation.explanations import Explanation
from assay.evaluation.model import (
    EVALUATION_QUOTA,
    INDEXING,
    UNFINISHED,
    Evaluation,
    EvaluationCompleted,
    Score,
    SignalName,
    SignalResult,
)
from assay.evaluation.ports import EvaluationStore
from assay.evaluation.schedule import GateAsks
from assay.evaluation.scoring import ScoringPolicy
from assay.evaluation.service import EVER, Evaluator
from assay.evaluation.visits import BY_GATE
from assay.gate.decision import decide, reusable_until
from assay.gate.model import Decision, GateInput, Reuse
from assay.identity.model import AgentProof, DomainProof, require_control
from assay.registries.model import Subject, subject_key
from assay.registries.ports import OVER_BUDGET
from assay.registries.subjects import Subjects, canonical_agent_id

CONTROLLERS_MAX_AGE_S: Final = 30.0
"""Seconds for which the addresses that speak for an agent are remembered. A sold agent's former
owner passes for at most this long. The chain reader's own cache has the same bound."""

_REMEMBERED_MAX = 50_000
"""Subjects; one with a large registration file counts as several."""

REUSED_MAX_S: Final = 15.0
"""Seconds for which an answer from an evaluation older than asked for is repeated before a new
try."""

_CUT_REMEMBERED_MAX = 1_000
"""Evaluations without room in a budget's shared class, by account and subject."""

REQUESTS_REMEMBERED = 32
"""Different requests (threshold, window, signals) whose decision on one agent is kept."""

OWNED_S: Final = 1.0
OWNED_MAX: Final = 5
"""Longest search for a denied key agent's registered agents, and most that are named."""

_PAID_SIGNALS = {
    SignalName.PERSONHOOD: Feature.PERSONHOOD,
    SignalName.ATTESTATION: Feature.ATTESTATION,
    SignalName.SELF: Feature.SELF,
}
"""Source: conventions.md#signals-and-score."""


Explain = Callable[[str, Sequence[SignalResult], Score, frozenset[SignalName]], Explanation]
"""Returns why a score is not higher, from evidence, the score over the selected signals, and those
signals."""


@dataclass(frozen=True, slots=True)
class GateDependencies:
    """What the gate is built from."""

    subjects: Subjects
    evaluator: Evaluator
    store: EvaluationStore
    allowance: Allowance
    rules: ScoringPolicy
    offered: frozenset[SignalName]
    """Signals that are available."""
    upgrade_url: str
    evaluation_s: float
    clock: Clock
    explain: Explain | None = None
    """Explains denials; without it they have the score's own reasons."""
    quota: Callable[[str], Awaitable[BudgetSpent | None]] | None = None
    """Counts an evaluation by its subject's key, or says that there were enough; None: no quota."""
    asks: GateAsks | None = None
    """Remembers which operators rely on which agents: those are visited before others."""


@dataclass(frozen=True, slots=True)
class GateCaller:
    """The caller: the operator, and the agent's address with how far it is proven."""

    operator: Operator
    agent_address: str
    proven: bool
    proof: AgentProof | None = None
    """What gave the proof, if the key of the address did not."""

    @property
    def is_by_domain(self) -> bool:
        """Return whether the key of the agent's domain proved it; `agent_address` is its origin."""
        return isinstance(self.proof, DomainProof)


def nobody(subject: Subject) -> bool:
    """Return False: the caller controls no agent."""
    del subject
    return False


@dataclass(frozen=True, slots=True)
class Asker:
    """The party for which an unmetered decision is made."""

    account: str
    """The account that causes it: its costs to others count for the account."""
    controls: Callable[[Subject], bool] = nobody
    """Returns whether somebody has proven control of the subject; called before anything is sent to
    it. It may raise a refusal: then nothing is sent."""


@dataclass(slots=True)
class _Remembered:
    """A subject, and the decisions of its evaluation by request."""

    subject: Subject
    key: str
    """The subject's own key; it may also be remembered by a sequential id."""
    fresh_until_s: float
    evaluation: Evaluation
    decisions: dict[GateInput, Decision] = field(default_factory=dict[GateInput, Decision])


class Gate:
    """Allows or denies. Only answered decisions count against the allowance."""

    def __init__(self, needs: GateDependencies) -> None:
        self._needs = needs
        self._memory: BoundedMap[str, _Remembered] = BoundedMap(_REMEMBERED_MAX, _weight)
        self._evaluations = 0
        self._flights: SingleFlight[tuple[Evaluation, Reuse | None]] = SingleFlight()
        self._cut: BoundedMap[str, tuple[Evaluation, Reuse]] = BoundedMap(_CUT_REMEMBERED_MAX)

    def check_cached(
        self,
        caller: GateCaller,
        network: Network,
        agent_id: str,
        request: GateInput,
        *,
        metered: bool = True,
    ) -> Decision | None:
        """Return the decision if everything it takes is in memory, else None. No I/O, no waiting.

        Raises the same refusals as `check`. What is not `metered` does not count against the
        allowance.
        """
        decision = self.assess_cached(network, canonical_agent_id(network, agent_id), request)
        if decision is None:
            return None
        self.require_signals(caller.operator, request)
        require_control(caller.agent_address, decision.subject, caller.proof)
        if metered and self._needs.allowance.reserve_cached(caller.operator) is None:
            return None
        return self._recorded(caller, decision)

    def assess_cached(self, network: Network, agent_id: str, request: GateInput) -> Decision | None:
        """Return the unmetered decision from memory, else None. No I/O, waiting or refusals.

        `agent_id` is canonical; the caller must check control with `require_control`.
        """
        return self.recall(subject_key(network, agent_id), request)

    def recall(self, key: str, request: GateInput) -> Decision | None:
        """Return it by the subject's key, for callers that ask again and again."""
        known = self._memory.get(key)
        if known is None or known.fresh_until_s <= self._needs.clock.monotonic_s():
            return None
        if known.key != key and self._memory.get(known.key) is not known:
            return None  # by its number the earlier state is remembered
        decision = known.decisions.get(request)
        if decision is None or decision.expires_at <= self._needs.clock.now():
            return None
        return decision

    async def assess(
        self, network: Network, agent_id: str, request: GateInput, asker: Asker
    ) -> Decision:
        """Return the unmetered decision; evaluate if there is nothing to reuse.

        Raises `AgentNotFound`, `ChainUnavailable`, what `asker.controls` raises, and
        `EvidenceUnavailable`.
        """
        subject = await self._found(network, agent_id, asker.account)
        has_control = asker.controls(subject)
        with egress_use(_use_for(subject, asker.account, has_control=has_control)):
            return await self._decision_on(subject, request, agent_id)

    async def check(
        self,
        caller: GateCaller,
        network: Network,
        agent_id: str,
        request: GateInput,
        *,
        metered: bool = True,
    ) -> Decision:
        """Return the decision; evaluate if there is nothing to reuse.

        What is not `metered` does not count against the allowance.

        Raises, in this order: `InvalidRequest` (id, signal not offered), `PlanRequired`,
        `AgentNotFound` / `ChainUnavailable`, `IdentityMismatch`, `MonthlyLimitExceeded`,
        `EvidenceUnavailable`.
        """
        needs = self._needs
        agent_id = canonical_agent_id(network, agent_id)
        self.require_signals(caller.operator, request)
        account = caller.operator.id
        subject = await self._found(network, agent_id, account)
        require_control(caller.agent_address, subject, caller.proof)
        reservation = await needs.allowance.reserve(caller.operator) if metered else None
        try:
            # If a bare header is accepted, it is accepted here too: else no gate of that service
            # could ever use the reserved half. The bounds by account and agent still apply.
            with egress_use(_use_for(subject, account, has_control=True)):
                return self._recorded(caller, await self._decision_on(subject, request, agent_id))
        except BaseException:
            if reservation is not None:
                needs.allowance.release(reservation)
            raise

    def _recorded(self, caller: GateCaller, decision: Decision) -> Decision:
        """Return the decision, and record that its operator asks for the agent's visits."""
        asks = self._needs.asks
        if asks is not None:
            asks.note(caller.operator.id, decision.subject, allowed=decision.allow)
        return decision

    def evaluated(self, completed: EvaluationCompleted) -> None:
        """Replace the remembered evaluation by a newer one at once; a listener."""
        self._evaluations += 1
        if (known := self._memory.get(completed.evaluation.subject_key)) is not None:
            known.evaluation = completed.evaluation
            known.decisions.clear()

    def personhood_changed(self, subject_key: str) -> None:
        """Decide again by what is known now."""
        self._evaluations += 1
        self._memory.pop(subject_key)

    def require_signals(self, operator: Operator, request: GateInput) -> None:
        """Raise `PlanRequired` for a paid signal, then `InvalidRequest` for one not offered."""
        for name in sorted(request.signals & _PAID_SIGNALS.keys()):
            require(operator.plan, _PAID_SIGNALS[name], self._needs.upgrade_url, "signal")
        if missing := sorted(request.signals - self._needs.offered):
            offered = ", ".join(sorted(self._needs.offered))
            message = f"this service does not offer the signal {missing[0]}; it offers: {offered}"
            raise InvalidRequest(
                "A requested trust signal is not offered here.",
                details=[Problem(("body", "trustSignals"), message)],
            )

    async def _decision_on(self, subject: Subject, request: GateInput, asked: str) -> Decision:
        """Return the decision; evaluate now if there is nothing to reuse.

        `asked` is the canonical id of the request: the subject's own, or a sequential one.
        """
        evaluations = self._evaluations
        if _is_hidden(subject) and current_use().use_class is UseClass.RESERVED:
            subject = await self._needs.subjects.find(subject.network, subject.agent_id)
        evaluation, reuse = await self._reuse(subject, request), None
        cached = evaluation is not None
        if evaluation is None:
            evaluation, reuse = await self._shared_evaluation(subject)
        cached = cached or reuse is not None
        known = self._remembered(subject, evaluation)
        if _is_cut_for_some(reuse):
            rules = self._needs.rules
            found = decide(subject, evaluation, request, rules, cached=True, reuse=reuse)
            return await self._with_agents(self._explained(found, request))
        if not cached or evaluations == self._evaluations:  # otherwise it may be outdated by now
            self._remember(known, subject.key)
            self._remember(known, subject_key(subject.network, asked))
        decision = await self._with_agents(self._decide(known, request, cached=cached, reuse=reuse))
        if decision.did_you_mean and request in known.decisions:
            kept = known.decisions[request]
            known.decisions[request] = replace(kept, did_you_mean=decision.did_you_mean)
        return decision

    async def _with_agents(self, decision: Decision) -> Decision:
        """Return a key agent's denial with the registered agents that its address speaks for."""
        subject = decision.subject
        if decision.allow or subject.agent is not None:
            return decision
        reader = self._needs.subjects.reader(subject.network)
        try:
            async with asyncio.timeout(OWNED_S):
                found = await reader.fetch_agents_of(subject.network, subject.agent_id)
        except (TimeoutError, ServiceError):
            return decision
        return replace(decision, did_you_mean=tuple(one.agent_id for one in found[:OWNED_MAX]))

    def _explained(self, decision: Decision, request: GateInput) -> Decision:
        """Return the decision; a denial with what counts against the agent."""
        if decision.allow or self._needs.explain is None:
            return decision
        collected = decision.evaluation.collected
        agent_id = decision.evaluation.agent_id
        why = self._needs.explain(agent_id, collected, decision.score, request.signals)
        return replace(decision, explanation=why)

    async def _found(self, network: Network, agent_id: str, account: str) -> Subject:
        """Return the subject before control is proven, with the strangers' share only."""
        with egress_use(EgressUse(account=account)):
            return await self._needs.subjects.find(network, agent_id)

    async def _shared_evaluation(self, subject: Subject) -> tuple[Evaluation, Reuse | None]:
        """Evaluate like `_evaluated`, once for concurrent callers that may share results."""
        key = f"{current_use().sharers} {subject.key}"
        known = self._cut.get(key)
        if known is not None and known[1].until > self._needs.clock.now():
            return known
        return await self._flights.run(key, lambda: self._evaluated_once(key, subject))

    async def _evaluated_once(self, key: str, subject: Subject) -> tuple[Evaluation, Reuse | None]:
        evaluation, reuse = await self._evaluated(subject)
        if reuse is not None and _is_cut_for_some(reuse):
            self._cut.put(key, (evaluation, reuse))
        return evaluation, reuse

    async def _evaluated(self, subject: Subject) -> tuple[Evaluation, Reuse | None]:
        """Return an evaluation made now; if none may be made, the newest one, and why."""
        needs = self._needs
        spent = None if needs.quota is None else await needs.quota(_quota_key(subject))
        if spent is not None:
            newest = await needs.store.newest(subject.key, EVER)
            if newest is not None:
                reuse = self._reuse_for(EVALUATION_QUOTA, spent.retry_s)
                return await needs.evaluator.with_personhood(subject, newest), reuse
        completed = await needs.evaluator.evaluate(subject, needs.evaluation_s, BY_GATE)
        if completed.reused is None:
            return completed.evaluation, None
        evaluation = await needs.evaluator.with_personhood(subject, completed.evaluation)
        return evaluation, self._reuse_for(completed.reused, REUSED_MAX_S)

    def _reuse_for(self, reason: str, retry_s: float) -> Reuse:
        seconds = min(max(1.0, retry_s), REUSED_MAX_S)
        return Reuse(reason, self._needs.clock.now() + timedelta(seconds=seconds))

    def _decide(
        self,
        known: _Remembered,
        request: GateInput,
        *,
        cached: bool,
        reuse: Reuse | None = None,
    ) -> Decision:
        """Return the decision, and keep it as the cached answer to the same request."""
        decision = decide(
            known.subject,
            known.evaluation,
            request,
            self._needs.rules,
            cached=cached,
            reuse=reuse,
        )
        decision = self._explained(decision, request)
        if len(known.decisions) >= REQUESTS_REMEMBERED:
            known.decisions.clear()
        known.decisions[request] = replace(decision, cached=True, sandbox_ran=False)
        return decision

    async def _reuse(self, subject: Subject, request: GateInput) -> Evaluation | None:
        """Return the newest evaluation if it is still within the requested window."""
        since = self._needs.clock.now() - request.ttl
        newest = await self._needs.store.newest(subject.key, since)
        if newest is None or not self._reusable(newest, request):
            return None
        return await self._needs.evaluator.with_personhood(subject, newest)

    def _reusable(self, evaluation: Evaluation, request: GateInput) -> bool:
        if SignalName.SANDBOX in evaluation.unavailable or evaluation.rung is None:
            return False  # those from before the ladder prove nothing
        return self._needs.clock.now() < reusable_until(evaluation, request)

    def _remembered(self, subject: Subject, evaluation: Evaluation) -> _Remembered:
        fresh_until = self._needs.clock.monotonic_s() + CONTROLLERS_MAX_AGE_S
        return _Remembered(subject, subject.key, fresh_until, evaluation)

    def _remember(self, known: _Remembered, key: str) -> None:
        self._memory.put(key, known)


def _use_for(subject: Subject, account: str, *, has_control: bool) -> EgressUse:
    """Return the budget class of an evaluation: reserved only if somebody controls the agent."""
    if not has_control:
        return EgressUse(account=account)
    return EgressUse(UseClass.RESERVED, account, agent=subject.key)


def _quota_key(subject: Subject) -> str:
    """Return the quota's key: strangers' evaluations do not use up those of controllers."""
    is_shared = current_use().use_class is UseClass.SHARED
    return f"unproven {subject.key}" if is_shared else subject.key


def _is_hidden(subject: Subject) -> bool:
    """Return whether a budget prevented reading its registration file."""
    agent = subject.agent
    return agent is not None and agent.registration_problem == OVER_BUDGET


def _is_cut_for_some(reuse: Reuse | None) -> bool:
    """Return whether the answer must not be remembered as a decision.

    That is so if only the shared class had no room, which is no answer for callers that may use
    more, or if the evaluation is not finished.
    """
    if reuse is not None and reuse.reason in {UNFINISHED, INDEXING}:
        return True
    is_shared = current_use().use_class is UseClass.SHARED
    return is_shared and reuse is not None and reuse.reason == EGRESS_BUDGET


def _weight(known: _Remembered) -> int:
    return 1 if known.subject.agent is None else known.subject.agent.weight
