"""The gate: identifies caller and agent, checks control and allowance, and decides.

Source: interface.md#trust-evaluation.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from math import inf
from typing import Any, Final, Literal

from assay.accounts.allowance import Allowance, require
from assay.accounts.model import Feature, Operator
from assay.chains.model import ChainUnavailable, Network
from assay.common.cache import STEP_S, BoundedMap, SingleFlight
from assay.common.clock import Clock
from assay.common.egress_budget import (
    EGRESS_BUDGET,
    BudgetSpent,
    EgressUse,
    UseClass,
    current_use,
    egress_use,
)
from assay.common.errors import InvalidRequest, NotFound, Problem, ServiceError, SourceAway
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
from assay.gate.model import Decision, GateInput, Reuse, Stale
from assay.identity.model import AgentProof, DomainProof, require_control
from assay.registries.model import Subject, subject_key
from assay.registries.ports import OVER_BUDGET
from assay.registries.subjects import Subjects, canonical_agent_id

CONTROLLERS_MAX_AGE_S: Final = 30.0
"""Seconds for which the addresses that speak for an agent are remembered. A sold agent's former
owner passes for at most this long. The chain reader's own cache has the same bound."""

REFRESHED_S: Final = 15.0
"""Age from which a call begins to read the agent again behind its answer."""

REFRESHES_AT_ONCE: Final = 4
"""Agents that are read behind answers at the same time."""

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
    spawn: Callable[[str, Coroutine[Any, Any, None]], object] | None = None
    """Starts work behind an answer; without it every agent is read in front of one."""
    grace_s: float = 0.0
    """Longest use of a judged agent's controllers and evaluation, in seconds since they were read,
    while the chain or the store does not answer; 0: none."""


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
    read_at_s: float
    fresh_until_s: float
    evaluation: Evaluation
    decisions: dict[GateInput, Decision] = field(default_factory=dict[GateInput, Decision])
    missing: Literal["controllers", "evaluation"] | None = None
    """What could not be read again when that was last tried."""
    failed_at_s: float = -inf
    """When that was."""
    is_being_read: bool = False


@dataclass(frozen=True, slots=True)
class _Found:
    """A subject; `away` is why it could not be read, if it is the one last known."""

    subject: Subject
    away: SourceAway | None = None


