"""The demo's sample agents, as processes of their own: what each of them is there to show."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from assay.common.clock import SystemClock
from assay.common.json import canonical_bytes
from assay.evaluation.behaviour import findings
from assay.evaluation.model import Evidence
from assay.evaluation.ports import SignalDependencies
from assay.evaluation.signals.sandbox import REQUESTS_MAX, SIGNAL
from assay.net.egress.client import GuardedHttp
from assay.net.egress.url import EgressPolicy
from assay.probing.clients.dialers import StockDialers
from assay.registries.model import OnchainAgent, Subject
from assay.registries.registration import parse_registration
from assay_demo.agents.files import registration
from tests.probing.test_agents_sandbox import PROBES
from tests.support.fakes.trust import NETWORK, OWNER, WALLET, FakeChain

pytestmark = pytest.mark.slow


@asynccontextmanager
async def sample(name: str) -> AsyncGenerator[Subject]:
    """The sample agent of that name, registered as agent 7."""
    command = ("-m", f"assay_demo.agents.{name}", "--agent-id", "7")
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, "--agent-registry", NETWORK.agent_registry,
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        url = json.loads(await process.stdout.readline())["url"]
        file = registration(name, f"The {name} sample agent.", url, 7, NETWORK.agent_registry)
        parsed = parse_registration(json.dumps(file).encode())
        yield Subject(
            NETWORK, "7", WALLET, OnchainAgent(NETWORK, "7", OWNER, WALLET, "data:,", parsed, None)
        )
    finally:
        process.terminate()
        await process.wait()


async def visits(name: str, count: int = 1) -> list[Evidence]:
    http = GuardedHttp(EgressPolicy(allow_private=True, require_https=False))
    needs = SignalDependencies(FakeChain(), http, StockDialers(), PROBES, SystemClock(), 20.0)  # type: ignore[arg-type]
    seen: list[Evidence] = []
    async with sample(name) as subject:
        for _ in range(count):
            evidence = await SIGNAL.collect(subject, needs)
            assert isinstance(evidence, Evidence)
            assert evidence.interactions <= REQUESTS_MAX
            seen.append(evidence)
    await http.aclose()
    return seen


def found(evidence: Evidence, outcome: str) -> set[str]:
    return {j.name for j in findings(evidence, PROBES) if j.finding.outcome == outcome}


async def test_steady_passes_every_probe_and_gives_the_same_evidence_twice() -> None:
    first, second = await visits("steady", 2)
    assert found(first, "fail") == found(first, "not_tested") == set()
    assert canonical_bytes(first.data) == canonical_bytes(second.data)
    weighed = SIGNAL.weigh(first, PROBES)
    assert (weighed.value, weighed.cap) == (100.0, None)


async def test_hostile_fails_every_probe_of_betrayal_and_is_capped() -> None:
    (evidence,) = await visits("hostile")
    critical = {name for name, probe in PROBES.items() if probe.severity.value == "critical"}
    assert critical - {"no_bombs"} <= found(evidence, "fail")
    weighed = SIGNAL.weigh(evidence, PROBES)
    assert weighed.cap is not None
    assert weighed.value < 60


async def test_flaky_is_in_between() -> None:
    (evidence,) = await visits("flaky")
    weighed = SIGNAL.weigh(evidence, PROBES)
    assert "steady_answers" in found(evidence, "fail")
    assert weighed.cap is None
    assert weighed.value < 95
