"""The ratings of an agent's customers in the ERC-8004 reputation registry.

Votes count by what was paid and not returned; the rules are `reputation/rules.py`.
Sources: evidence.md#paid-reputation; EIP-8004, reputation registry; ADR 0028.
"""

import asyncio
from collections.abc import Mapping
from typing import ClassVar, Final

from assay.chains.model import ChainUnavailable
from assay.common.json import JsonObject, is_object
from assay.evaluation.earlier_signals import feedback_weighed
from assay.evaluation.model import Cap, Evidence, SignalName, SignalScore, SignalUnavailable
from assay.evaluation.ports import Signal, SignalDependencies
from assay.probing.ports import Probe
from assay.registries.model import Feedback, Subject
from assay.reputation.evidence import DAY_S, entries_of, evidence_of
from assay.reputation.model import INDEXING, RULES, AgentFacts, NotIndexed, reputation_of
from assay.reputation.rules import ReputationValue, assess

REGISTRATION_S = 2.0
"""How long a key agent's registration is searched; reading a registry continues without it."""

REGISTRATIONS_MOST = 5
"""Agents of one owner that are examined."""

RESERVE_S = 0.25
"""Part of the deadline kept for returning what the index has when a chain does not answer."""


class Registry8004:
    """Payers' votes, and their payments."""

    name: ClassVar[SignalName] = SignalName.REGISTRY_8004

    async def collect(
        self, subject: Subject, needs: SignalDependencies
    ) -> Evidence | SignalUnavailable:
        """Return the evidence.

        Unread data makes it unavailable unless known data lowers the score.
        """
        if subject.agent is None:
            return Evidence({"registered": False, **await _registration(subject, needs)})
        agent = subject.agent
        try:
            async with asyncio.timeout(max(0.0, needs.deadline_s - RESERVE_S)):
                entries = await needs.reader.fetch_feedback(subject.network, subject.agent_id)
                facts = await _facts(subject, entries, needs)
        except NotIndexed as error:
            return _only_against(subject, error.known, f"{INDEXING}: {error}")
        except ChainUnavailable as error:
            return _only_against(subject, await _known(subject, needs), error.message)
        except TimeoutError:
            known = await _known(subject, needs)
            return _only_against(subject, known, f"{INDEXING}: the chain did not answer in time")
        return Evidence(evidence_of(agent, entries, facts))

    def weigh(self, evidence: Evidence, probes: Mapping[str, Probe]) -> SignalScore:
        """Weigh by the rules that the evidence was made for."""
        del probes
        seen = evidence.data
        if not seen["registered"]:
            return SignalScore(50.0, 0.0, ("The agent is not registered in an ERC-8004 registry.",))
        if "rules" not in seen:
            return feedback_weighed(seen)
        found = judgement(evidence)
        if found is None:
            return SignalScore(50.0, 0.0, (_SILENCE,))
        sentence = "Proven customers are dissatisfied with the agent."
        cap = None if found.cap is None else Cap(found.cap, sentence)
        return SignalScore(found.value, found.confidence, _reasons(found, seen), cap)


async def _registration(subject: Subject, needs: SignalDependencies) -> JsonObject:
    """Return whether a key owns an agent of the main registry that never had another owner.

    One that changes hands would count for any number of keys. `registrationUnread` if that is
    unknown now.
    """
    source = needs.sources.reputation
    if source is None or subject.network.family != "evm" or subject.network.testnet:
        return {}
    unread: JsonObject = {"registrationUnread": True}
    try:
        async with asyncio.timeout(min(REGISTRATION_S, max(0.0, needs.deadline_s - RESERVE_S))):
            found = await needs.reader.fetch_agents_of(subject.network, subject.wallet)
            for match in [one for one in found if one.source == "owner"][:REGISTRATIONS_MOST]:
                owners = await source.owners(subject.network, match.agent_id)
                if owners is None:
                    return unread
                if owners == frozenset({subject.wallet}):
                    return {"registration": f"{subject.network.caip2}/{match.agent_id}"}
    except (ChainUnavailable, TimeoutError):
        return unread
    return {}


_SILENCE = "No customer has spoken yet, and nobody has given feedback that counts."


async def _facts(
    subject: Subject, entries: tuple[Feedback, ...], needs: SignalDependencies
) -> AgentFacts:
    source, agent = needs.sources.reputation, subject.agent
    if source is None or agent is None or subject.network.family != "evm":
        return AgentFacts(day=int(needs.clock.now().timestamp()) // DAY_S)
    return await source.facts(agent, [entry.client for entry in entries])


async def _known(subject: Subject, needs: SignalDependencies) -> AgentFacts | None:
    """Return what the index has, without asking a chain."""
    source = needs.sources.reputation
    if source is None or subject.agent is None:
        return None
    return await source.known(subject.agent)


def _only_against(
    subject: Subject, known: AgentFacts | None, reason: str
) -> Evidence | SignalUnavailable:
    """Keep known evidence that lowers the score: an unavailable chain must not raise a score."""
    if subject.agent is not None and known is not None:
        evidence = Evidence(evidence_of(subject.agent, entries_of(known.events), known, stale=True))
        found = judgement(evidence)
        if found is not None and (found.value < 50.0 or found.cap is not None):  # noqa: PLR2004 - neutral
            return evidence
    return SignalUnavailable(reason)


def judgement(evidence: Evidence) -> ReputationValue | None:
    """Return the evidence's worth; None if there are no ratings, or under earlier rules."""
    seen = evidence.data
    if not seen["registered"] or seen.get("rules") != RULES:
        return None
    return assess(reputation_of(seen))


def _reasons(found: ReputationValue, seen: JsonObject) -> tuple[str, ...]:
    payers = [c for c in found.clusters if c.is_customer]
    spoke = sum(c.rating is not None for c in payers)
    paid = f"{_count(len(payers), 'independent customer')} paid for it"
    worth = f"{found.value:g} of 100 with the weight of {found.mass:.1f} full customers"
    sentences = [f"{paid} and {spoke} have an opinion: {worth}."]
    if found.changed:
        sentences.append("What customers say has changed; what they said before counts less.")
    if found.others:
        sentences.append(
            f"{_count(found.others, 'voter')} without proven payments count for little together."
        )
    if found.own:
        sentences.append(f"{_count(found.own, 'payer')} of the agent's own side do not count.")
    if seen.get("own") or seen.get("former"):
        sentences.append("Feedback of its present and former owners does not count.")
    if seen.get("stale"):
        sentences.append("The chain could not be read to its end: this is what was known before.")
    return tuple(sentences)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def naive_mean(seen: JsonObject) -> float:
    """Return the plain mean of the listed votes, 2 decimals; 0 without any."""
    votes = seen.get("votes")
    rows = list(votes.values()) if is_object(votes) else []
    ratings = [float(str(row["rating"])) for row in rows if is_object(row)]
    return round(sum(ratings) / len(ratings), 2) if ratings else 0.0


SIGNAL: Final[Signal] = Registry8004()
