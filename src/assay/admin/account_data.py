"""Exports an account's data, and deletes an account (conventions.md#account-security)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from assay.accounts.allowance import Allowance, AllowanceUsage
from assay.accounts.api_keys import ApiKeys
from assay.accounts.logins import Logins
from assay.accounts.model import ApiKey, DashboardSession, Operator
from assay.accounts.operators import QUOTA_WINDOW, Operators
from assay.accounts.password_proof import PasswordProof, RequestQuota
from assay.accounts.ports import Client
from assay.accounts.second_factor import SecondFactors
from assay.admin.store import SqlAccountEnd
from assay.analytics.model import Stats
from assay.analytics.queries import Analytics
from assay.audit.service import TERMINAL, Actor, AuditEntry, AuditStore, new_entry
from assay.common.clock import Clock
from assay.webhooks.model import WebhookRegistration
from assay.webhooks.service import Webhooks
from assay.wrappers.model import WrapperConfig
from assay.wrappers.service import Endpoints

NOTES_MAX: Final = 5000
"""Lines of the audit trail in an export, the newest."""


EXPORTS_PER_HOUR: Final = 10
"""Exports of one account an hour, in one process."""


@dataclass(frozen=True, slots=True)
class AccountExport:
    """Everything that is stored about an account, without calls and payments, which have pages."""

    operator: Operator
    recovery_codes_left: int
    allowance: AllowanceUsage
    keys: Sequence[ApiKey]
    sessions: Sequence[DashboardSession]
    endpoints: Sequence[WrapperConfig]
    webhooks: Sequence[WebhookRegistration]
    stats: Stats
    notes: Sequence[AuditEntry]


@dataclass(frozen=True, slots=True)
class AccountDataDependencies:
    """What an account's data are read from."""

    end: SqlAccountEnd
    operators: Operators
    proof: PasswordProof
    factors: SecondFactors
    logins: Logins
    keys: ApiKeys
    allowance: Allowance
    endpoints: Endpoints
    webhooks: Webhooks
    analytics: Analytics
    audit: AuditStore
    clock: Clock


class AccountData:
    """Exports and deletes accounts."""

    def __init__(self, dependencies: AccountDataDependencies) -> None:
        self._dependencies = dependencies
        self._exports = RequestQuota(dependencies.clock, EXPORTS_PER_HOUR)

    async def export(self, operator: Operator, actor: Actor = TERMINAL) -> AccountExport:
        """Return what is stored about the account; it contains no secret, not even as a hash.

        Each export is a line of the audit trail. Raises `TooMany` beyond `EXPORTS_PER_HOUR`.
        """
        dependencies, operator_id = self._dependencies, operator.id
        self._exports.require(operator_id)
        entry = new_entry(dependencies.clock, actor, "account.exported", operator_id)
        await dependencies.operators.record(entry)
        return AccountExport(
            operator=operator,
            recovery_codes_left=await dependencies.factors.recovery_codes_left(operator_id),
            allowance=await dependencies.allowance.usage(operator),
            keys=await dependencies.keys.list(operator_id),
            sessions=await dependencies.logins.list(operator_id),
            endpoints=await dependencies.endpoints.list(operator_id),
            webhooks=await dependencies.webhooks.list(operator_id),
            stats=await dependencies.analytics.stats(operator_id),
            notes=await dependencies.audit.page_for_admin(operator_id, None, NOTES_MAX),
        )

    async def delete(
        self, operator: Operator, password: str, code: str | None, client: Client, actor: Actor
    ) -> None:
        """Delete the account permanently, for its owner.

        Raises `PasswordWrong`, `TotpRequired`, `TotpInvalid`, `TooMany`, and `LastAdmin`.
        """
        record = await self._dependencies.proof.confirm(operator, password, client)
        await self._dependencies.factors.require(record, code, actor)
        await self.delete_for_admin(operator.id, actor)

    async def delete_for_admin(self, operator_id: str, actor: Actor = TERMINAL) -> None:
        """Delete an account permanently. Raises `OperatorNotFound` and `LastAdmin`.

        Other processes refuse its keys and wrappers within `api_keys.REMEMBERED_S` seconds.
        """
        dependencies, now = self._dependencies, self._dependencies.clock.now()
        entry = new_entry(dependencies.clock, actor, "account.deleted", operator_id)
        await dependencies.end.erase(operator_id, now, now - QUOTA_WINDOW, entry)
        dependencies.keys.forget(operator_id)
        dependencies.endpoints.forget(operator_id)
