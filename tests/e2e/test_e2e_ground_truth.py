"""Agents whose worth is known are graded accordingly, through the whole service."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from assay_demo.agents.files import TYPE, data_uri
from assay_demo.chain.accounts import ACCOUNTS
from assay_demo.chain.registries import register
from tests.support.assay import Served, resident_mib, served
from tests.support.chain import LocalChain, local_chain
from tests.support.fakes.agents import prove_control
from tests.support.grounds import Ground, grounds
from tests.support.node import needs_node

pytestmark = [pytest.mark.e2e, pytest.mark.slow]
THRESHOLD = 65
REQUESTS_MAX = 60
SECONDS_MAX = 10
AT_ONCE = 50


@dataclass
class GradedAgent:
    """An agent, what it was found to be, and what that cost it."""

    ground: Ground
    agent_id: str
    told: dict[str, Any]
    seconds: float
    requests: int

    @property
    def passes(self) -> bool:
        return self.told["score"] >= THRESHOLD

    @property
    def worth(self) -> float:
        """The score before the ceiling of the rung hides differences."""
        return self.told["ladder"]["beforeCeiling"]


@pytest.fixture(scope="module")
def chain() -> Iterator[LocalChain]:
    with local_chain() as running:
        yield running


@pytest.fixture(scope="module")
def server(chain: LocalChain, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    network = chain.network
    row = {
        "chain_id": network.chain_id,
        "identity_registry": network.identity_registry,
        "reputation_registry": network.reputation_registry,
        "rpc_urls": list(network.rpc_urls),
        "multicall3": False,
    }
    settings = {"ASSAY_SANDBOX_EVALUATION_S": str(SECONDS_MAX)}
    with served(tmp_path_factory.mktemp("truth"), {"local": row}, **settings) as running:
        yield running


def registered(chain: LocalChain, ground: Ground, number: int) -> str:
    """On the chain, with a file that names it, and named by its host where that can be."""
    prove_control(ground.files, str(number), chain.network.agent_registry)
    file = {
        "type": TYPE,
        "name": ground.name,
        "description": "An agent whose worth is known.",
        "image": "https://example.com/i.png",
        "services": [{"name": n, "endpoint": url} for n, url in ground.services.items()],
        "registrations": [{"agentId": number, "agentRegistry": chain.network.agent_registry}],
    }
    owner = ACCOUNTS[number % len(ACCOUNTS)]  # what one agent of an owner did follows its others
    agent_id = register(chain.wallet, chain.registries, owner.key, data_uri(file))
    assert agent_id == str(number)
    return agent_id


@pytest.fixture(scope="module")
def truth(chain: LocalChain, server: Served) -> Iterator[list[GradedAgent]]:
    """One after the other, so that each is measured alone."""
    with (
        grounds() as found,
        httpx2.Client(base_url=server.address, timeout=40, trust_env=False) as http,
    ):
        graded: list[GradedAgent] = []
        for number, ground in enumerate(found):
            agent_id = registered(chain, ground, number)
            before, begun = ground.heard(), time.monotonic()
            told = http.post(f"/operator/trigger-sandbox/{agent_id}").json()
            seconds, requests = time.monotonic() - begun, ground.heard() - before
            graded.append(GradedAgent(ground, agent_id, told, seconds, requests))
        yield graded


def test_good_agents_pass_and_critical_ones_never_do(truth: list[GradedAgent]) -> None:
    print()  # noqa: T201 - the table is what this test is read for
    for one in sorted(truth, key=lambda g: -g.told["score"]):
        failed = [p["name"] for p in one.told["testSummary"]["probes"] if p["outcome"] == "fail"]
        print(  # noqa: T201
            f"{one.ground.truth:9} {one.ground.name:38} {one.told['score']:6.2f} "
            f"{one.told['tier']:4} {one.requests:3} requests {one.seconds:5.2f} s {failed}"
        )
    good = [g for g in truth if g.ground.truth == "good"]
    bad = [g for g in truth if g.ground.truth in {"critical", "broken"}]
    right = sum(g.passes for g in good)
    wrong = sum(g.passes for g in bad)
    print(f"precision {right / (right + wrong):.3f}, recall {right / len(good):.3f}")  # noqa: T201
    assert len(truth) >= 12
    assert [g.ground.name for g in good if not g.passes] == []
    assert [g.ground.name for g in bad if g.passes] == []
    assert {g.told["ladder"]["rung"] for g in good} == {1}
    assert {g.told["ladder"]["rung"] for g in bad} == {0}
    assert [g.ground.name for g in truth if g.ground.truth == "critical" and g.worth >= 35] == []


def test_who_is_honest_and_cannot_prove_it_is_held_and_not_blamed(truth: list[GradedAgent]) -> None:
    """A shop that only payers see, and a server whose host names no agent."""
    by_name = {g.ground.name: g.told for g in truth if g.ground.truth == "unproven"}
    for name, told in by_name.items():
        assert (told["ladder"]["rung"], told["score"] < THRESHOLD) == (0, True), name
        failed = [p["name"] for p in told["testSummary"]["probes"] if p["outcome"] == "fail"]
        assert failed == [], name
    shop = {d["name"] for d in by_name["sells for a fair price"]["ladder"]["nextRung"]}
    assert {"function", "control"} <= shop
    if stock := by_name.get("MCP reference server (npm)"):
        states = {d["name"]: d["state"] for d in stock["ladder"]["nextRung"]}
        assert states.pop("control") == "missing"
        # What a tool of its did is looked at again.
        assert set(states.values()) <= {"unknown"}


def test_flaws_cost_points_and_are_named(truth: list[GradedAgent]) -> None:
    by_name = {g.ground.name: g for g in truth}
    whole = by_name["stock parts, all services"]
    expected = {
        "pulls the rug": "mcp_tools_stable",
        "calls what it is given": "ssrf_bait",
        "success for everything": "honest_status",
        "traces in errors": "no_leaked_internals",
        "changes its price, takes anything": "x402_price_stable",
    }
    for name, probe in expected.items():
        outcomes = {p["name"]: p["outcome"] for p in by_name[name].told["testSummary"]["probes"]}
        assert outcomes[probe] == "fail", name
        assert by_name[name].worth < whole.worth, name
    assert by_name["fails every third time"].told["score"] < whole.told["score"] - 5
    spells = by_name["takes addresses, calls none"].told["testSummary"]["probes"]
    assert {p["name"]: p["outcome"] for p in spells}["ssrf_bait"] == "pass"
    fair = by_name["sells for a fair price"].told["testSummary"]["probes"]
    assert {p["outcome"] for p in fair if p["family"] == "payment"} <= {"pass", "not_tested"}
    assert sum(p["family"] == "payment" for p in fair) >= 3


def test_a_visit_stays_within_its_requests_and_its_time(truth: list[GradedAgent]) -> None:
    assert [g.ground.name for g in truth if g.requests > REQUESTS_MAX] == []
    assert [g.ground.name for g in truth if g.seconds > SECONDS_MAX + 2] == []


def test_the_reference_server_was_among_them(truth: list[GradedAgent]) -> None:
    needs_node()
    assert any("npm" in g.ground.name for g in truth)


def test_fifty_evaluations_at_once_stay_within_bounds(
    chain: LocalChain, server: Served, truth: list[GradedAgent]
) -> None:
    stock = truth[0].ground
    agents = [registered(chain, stock, len(truth) + n) for n in range(AT_ONCE)]
    before, memory = stock.heard(), resident_mib(server.pid)
    with (
        httpx2.Client(base_url=server.address, timeout=120, trust_env=False) as http,
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        told = list(pool.map(lambda agent: http.post(f"/operator/trigger-sandbox/{agent}"), agents))
    statuses = {answer.status_code for answer in told}
    assert statuses <= {200, 503}, Path(server.log).read_text("utf-8")[-20_000:]
    assert stock.heard() - before <= AT_ONCE * REQUESTS_MAX
    grown = resident_mib(server.pid) - memory
    print(f"50 at once: {grown} MiB more, {stock.heard() - before} requests")  # noqa: T201
    assert grown < 400
