"""What the ERC-8004 reputation registry says of an agent (decisions, section 4).

Sources: EIP-8004, reputation registry; facts (security, section 3) for why one voice per reviewer.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import ClassVar, Final

from assay.chains.model import ChainUnavailable, Feedback
from assay.chains.reputation import score_of
from assay.kit.json import JsonObject, is_object
from assay.trust.model import Evidence, SignalName, Subject, Unavailable, Weighed
from assay.trust.ports import Probe, Signal, SignalNeeds

REVIEWERS_MAX = 500
"""Reviewers kept one by one in the evidence; the rest only in sum and number."""

HALF_SURE_AT = 5
"""Reviewers at which confidence is one half: n / (n + 5). Source: docs/grades.md."""


class Registry8004:
    """The mean over reviewers, each with the latest value they gave."""

    name: ClassVar[SignalName] = SignalName.REGISTRY_8004

    async def collect(self, subject: Subject, needs: SignalNeeds) -> Evidence | Unavailable:
        if subject.agent is None:
            return Evidence({"registered": False})
        try:
            entries = await needs.reader.fetch_feedback(subject.network, subject.agent_id)
        except ChainUnavailable as error:
            return Unavailable(error.message)
        return Evidence(_seen(entries))

    def weigh(self, evidence: Evidence, probes: Mapping[str, Probe]) -> Weighed:
        del probes
        seen = evidence.data
        if not seen["registered"]:
            return Weighed(50.0, 0.0, ("The agent is not registered in an ERC-8004 registry.",))
        reviewers = _total(seen)
        if not reviewers:
            return Weighed(50.0, 0.0, ("Nobody has given feedback in the registry yet.",))
        value = round(float(_sum(seen) / reviewers), 2)
        confidence = round(reviewers / (reviewers + HALF_SURE_AT), 4)
        people = "1 reviewer" if reviewers == 1 else f"{reviewers} reviewers"
        return Weighed(value, confidence, (f"{people} in the registry give {value:g} of 100.",))


def _seen(entries: Sequence[Feedback]) -> JsonObject:
    """Values as decimal text: exact, and the same on any machine."""
    latest: dict[str, Feedback] = {}
    counted = 0
    for entry in entries:
        if score_of(entry) is None:
            continue
        counted += 1
        known = latest.get(entry.client)
        if known is None or entry.index > known.index:
            latest[entry.client] = entry
    values = [(client, latest[client].value) for client in sorted(latest)]
    kept, rest = values[:REVIEWERS_MAX], values[REVIEWERS_MAX:]
    return {
        "registered": True,
        "reviewers": {client: _text(value) for client, value in kept},
        "further": {"reviewers": len(rest), "sum": _text(sum((v for _, v in rest), Decimal(0)))},
        "entries": counted,
        "discarded": len(entries) - counted,
    }


def _text(value: Decimal) -> str:
    return format(value.normalize(), "f")


def _total(seen: JsonObject) -> int:
    reviewers, further = seen["reviewers"], seen["further"]
    more = further["reviewers"] if is_object(further) else 0
    return (len(reviewers) if is_object(reviewers) else 0) + (more if isinstance(more, int) else 0)


def _sum(seen: JsonObject) -> Decimal:
    reviewers, further = seen["reviewers"], seen["further"]
    kept = reviewers.values() if is_object(reviewers) else ()
    more = further["sum"] if is_object(further) else "0"
    return sum((Decimal(str(value)) for value in kept), Decimal(str(more)))


SIGNAL: Final[Signal] = Registry8004()
