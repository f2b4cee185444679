"""What one visit costs an agent that has every kind of service, and what is left unfinished."""

import asyncio
import json
from dataclasses import replace

import pytest

from assay.common.clock import SystemClock
from assay.common.json import is_array, is_object
from assay.control.identity import Control
from assay.evaluation.model import Evidence
from assay.evaluation.ports import SignalDependencies
from assay.evaluation.signals.sandbox import REQUESTS_MAX, SIGNAL
from assay.net.egress.client import GuardedHttp
from assay.probing import shared_dialers
from assay.probing.clients.dialers import StockDialers
from assay.probing.ports import Severity
from assay.probing.probes import PROBES
from assay.registries.model import Service, Subject
from tests.probing.test_agents_sandbox import subject
from tests.support.fakes.agents import Agent, Behaviour, running
from tests.support.fakes.control import FILE, Kept, Records, naming
from tests.support.fakes.trust import FakeChain

GATE_S = 10.0
"""What a gate waits for at most. Source: conventions.md#behavioural-evidence."""


def with_everything(agent: Agent) -> Subject:
    """As many services as are visited, some of a kind twice, and more than are proven."""
    who = subject(agent)
    assert who.agent is not None
    assert who.agent.registration is not None
    more = tuple(
        Service(name, f"{agent.base}{path}")
        for name, path in (
            ("api", "/api/orders"),
            ("x402", "/api/paid"),
            ("openapi", "/openapi.json"),
        )
    )
    file = replace(who.agent.registration, services=(*who.agent.registration.services, *more))
    return replace(who, agent=replace(who.agent, registration=file))


async def visit(http: GuardedHttp, who: Subject, deadline_s: float = GATE_S) -> Evidence:
    needs = SignalDependencies(
        FakeChain(),  # type: ignore[arg-type]
        http,
        StockDialers(),
        PROBES,
        SystemClock(),
        deadline_s,
        control=Control(Kept(), Records()),  # type: ignore[arg-type]
    )
    evidence = await SIGNAL.collect(who, needs)
    assert isinstance(evidence, Evidence)
    return evidence


async def test_function_probes_control_and_fingerprints_share_60_requests(
    http: GuardedHttp, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What an agent says costs its owner more than a request: that budget is counted elsewhere.
    monkeypatch.setattr(shared_dialers, "MESSAGES_MAX", 100)
    behaviour = Behaviour(files={FILE: json.dumps(naming("7"))})
    async with running(behaviour) as agent:
        who = with_everything(agent)
        evidence = await visit(http, who)
        sent = len(behaviour.requests)
    assert sent == evidence.interactions <= REQUESTS_MAX
    data = evidence.data
    control, function, prints = (data[name] for name in ("control", "function", "fingerprints"))
    assert is_array(control)
    assert is_array(function)
    assert is_object(prints)
    assert [row["proof"] for row in control if is_object(row)] == ["well_known"] * 6
    asked = [row for row in function if is_object(row) and row["why"] != "waiting_for_budget"]
    assert [row["state"] for row in asked].count("unfinished") == 0
    # Of six; which of the others has its turn is drawn, and two lead to the A2A agent once more.
    assert len(asked) in {2, 3}
    assert {name.partition(" ")[0] for name in prints} >= {"card", "tools", "schema"}, prints
    assert data.get("criticalUnfinished") is None
    seen = data["probes"]
    assert is_object(seen)
    critical = [n for n, p in PROBES.items() if p.severity is Severity.CRITICAL]
    assert [name for name in critical if seen[name] == "unfinished"] == []


async def test_a_visit_of_silent_services_ends_in_time_and_says_what_it_left_unfinished(
    http: GuardedHttp,
) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    base = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, asyncio.timeout(4.0):
        evidence = await visit(http, with_everything(Agent(base, Behaviour())), deadline_s=3.0)
    control, function = evidence.data["control"], evidence.data["function"]
    assert is_array(control)
    assert is_array(function)
    assert {row.get("unfinished") for row in control if is_object(row)} == {True}
    states = {row["state"] for row in function if is_object(row)}
    assert states == {"unfinished"}
    assert evidence.data["criticalUnfinished"]
