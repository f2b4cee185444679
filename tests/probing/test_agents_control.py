"""Control of real agents on loopback, from the visit to the store and back into the next grade."""

import json
from collections.abc import AsyncGenerator
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from assay.app.evaluation import control_records
from assay.common.cache import SingleFlight
from assay.common.clock import SystemClock
from assay.common.json import JsonObject
from assay.control import rules
from assay.control.identity import Control
from assay.control.store import SqlControlStore
from assay.db.engine import Database
from assay.evaluation.behaviour import CRITICAL_CAP, summary
from assay.evaluation.model import Evaluation, SignalName
from assay.evaluation.ports import Sources
from assay.evaluation.scoring import DEFAULT_WEIGHTS, ScoringPolicy, tiers_from
from assay.evaluation.service import Evaluator, EvaluatorDependencies
from assay.evaluation.signals.sandbox import REQUESTS_MAX, SIGNAL
from assay.evaluation.store_evaluations import SqlEvaluationStore
from assay.net.egress.client import GuardedHttp
from assay.net.egress.url import EgressPolicy
from assay.probing.clients.dialers import StockDialers
from assay.probing.probes import PROBES
from assay.registries.model import OnchainAgent, Subject
from assay.registries.registration import parse_registration
from assay.registries.subjects import Subjects
from tests.support.fakes.agents import Agent, Behaviour, registration_file, running
from tests.support.fakes.control import FILE, naming
from tests.support.fakes.trust import NETWORK, OWNER, WALLET, FakeChain, NoBlobs

pytestmark = pytest.mark.slow

LEAK = (
    " "
    + ec.generate_private_key(ec.SECP256R1())
    .private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )
    .decode()
)
OTHERS = "0x" + "d" * 40, "0x" + "e" * 40


class Grades:
    """Evaluates against a database, as the service does."""

    def __init__(
        self, database: Database, http: GuardedHttp, sources: Sources | None = None
    ) -> None:
        clock = SystemClock()
        self.store = SqlControlStore(database, clock)
        self._evaluator = Evaluator(
            EvaluatorDependencies(
                subjects=Subjects({"evm": FakeChain()}),  # type: ignore[dict-item]
                signals={SignalName.SANDBOX: SIGNAL},
                probes=PROBES,
                http=http,
                dialers=StockDialers(),
                store=SqlEvaluationStore(database, None, control_records(PROBES)),
                blobs=NoBlobs(),
                rules=ScoringPolicy(DEFAULT_WEIGHTS, tiers_from()),
                listeners=[],
                clock=clock,
                control=Control(self.store),
                sources=sources or Sources(),
            ),
            SingleFlight(),
        )

    async def of(self, subject: Subject) -> Evaluation:
        return (await self._evaluator.evaluate(subject, 20.0)).evaluation


@pytest.fixture
async def grades(database: Database) -> AsyncGenerator[Grades]:
    http = GuardedHttp(EgressPolicy(allow_private=True, require_https=False))
    yield Grades(database, http)
    await http.aclose()


def registered(
    agent: Agent, agent_id: str, owner: str = OWNER, wallet: str = WALLET, name: str = "Words"
) -> Subject:
    raw = registration_file(agent, agent_id, NETWORK.agent_registry)
    file = replace(parse_registration(json.dumps(raw).encode()), name=name)
    onchain = OnchainAgent(NETWORK, agent_id, owner, wallet, "data:,", file, None)
    return Subject(NETWORK, agent_id, wallet, onchain)


def data_of(evaluation: Evaluation) -> JsonObject:
    return evaluation.collected[0].evidence.data


def proofs(evaluation: Evaluation) -> list[object]:
    rows = data_of(evaluation)["control"]
    assert isinstance(rows, list)
    return [row["proof"] for row in rows]


def cap_of(evaluation: Evaluation) -> float | None:
    cap = evaluation.collected[0].weighed.cap
    return None if cap is None else cap.score


