"""What a plan includes, and who bears what is done for an account.

Source: interface.md#overview; conventions.md#signals-and-score, #accounts.
"""

from collections.abc import Mapping
from types import MappingProxyType

from assay.accounts.model import Feature, Plan, PlanRequired, Role
from assay.common.costs import Bearer

INCLUDED: Mapping[Plan, frozenset[Feature]] = MappingProxyType(
    {Plan.FREE: frozenset[Feature](), Plan.PRO: frozenset(Feature)}
)
"""Paid signals and the proxy are Pro's. Source: conventions.md#signals-and-score,
#open-endpoints."""


def require(plan: Plan, feature: Feature, upgrade_url: str, named: str = "feature") -> None:
    """Raises `PlanRequired` when the plan lacks the feature; its body names it as `named`."""
    if feature not in INCLUDED[plan]:
        refusal = PlanRequired(f"The {feature} {named} needs the Pro plan.", upgradeUrl=upgrade_url)
        refusal.extras[named] = feature.value
        raise refusal


def operator_bearer(operator_id: str, plan: Plan, role: Role) -> Bearer:
    """The bearer of an account's costs. Quotas hold for Free operators, not for Pro and admins."""
    is_stranger = plan is Plan.FREE and role is not Role.ADMIN
    return Bearer(f"operator {operator_id}", is_limited=is_stranger)
