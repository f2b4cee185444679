"""The second set, written when the fresh one had been looked at.

Its author had read neither the detectors nor any bad agent of the other sets. Each kind's name
begins with `second`, and by that word the bench selects the set.
"""

from collections.abc import Sequence

from tests.ground_truth import (
    second_bad_fields,
    second_bad_hollow,
    second_bad_leaks,
    second_bad_servile,
    second_bad_trade,
    second_honest_a2a,
    second_honest_http,
    second_honest_mcp,
    second_honest_sold,
)
from tests.ground_truth.second_base import Second

HONEST: Sequence[Second] = (
    *second_honest_a2a.AGENTS,
    *second_honest_mcp.AGENTS,
    *second_honest_http.AGENTS,
    *second_honest_sold.AGENTS,
)
BAD: Sequence[Second] = (
    *second_bad_servile.AGENTS,
    *second_bad_leaks.AGENTS,
    *second_bad_fields.AGENTS,
    *second_bad_hollow.AGENTS,
    *second_bad_trade.AGENTS,
)
