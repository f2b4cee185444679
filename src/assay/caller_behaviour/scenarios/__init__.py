"""Every scenario. A new one is a value in the file of its subject."""

from collections.abc import Mapping
from typing import Final

from assay.caller_behaviour.scenario import Scenario
from assay.caller_behaviour.scenarios import boundaries, faults, refusals
from assay.common.plugins import values_of

SCENARIOS: Final[Mapping[str, Scenario]] = values_of((boundaries, faults, refusals), Scenario)
"""By name, sorted."""
