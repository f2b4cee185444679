"""What an admin sees of the whole platform (spec 4.6)."""

from dataclasses import dataclass

from assay.accounts.model import Operator
from assay.analytics.model import Counted, Funnel


@dataclass(frozen=True, slots=True)
class PlatformStats:
    """Everything together. `agents` counts an agent once for every operator it called."""

    operators: int
    pro: int
    admins: int
    suspended: int
    active_keys: int
    active_endpoints: int
    agents: int
    total: Counted
    today: Counted
    funnel: Funnel


@dataclass(frozen=True, slots=True)
class OperatorOverview:
    """An account and its sums."""

    operator: Operator
    counted: Counted
    agents: int
    active_keys: int
    active_endpoints: int
