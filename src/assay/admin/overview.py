"""The platform as its admins see it, and what they change (interface.md#dashboard)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from assay.accounts.api_keys import ApiKeys
from assay.accounts.model import AccountChange, ApiKey, Operator
from assay.accounts.operators import Operators
from assay.admin.model import OperatorOverview, PlatformStats
from assay.admin.store import SqlAdminStore
from assay.analytics.model import AgentCounted, CallSums, LogFilter, LoggedCall, Stats
from assay.analytics.queries import Analytics, ReportPage
from assay.audit.service import Actor, AuditEntry, AuditStore
from assay.common.clock import Clock
from assay.wrappers.model import WrapperConfig
from assay.wrappers.service import Endpoints

AGENTS_SHOWN: Final = 50
REVENUE_DAYS: Final = 30
KEYS_SHOWN: Final = 200
ENDPOINTS_SHOWN: Final = 1000

_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class OperatorDetail:
    """An account and everything of it; only the newest, if there is a great deal."""

    operator: Operator
    keys: Sequence[ApiKey]
    endpoints: Sequence[WrapperConfig]
    agents: Sequence[AgentCounted]
    stats: Stats
    revenue: Sequence[tuple[date, CallSums]]


@dataclass(frozen=True, slots=True)
class AdminDependencies:
    """What the admin's views are built from."""

    store: SqlAdminStore
    audit: AuditStore
    operators: Operators
    keys: ApiKeys
    endpoints: Endpoints
    analytics: Analytics
    clock: Clock


class Admin:
    """Views across accounts, and changes to them. Its caller has been checked to be an admin."""

    def __init__(self, needs: AdminDependencies) -> None:
        self._needs = needs

    async def stats(self) -> PlatformStats:
        """Return the platform's sums."""
        await self._needs.analytics.fresh()
        today = (self._needs.clock.now().date() - _EPOCH).days
        return await self._needs.store.stats_for_admin(today)

    async def operators(self, limit: int, offset: int) -> tuple[Sequence[OperatorOverview], int]:
        """Return a page of accounts, newest first, and how many there are."""
        await self._needs.analytics.fresh()
        return await self._needs.store.operators_for_admin(limit, offset)

    async def operator(self, operator_id: str) -> OperatorDetail:
        """Return one account in detail. Raises `OperatorNotFound`."""
        needs = self._needs
        operator = await needs.operators.find_for_admin(operator_id)
        agents, _ = await needs.analytics.agents(operator.id, "lastSeen", AGENTS_SHOWN, 0)
        return OperatorDetail(
            operator=operator,
            keys=(await needs.keys.list(operator.id))[:KEYS_SHOWN],
            endpoints=(await needs.endpoints.list(operator.id))[:ENDPOINTS_SHOWN],
            agents=agents,
            stats=await needs.analytics.stats(operator.id),
            revenue=await needs.analytics.revenue(operator.id, REVENUE_DAYS),
        )

    async def logs(
        self, operator_id: str, which: LogFilter, page: ReportPage
    ) -> tuple[Sequence[LoggedCall], int]:
        """Return a page of one account's calls. Raises `OperatorNotFound` and `CallNotFound`."""
        operator = await self._needs.operators.find_for_admin(operator_id)
        return await self._needs.analytics.logs(operator.id, which, page)

    async def change(self, operator_id: str, change: AccountChange, actor: Actor) -> Operator:
        """Change an account at once. Raises `OperatorNotFound` and `OwnAccount`."""
        operator = await self._needs.operators.change_for_admin(operator_id, change, actor)
        self._needs.endpoints.forget(operator_id)  # those of a suspended account stop answering
        return operator

    async def audit(
        self, operator_id: str | None, before: str | None, limit: int, offset: int = 0
    ) -> tuple[Sequence[AuditEntry], int]:
        """Return a page of the audit trail, newest first, and how many entries there are."""
        audit = self._needs.audit
        found = await audit.page_for_admin(operator_id, before, limit, offset)
        return found, await audit.count_for_admin(operator_id)
