"""Answers what anybody may ask about registered agents: the list, the report, and the history.

Nothing here evaluates an agent or makes an outgoing request; key agents are in none of it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal

from assay.chains.model import Network
from assay.common.cache import BoundedMap
from assay.common.errors import NotFound
from assay.evaluation.causes import Explainer
from assay.evaluation.changes import changes
from assay.evaluation.listing import AgentQuery, ListedAgent
from assay.evaluation.model import Evaluation, Snapshot
from assay.evaluation.profile import Profiles
from assay.evaluation.public_report import (
    PublicReport,
    ceiling_reason,
    checks_of,
    demands_of,
    improvements_of,
    parts_of,
    reputation_of,
)
from assay.evaluation.store_evaluations import SqlEvaluationStore
from assay.evaluation.store_listing import SqlListedAgents
from assay.probing.ports import Probe
from assay.registries.model import parse_agent_id, subject_key

ENTRIES_REMEMBERED: Final = 5_000
REPORTS_REMEMBERED: Final = 256
"""Reports kept in memory. An evaluation never changes, so its report does not either."""


class NotEvaluated(NotFound):
    """This service has never evaluated the agent."""

    code = "agent_not_evaluated"


@dataclass(frozen=True, slots=True)
class PublicAccess:
    """What the operator publishes (`ASSAY_PUBLIC_PAGES`)."""

    mode: Literal["on", "unlisted", "off"]

    @property
    def headers(self) -> dict[str, str]:
        """Return what answers about agents say to search engines."""
        return {} if self.mode == "on" else {"x-robots-tag": "noindex"}

    def require_reports(self) -> None:
        """Raise `NotFound` if no reports are published."""
        if self.mode == "off":
            raise NotFound("This installation publishes no reports.")

    def require_lists(self) -> None:
        """Raise `NotFound` if no list of agents is published."""
        if self.mode != "on":
            raise NotFound("This installation publishes no list of agents.")


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One evaluation of an agent, and why it differs from the one before."""

    seq: int
    """Its position in the chain of snapshots."""
    evaluation: Evaluation
    """Without its evidence."""
    snapshot: Snapshot
    tier_before: str | None
    """None for the first evaluation, or if the one before was removed."""
    reasons: tuple[str, ...]


class PublicAgents:
    """Reads what the stores have; see the module."""

    def __init__(
        self,
        stores: tuple[SqlListedAgents, SqlEvaluationStore],
        profiles: Profiles,
        explainer: Explainer,
        probes: Mapping[str, Probe],
        valid_until: Callable[[Evaluation], datetime],
    ) -> None:
        """Create it; `valid_until` says until when the gate may reuse an evaluation."""
        self._listed, self._evaluations = stores
        self._profiles = profiles
        self._explainer = explainer
        self._probes = probes
        self._valid_until = valid_until
        self._reports = BoundedMap[str, PublicReport](REPORTS_REMEMBERED)
        self._histories = BoundedMap[str, Sequence[HistoryEntry]](ENTRIES_REMEMBERED, len)

    async def page(self, query: AgentQuery) -> Sequence[ListedAgent]:
        """Return a page of the list."""
        return await self._listed.page(query)

    async def report(self, network: Network, agent_id: str) -> PublicReport:
        """Return the report of an agent's newest evaluation.

        Raises `InvalidRequest` for what is no id of a registered agent, and `NotEvaluated`.
        """
        agent = await self._find(network, agent_id)
        last = await self._evaluations.newest_snapshot(agent.subject_key)
        known = None if last is None else self._reports.get(last.evaluation_id)
        if known is not None:
            return known
        newest = await self._evaluations.of_subject(agent.subject_key, None, 1)
        if not newest:
            raise _unknown()
        _, evaluation, snapshot = newest[0]
        made = self._made(agent, network, evaluation, snapshot)
        self._reports.put(evaluation.id, made)
        return made

    async def history(
        self, network: Network, agent_id: str, before_seq: int | None, limit: int
    ) -> Sequence[HistoryEntry]:
        """Return evaluations of an agent, newest first, at most `limit`. Raises like `report`."""
        agent = await self._find(network, agent_id)
        last = await self._evaluations.newest_snapshot(agent.subject_key)
        name = f"{None if last is None else last.evaluation_id} {before_seq} {limit}"
        known = self._histories.get(name)
        if known is None:
            links = await self._evaluations.of_subject(agent.subject_key, before_seq, limit + 1)
            known = _entries(links, limit)
            self._histories.put(name, known)
        return known

    async def _find(self, network: Network, agent_id: str) -> ListedAgent:
        agent_id = parse_agent_id(network, agent_id)
        found = await self._listed.find(subject_key(network, agent_id))
        if found is None:
            raise _unknown()
        return found

    def _made(
        self, agent: ListedAgent, network: Network, evaluation: Evaluation, snapshot: Snapshot
    ) -> PublicReport:
        score = None if evaluation.rung is None else self._profiles.explain(evaluation)
        why = score and self._explainer.explain(agent.agent_id, evaluation.collected, score)
        return PublicReport(
            agent=agent,
            network=network,
            evaluation=replace(evaluation, collected=()),
            snapshot=snapshot,
            valid_until=self._valid_until(evaluation),
            score=score,
            parts=() if score is None else parts_of(score),
            ceiling_reason="" if score is None else ceiling_reason(score),
            demands=() if score is None else demands_of(score),
            checks=checks_of(evaluation, self._probes),
            improve=() if why is None else improvements_of(why.improve),
            reputation=reputation_of(evaluation),
        )


def _entries(
    links: Sequence[tuple[int, Evaluation, Snapshot]], limit: int
) -> Sequence[HistoryEntry]:
    """Return an entry for each link, newest first; each is compared with the one after it."""
    found: list[HistoryEntry] = []
    for place, (seq, evaluation, snapshot) in enumerate(links[:limit]):
        earlier = links[place + 1][1] if place + 1 < len(links) else None
        why = _FIRST if earlier is None else changes(earlier, evaluation)
        tier = None if earlier is None else earlier.grade.tier
        shown = replace(evaluation, collected=(), policy=None)
        found.append(HistoryEntry(seq, shown, replace(snapshot, record=None), tier, why))
    return found


_FIRST: Final = ("The first evaluation that is kept.",)


def _unknown() -> NotEvaluated:
    return NotEvaluated("This service has not evaluated the agent.")
