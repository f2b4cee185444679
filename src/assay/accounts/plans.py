"""What a plan includes (interface.md#overview; conventions.md#signals-and-score, #accounts)."""

from collections.abc import Mapping
from types import MappingProxyType

from assay.accounts.model import Feature, Plan, PlanRequired

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
