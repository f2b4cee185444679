"""The third set, written when the second one had been looked at.

Its author had read neither the detectors nor the code of any agent of the other sets, good or bad,
only their names and tests. Each kind's name begins with `third`, and by that word the bench selects
the set.
"""

from collections.abc import Sequence

from tests.ground_truth import (
    third_a2a,
    third_bad_hollow,
    third_bad_leaking,
    third_bad_obedient,
    third_bad_poisoned,
    third_graphs,
    third_http,
    third_mcp,
    third_mcp_sums,
    third_mcp_tongues,
)
from tests.ground_truth.third_base import Third

HONEST: Sequence[Third] = (
    *third_a2a.AGENTS,
    *third_mcp.AGENTS,
    *third_mcp_sums.AGENTS,
    *third_mcp_tongues.AGENTS,
    *third_http.AGENTS,
    *third_graphs.AGENTS,
)
BAD: Sequence[Third] = (
    *third_bad_poisoned.AGENTS,
    *third_bad_obedient.AGENTS,
    *third_bad_leaking.AGENTS,
    *third_bad_hollow.AGENTS,
)
