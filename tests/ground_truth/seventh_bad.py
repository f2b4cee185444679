"""The seventh set's bad agents, written from public reports of attacks.

Their author had read neither the detectors nor an agent of another set, honest or bad; the tests
of the sixth set and the design of the ladder were known.
"""

from collections.abc import Sequence

from tests.ground_truth import (
    seventh_bad_grasping,
    seventh_bad_hollow,
    seventh_bad_leaking,
    seventh_bad_obedient,
    seventh_bad_patient,
    seventh_bad_poisoned,
)
from tests.ground_truth.seventh_bad_base import SeventhBad

BAD: Sequence[SeventhBad] = (
    *seventh_bad_hollow.AGENTS,
    *seventh_bad_obedient.AGENTS,
    *seventh_bad_leaking.AGENTS,
    *seventh_bad_poisoned.AGENTS,
    *seventh_bad_patient.AGENTS,
    *seventh_bad_grasping.AGENTS,
)
