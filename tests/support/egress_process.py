"""A process that sends on egress budgets: of several on one database, one."""

import asyncio
import ssl

from assay.common.egress_budget import (
    ANYBODY,
    RESERVED,
    BudgetRules,
    EgressUse,
    egress_use,
)
from assay.db.engine import Database
from assay.db.state import SqlSharedState
from assay.db.store_egress_usage import SqlBudgetLedger
from assay.net.egress.budget_client import EgressBudget
from assay.net.egress.client import GuardedHttp
from assay.net.egress.consent import Consents
from assay.net.egress.ports import EgressError, EgressResponse, Failure, Limits, OutboundRequest
from assay.net.egress.url import EgressPolicy
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.scripted_resolver import ScriptedResolver
from tests.support.raw_server import plain

DEVELOPMENT = EgressPolicy(allow_private=True, require_https=False)
LIMITS = Limits(total_s=20.0)
GLANCE = Limits(body_bytes_max=1024)
OK = plain(b"ok")
RULES = BudgetRules(holds_private=True)
BYTES = RULES.unproven.size_bytes


class Process:
    """One of several processes on one database: a ledger, consents and a client of its own."""

    def __init__(
        self,
        database: Database,
        clock: FrozenClock,
        rules: BudgetRules = RULES,
        names: dict[str, list[list[str]]] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.consents = Consents(SqlSharedState(database, clock), clock)
        self.budget = EgressBudget(SqlBudgetLedger(database, clock), self.consents, rules)
        resolver = ScriptedResolver(**names) if names else None
        self.http = GuardedHttp(DEVELOPMENT, resolver, budget=self.budget, tls=tls)

    async def ask(
        self, url: str, use: EgressUse = ANYBODY, body: bytes = b""
    ) -> EgressResponse | Failure:
        with egress_use(use):
            try:
                return await self.http.send(
                    OutboundRequest("POST" if body else "GET", url, {}, body), LIMITS
                )
            except EgressError as error:
                return error.failure

    async def ask_often(self, url: str, use: EgressUse = ANYBODY, times: int = 80) -> int:
        """How many of requests made at once were answered."""
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(self.ask(url, use)) for _ in range(times)]
        return sum(isinstance(task.result(), EgressResponse) for task in asked)

    async def glance_often(self, url: str, times: int = 60) -> int:
        """How many of requests, one after the other, got the beginning of an answer."""
        with egress_use(RESERVED):
            for number in range(times):
                try:
                    await self.http.send(OutboundRequest("GET", url), GLANCE)
                except EgressError:
                    return number
        return times
