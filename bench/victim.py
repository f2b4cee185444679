"""What one host gets that never asked for anything: 100 accounts, 1,000 agents, 10,000 triggers.

    .venv/bin/python -m bench.victim [--triggers N] [--agents N] [--accounts N] [--minutes N]
                                     [--page-kib N]

One real service (all stores, all use cases, SQLite) and one real victim on loopback, for which
the budget is switched on by `ASSAY_EGRESS_BUDGET_PRIVATE`. Real: every request, the budget's
ledger, the bytes as the victim's own system counted them. Simulated: the chain (agents whose
registration file names the victim), and the time: the clock stands still while a minute's
triggers run, and is then put forward by 60 s; so every minute's budget can be used up, whatever
this machine can do in a minute.

A trigger is, in turn: an anonymous sandbox run; a gate with ttlMs 1; a call through the proxy; one
through the playground. Every account also has ten webhooks on the victim, so that each evaluation
that is stored makes deliveries.
"""

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from assay.accounts.model import Operator, Plan
from assay.app import App, assemble
from assay.audit.service import TERMINAL
from assay.common.errors import ServiceError
from assay.gate.model import GateInput
from assay.gate.service import GateCaller
from assay.playground.model import ProxyCall
from assay.playground.service import PlaygroundTrial
from assay.registries.model import OnchainAgent, RegistrationFile, Service
from assay.settings import load
from assay.webhooks.service import NewWebhook
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.trust import NETWORK, FakeChain
from tests.support.raw_server import plain
from tests.support.victim import Victim, suffering

OWNER = "0x" + "a" * 40
MINUTE_S = 60.0
AT_ONCE = 16
WEBHOOKS = 10


@dataclass(frozen=True)
class Campaign:
    """How much is thrown at the victim."""

    accounts: int = 100
    agents: int = 1000
    triggers: int = 10_000
    minutes: int = 10
    page_kib: int = 20
    """What the victim answers everything with."""


@dataclass
class Suffered:
    """What the victim got in each minute, and what became of the triggers."""

    requests: list[int] = field(default_factory=list)
    size_bytes: list[int] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


@asynccontextmanager
async def service(
    folder: Path, victim: Victim, agents: int
) -> AsyncIterator[tuple[App, FrozenClock]]:
    clock = FrozenClock()
    file = RegistrationFile(name="A", services=(Service("web", victim.url()),))
    chain = FakeChain(
        *(OnchainAgent(NETWORK, str(n), OWNER, None, "data:,", file, None) for n in range(agents))
    )
    local = {
        "chain_id": NETWORK.chain_id,
        "identity_registry": NETWORK.identity_registry,
        "reputation_registry": NETWORK.reputation_registry,
        "rpc_urls": list(NETWORK.rpc_urls),
    }
    settings = load(
        data_dir=folder,
        chains={"local": local},
        default_chain="local",
        log_level="error",
        self_registry="",
        allow_private_upstreams=True,
        egress_budget_private=True,
    )
    async with assemble(settings, clock, {"evm": chain}) as app:  # type: ignore[arg-type]
        yield app, clock


async def operators(app: App, victim: Victim, count: int) -> list[Operator]:
    made: list[Operator] = []
    for number in range(count):
        operator, _ = await app.operators.register(f"a{number}@b.cc", "correct horse battery", "A")
        await app.operators.set_plan_for_admin(operator.email, Plan.PRO)
        for hook in range(WEBHOOKS):
            asked = NewWebhook("evaluation_complete", victim.url(f"/{number}/{hook}"))
            await app.webhooks.register(operator.id, asked, TERMINAL)
        made.append(operator)
    return [one for one in await app.operators.list_for_admin() if one.plan is Plan.PRO]


async def trigger(app: App, victim: Victim, who: Operator, number: int, agents: int) -> str:
    """One of four ways to have the victim called; what came of it."""
    network, agent_id = app.networks.default, str(number % agents)
    call = ProxyCall(victim.url("/p"))
    try:
        match number % 4:
            case 0:
                subject = await app.subjects.find(network, agent_id)
                news = await app.evaluator.evaluate(subject, app.settings.sandbox_evaluation_s)
                return f"sandbox {news.reused or 'ran'}"
            case 1:
                caller = GateCaller(who, OWNER, proven=True)
                told = await app.gate.check(caller, network, agent_id, GateInput(ttl_ms=1))
                return f"gate {told.cached_reason or ('ran' if told.sandbox_ran else 'cached')}"
            case 2:
                await app.proxy.call(who, network, agent_id, call)
                return "proxy sent"
            case _:
                await app.playground.call(who.id, network, PlaygroundTrial(agent_id, call))
                return "playground sent"
    except ServiceError as error:
        return f"{('sandbox', 'gate', 'proxy', 'playground')[number % 4]} {error.code}"


async def minute(
    app: App, victim: Victim, accounts: list[Operator], numbers: range, agents: int
) -> Counter[str]:
    """Triggers as fast as they go, `AT_ONCE` at a time, at a clock that stands still."""
    outcomes: Counter[str] = Counter()
    waiting = iter(numbers)

    async def work() -> None:
        for number in waiting:
            who = accounts[(number // 4) % len(accounts)]
            outcomes[await trigger(app, victim, who, number, agents)] += 1

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(work())
    return outcomes


async def quiet(app: App) -> None:
    """Until no delivery is under way: it belongs to the minute it was begun in."""
    while app.deliverer._slots._busy.total():  # noqa: SLF001 - it tells nobody else
        await asyncio.sleep(0.05)


async def campaign(asked: Campaign) -> Suffered:
    found, began_s = Suffered(), time.perf_counter()
    answer = plain(b"x" * asked.page_kib * 1024, "200 OK", "Content-Type: text/html")
    with tempfile.TemporaryDirectory() as folder:
        async with (
            suffering(answer) as victim,
            service(Path(folder), victim, asked.agents) as (app, clock),
        ):
            accounts = await operators(app, victim, asked.accounts)
            share = asked.triggers // asked.minutes
            for number in range(asked.minutes):
                before = len(victim.requests), victim.size_bytes
                numbers = range(number * share, (number + 1) * share)
                found.outcomes += await minute(app, victim, accounts, numbers, asked.agents)
                await quiet(app)
                found.requests.append(len(victim.requests) - before[0])
                found.size_bytes.append(victim.size_bytes - before[1])
                clock.move(MINUTE_S + 0.001)
    found.seconds = time.perf_counter() - began_s
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("accounts", 100), ("agents", 1000), ("triggers", 10_000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--minutes", type=int, default=10)
    parser.add_argument("--page-kib", type=int, default=20)
    asked = Campaign(**vars(parser.parse_args()))
    found = asyncio.run(campaign(asked))
    print(
        f"{asked}\nin {found.seconds:.0f} s of this machine; {asked.minutes} minutes by the clock"
    )
    for number, (requests, size) in enumerate(
        zip(found.requests, found.size_bytes, strict=True), 1
    ):
        print(f"minute {number:2}: {requests:4} requests, {size:8,} bytes at the victim")
    print(f"in all: {sum(found.requests):,} requests, {sum(found.size_bytes):,} bytes")
    print(f"most in a minute: {max(found.requests)} requests, {max(found.size_bytes):,} bytes")
    print(json.dumps(dict(found.outcomes.most_common()), indent=2))
    return 0 if max(found.requests) <= 60 and max(found.size_bytes) <= 256 * 1024 else 1


if __name__ == "__main__":
    sys.exit(main())
