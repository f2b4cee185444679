"""The whole set, in the order in which it is registered."""

from collections import Counter
from collections.abc import Sequence

from tests.ground_truth import (
    bad_absent,
    bad_obedient,
    bad_others,
    bad_patient,
    bad_poisoned,
    bad_two_faced,
    fifth,
    fourth,
    fresh,
    honest_a2a,
    honest_http,
    honest_mcp,
    honest_node,
    second,
    seventh,
    seventh_bad,
    sixth,
    sixth_bad,
    third,
)
from tests.ground_truth.site import Spec

HONEST: Sequence[Spec] = (
    *honest_a2a.AGENTS,
    *honest_mcp.AGENTS,
    *honest_http.AGENTS,
    *honest_node.AGENTS,
    *fresh.HONEST,
    *second.HONEST,
    *third.HONEST,
    *fourth.HONEST,
    *fifth.HONEST,
    *sixth.HONEST,
    *seventh.HONEST,
)
BAD: Sequence[Spec] = (
    *bad_absent.AGENTS,
    *bad_obedient.AGENTS,
    *bad_poisoned.AGENTS,
    *bad_two_faced.AGENTS,
    *bad_patient.AGENTS,
    *bad_others.AGENTS,
    *fresh.BAD,
    *second.BAD,
    *third.BAD,
    *fourth.BAD,
    *fifth.BAD,
    *sixth_bad.BAD,
    *seventh_bad.BAD,
)
AGENTS: Sequence[Spec] = (*HONEST, *BAD)


def kinds() -> Counter[str]:
    """How many agents there are of each kind."""
    return Counter(f"{'honest' if s.truth == 'honest' else 'bad'}: {s.kind}" for s in AGENTS)
