"""The fresh set: written by somebody who has read neither the detectors nor the other bad agents.

Repairs that were made after misses on the first set count on this one only. Each kind's name begins
with `fresh`, and by that word the bench selects the set.
"""

from collections.abc import Sequence

from tests.ground_truth import (
    fresh_bad_hollow,
    fresh_bad_later,
    fresh_bad_masks,
    fresh_bad_swayed,
    fresh_bad_texts,
    fresh_bad_trade,
    fresh_honest,
    fresh_honest_web,
)
from tests.ground_truth.fresh_base import Fresh

HONEST: Sequence[Fresh] = (*fresh_honest.AGENTS, *fresh_honest_web.AGENTS)
BAD: Sequence[Fresh] = (
    *fresh_bad_hollow.AGENTS,
    *fresh_bad_swayed.AGENTS,
    *fresh_bad_texts.AGENTS,
    *fresh_bad_masks.AGENTS,
    *fresh_bad_later.AGENTS,
    *fresh_bad_trade.AGENTS,
)
