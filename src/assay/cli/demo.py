"""`assay demo`: shows the service live, on a local chain with real sample agents.

Everything works as for a stranger: agents are registered on a chain, evaluated over HTTP by this
service, and gated with a challenge signed by their owner's key.

Only the good agent's climb in later weeks is simulated, and the output says so. None of it takes
place, and none of it is stored. The visit that was just made is repeated on a clock of its own,
customers are made up, and the rules that grade everybody judge the result.
"""

import asyncio
import json
import secrets
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from textwrap import shorten
from typing import Annotated, Any, Final

import httpx2
import uvloop
from cyclopts import Parameter
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from assay.app import App, address_of_key, assemble, sign_message
from assay.cli.command import FAILED, complain, read_settings
from assay.cli.pay import PayingClient, call
from assay.cli.serve import listen, serving
from assay.common.json import JsonObject, is_object
from assay.common.numbers import MICRO
from assay.evaluation.history import History, pool
from assay.evaluation.model import Evaluation, Evidence, SignalName, SignalResult
from assay.evaluation.scoring import ScoringPolicy, grade_score
from assay.evaluation.signals import registry_8004, sandbox
from assay.evaluation.visits import CheckOutcome, VisitRecord
from assay.probing.ports import Probe, Severity
from assay.probing.unannounced import ANNOUNCED_ONLY
from assay.reputation.model import RULES, Payer, payer_json, reputation_of
from assay.reputation.rules import customers
from assay.settings import Settings
from assay_demo.upstream import SECRET as UPSTREAM_SECRET
from assay_demo.world import World, WorldAgent

DAYS: Final = (0, 8, 40)
"""What is shown: the day of the real visit, and two of the simulated clock."""

VISIT_EVERY: Final = timedelta(hours=16)
DAY: Final = timedelta(days=1)
_BEGIN: Final = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class SimulatedGrade:
    """The grade after so many simulated days."""

    day: int
    visits: int
    """Simulated, scheduled visits; on day 0 there is only the real one, which was triggered."""
    customers: int
    rung: int
    name: str
    ceiling: float
    score: float
    tier: str
    missing: tuple[str, ...]
    """Names of what the next rung asks for."""

    def row(self) -> dict[str, object]:
        """Return the row for `--json`."""
        return {
            "simulated": self.day > 0,
            "day": self.day,
            "visits": self.visits,
            "customers": self.customers,
            "rung": self.rung,
            "rungName": self.name,
            "ceiling": self.ceiling,
            "score": self.score,
            "tier": self.tier,
            "nextRung": list(self.missing),
        }


def climb(
    made: Evaluation, probes: Mapping[str, Probe], rules: ScoringPolicy
) -> Sequence[SimulatedGrade]:
    """Return the real evaluation and the simulated grades of the same agent on later days."""
    return [_after(day, made, probes, rules) for day in DAYS]


def _after(
    day: int, made: Evaluation, probes: Mapping[str, Probe], rules: ScoringPolicy
) -> SimulatedGrade:
    visits = _visits(day, made)
    payers = _customers(day)
    collected = made.collected if day == 0 else _simulated(made, probes, visits, payers)
    found = grade_score(made.agent_id, collected, made.unavailable, rules)
    return SimulatedGrade(
        day=day,
        visits=len(visits),
        customers=len(payers),
        rung=found.place.rung,
        name=found.place.name,
        ceiling=found.place.ceiling,
        score=found.value,
        tier=rules.tiers.grade(found.value).tier,
        missing=tuple(demand.name for demand in found.place.next_demands),
    )


