"""The sixth set's bad agents, written from the public pages alone.

Their author had read neither the detectors nor an agent of another set, honest or bad.
"""

from collections.abc import Sequence

from tests.ground_truth import (
    sixth_bad_hollow,
    sixth_bad_leaking,
    sixth_bad_obedient,
    sixth_bad_poisoned,
)
from tests.ground_truth.sixth_bad_base import SixthBad

BAD: Sequence[SixthBad] = (
    *sixth_bad_hollow.AGENTS,
    *sixth_bad_leaking.AGENTS,
    *sixth_bad_obedient.AGENTS,
    *sixth_bad_poisoned.AGENTS,
)
