"""The fourth set, written when the third one had been looked at.

Its author had read neither the detectors nor the code of any agent of the other sets, good or bad,
only their names and the third set's plumbing and tests. Each kind's name begins with `fourth`, and
by that word the bench selects the set.
"""

from collections.abc import Sequence

from tests.ground_truth import (
    fourth_a2a,
    fourth_bad_hollow,
    fourth_bad_leaking,
    fourth_bad_leaking_web,
    fourth_bad_obedient,
    fourth_bad_poisoned,
    fourth_http,
    fourth_http_tongues,
    fourth_mcp,
    fourth_mcp_own,
    fourth_sold,
)
from tests.ground_truth.fourth_base import Fourth

HONEST: Sequence[Fourth] = (
    *fourth_a2a.AGENTS,
    *fourth_mcp.AGENTS,
    *fourth_mcp_own.AGENTS,
    *fourth_http.AGENTS,
    *fourth_http_tongues.AGENTS,
    *fourth_sold.AGENTS,
)
BAD: Sequence[Fourth] = (
    *fourth_bad_hollow.AGENTS,
    *fourth_bad_obedient.AGENTS,
    *fourth_bad_leaking.AGENTS,
    *fourth_bad_leaking_web.AGENTS,
    *fourth_bad_poisoned.AGENTS,
)
