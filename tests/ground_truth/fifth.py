"""The fifth set, written when the fourth one had been looked at.

Its author had read neither the detectors nor the code of any agent of the other sets, good or bad,
only their names, the fourth set's plumbing and tests, and the page on measuring grades. Each kind's
name begins with `fifth`, and by that word the bench selects the set.
"""

from collections.abc import Sequence

from tests.ground_truth import (
    fifth_a2a,
    fifth_bad_hollow,
    fifth_bad_leaking,
    fifth_bad_obedient,
    fifth_bad_poisoned,
    fifth_http,
    fifth_http_own,
    fifth_mcp,
    fifth_mcp_own,
    fifth_sold,
)
from tests.ground_truth.fifth_base import Fifth

HONEST: Sequence[Fifth] = (
    *fifth_a2a.AGENTS,
    *fifth_mcp.AGENTS,
    *fifth_mcp_own.AGENTS,
    *fifth_http.AGENTS,
    *fifth_http_own.AGENTS,
    *fifth_sold.AGENTS,
)
BAD: Sequence[Fifth] = (
    *fifth_bad_hollow.AGENTS,
    *fifth_bad_obedient.AGENTS,
    *fifth_bad_leaking.AGENTS,
    *fifth_bad_poisoned.AGENTS,
)