def _simulated(
    made: Evaluation,
    probes: Mapping[str, Probe],
    visits: Sequence[VisitRecord],
    payers: Sequence[Payer],
) -> tuple[SignalResult, ...]:
    """Return the evidence with these visits as its history and these satisfied customers."""
    critical = {n for n, p in probes.items() if p.severity is Severity.CRITICAL}
    history = pool(visits, visits[-1].at, frozenset(critical - ANNOUNCED_ONLY))
    signals = {SignalName.SANDBOX: sandbox.SIGNAL, SignalName.REGISTRY_8004: registry_8004.SIGNAL}
    added: dict[SignalName, JsonObject] = {
        SignalName.SANDBOX: _visited(history),
        SignalName.REGISTRY_8004: _sold(payers, (visits[-1].at - _BEGIN).days) if payers else {},
    }
    collected: list[SignalResult] = []
    for one in made.collected:
        if signal := signals.get(one.signal):
            evidence = Evidence({**one.evidence.data, **added[one.signal]})
            collected.append(SignalResult(one.signal, evidence, signal.weigh(evidence, probes)))
        else:
            collected.append(one)
    return tuple(collected)


def _visited(history: History) -> JsonObject:
    return {"history": replace(history, reached_rung=1).as_json()}


def _sold(payers: Sequence[Payer], today: int) -> JsonObject:
    data: JsonObject = {
        "rules": RULES,
        "day": today,
        "price": MICRO // 10,
        "payers": {payer.address: payer_json(payer) for payer in payers},
        "votes": {payer.address: {"rating": "95", "day": today} for payer in payers},
    }
    return data | {"customers": customers(reputation_of(data), is_main=True)}


