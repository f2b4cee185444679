"""What the ERC-8004 reputation registry says of an agent (decisions, section 4).

One voice per reviewer, weighed by what the reviewer has at stake; the rules are `trust/reputation`.
Sources: EIP-8004, reputation registry; facts, security 3.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import ClassVar, Final

from assay.chains.model import ChainUnavailable, Feedback, OnchainAgent, Reviewer, Reviewers
from assay.chains.reputation import score_of
from assay.kit.json import JsonObject, JsonValue, is_object
from assay.trust.model import Evidence, SignalName, Subject, Unavailable, Weighed
from assay.trust.ports import Probe, Signal, SignalNeeds
from assay.trust.reputation import Judgement, judge, standing, voice_of, voices_of

REVIEWERS_MAX = 500
"""Reviewers kept one by one in the evidence, those with most at stake; the rest, which could count
like a handful at most, only in sum and number."""

_UNKNOWN = Reviewer()


class Registry8004:
    """The reviewers' values, weighed."""

    name: ClassVar[SignalName] = SignalName.REGISTRY_8004

    async def collect(self, subject: Subject, needs: SignalNeeds) -> Evidence | Unavailable:
        if subject.agent is None:
            return Evidence({"registered": False})
        try:
            entries = await needs.reader.fetch_feedback(subject.network, subject.agent_id)
            latest = _latest(entries)
            reviewers = await needs.reader.fetch_reviewers(
                subject.network, subject.agent, list(latest)
            )
        except ChainUnavailable as error:
            return Unavailable(error.message)
        as_of_s = int(needs.clock.now().timestamp())
        return Evidence(_seen(entries, latest, subject.agent, reviewers, as_of_s))

    def weigh(self, evidence: Evidence, probes: Mapping[str, Probe]) -> Weighed:
        del probes
        seen = evidence.data
        if not seen["registered"]:
            return Weighed(50.0, 0.0, ("The agent is not registered in an ERC-8004 registry.",))
        verdict = judgement(evidence)
        if verdict is None:
            return Weighed(50.0, 0.0, ("Nobody has given feedback in the registry yet.",))
        return Weighed(verdict.value, verdict.confidence, _reasons(verdict, seen))


def judgement(evidence: Evidence) -> Judgement | None:
    """What the evidence is worth, reviewer by reviewer; None where nobody's voice counts."""
    seen = evidence.data
    if not seen["registered"]:
        return None
    since, as_of = seen.get("timesKnownSince"), seen.get("asOf")
    return judge(
        voices_of(seen),
        as_of if isinstance(as_of, int) else 0,
        since if isinstance(since, int) else None,
    )


def _latest(entries: Sequence[Feedback]) -> dict[str, Feedback]:
    """One voice per reviewer: the last one given on the 0 to 100 scale."""
    latest: dict[str, Feedback] = {}
    for entry in entries:
        known = latest.get(entry.client)
        if score_of(entry) is not None and (known is None or entry.index > known.index):
            latest[entry.client] = entry
    return latest


def _seen(
    entries: Sequence[Feedback],
    latest: Mapping[str, Feedback],
    agent: OnchainAgent,
    reviewers: Reviewers,
    as_of_s: int,
) -> JsonObject:
    """Values as decimal text: exact, and the same on any machine."""
    rows = {client: _row(entry, agent, reviewers) for client, entry in latest.items()}
    ranked = sorted(rows, key=lambda c: (-standing(voice_of(c, rows[c]), as_of_s), c))
    kept, rest = sorted(ranked[:REVIEWERS_MAX]), ranked[REVIEWERS_MAX:]
    return {
        "registered": True,
        "asOf": as_of_s,
        "timesKnownSince": reviewers.since_s,
        "reviewers": {client: rows[client] for client in kept},
        "further": {
            "reviewers": len(rest),
            "sum": _text(sum((_score(latest[client]) for client in rest), Decimal(0))),
        },
        "entries": sum(score_of(entry) is not None for entry in entries),
        "discarded": sum(score_of(entry) is None for entry in entries),
    }


def _row(entry: Feedback, agent: OnchainAgent, reviewers: Reviewers) -> JsonObject:
    who = reviewers.known.get(entry.client, _UNKNOWN)
    relation = "reciprocal" if who.is_reciprocal else None
    if entry.client in agent.controllers:
        relation = "self"
    row: dict[str, JsonValue] = {
        "value": _text(_score(entry)),
        "given": reviewers.given_s.get((entry.client, entry.index)),
        "first": who.first_s,
        "transactions": who.transactions,
        "rated": None if who.rated is None else sorted(who.rated),
        "relation": relation,
    }
    return {name: value for name, value in row.items() if value is not None}


def _reasons(verdict: Judgement, seen: JsonObject) -> tuple[str, ...]:
    further = seen["further"]
    more = further["reviewers"] if is_object(further) else 0
    count = len(verdict.voices) + (more if isinstance(more, int) else 0)
    people = "1 reviewer" if count == 1 else f"{count} reviewers"
    ours = f"{verdict.value:g} of 100 with the weight of {verdict.mass:.1f} full voices"
    plain = f"the plain average is {naive_mean(seen):g}"
    sentences = [
        f"{people} in the registry, weighed by what they have at stake, give {ours}; {plain}."
    ]
    if verdict.betrayed:
        sentences.append("The newest reviews are far worse than those before, and count alone.")
    for name, size in sorted(verdict.clusters.items(), key=lambda c: (-c[1], c[0])):
        if size > 1:
            sentences.append(_CLUSTERS[name.partition(" ")[0]].format(size))
    if verdict.own:
        sentences.append("Feedback from the agent's own addresses does not count.")
    if verdict.reciprocal:
        sentences.append(f"{verdict.reciprocal} of the reviewers were rated by the agent in turn.")
    if verdict.unknown:
        sentences.append(f"Of {verdict.unknown} reviewers no history could be read.")
    return tuple(sentences)


_CLUSTERS = {
    "no": "{} reviewers have no history to tell them apart, and count like a handful.",
    "ring": "{} reviewers rated the same other agents, and count like a handful.",
    "burst": "{} reviewers came within minutes of each other, and count like a handful.",
}


def naive_mean(seen: JsonObject) -> float:
    """The plain mean over every reviewer's latest value, 2 decimals; 0 without any."""
    reviewers, further = seen["reviewers"], seen["further"]
    rows = list(reviewers.values()) if is_object(reviewers) else []
    values = [Decimal(str(row["value"])) for row in rows if is_object(row)]
    more, rest = (further["reviewers"], further["sum"]) if is_object(further) else (0, "0")
    count = len(values) + (more if isinstance(more, int) else 0)
    total = sum(values, Decimal(str(rest)))
    return round(float(total / count), 2) if count else 0.0


def _score(entry: Feedback) -> Decimal:
    """The score of an entry that has one: only those are counted."""
    return score_of(entry) or Decimal(0)


def _text(value: Decimal) -> str:
    return format(value.normalize(), "f")


SIGNAL: Final[Signal] = Registry8004()
