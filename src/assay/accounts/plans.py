"""What a plan includes (spec 1 rule 9; decisions, sections 4 and 12)."""

from collections.abc import Mapping
from types import MappingProxyType

from assay.accounts.model import Feature, Plan, PlanRequired

INCLUDED: Mapping[Plan, frozenset[Feature]] = MappingProxyType(
    {Plan.FREE: frozenset[Feature](), Plan.PRO: frozenset(Feature)}
)
"""Paid signals and the proxy are Pro's. Source: decisions, sections 4 and 7."""


def require(plan: Plan, feature: Feature, upgrade_url: str, named: str = "feature") -> None:
    """Raises `PlanRequired` when the plan lacks the feature; its body names it as `named`."""
    if feature not in INCLUDED[plan]:
        refusal = PlanRequired(f"The {feature} {named} needs the Pro plan.", upgradeUrl=upgrade_url)
        refusal.extras[named] = feature.value
        raise refusal