class Gate:
    """Allows or denies. Only answered decisions count against the allowance."""

    def __init__(self, needs: GateDependencies) -> None:
        self._needs = needs
        self._memory: BoundedMap[str, _Remembered] = BoundedMap(_REMEMBERED_MAX, _weight)
        self._evaluations = 0
        self._flights: SingleFlight[tuple[Evaluation, Reuse | None]] = SingleFlight()
        self._cut: BoundedMap[str, tuple[Evaluation, Reuse]] = BoundedMap(_CUT_REMEMBERED_MAX)
        self._refreshes = asyncio.Semaphore(REFRESHES_AT_ONCE)
        self._longest_s = max(CONTROLLERS_MAX_AGE_S, needs.grace_s)

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
        decision = self._assess_behind(network, agent_id, request, asker.account)
        if decision is not None:
            asker.controls(decision.subject)
            return decision
        found = await self._found(network, agent_id, asker.account)
        has_control = asker.controls(found.subject)
        with egress_use(_use_for(found.subject, asker.account, has_control=has_control)):
            return await self._decision_on(found, request, agent_id)

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
        decision = self._assess_behind(network, agent_id, request, account)
        if decision is not None:
            require_control(caller.agent_address, decision.subject, caller.proof)
            if metered:
                await needs.allowance.reserve(caller.operator)
            return self._recorded(caller, decision)
        found = await self._found(network, agent_id, account)
        subject = found.subject
        require_control(caller.agent_address, subject, caller.proof)
        reservation = await needs.allowance.reserve(caller.operator) if metered else None
        try:
            # If a bare header is accepted, it is accepted here too: else no gate of that service
            # could ever use the reserved half. The bounds by account and agent still apply.
            with egress_use(_use_for(subject, account, has_control=True)):
                return self._recorded(caller, await self._decision_on(found, request, agent_id))
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

    def evaluated_elsewhere(self, subject_key: str, evaluation_id: str) -> None:
        """Ask the store before the next decision: another process may have stored an evaluation."""
        known = self._memory.get(subject_key)
        if known is not None and known.evaluation.id != evaluation_id:
            self.personhood_changed(subject_key)

    def stale_of(self, decision: Decision) -> Stale | None:
        """Return what a decision rests on although it could not be read again, or None."""
        known = self._memory.get(decision.subject.key)
        if known is None or known.missing is None:
            return None
        return Stale(known.missing, self._needs.clock.monotonic_s() - known.read_at_s)

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

    async def _decision_on(self, found: _Found, request: GateInput, asked: str) -> Decision:
        """Return the decision; evaluate now if there is nothing to reuse.

        `asked` is the canonical id of the request: the subject's own, or a sequential one.
        """
        evaluations, subject, reuse = self._evaluations, found.subject, None
        if _is_hidden(subject) and current_use().use_class is UseClass.RESERVED:
            subject = await self._needs.subjects.find(subject.network, subject.agent_id)
        evaluation, is_known = await self._reuse(subject, request)
        cached = evaluation is not None
        if evaluation is None:
            if found.away is not None:  # nothing is judged by what the registry said before
                raise found.away
            evaluation, reuse = await self._shared_evaluation(subject)
        cached = cached or reuse is not None
        known = self._remembered(subject, evaluation)
        if found.away is not None or is_known:
            self._mark_stale(known, "evaluation" if found.away is None else "controllers")
        if _is_cut_for_some(reuse):
            rules = self._needs.rules
            cut = decide(subject, evaluation, request, rules, cached=True, reuse=reuse)
            return await self._with_agents(self._explained(cut, request))
        if not cached or evaluations == self._evaluations:  # otherwise it may be outdated by now
            self._memory.put(subject.key, known)
            self._memory.put(subject_key(subject.network, asked), known)
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

    async def _found(self, network: Network, agent_id: str, account: str) -> _Found:
        """Return the subject before control is proven, with the strangers' share only.

        While its chain does not answer, return it as it was read last, until `grace_s` later.
        """
        try:
            with egress_use(EgressUse(account=account)):
                return _Found(await self._needs.subjects.find(network, agent_id))
        except SourceAway as error:
            known = self._memory.get(subject_key(network, agent_id))
            if known is None or self._memory.get(known.key) is not known:
                raise  # under its number it may be as it was before a sale
            if not self._is_in_grace(known):
                raise
            return _Found(known.subject, error)

    def _is_in_grace(self, known: _Remembered) -> bool:
        return self._needs.clock.monotonic_s() - known.read_at_s < self._needs.grace_s

    def _mark_stale(
        self, known: _Remembered, missing: Literal["controllers", "evaluation"]
    ) -> None:
        """Note that an agent could not be read again: it is as old as what was known before."""
        before, now_s = self._memory.get(known.key), self._needs.clock.monotonic_s()
        known.missing, known.failed_at_s = missing, now_s
        known.read_at_s = before.read_at_s if before else now_s if missing == "evaluation" else -inf
        known.fresh_until_s = min(now_s + STEP_S, known.read_at_s + self._longest_s)

    def _assess_behind(
        self, network: Network, agent_id: str, request: GateInput, account: str
    ) -> Decision | None:
        """Return a decision from memory whose agent is due, and read the agent again behind it.

        None if it is too old for that. The caller must check control.
        """
        needs, key = self._needs, subject_key(network, agent_id)
        known, now_s = self._memory.get(key), needs.clock.monotonic_s()
        if known is None or needs.spawn is None or self._memory.get(known.key) is not known:
            return None
        decision = known.decisions.get(request)
        if decision is None or decision.expires_at <= needs.clock.now():
            return None
        until_s = known.read_at_s + CONTROLLERS_MAX_AGE_S
        if now_s < known.failed_at_s + CONTROLLERS_MAX_AGE_S:  # the source is away: no call waits
            until_s = known.read_at_s + self._longest_s
        if now_s >= until_s:
            return None
        known.fresh_until_s = min(now_s + STEP_S, until_s)
        if not known.is_being_read:
            known.is_being_read = True
            needs.spawn("agent", self._read_again(known, network, agent_id, account))
        return decision

    async def _read_again(
        self, known: _Remembered, network: Network, agent_id: str, account: str
    ) -> None:
        """Read a remembered agent and its newest evaluation; forget it if it is gone."""
        evaluations = self._evaluations
        try:
            async with self._refreshes:
                with egress_use(EgressUse(account=account)):
                    subject = await self._needs.subjects.find(network, agent_id)
                newest = await self._newest(subject)
        except SourceAway as error:
            is_chain = isinstance(error, ChainUnavailable)
            self._mark_stale(known, "controllers" if is_chain else "evaluation")
        except NotFound:
            self._memory.pop(known.key)
        except ServiceError:
            pass  # a quota: the next call beyond `CONTROLLERS_MAX_AGE_S` says so
        else:
            is_current = self._memory.get(known.key) is known
            if subject == known.subject and newest == known.evaluation:
                self._mark_read(known)
            elif is_current:
                self._memory.pop(known.key)
                if newest is not None and evaluations == self._evaluations:
                    made = self._remembered(subject, newest)
                    self._memory.put(subject.key, made)
                    self._memory.put(subject_key(network, agent_id), made)
        finally:
            known.is_being_read = False

    async def _newest(self, subject: Subject) -> Evaluation | None:
        """Return the newest evaluation of the store, with what is known now of its human."""
        newest = await self._needs.store.newest(subject.key, EVER)
        if newest is None:
            return None
        return await self._needs.evaluator.with_personhood(subject, newest)

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

    async def _reuse(self, subject: Subject, request: GateInput) -> tuple[Evaluation | None, bool]:
        """Return the newest evaluation if it is still within the requested window.

        Also return whether it is the one last known, because the store does not answer.
        """
        since = self._needs.clock.now() - request.ttl
        try:
            newest = await self._needs.store.newest(subject.key, since)
        except SourceAway:
            known = self._memory.get(subject.key)
            if known is None or not self._is_in_grace(known):
                raise
            if not self._reusable(known.evaluation, request):
                raise
            return known.evaluation, True
        if newest is None or not self._reusable(newest, request):
            return None, False
        return await self._needs.evaluator.with_personhood(subject, newest), False

    def _reusable(self, evaluation: Evaluation, request: GateInput) -> bool:
        if SignalName.SANDBOX in evaluation.unavailable or evaluation.rung is None:
            return False  # those from before the ladder prove nothing
        return self._needs.clock.now() < reusable_until(evaluation, request)

    def _remembered(self, subject: Subject, evaluation: Evaluation) -> _Remembered:
        known = _Remembered(subject, subject.key, 0.0, 0.0, evaluation)
        self._mark_read(known)
        return known

    def _mark_read(self, known: _Remembered) -> None:
        """Note that an agent has just been read, and when a call reads it again."""
        fresh_s = CONTROLLERS_MAX_AGE_S if self._needs.spawn is None else REFRESHED_S
        known.read_at_s, known.missing = self._needs.clock.monotonic_s(), None
        known.fresh_until_s, known.failed_at_s = known.read_at_s + fresh_s, -inf


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
