"""Real visits to agents that fail a share of their calls: simulated runs draw from these."""

import asyncio
import json
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "src")]

from bench.unannounced import KINDS, Ground, Planned  # noqa: E402

from assay.common.clock import SystemClock  # noqa: E402
from assay.common.json import JsonObject  # noqa: E402
from assay.evaluation.model import Evidence  # noqa: E402
from assay.evaluation.ports import SignalDependencies, Sources  # noqa: E402
from assay.evaluation.signals.sandbox import SIGNAL  # noqa: E402
from assay.probing.clients.dialers import StockDialers  # noqa: E402
from assay.probing.ports import Probe  # noqa: E402
from assay.probing.unannounced import Manner  # noqa: E402
from assay.registries.model import (  # noqa: E402
    OnchainAgent,
    Service,
    Subject,
)
from assay.registries.registration import parse_registration  # noqa: E402
from tests.ground_truth.site import App, Scope, registration, send_json  # noqa: E402
from tests.support.fakes.trust import NETWORK, FakeChain  # noqa: E402

DOMAINS: Mapping[str, str] = {"a2a": "currency", "mcp": "days", "http": "circle"}
"""What the agent of each kind is good at."""

VISIT_S = 60.0


@dataclass(frozen=True)
class SeenVisit:
    """One visit's evidence, and what its agent was."""

    kind: str
    failing: float
    """Share of calls that fail."""
    announced: bool
    data: JsonObject
    calls: JsonObject
    interactions: int

    def evidence(self) -> Evidence:
        """As the sandbox signal gave it, with proof of who controls the services."""
        return Evidence(self.data, self.interactions, {"calls": self.calls})


class _Hidden(Planned):
    """Every visit is unannounced, and does not pause."""

    async def plan(self, _subject: Subject, _endpoints: Sequence[str]) -> Manner:
        return Manner("unannounced", self._ground.http, StockDialers(None), (), source="way 0")


def failing_app(app: App, share: float, chance: random.Random) -> App:
    """The app, which answers 503 to that share of the requests."""

    async def outer(scope: Scope, receive: Any, send: Any) -> None:  # noqa: ANN401 - ASGI
        if chance.random() < share:
            await send_json(send, {"error": "try again"}, 503)
        else:
            await app(scope, receive, send)

    return outer


async def _visit(ground: Ground, kind: str, failing: float, *, announced: bool) -> SeenVisit:
    chance, key = random.Random(), DOMAINS[kind]
    async with ground.recorder.session() as session:
        site = replace(ground.site(session.url, key), registry=NETWORK.agent_registry)
        built: Any = KINDS[kind](key)(site)
        session.app = failing_app(built.app, failing, chance)
        services = tuple(Service(name, url) for name, url in built.services)
        told = json.dumps(registration(site, built)).encode()
        file = replace(parse_registration(told), services=services)
        agent = OnchainAgent(NETWORK, "7", site.wallet, site.wallet, "data:,", file, None)
        needs = SignalDependencies(
            FakeChain(),  # type: ignore[arg-type]
            ground.http,
            StockDialers(None),
            ground.probes,
            SystemClock(),
            VISIT_S,
            sources=Sources() if announced else Sources(visits=_Hidden(ground, chance)),  # type: ignore[arg-type]
        )
        found = await SIGNAL.collect(Subject(NETWORK, "7", site.wallet, agent), needs)
    assert isinstance(found, Evidence)
    data = dict(found.data)
    if announced:
        rows: Any = data.get("function") or []
        data["control"] = [
            {"service": row["service"], "proof": "well_known", "conflict": False} for row in rows
        ]
    calls: Any = found.transcript["calls"]
    text = json.dumps(data).replace(session.url, "https://agent.example")
    return SeenVisit(kind, failing, announced, json.loads(text), calls, found.interactions)


async def collect(
    folder: Path, kinds: Sequence[str], failing: Sequence[float], each: int, at_once: int = 6
) -> list[SeenVisit]:
    """So many visits of each kind of agent, share and manner; kept in `folder` as they come."""
    out = folder / "visits.jsonl"
    seen = read(out)
    ground, turns = Ground(folder, ()), asyncio.Semaphore(at_once)

    async def one(kind: str, share: float, *, announced: bool) -> None:
        async with turns:
            made = await _visit(ground, kind, share, announced=announced)
        seen.append(made)
        with out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(made)) + "\n")

    async with asyncio.TaskGroup() as group:
        for kind in kinds:
            for share in failing:
                for announced in (True, False):
                    key = (kind, share, announced)
                    has = sum((s.kind, s.failing, s.announced) == key for s in seen)
                    for _ in range(each - has):
                        group.create_task(one(kind, share, announced=announced))
    await ground.http.aclose()
    return seen


def read(out: Path) -> list[SeenVisit]:
    """What an earlier run kept."""
    if not out.exists():
        return []
    return [SeenVisit(**json.loads(line)) for line in out.read_text("utf-8").splitlines()]


def all_probes(ground_folder: Path) -> Mapping[str, Probe]:
    """Every probe."""
    return Ground(ground_folder, ()).probes
