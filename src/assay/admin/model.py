"""What an admin sees of the whole platform (interface.md#dashboard)."""

from dataclasses import dataclass

from assay.accounts.model import Operator
from assay.analytics.model import CallSums, Funnel


@dataclass(frozen=True, slots=True)
class PlatformStats:
    """The platform's sums. `agents` counts an agent once for every operator that it called."""

    operators: int
    pro: int
    admins: int
    suspended: int
    active_keys: int
    active_endpoints: int
    agents: int
    total: CallSums
    today: CallSums
    funnel: Funnel


@dataclass(frozen=True, slots=True)
class OperatorOverview:
    """An account and its sums."""

    operator: Operator
    counted: CallSums
    agents: int
    active_keys: int
    active_endpoints: int