async def test_the_hosts_file_proves_every_service_within_the_budget(grades: Grades) -> None:
    behaviour = Behaviour(files={FILE: json.dumps(naming("7"))})
    async with running(behaviour) as agent:
        subject = registered(agent, "7")
        evaluation = await grades.of(subject)
        again = await grades.of(subject)
    assert proofs(evaluation) == ["well_known"] * 3
    assert rules.unproven(data_of(evaluation)) == ()
    assert sum(path == FILE for _, path, _ in behaviour.requests) == 2  # one a visit
    assert evaluation.interactions <= REQUESTS_MAX
    for name in ("status", "services", "control", "identity", "fingerprints"):
        assert data_of(again).get(name) == data_of(evaluation).get(name)
    assert summary(evaluation.collected[0].evidence, PROBES)["control"] == [
        {"service": url, "proof": "well_known", "conflict": False}
        for url in agent.services.values()
    ]
    assert await grades.store.proven_on(f"site {agent.base.removeprefix('http://')}") == [
        subject.key
    ]


async def test_an_agent_without_a_proof_is_shown_which_services_lack_one(grades: Grades) -> None:
    async with running() as agent:
        evaluation = await grades.of(registered(agent, "7"))
        assert {r.service for r in rules.unproven(data_of(evaluation))} == set(
            agent.services.values()
        )
    assert await grades.store.proven_on(f"site {agent.base.removeprefix('http://')}") == []


async def test_a_new_id_of_a_bad_agents_host_has_its_open_findings(grades: Grades) -> None:
    behaviour = Behaviour(leaks=LEAK, files={FILE: json.dumps(naming("7", "8"))})
    async with running(behaviour) as agent:
        bad = await grades.of(registered(agent, "7"))
        assert cap_of(bad) == CRITICAL_CAP
        behaviour.leaks = ""
        other = await grades.of(registered(agent, "8", *OTHERS, name="Other"))
    assert proofs(other) == ["well_known"] * 3
    assert cap_of(other) == CRITICAL_CAP
    assert "eip155:31337/7" in rules.inherited(data_of(other))[0].sentence


async def test_a_wallet_takes_its_open_findings_along_to_another_host(grades: Grades) -> None:
    async with running(Behaviour(leaks=LEAK)) as agent:
        await grades.of(registered(agent, "7"))
    async with running() as clean:
        followed = await grades.of(registered(clean, "8", name="Other"))
        free = await grades.of(registered(clean, "9", *OTHERS, name="Third"))
    assert cap_of(followed) == CRITICAL_CAP
    assert cap_of(free) is None


async def test_an_id_that_only_points_at_a_host_gets_and_gives_nothing(grades: Grades) -> None:
    """A rival registers the victim's address for its own bad agent, and the other way round."""
    honest = Behaviour(files={FILE: json.dumps(naming("7"))})
    async with running(honest) as victim, running(Behaviour(leaks=LEAK)) as bad:
        both = registered(bad, "5", *OTHERS, name="Rival")
        assert both.agent is not None
        assert both.agent.registration is not None
        mine = registered(victim, "7").agent
        assert mine is not None
        assert mine.registration is not None
        services = both.agent.registration.services[1:] + mine.registration.services[1:]
        claimed = replace(both.agent.registration, services=services)
        rival = replace(both, agent=replace(both.agent, registration=claimed))
        seen = await grades.of(rival)
        assert proofs(seen) == [None] * 4
        assert cap_of(seen) == CRITICAL_CAP
        own = await grades.of(registered(victim, "7"))
    assert cap_of(own) is None
    assert rules.ceiling_reasons(data_of(own)) == ()


LONG = "Looks a word up in " + " ".join(
    f"{a} {b}" for a in ("old", "rare", "plain", "learned") for b in (
        "dictionaries of the north", "lists that scholars keep", "notes from many readers",
    )
) + " and says what it means."  # fmt: skip


async def test_a_copy_of_a_bad_agent_under_new_control_is_held_at_rung_0(grades: Grades) -> None:
    bad = Behaviour(leaks=LEAK, tool_text=LONG, files={FILE: json.dumps(naming("7"))})
    async with running(bad) as agent:
        await grades.of(registered(agent, "7"))
    copy = Behaviour(tool_text=LONG.upper(), files={FILE: json.dumps(naming("8"))})
    async with running(copy) as agent:
        copied = await grades.of(registered(agent, "8", *OTHERS, name="Other"))
    assert [r.code for r in rules.ceiling_reasons(data_of(copied))] == ["clone"]
    assert cap_of(copied) is None
    assert (copied.rung, copied.score <= 64) == (0, True)
    other = Behaviour(files={FILE: json.dumps(naming("9"))})
    async with running(other) as agent:
        assert cap_of(await grades.of(registered(agent, "9", *OTHERS, name="Third"))) is None
