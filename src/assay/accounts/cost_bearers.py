"""Who bears what is done for an account."""

from assay.accounts.model import Plan, Role
from assay.common.costs import Bearer


def operator_bearer(operator_id: str, plan: Plan, role: Role) -> Bearer:
    """The bearer of an account's costs. Quotas hold for Free operators, not for Pro and admins."""
    is_stranger = plan is Plan.FREE and role is not Role.ADMIN
    return Bearer(f"operator {operator_id}", is_limited=is_stranger)
