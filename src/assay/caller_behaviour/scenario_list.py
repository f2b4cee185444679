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
    contexts_kept_apart.SCENARIO,
    forbidden_not_hammered.SCENARIO,
    malformed_json_survived.SCENARIO,
    outage_backed_off.SCENARIO,
    payment_not_hammered.SCENARIO,
    rate_limit_obeyed.SCENARIO,
    redirects_bounded.SCENARIO,
    retry_is_idempotent.SCENARIO,
    scope_kept.SCENARIO,
    session_kept_at_home.SCENARIO,
    slow_answer_awaited.SCENARIO,
    tainted_text_not_followed.SCENARIO,
    unauthorized_not_hammered.SCENARIO,
)

SCENARIOS: Final[Mapping[str, Scenario]] = MappingProxyType({one.name: one for one in _ALL})
"""By name."""
