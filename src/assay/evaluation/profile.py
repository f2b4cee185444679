"""Builds trust profiles: the registry's view beside ours.

Source: interface.md#trust-profile.
"""

from dataclasses import dataclass
from datetime import datetime

from assay.chains.model import ChainUnavailable, Network
from assay.common.clock import Clock
from assay.evaluation.model import (
    BEHAVIOUR_MAX_AGE,
    Evaluation,
    Grade,
    Score,
    SignalName,
    SignalResult,
    Snapshot,
    SnapshotNotFound,
)
from assay.evaluation.ports import EvaluationStore
from assay.evaluation.scoring import ScoringPolicy, grade_score, rules_from
from assay.evaluation.service import EVER, Evaluator
from assay.registries.model import (
    Feedback,
    FeedbackSummary,
    OnchainAgent,
    Subject,
    parse_agent_id,
    subject_key,
    summarise,
)
from assay.registries.subjects import Subjects

_COLLECT_S = 8.0


@dataclass(frozen=True, slots=True)
class AgentProfile:
    """A trust profile. The behavioural evidence comes from `evaluation`, if any."""

    agent: OnchainAgent
    subject: Subject
    reputation: FeedbackSummary | None
    """None if only the registry's own count could be read (`agent.feedback_count`)."""
    score: Score
    grade: Grade
    collected: tuple[SignalResult, ...]
    evaluation: Evaluation | None
    at: datetime

    @property
    def feedback_count(self) -> int:
        """Return the number of unrevoked feedback entries, or the registry's count."""
        if self.reputation is not None:
            return self.reputation.feedback_count
        return self.agent.feedback_count or 0

    @property
    def average_score(self) -> float:
        """Return the plain mean, 0 to 100, or the registry's moving average if only that is known.

        0 without any feedback (interface.md#trust-profile has no null here).
        """
        if self.reputation is not None:
            return self.reputation.average_score or 0.0
        return self.agent.atom.average_score if self.agent.atom else 0.0


@dataclass(frozen=True, slots=True)
class SnapshotProfile:
    """A snapshot, and the score of its evaluation; None if it is older than the ladder."""

    snapshot: Snapshot
    score: Score | None


class Profiles:
    """Builds profiles: cheap signals live, behaviour from the newest evaluation."""

    def __init__(
        self,
        subjects: Subjects,
        evaluator: Evaluator,
        store: EvaluationStore,
        rules: ScoringPolicy,
        clock: Clock,
    ) -> None:
        self._subjects = subjects
        self._evaluator = evaluator
        self._store = store
        self._rules = rules
        self._clock = clock

    async def profile(self, network: Network, agent_id: str) -> AgentProfile:
        """Return the profile of a registered agent; never runs a sandbox.

        Raises `InvalidRequest`, `AgentNotFound` or `ChainUnavailable`.
        """
        agent_id = parse_agent_id(network, agent_id)
        agent = await self._subjects.fetch_registered(network, agent_id)
        subject = Subject(network, agent.agent_id, agent.wallet or agent.owner, agent)
        feedback = await self._feedback(agent)
        now = self._clock.now()
        evaluation = await self._store.newest(subject.key, now - BEHAVIOUR_MAX_AGE)
        live = frozenset(SignalName) - {SignalName.SANDBOX}
        collected, missing = await self._evaluator.collect(subject, live, _COLLECT_S)
        collected += _behaviour(evaluation)
        result = grade_score(subject.agent_id, collected, missing, self._rules)
        return AgentProfile(
            agent=agent,
            subject=subject,
            reputation=None if feedback is None else summarise(feedback),
            score=result,
            grade=self._rules.tiers.grade(result.value),
            collected=collected,
            evaluation=evaluation,
            at=now,
        )

    async def _feedback(self, agent: OnchainAgent) -> tuple[Feedback, ...] | None:
        """Return the entries; an index that is down does not hide the registry's own count."""
        reader = self._subjects.reader(agent.network)
        try:
            return await reader.fetch_feedback(agent.network, agent.agent_id)
        except ChainUnavailable:
            if agent.feedback_count is None:
                raise
            return None

    async def snapshot(self, network: Network, agent_id: str) -> SnapshotProfile:
        """Return the newest snapshot (interface.md#snapshot).

        Raises like `profile`, and `SnapshotNotFound`. An agent evaluated before is answered without
        asking the chain again.
        """
        agent_id = await self._subjects.identify(network, agent_id)
        found = await self._store.newest_snapshot(subject_key(network, agent_id))
        if found is None:
            await self._subjects.find(network, agent_id)
            raise SnapshotNotFound(
                "There is no snapshot of this agent yet: trigger a sandbox evaluation first."
            )
        evaluation = await self._store.newest(found.subject_key, EVER)
        if evaluation is None or evaluation.id != found.evaluation_id or evaluation.rung is None:
            return SnapshotProfile(found, None)
        return SnapshotProfile(found, self.explain(evaluation))

    def explain(self, evaluation: Evaluation) -> Score:
        """Return the score of a stored evaluation, by the rules it was graded by."""
        rules = None if evaluation.policy is None else rules_from(evaluation.policy)
        return grade_score(
            evaluation.agent_id,
            evaluation.collected,
            evaluation.unavailable,
            rules or self._rules,
        )


def _behaviour(evaluation: Evaluation | None) -> tuple[SignalResult, ...]:
    """Return the behavioural evidence of an evaluation."""
    if evaluation is None:
        return ()
    return tuple(c for c in evaluation.collected if c.signal is SignalName.SANDBOX)
