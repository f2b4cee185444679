"""Compares announced with unannounced visits to one agent, as rows of findings. Pure.

It compares fingerprints of deterministic facts, and critical checks, which have a right answer.
What a visit did not see (refusals, challenge pages, 403, 429, 5xx, time-outs) is left out.
Source: evidence.md#cloaking.
"""

from collections.abc import Sequence
from typing import Final

from assay.common.json import JsonObject
from assay.evaluation.visits import VisitRecord
from assay.probing.unannounced import ANNOUNCED_ONLY, CloakingSighting, Difference, differences

CLOAKING: Final = "cloaking"
"""The finding's name among critical checks."""

FACTS: Final = frozenset({"tools", "schema", "price", "payee", "card"})
"""Facts of fingerprints that do not depend on the caller."""

FIX: Final = "Serve every caller the same tools, schemas, prices, payees and card."
_SURE, _WARNED = 0.9, 0.3


def compared(
    visits: Sequence[VisitRecord], critical_checks: frozenset[str] = frozenset()
) -> list[Difference]:
    """Return what always differs between both kinds of visit; `visits` in order of time."""
    names = critical_checks - ANNOUNCED_ONLY
    return differences(
        [one for order, visit in enumerate(visits) for one in _sightings(order, visit, names)]
    )


def row_of(found: Sequence[Difference]) -> JsonObject | None:
    """Return differences as one row of findings: critical if one is a finding, else a warning."""
    if not found:
        return None
    is_open = any(difference.is_finding for difference in found)
    shown = [d for d in found if d.is_finding == is_open]
    return {
        "check": CLOAKING,
        "severity": "critical" if is_open else "info",
        "confidence": _SURE if is_open else _WARNED,
        "sightings": max(d.pairs for d in shown),
        "open": is_open,
        "request": "announced and unannounced visits",
        "bytes": "; ".join(f"{d.check}: {d.pairs} pairs on {d.days} days" for d in shown)[:500],
        "fix": FIX,
    }


def _sightings(order: int, visit: VisitRecord, names: frozenset[str]) -> list[CloakingSighting]:
    is_announced = visit.label == "announced"
    source = visit.source or "home"
    day = visit.at.toordinal()
    found = [
        CloakingSighting(check, order, day, is_announced, value, source)
        for check, value in sorted(visit.fingerprints.items())
        if check.partition(" ")[0] in FACTS
    ]
    for check in sorted(names & visit.outcomes.keys()):
        seen = visit.outcomes[check]
        if seen != "blocked":
            value = "right" if seen == "passed" else "wrong"
            found.append(
                CloakingSighting(
                    check, order, day, is_announced, value, source, has_right_answer=True
                )
            )
    return found
