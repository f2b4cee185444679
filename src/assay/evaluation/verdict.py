"""Computes rung, score and verdict record from evidence and policy. Pure."""

from collections.abc import Mapping, Sequence

from assay.chains.model import is_address
from assay.common.json import JsonObject, is_array, is_object
from assay.evaluation.ladder import LadderPlace, place
from assay.evaluation.model import Score, SignalName, SignalResult
from assay.evaluation.policy import RULES, ladder_from
from assay.evaluation.scoring import score, weights_from
from assay.evaluation.tiers import ScoringPolicy, TierRow, tiers_from

_CELLS = 4
"""Cells of a row of the tier table."""


def place_of(
    agent_id: str,
    collected: Sequence[SignalResult],
    unavailable: Mapping[SignalName, str],
    rules: ScoringPolicy,
) -> LadderPlace:
    """Return the rung that all evidence proves; an agent whose id is an address is a key agent."""
    evidence = {c.signal.value: c.evidence.data for c in collected}
    missing = frozenset(map(str, unavailable))
    return place(evidence, missing, rules.ladder, is_key_agent=is_address(agent_id))


def grade_score(
    agent_id: str,
    collected: Sequence[SignalResult],
    unavailable: Mapping[SignalName, str],
    rules: ScoringPolicy,
    selected: frozenset[SignalName] = frozenset(),
) -> Score:
    """Return the score under the ceiling of the rung that all evidence proves.

    The ceiling does not depend on the selected signals. Raises `EvidenceUnavailable` when not one
    selected signal could be collected.
    """
    found = place_of(agent_id, collected, unavailable, rules)
    return score(collected, unavailable, rules.weights, found, selected)


def rules_from(document: JsonObject) -> ScoringPolicy | None:
    """Parse the rules of `ScoringPolicy.document`; None if other code made it.

    Raises `ValueError` for an invalid document.
    """
    if document.get("rules") != RULES:
        return None
    weights, tiers, ladder = (document.get(name) for name in ("weights", "tiers", "ladder"))
    if not is_object(weights) or not is_array(tiers) or not is_object(ladder):
        raise ValueError("the policy of an evaluation is not whole")
    rows: list[TierRow] = [
        (float(str(row[0])), str(row[1]), str(row[2]), str(row[3]))
        for row in tiers
        if is_array(row) and len(row) == _CELLS
    ]
    numbers = {name: float(str(weight)) for name, weight in weights.items()}
    return ScoringPolicy(weights_from(numbers), tiers_from(rows), ladder_from(ladder))
