"""What a plan includes: features, and the monthly allowance of metered calls.

Calls are counted in memory and written in batches, so a gate that answers from memory touches no
database.

Source: interface.md#overview, #allowance-errors, #limits; conventions.md#signals-and-score,
#accounts.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil
from types import MappingProxyType

from assay.accounts.model import (
    FREE_MONTHLY_ALLOWANCE,
    Feature,
    MonthlyLimitExceeded,
    Operator,
    Plan,
    PlanRequired,
    Role,
)
from assay.accounts.store_operators import SqlAllowanceStore
from assay.common.clock import Clock, iso
from assay.common.costs import Bearer
from assay.common.errors import SourceAway
from assay.common.tasks import finish

INCLUDED: Mapping[Plan, frozenset[Feature]] = MappingProxyType(
    {Plan.FREE: frozenset[Feature](), Plan.PRO: frozenset(Feature)}
)
"""Paid signals and the proxy belong to Pro. Source: conventions.md#signals-and-score,
#open-endpoints."""


def require(plan: Plan, feature: Feature, upgrade_url: str, named: str = "feature") -> None:
    """Raise `PlanRequired` if the plan lacks the feature; the error's body calls it `named`."""
    if feature not in INCLUDED[plan]:
        refusal = PlanRequired(f"The {feature} {named} needs the Pro plan.", upgradeUrl=upgrade_url)
        refusal.extras[named] = feature.value
        raise refusal


def operator_bearer(operator_id: str, plan: Plan, role: Role) -> Bearer:
    """Return the bearer of an account's costs. Quotas apply to Free operators only."""
    is_stranger = plan is Plan.FREE and role is not Role.ADMIN
    return Bearer(f"operator {operator_id}", is_limited=is_stranger)


REMEMBERED_MAX = 50_000
"""Accounts whose count stays in memory after a flush; other counts are read again."""

AllowanceReservation = tuple[str, str]
"""One counted call: operator id and month `YYYY-MM`."""


@dataclass(frozen=True, slots=True)
class AllowanceUsage:
    """What an account has used in the current month."""

    used: int
    limit: int | None
    """The plan's limit; None if it has none."""
    resets_at: datetime


class Allowance:
    """Counts every account's metered calls; refuses Free accounts beyond the limit.

    A call is reserved before it is decided, and released if it was not answered, so that concurrent
    calls cannot exceed the limit together. Each flush reads the calls of other processes.
    """

    def __init__(
        self,
        store: SqlAllowanceStore,
        clock: Clock,
        upgrade_url: str,
        limit: int = FREE_MONTHLY_ALLOWANCE,
    ) -> None:
        self._store = store
        self._clock = clock
        self._upgrade_url = upgrade_url
        self._limit = limit
        self._written: dict[AllowanceReservation, int] = {}
        self._unwritten: Counter[AllowanceReservation] = Counter()
        self._turn = asyncio.Lock()

    async def reserve(self, operator: Operator) -> AllowanceReservation:
        """Count one call; return the reservation, which releases it again.

        Raises `MonthlyLimitExceeded`, for Free accounts only. While the store does not answer, an
        account whose calls of the month were never read begins at none; what it makes is added to
        them later.
        """
        key = self._key(operator)
        if key not in self._written:
            with suppress(SourceAway):
                used = await self._store.used(*key)
                self._written.setdefault(key, used)
        return self._reserve(key, operator)

    def reserve_cached(self, operator: Operator) -> AllowanceReservation | None:
        """Reserve without I/O; return None, uncounted, if the month is not loaded yet."""
        key = self._key(operator)
        return self._reserve(key, operator) if key in self._written else None

    def release(self, reservation: AllowanceReservation) -> None:
        """Release a reservation: the call was not answered."""
        self._unwritten[reservation] -= 1

    async def usage(self, operator: Operator) -> AllowanceUsage:
        """Return this month's calls of all processes, as far as they are written, and the limit."""
        async with self._turn:  # a flush moves counts from memory into the store
            now = self._clock.now()
            key = self._key(operator)
            self._written[key] = await self._store.used(*key)
            limit = self._limit if operator.plan is Plan.FREE else None
            return AllowanceUsage(
                self._written[key] + self._unwritten[key], limit, month_after(now)
            )

    async def flush(self) -> None:
        """Write the new counts. A failure loses nothing and counts nothing twice."""
        async with self._turn:
            batch = {key: count for key, count in self._unwritten.items() if count}
            if batch:
                await finish(self._write(batch))
            self._forget_past_months()

    async def _write(self, batch: Mapping[AllowanceReservation, int]) -> None:
        totals = await self._store.add(batch)
        for key, count in batch.items():
            self._unwritten[key] -= count
        self._written |= totals

    def _reserve(self, key: AllowanceReservation, operator: Operator) -> AllowanceReservation:
        used = self._written.get(key, 0) + self._unwritten[key]
        if operator.plan is Plan.FREE and used >= self._limit:
            raise self._exceeded(used)
        self._unwritten[key] += 1
        return key

    def _exceeded(self, used: int) -> MonthlyLimitExceeded:
        now = self._clock.now()
        resets = month_after(now)
        return MonthlyLimitExceeded(
            "The monthly allowance of the Free plan is used up.",
            retry_after_s=ceil((resets - now).total_seconds()),
            used=used,
            limit=self._limit,
            resetsAt=iso(resets),
            upgradeUrl=self._upgrade_url,
        )

    def _key(self, operator: Operator) -> AllowanceReservation:
        return operator.id, month_of(self._clock.now())

    def _forget_past_months(self) -> None:
        month = month_of(self._clock.now())
        surplus = len(self._written) - REMEMBERED_MAX
        for key in list(self._written):
            is_due = key[1] != month or surplus > 0
            if is_due and not self._unwritten[key]:
                del self._written[key]
                del self._unwritten[key]
                surplus -= 1


def month_of(moment: datetime) -> str:
    """Return the UTC calendar month, `YYYY-MM`."""
    return moment.astimezone(UTC).strftime("%Y-%m")


def month_after(moment: datetime) -> datetime:
    """Return the first moment of the next UTC calendar month."""
    utc = moment.astimezone(UTC)
    year, month = (utc.year + 1, 1) if utc.month == 12 else (utc.year, utc.month + 1)  # noqa: PLR2004
    return datetime(year, month, 1, tzinfo=UTC)