def _visits(day: int, made: Evaluation) -> Sequence[VisitRecord]:
    """Return scheduled visits with the real visit's result, every other one unannounced."""
    data = next(c.evidence.data for c in made.collected if c.signal is SignalName.SANDBOX)
    history = data.get("history")
    pooled = history.get("pooled") if is_object(history) else None
    outcomes: dict[str, CheckOutcome] = {
        name: "passed" if is_object(seen) and seen.get("outcome") == "pass" else "failed"
        for name, seen in (pooled.items() if is_object(pooled) else ())
    }
    unseen: dict[str, CheckOutcome] = {n: o for n, o in outcomes.items() if n not in ANNOUNCED_ONLY}
    return [_visit(made, number, outcomes, unseen) for number in range(day * DAY // VISIT_EVERY)]


def _visit(
    made: Evaluation,
    number: int,
    seen: Mapping[str, CheckOutcome],
    seen_unannounced: Mapping[str, CheckOutcome],
) -> VisitRecord:
    at = _BEGIN + number * VISIT_EVERY
    if number % 2:
        hidden = seen_unannounced
        return VisitRecord(made.subject_key, at, "scheduled", "unannounced", hidden, rung=1)
    return VisitRecord(made.subject_key, at, "scheduled", "announced", seen, rung=1)


def _customers(day: int) -> Sequence[Payer]:
    """Return one new independent customer a day from day 2; each pays 1.50 USD that day."""
    return [
        Payer(
            address=f"0x{number:040x}",
            spent={number: 3 * MICRO // 2},
            elsewhere=20 * MICRO,
            is_charge=True,
            sources=(f"0x{1_000_000 + number:040x}",),
        )
        for number in range(1, day - 8)
    ]


def table_of_days(name: str, days: Sequence[SimulatedGrade]) -> Table:
    """Return the table of days for people, labelled as simulated."""
    title = f"SIMULATED: how {name} would climb. Only the visit of day 0 took place; later visits"
    table = Table(title=f"{title} and all customers are made up, on a clock of their own.")
    for column in ("day", "visits", "customers", "rung", "ceiling", "score", "tier", "next rung"):
        table.add_column(column, overflow="fold")
    for one in days:
        numbers = (str(one.day), str(one.visits or "1 (real)"), str(one.customers))
        rung, asks = f"{one.rung} {one.name}", ", ".join(one.missing).replace("_", " ")
        score = f"{one.score:.2f}"
        table.add_row(*numbers, rung, f"{one.ceiling:g}", score, one.tier, asks)
    return table


_GATE_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class GradedAgent:
    """One agent as the gate judged it; `owner` is the address that signed for it."""

    agent_id: str
    name: str
    owner: str
    score: float
    tier: str
    risk_level: str
    route: str
    allow: bool
    reasons: tuple[str, ...]
    rung: int
    rung_name: str

    def row(self) -> dict[str, object]:
        """Return the row for `--json`."""
        return {
            "agentId": self.agent_id,
            "name": self.name,
            "score": self.score,
            "tier": self.tier,
            "riskLevel": self.risk_level,
            "route": self.route,
            "allow": self.allow,
            "reasons": list(self.reasons),
            "rung": self.rung,
            "rungName": self.rung_name,
        }


class DemoClient:
    """An operator with an API key, and agents that sign for themselves."""

    def __init__(
        self, http: httpx2.AsyncClient, address: str, api_key: str, token: str, operator_id: str
    ) -> None:
        self._http = http
        self.address = address
        self.api_key = api_key
        self._token = token
        self._operator_id = operator_id

    @classmethod
    @asynccontextmanager
    async def open(cls, address: str) -> AsyncGenerator["DemoClient"]:
        """Register an operator at `address` and act for it."""
        async with httpx2.AsyncClient(
            base_url=address, timeout=_GATE_TIMEOUT_S, trust_env=False
        ) as http:
            account = {"email": "demo@example.com", "password": secrets.token_urlsafe(24)}
            new = {**account, "name": "Demo"}
            registered = _body(await http.post("/operator/register", json=new))
            login = _body(await http.post("/operator/login", json=account))
            operator_id = str(login["operator"]["id"])
            yield cls(http, address, str(registered["apiKey"]), str(login["token"]), operator_id)

    async def wrap(self, **endpoint: object) -> str:
        """Create a wrapper and return its public address."""
        answer = await self._http.post(
            "/operator/endpoints",
            json=endpoint,
            headers={"authorization": f"Bearer {self._token}"},
        )
        return f"{self.address}/wrap/{self._operator_id}{_body(answer)['path']}"

    async def grade(self, agent_id: str, name: str, owner_key: str) -> GradedAgent:
        """Get a challenge, sign it as the agent's owner, and ask the gate as the operator."""
        owner = address_of_key(owner_key)
        challenge = _body(await self._http.post(f"/operator/key/{owner}/challenge"))
        text = str(challenge["challenge"])
        answer = await self._http.post(
            "/operator/key/verify",
            json={
                "agentAddress": owner,
                "challenge": text,
                "signature": sign_message(owner_key, text),
            },
        )
        _body(answer)
        decision = _body(
            await self._http.post(
                f"/operator/gate/{agent_id}",
                headers={
                    "authorization": f"Bearer {self.api_key}",
                    "x-agent-address": owner,
                    "x-agent-session": answer.headers["x-agent-session"],
                },
            )
        )
        return GradedAgent(
            agent_id=agent_id,
            name=name,
            owner=owner,
            score=decision["score"],
            tier=decision["tier"],
            risk_level=decision["riskLevel"],
            route=decision["route"],
            allow=decision["allow"],
            reasons=tuple(decision["reasons"]),
            rung=decision["ladder"]["rung"],
            rung_name=decision["ladder"]["name"],
        )


def _body(answer: httpx2.Response) -> dict[str, Any]:
    """Return the JSON body of a successful response; otherwise raise with its text."""
    if not answer.is_success:
        raise RuntimeError(f"{answer.request.url.path}: {answer.status_code} {answer.text[:300]}")
    return answer.json()


Say = Callable[[str], None]

PAID_ON = "eip155:84532"
"""The demo's dollars stand where Base Sepolia's do."""

REASON_CHARS = 100
"""Shown of a reason in the table; the answers have it whole."""

_COLOURS = {"GREEN": "green", "YELLOW": "yellow", "RED": "red"}


@dataclass(frozen=True, slots=True)
class _Stage:
    """The running demo: the world, this service's address, and the demo's account."""

    world: World
    client: DemoClient
    graded: Sequence[GradedAgent]
    climbed: Sequence[SimulatedGrade]
    """The good agent's simulated weeks."""
    key_files: Mapping[str, Path]
    free_url: str
    paid_url: str


def demo(
    *,
    once: Annotated[bool, Parameter(negative=(), help="Evaluate, print, and end.")] = False,
    as_json: Annotated[
        bool, Parameter(name="--json", negative=(), help="Print the table as JSON.")
    ] = False,
    port: Annotated[int, Parameter(help="Port to serve on; 0 picks one.")] = 8787,
) -> int:
    """Start, evaluate, print; then serve until Ctrl-C, or end at once with `once`."""
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_demo(once=once, as_json=as_json, port=port))
    except KeyboardInterrupt:
        return 0
    except (OSError, RuntimeError, TimeoutError) as error:
        complain(str(error))
        return FAILED
    return 0


async def _demo(*, once: bool, as_json: bool, port: int) -> None:
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="assay-demo-")))
        with _progress() as progress:
            task = progress.add_task("starting")

            def say(text: str) -> None:
                progress.update(task, description=text)

            world = await stack.enter_async_context(World.start(say))
            settings = _settings(world, folder, port)
            listener, settings = stack.enter_context(listen(settings))
            app = await stack.enter_async_context(assemble(settings))
            server = await stack.enter_async_context(serving(app, listener))
            client = await stack.enter_async_context(DemoClient.open(settings.address))
            graded = await _grade_all(client, world.agents, say)
            say("putting wrappers in front of an API")
            free_url, paid_url = await _wrap(client, world)
            climbed = await _climb(app, world.agents[0])
        keys = _write_keys(folder, world.agents)
        stage = _Stage(world, client, graded, climbed, keys, free_url, paid_url)
        if as_json:
            sys.stdout.write(json.dumps(_rows(stage), indent=2) + "\n")
        else:
            Console().print(table_of(graded))
            await _show_paying(stage)
            Console().print(table_of_days(world.agents[0].name, climbed))
        if not once:
            _print_next(stage)
            await server.wait_closed()


