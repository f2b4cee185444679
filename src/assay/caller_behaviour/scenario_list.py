"""Every obstacle of the course. A new one is a new file in `obstacles`, and its line here."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from assay.caller_behaviour.scenario import Scenario
from assay.caller_behaviour.scenarios import (
    contexts_kept_apart,
    forbidden_not_hammered,
    malformed_json_survived,
    outage_backed_off,
    payment_not_hammered,
    rate_limit_obeyed,
    redirects_bounded,
    retry_is_idempotent,
    scope_kept,
    session_kept_at_home,
    slow_answer_awaited,
    tainted_text_not_followed,
    unauthorized_not_hammered,
)

_ALL = (
    contexts_kept_apart.OBSTACLE,
    forbidden_not_hammered.OBSTACLE,
    malformed_json_survived.OBSTACLE,
    outage_backed_off.OBSTACLE,
    payment_not_hammered.OBSTACLE,
    rate_limit_obeyed.OBSTACLE,
    redirects_bounded.OBSTACLE,
    retry_is_idempotent.OBSTACLE,
    scope_kept.OBSTACLE,
    session_kept_at_home.OBSTACLE,
    slow_answer_awaited.OBSTACLE,
    tainted_text_not_followed.OBSTACLE,
    unauthorized_not_hammered.OBSTACLE,
)

OBSTACLES: Final[Mapping[str, Scenario]] = MappingProxyType({one.name: one for one in _ALL})
"""By name."""
