"""The seventh set's honest agents, written when the sixth set had been looked at.

Their author had read neither the detectors nor the code of any agent of the other sets. Half of
their owners have read `docs/better-grade.md` as busy people do, and did the first things it names
that fit; the others publish what such services usually publish.
"""

from collections.abc import Sequence

from tests.ground_truth import (
    seventh_a2a,
    seventh_a2a_own,
    seventh_abroad,
    seventh_mcp,
    seventh_mcp_own,
    seventh_rest,
    seventh_sold,
    seventh_web,
)
from tests.ground_truth.owned import Owned

HONEST: Sequence[Owned] = (
    *seventh_a2a.AGENTS,
    *seventh_a2a_own.AGENTS,
    *seventh_mcp.AGENTS,
    *seventh_mcp_own.AGENTS,
    *seventh_rest.AGENTS,
    *seventh_web.AGENTS,
    *seventh_sold.AGENTS,
    *seventh_abroad.AGENTS,
)
READ_THE_PAGE = frozenset(spec.name for spec in HONEST if spec.read_the_page)
"""Those whose owners have read how to get a better grade."""