async def _climb(app: App, agent: WorldAgent) -> Sequence[SimulatedGrade]:
    """Return the agent's real evaluation, followed by the simulated ones."""
    newest = [row.evaluation for row in await app.audit.replay(app.rules)]
    made = next(one for one in newest if one.agent_id == agent.agent_id)
    return climb(made, app.probes, app.rules)


def _rows(stage: _Stage) -> list[dict[str, object]]:
    """Return a row for each agent; the first also holds its simulated grades."""
    first, *others = [one.row() for one in stage.graded]
    return [{**first, "simulatedClimb": [one.row() for one in stage.climbed]}, *others]


def _progress() -> Progress:
    """Show progress on standard error, which keeps `--json` clean; only on a terminal."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _settings(world: World, folder: Path, port: int) -> Settings:
    """Return the default settings plus the local chain and agents on loopback."""
    return read_settings(
        {
            "data_dir": folder,
            "database_url": None,
            "port": port,
            "chains": {"local": dict(world.network_override)},
            "default_chain": "local",
            "allow_private_upstreams": True,
            "payment_rpc": {PAID_ON: (world.dollar_url,)},
            "x402_private_key": world.settler_key,
            "payout_address": world.seller,
            "log_level": "error",
            "self_registry": "",  # nothing here leaves this machine
        }
    )


async def _wrap(client: DemoClient, world: World) -> tuple[str, str]:
    """Create a free wrapper, and one that requires a grade and one cent."""
    free = await client.wrap(path="/status", pricePerCall=0, targetUrl=world.upstream_url)
    paid = await client.wrap(
        path="/quote",
        pricePerCall=0.01,
        description="Quotes of an invented exchange",
        targetUrl=world.upstream_url,
        paymentNetwork=PAID_ON,
        trustEnabled=True,
        rateLimit=60,
        upstreamAuthType="header",
        upstreamAuthHeader="x-key",
        upstreamAuthSecret=UPSTREAM_SECRET,
    )
    return free, paid


async def _show_paying(stage: _Stage) -> None:
    """Call the paid wrapper as each agent with its owner's wallet; the good one gets in."""
    lines: list[str] = []
    for agent in stage.world.agents[:3]:
        payer = PayingClient(agent.owner_key, amount_max=100_000, agent_id=agent.agent_id)
        lines.append(f"{agent.name} calls GET {stage.paid_url}")
        answer = await asyncio.to_thread(_pay, stage.paid_url, payer, lines)
        document = answer.json()
        lines.append(f"  {document.get('message') or json.dumps(document)}")
    sys.stdout.write("\n".join(lines) + "\n")


