"""The sixth set's honest agents, written when the fifth set had been looked at.

Their author had read neither the detectors nor the code of any agent of the other sets. Half of
their owners have read `docs/better-grade.md` as busy people do, and did the first things it names
that fit; the others publish what such services usually publish.
"""

from collections.abc import Sequence

from tests.ground_truth import (
    sixth_a2a,
    sixth_http,
    sixth_http_own,
    sixth_mcp,
    sixth_mcp_own,
    sixth_sold,
)
from tests.ground_truth.owned import Owned

HONEST: Sequence[Owned] = (
    *sixth_a2a.AGENTS,
    *sixth_mcp.AGENTS,
    *sixth_mcp_own.AGENTS,
    *sixth_http.AGENTS,
    *sixth_http_own.AGENTS,
    *sixth_sold.AGENTS,
)
READ_THE_PAGE = frozenset(spec.name for spec in HONEST if spec.read_the_page)
"""Those whose owners have read how to get a better grade."""
