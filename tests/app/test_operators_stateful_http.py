"""Whatever operators and an admin do, in any order: what is answered is what a plain model says."""

import asyncio
import tempfile
from collections import Counter
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from assay.accounts.model import Role
from assay.payments.model import PaymentState
from tests.support.fakes.calls import PAYER, call, claimed, payment
from tests.support.live_service import TestService, start_test_service

T = TypeVar("T")
EMAILS = ("one@example.com", "two@example.com")
AGENTS = st.sampled_from(["7", "8", None])
WHO = st.sampled_from(EMAILS)
HOOK = "http://127.0.0.1:8999/hook"  # nobody opens there


@dataclass
class Account:
    """What an operator should be told of itself."""

    id: str
    token: dict[str, str]
    keys: dict[str, bool] = field(default_factory=dict)
    endpoints: dict[str, bool] = field(default_factory=dict)
    webhooks: dict[str, list[int] | None] = field(default_factory=dict)
    told: Counter[str] = field(default_factory=Counter)
    calls: list[tuple[str, str | None, str, int]] = field(default_factory=list)
    """Day, agent, endpoint, status."""
    revenue: Counter[str] = field(default_factory=Counter)
    spent: Counter[str] = field(default_factory=Counter)
    suspended: bool = False


class Operators(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.stack = AsyncExitStack()
        self.folder = tempfile.TemporaryDirectory()
        self.accounts: dict[str, Account] = {}
        self.admin: dict[str, str] = {}
        self.notes = 0

    def run_now(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    @initialize()
    def open(self) -> None:
        async def work() -> TestService:
            opened = start_test_service(
                Path(self.folder.name),
                sandbox_per_minute=9999,
                sandbox_per_agent_minute=9999,
                keyed_per_minute=99_999,
                guesses_per_minute=99_999,  # what a suspended account asks is counted as guesses
            )
            service = await self.stack.enter_async_context(opened)
            service.clock.set(service.clock.now().replace(hour=23, minute=30))
            await service.operator("admin@example.com")
            await service.app.operators.set_role_for_admin("admin@example.com", Role.ADMIN)
            self.admin = await service.token("admin@example.com")
            for email in EMAILS:
                await service.operator(email)
                token = await service.token(email)
                me = (await service.http.get("/operator/me", headers=token)).json()
                [key] = (await service.http.get("/operator/keys", headers=token)).json()
                account = Account(me["operator"]["id"], token, {key["id"]: False})
                self.accounts[email] = account
            return service

        self.service = self.run_now(work())

    def teardown(self) -> None:
        self.run_now(self.stack.aclose())
        self.runner.close()
        self.folder.cleanup()

    def ask(self, who: dict[str, str], method: str, path: str, **more: Any) -> Any:
        return self.run_now(self.service.http.request(method, path, headers=who, **more))

    def act(self, account: Account, method: str, path: str, **more: Any) -> Any | None:
        """The answer's body; None from a suspended account, which must be refused."""
        answer = self.ask(account.token, method, path, **more)
        if account.suspended:
            assert (answer.status_code, answer.json()["code"]) == (403, "account_suspended")
            return None
        assert answer.status_code in {200, 201}, answer.text
        return answer.json()

    # -- what operators do ----------------------------------------------------------------------

    @rule(who=WHO)
    def rotate_a_key(self, who: str) -> None:
        made = self.act(self.accounts[who], "POST", "/operator/keys/rotate")
        if made is not None:
            self.accounts[who].keys[made["id"]] = False

    @rule(who=WHO, pick=st.randoms(use_true_random=False))
    def revoke_a_key(self, who: str, pick: Any) -> None:
        account = self.accounts[who]
        key = pick.choice(sorted(account.keys))
        if self.act(account, "DELETE", f"/operator/keys/{key}") is not None:
            account.keys[key] = True

    @rule(who=WHO, number=st.integers(0, 10**6))
    def wrap(self, who: str, number: int) -> None:
        account = self.accounts[who]
        body = {"path": f"/{number}-{len(account.endpoints)}", "pricePerCall": 0}
        body["targetUrl"] = "http://127.0.0.1:8999"
        made = self.act(account, "POST", "/operator/endpoints", json=body)
        if made is not None:
            account.endpoints[made["id"]] = True

    @rule(who=WHO, pick=st.randoms(use_true_random=False))
    def unwrap(self, who: str, pick: Any) -> None:
        account = self.accounts[who]
        if account.endpoints:
            one = pick.choice(sorted(account.endpoints))
            if self.act(account, "DELETE", f"/operator/endpoints/{one}") is not None:
                account.endpoints[one] = False

    @rule(who=WHO, agents=st.sampled_from([None, [7], [8], [7, 8]]))
    def register_a_webhook(self, who: str, agents: list[int] | None) -> None:
        body = {"event": "evaluation_complete", "url": HOOK}
        body |= {} if agents is None else {"agentIds": agents}  # type: ignore[dict-item]
        made = self.act(self.accounts[who], "POST", "/operator/webhooks/register", json=body)
        if made is not None:
            self.accounts[who].webhooks[made["id"]] = agents

    @rule(who=WHO, pick=st.randoms(use_true_random=False))
    def remove_a_webhook(self, who: str, pick: Any) -> None:
        account = self.accounts[who]
        if account.webhooks:
            one = pick.choice(sorted(account.webhooks))
            if self.act(account, "DELETE", f"/operator/webhooks/{one}") is not None:
                del account.webhooks[one]

    # -- what happens to them -------------------------------------------------------------------

    @rule(agent=st.sampled_from([7, 8]))
    def an_agent_is_evaluated(self, agent: int) -> None:
        answer = self.ask({}, "POST", f"/operator/trigger-sandbox/{agent}")
        assert answer.status_code == 200, answer.text
        for account in self.accounts.values():
            hooks = account.webhooks.items()
            wanting = [hook for hook, agents in hooks if agents is None or agent in agents]
            if wanting and not account.suspended:
                account.told[max(wanting)] += 1  # equal addresses: the newest alone

    @rule(
        who=WHO, agent=AGENTS, status=st.sampled_from([200, 402, 404, 500]), count=st.integers(1, 3)
    )
    @precondition(lambda self: any(a.endpoints for a in self.accounts.values()))
    def calls_are_made(self, who: str, agent: str | None, status: int, count: int) -> None:
        account = self.accounts[who]
        for endpoint in sorted(account.endpoints)[:1]:
            now = self.service.clock.now()
            for _ in range(count):
                made = call(account.id, endpoint, now, agent_id=agent, status=status)
                self.service.app.call_log.add(made)
                account.calls.append((now.date().isoformat(), agent, endpoint, status))

    @rule(who=WHO, amount=st.integers(1, 10**9), settles=st.booleans(), later_s=st.integers(0, 900))
    @precondition(lambda self: any(a.endpoints for a in self.accounts.values()))
    def a_payment_is_made(self, who: str, amount: int, settles: bool, later_s: int) -> None:  # noqa: FBT001
        account = self.accounts[who]
        for endpoint in sorted(account.endpoints)[:1]:
            self.run_now(self._pay(account, endpoint, amount, settles, later_s))

    async def _pay(
        self, account: Account, endpoint: str, amount: int, settles: bool, later_s: int  # noqa: FBT001
    ) -> None:  # fmt: skip
        ledger, now = self.service.app.ledger, self.service.clock.now()
        entry = await claimed(ledger, payment(account.id, endpoint, now, amount))  # type: ignore[arg-type]
        made = call(account.id, endpoint, now, payer=PAYER, payment_id=entry.id)
        self.service.app.call_log.add(made)
        account.calls.append((now.date().isoformat(), PAYER, endpoint, 200))
        self.service.clock.move(later_s)
        await ledger.move(entry, PaymentState.SETTLED if settles else PaymentState.RELEASED)
        if settles:
            account.revenue[self.service.clock.now().date().isoformat()] += amount
            account.spent[endpoint] += amount

    @rule(who=WHO, suspended=st.booleans())
    def an_admin_suspends_or_resumes(self, who: str, suspended: bool) -> None:  # noqa: FBT001
        account = self.accounts[who]
        path = f"/operator/admin/operators/{account.id}"
        answer = self.ask(self.admin, "PATCH", path, json={"suspended": suspended})
        assert answer.json()["operator"]["suspended"] is suspended
        account.suspended = suspended

    @rule(seconds=st.integers(1, 900))
    def time_passes(self, seconds: int) -> None:
        self.service.clock.move(seconds)

    # -- what must be so ------------------------------------------------------------------------

    @invariant()
    def every_operator_is_told_its_own(self) -> None:
        for account in self.accounts.values():
            keys = self.act(account, "GET", "/operator/keys")
            if keys is None:
                continue
            assert {key["id"]: key["revoked"] for key in keys} == account.keys
            endpoints = self.act(account, "GET", "/operator/endpoints")
            assert {one["id"]: one["active"] for one in endpoints or []} == account.endpoints
            hooks = self.act(account, "GET", "/operator/webhooks")
            assert {
                one["id"]: one["agentIds"] for one in (hooks or {"items": []})["items"]
            } == account.webhooks
            log = self.act(account, "GET", "/operator/webhooks/deliveries?limit=500")
            assert log is not None
            assert Counter(one["webhookId"] for one in log["deliveries"]) == +account.told
            self._counted(account)

    def _counted(self, account: Account) -> None:
        today = self.service.clock.now().date().isoformat()
        stats = self.act(account, "GET", "/operator/analytics/stats")
        assert stats is not None
        assert stats["totalCalls"] == len(account.calls)
        assert stats["callsToday"] == sum(day == today for day, *_ in account.calls)
        assert stats["totalRevenue"] == usd(account.revenue.total())
        assert stats["revenueToday"] == usd(account.revenue[today])
        assert stats["uniqueAgents"] == len({agent for _, agent, *_ in account.calls} - {None})
        series = self.act(account, "GET", "/operator/analytics/revenue?days=3") or []
        for item in series:
            assert item["revenue"] == usd(account.revenue[item["date"]])
            assert item["calls"] == sum(day == item["date"] for day, *_ in account.calls)
        top = self.act(account, "GET", "/operator/analytics/top-endpoints")
        top = [] if top is None else top["items"]
        assert {one["endpointId"]: one["calls"] for one in top} == Counter(
            endpoint for *_, endpoint, _ in account.calls
        )
        assert {one["endpointId"]: one["revenue"] for one in top if one["revenue"] != usd(0)} == {
            endpoint: usd(spent) for endpoint, spent in account.spent.items()
        }
        logs = self.act(account, "GET", "/operator/analytics/logs?agentId=7&limit=500")
        assert logs is not None
        assert logs["total"] == len(logs["logs"]) == sum(a == "7" for _, a, *_ in account.calls)

    @invariant()
    def the_admin_sees_them_all(self) -> None:
        stats = self.ask(self.admin, "GET", "/operator/admin/stats").json()
        accounts = self.accounts.values()
        assert stats["suspendedOperators"] == sum(a.suspended for a in accounts)
        assert stats["totalCalls"] == sum(len(a.calls) for a in accounts)
        assert stats["totalRevenue"] == usd(sum(a.revenue.total() for a in accounts))

    @invariant()
    def the_trail_only_grows(self) -> None:
        notes = self.ask(self.admin, "GET", "/operator/admin/audit?limit=500").json()["notes"]
        assert len(notes) >= self.notes
        self.notes = len(notes)

    @invariant()
    def the_roll_ups_are_what_happened(self) -> None:
        assert not any(self.run_now(self.service.app.rollups.differences()).values())


def usd(micro: int) -> str:
    return f"{micro // 10**6}.{micro % 10**6:06d}"


TestOperators = Operators.TestCase
TestOperators.settings = settings(
    max_examples=4, stateful_step_count=18, deadline=None, print_blob=True
)