def _pay(url: str, payer: PayingClient, lines: list[str]) -> httpx2.Response:
    with httpx2.Client(timeout=60, trust_env=False) as http:
        return call(http, url, payer, lambda text: lines.append(f"  {text}"))


async def _grade_all(
    client: DemoClient, agents: Sequence[WorldAgent], say: Say
) -> Sequence[GradedAgent]:
    graded: list[GradedAgent] = []
    for agent in agents:
        say(f"evaluating {agent.name}")
        graded.append(await client.grade(agent.agent_id, agent.name, agent.owner_key))
    return graded


def _write_keys(folder: Path, agents: Sequence[WorldAgent]) -> Mapping[str, Path]:
    """Write the owners' temporary keys to files, for the user to sign with."""
    files: dict[str, Path] = {}
    for agent in agents:
        files[agent.agent_id] = folder / f"owner-{agent.agent_id}.key"
        files[agent.agent_id].touch(mode=0o600)
        files[agent.agent_id].write_text(agent.owner_key + "\n", "utf-8")
    return files


def table_of(graded: Sequence[GradedAgent]) -> Table:
    """Return the demo's table."""
    table = Table(title="Assay: agents on the local chain, evaluated just now")
    for column in ("agent", "rung", "score", "tier", "risk", "route", "allow", "why"):
        table.add_column(column, overflow="fold")
    for one in graded:
        colour = _COLOURS[one.risk_level]
        table.add_row(
            f"{one.agent_id} {one.name}",
            f"{one.rung} {one.rung_name}",
            f"{one.score:.2f}",
            f"[bold {colour}]{one.tier}[/]",
            f"[{colour}]{one.risk_level}[/]",
            one.route,
            "[green]yes[/]" if one.allow else "[red]no[/]",
            "\n".join(f"- {shorten(reason, REASON_CHARS)}" for reason in one.reasons[:2]),
        )
    return table


def _print_next(stage: _Stage) -> None:
    """Return commands to paste, as plain text so that no terminal wraps them."""
    agent, address = stage.world.agents[0], stage.client.address
    owner = stage.graded[0].owner
    bearer = f'-H "Authorization: Bearer {stage.client.api_key}"'
    script = f"""
Assay serves at {address}  (reference: {address}/docs)  Ctrl-C ends everything.

# the agent's profile, with every signal's value, weight, confidence and points
curl -s {address}/operator/agent/{agent.agent_id} {bearer}

# a challenge, signed by the agent's owner, for a session of one hour
SESSION=$(curl -s -X POST {address}/operator/key/{owner}/challenge \\
  | ./assay sign --key-file {stage.key_files[agent.agent_id]} \\
  | curl -s -o /dev/null -D - {address}/operator/key/verify -H 'content-type: application/json' \\
      --data-binary @- | tr -d '\\r' | sed -n 's/^x-agent-session: //Ip')

# the gate: allow or deny
curl -s -X POST {address}/operator/gate/{agent.agent_id} {bearer} \\
  -H "x-agent-address: {owner}" -H "x-agent-session: $SESSION"

# an API behind a free wrapper, and behind one that asks for a grade and a cent
curl -s {stage.free_url}
curl -si {stage.paid_url} -H "x-agent-id: {agent.agent_id}"
./assay pay {stage.paid_url} --agent-id {agent.agent_id} \\
  --key-file {stage.key_files[agent.agent_id]}
"""
    sys.stdout.write(script)
    sys.stdout.flush()
