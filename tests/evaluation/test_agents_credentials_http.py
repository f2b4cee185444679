"""Credentials that owners deposit for services behind a log-in (ADR 0039)."""

import json
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.types import ASGIApp

from assay.cli.check import header_in
from assay.common.errors import InvalidRequest
from assay.evaluation.model import EvaluationCompleted
from assay.evaluation.visits import EvaluationRequest
from assay.probing.declared_services import declared_services
from assay.probing.unannounced import scheduled_visits
from assay.registries.model import RegistrationFile, Service
from tests.support.fakes.closed_agents import SECRET, LogIn, told_forms
from tests.support.fakes.trust import NETWORK
from tests.support.fakes.working_agents import (
    CONVERT,
    a2a_app,
    converts,
    mcp_app,
    rest_app,
    serving,
    working_tools,
)
from tests.support.live_service import STRANGER_KEY, TestService, address, refused

pytestmark = pytest.mark.slow

PATH = "/operator/agent/7/credentials"
KEY = "eip155:31337/7"


def declares(service: TestService, *services: tuple[str, str], agent_id: str = "7") -> None:
    listed = tuple(Service(name, url) for name, url in services)
    known = service.chain.agents[agent_id]
    service.chain.agents[agent_id] = replace(
        known, registration=RegistrationFile(name="Closed", services=listed)
    )


Made = tuple[str, str, Callable[[str], ASGIApp], Any]


def made(protocol: str) -> Made:
    """Name, path, application and MCP server of one closed agent."""
    if protocol == "mcp":
        server = working_tools()
        return "MCP", "/mcp", mcp_app(server), server
    if protocol == "http":
        return "web", "/openapi.json", rest_app, None
    return "A2A", "/.well-known/agent-card.json", a2a_app(converts, CONVERT), None


@asynccontextmanager
async def closed(
    service: TestService, protocol: str, log_in: LogIn | None = None
) -> AsyncGenerator[str]:
    """A real agent behind a log-in, declared as agent 7 and evaluated once."""
    name, path, app, server = made(protocol)
    async with serving((log_in or LogIn(NETWORK))(app), server) as base:
        declares(service, (name, base + path))
        await evaluated(service)
        yield base


async def evaluated(service: TestService) -> dict[str, Any]:
    """A new evaluation, one and a half hours after what was before."""
    service.clock.move(5400)
    answer = await service.http.post("/operator/trigger-sandbox/7", headers=await service.session())
    assert answer.status_code == 200, answer.text
    return answer.json()


async def visited(service: TestService, *, announced: bool = True) -> EvaluationCompleted:
    """An evaluation that the service timed, a day and a half after what was before."""
    service.clock.move(36 * 3600)
    subject = await service.app.subjects.find(service.app.networks.default, "7")
    asked = EvaluationRequest("scheduled", is_background=True)
    if announced:
        return await service.app.evaluator.evaluate(subject, 30, asked)
    endpoints = [v.service.endpoint for v in declared_services(subject)[0]]
    unannounced = service.app.evaluator._needs.sources.visits
    assert unannounced is not None
    await unannounced.read_robots(endpoints, service.clock)
    with scheduled_visits(1):
        return await service.app.evaluator.evaluate(subject, 30, asked)


async def deposited(service: TestService, base: str, **more: Any) -> dict[str, Any]:
    body = {"url": base + "/", "name": "Authorization", "value": f"Bearer {SECRET}", **more}
    answer = await service.http.post(PATH, headers=await service.session(), json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


def function(found: dict[str, Any], demand: str = "function") -> dict[str, Any]:
    return next(d for d in found["ladder"]["demands"] if d["name"] == demand)


@pytest.mark.parametrize("protocol", ["a2a", "mcp", "http"])
async def test_a_closed_service_is_rung_0_without_a_deposit_and_rung_1_with_it(
    service: TestService, protocol: str
) -> None:
    async with closed(service, protocol) as base:
        before = await evaluated(service)
        assert before["ladder"]["rung"] == 0
        said = [one["action"] for one in before["improve"] if one["slug"] == "function"]
        assert "Deposit a credential for evaluations" in said[0]
        made_now = await deposited(service, base)
        for _ in range(4):  # verdicts accumulate: one visit turns nothing
            await visited(service)
        after = await evaluated(service)
        assert after["ladder"]["rung"] == 1, after["ladder"]
        assert base in after["testSummary"]["entered"][0]
        listed = (await service.http.get(PATH, headers=await service.session())).json()["items"]
        assert [one["id"] for one in listed] == [made_now["id"]]
        assert listed[0]["lastOutcome"] == "entered"
        assert listed[0]["lastUsedAt"]


@pytest.mark.parametrize("protocol", ["a2a", "mcp", "http"])
async def test_the_secret_is_nowhere_though_the_service_repeats_it_in_every_form(
    service: TestService, protocol: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    log_in = LogIn(NETWORK, is_telling=True)
    async with closed(service, protocol, log_in) as base:
        body = await deposited(service, base)
        for _ in range(2):
            news = await visited(service)
        answers = [body, await evaluated(service)]
        for path in (PATH, "/operator/agent/7"):
            headers = await service.session() if path == PATH else await service.operator()
            answers.append((await service.http.get(path, headers=headers)).json())
    assert log_in.asked.entered
    sandbox = next(c for c in news.evaluation.collected if c.signal == "sandbox")
    used = sandbox.evidence.data["entry"]["credentials"]
    assert [(one["outcome"], one["repeated"]) for one in used] == [("entered", True)]
    # The wire itself logs what passes when a developer turns that on; the service never does.
    logs = [r.getMessage() for r in caplog.records if not r.name.startswith("httpcore2")]
    told = {"answers": json.dumps(answers), "evidence": repr(news), "logs": "\n".join(logs)}
    told |= _files(tmp_path)
    assert "assay.db" in told
    forms = {f.strip('"').rstrip("=") for f in told_forms()} | {SECRET, SECRET.lower()}
    assert {(n, f) for f in forms for n, text in told.items() if f.lower() in text.lower()} == set()


def _files(folder: Path) -> dict[str, str]:
    files = [file for file in folder.rglob("*") if file.is_file()]
    return {file.name: file.read_bytes().decode("latin-1") for file in files}


async def test_an_unannounced_visit_carries_none_and_changes_nothing(service: TestService) -> None:
    log_in = LogIn(NETWORK)
    async with closed(service, "a2a", log_in) as base:
        await deposited(service, base)
        for _ in range(4):
            await visited(service)
        before = await service.app.profiles.profile(service.app.networks.default, "7")
        entered = len(log_in.asked.entered)
        news = await visited(service, announced=False)
        assert len(log_in.asked.entered) == entered
        assert log_in.asked.refused
    found = await service.app.visits.store.recent(KEY, service.clock.now() - timedelta(days=1))
    assert [one.label for one in found] == ["unlabelled"]
    assert news.evaluation.rung == before.evaluation.rung == 1  # type: ignore[union-attr]
    assert news.evaluation.score == before.score.value


async def test_an_open_service_never_sees_what_was_deposited_for_it(service: TestService) -> None:
    log_in = LogIn(NETWORK, open_to=lambda _: True)
    async with closed(service, "http", log_in) as base:
        await deposited(service, base)
        await visited(service)
    assert not log_in.asked.entered
    listed = (await service.http.get(PATH, headers=await service.session())).json()["items"]
    assert listed[0]["lastOutcome"] == "not_needed"


async def test_a_parameter_of_the_query_opens_a_service(service: TestService) -> None:
    log_in = LogIn(NETWORK, parameter="api_key", value=SECRET, is_telling=True)
    async with closed(service, "http", log_in) as base:
        await deposited(service, base, place="query", name="api_key", value=SECRET)
        for _ in range(4):
            news = await visited(service)
    assert news.evaluation.rung == 1
    assert SECRET not in repr(news)


async def test_of_a_wrong_credential_the_owner_is_told(service: TestService) -> None:
    async with closed(service, "http") as base:
        await deposited(service, base, value=f"Bearer {SECRET}-of-yesterday")
        found = await evaluated(service)
        await visited(service)
        found = await evaluated(service)
    said = [one["action"] for one in found["improve"] if one["slug"] == "function"]
    assert "is refused: deposit one that holds" in said[0]


async def test_401_nobody_deposits_for_somebody_else_s_agent(service: TestService) -> None:
    async with closed(service, "http") as base:
        made_now = await deposited(service, base)
        stranger = await service.session(STRANGER_KEY)
        body = {"url": base + "/", "name": "Authorization", "value": f"Bearer {SECRET}"}
        refused(
            await service.http.post(PATH, headers=stranger, json=body), 401, "identity_mismatch"
        )
        refused(await service.http.get(PATH, headers=stranger), 401, "identity_mismatch")
        one = f"{PATH}/{made_now['id']}"
        refused(await service.http.delete(one, headers=stranger), 401, "identity_mismatch")
        key = await service.operator()
        refused(await service.http.post(PATH, headers=key, json=body), 401, "identity_required")
        owner = await service.session()
        assert (await service.http.delete(one, headers=owner)).json() == {
            "ok": True,
            "id": made_now["id"],
        }
        refused(await service.http.delete(one, headers=owner), 404, "credential_not_found")


async def test_400_every_problem_is_named_and_the_value_never(service: TestService) -> None:
    async with closed(service, "http") as base:
        owner = await service.session()
        for body, where in (
            ({"url": "http://shop.example/"}, "url"),
            ({"url": "https://elsewhere.example/"}, "url"),
            ({"url": base + "/?key=1"}, "url"),
            ({"url": base + "/%2e%2e/"}, "url"),
            ({"name": "Host"}, "name"),
            ({"name": "X-Forwarded-For"}, "name"),
            ({"name": "Mcp-Session-Id"}, "name"),
            ({"name": "Content-Type"}, "name"),
            ({"name": "X-Agent-Session"}, "name"),
            ({"name": "X-Key: a\r\nX-Other"}, "name"),
            ({"value": f"Bearer {SECRET}\r\nHost: other"}, "value"),
            ({"value": f"Bearer {SECRET}\u20ac"}, "value"),
            ({"value": "Bearer instructions"}, "value"),
            ({"value": "Bearer short1"}, "value"),
            ({"value": "Bearer a1" + "x" * 5000}, "value"),
            ({"value": owner["x-agent-session"]}, "value"),
        ):
            asked = {"url": base + "/", "name": "X-API-Key", "value": SECRET, **body}
            answer = await service.http.post(PATH, headers=owner, json=asked)
            found = refused(answer, 400, "invalid_request")
            assert [p["loc"][-1] for p in found["details"]] == [where], asked
            assert asked["value"] not in answer.text


async def test_409_where_control_is_not_proven(service: TestService) -> None:
    name, path, app, _ = made("http")
    async with serving(LogIn(NETWORK, agent_id="9")(app)) as base:  # names another agent
        declares(service, (name, base + path))
        await evaluated(service)
        body = {"url": base + "/", "name": "Authorization", "value": f"Bearer {SECRET}"}
        answer = await service.http.post(PATH, headers=await service.session(), json=body)
        refused(answer, 409, "control_unproven")


async def test_409_a_fifth_address_and_one_is_replaced(service: TestService) -> None:
    async with closed(service, "http") as base:
        for part in ("", "a", "b", "c"):
            await deposited(service, base, url=f"{base}/{part}")
        body = {"url": f"{base}/d", "name": "Authorization", "value": f"Bearer {SECRET}"}
        answer = await service.http.post(PATH, headers=await service.session(), json=body)
        refused(answer, 409, "credential_limit_reached")
        again = await deposited(service, base, url=f"{base}/a", name="X-API-Key")
        listed = (await service.http.get(PATH, headers=await service.session())).json()
        assert (listed["total"], listed["limit"]) == (4, 100)
        assert again["id"] in {one["id"] for one in listed["items"]}


async def test_with_the_token_the_deposit_goes(service: TestService) -> None:
    log_in = LogIn(NETWORK)
    async with closed(service, "http", log_in) as base:
        await deposited(service, base)
        await visited(service)
        assert log_in.asked.entered
        log_in.asked.entered.clear()
        known = service.chain.agents["7"]
        service.chain.agents["7"] = replace(known, owner=address(STRANGER_KEY))
        await visited(service)
        assert not log_in.asked.entered
        buyer = await service.session(STRANGER_KEY)
        assert (await service.http.get(PATH, headers=buyer)).json()["items"] == []
        service.chain.agents["7"] = known  # and it is not kept for the day it comes back
        await visited(service)
        assert not log_in.asked.entered


async def test_a_service_that_moves_to_another_host_gets_nothing(service: TestService) -> None:
    name, path, app, _ = made("http")
    elsewhere = LogIn(NETWORK)
    async with closed(service, "http") as base, serving(elsewhere(app)) as other:
        await deposited(service, base)
        await visited(service)
        declares(service, (name, other + path))
        for _ in range(2):
            await visited(service)
    assert elsewhere.asked.refused
    assert not elsewhere.asked.entered
    assert SECRET not in repr(elsewhere.asked.seen_headers)


async def test_a_local_check_takes_a_header_from_a_file(
    service: TestService, tmp_path: Path
) -> None:
    file = tmp_path / "header"
    file.write_text(f"Authorization: Bearer {SECRET}\n", "utf-8")
    header = header_in(file)
    assert header == ("Authorization", f"Bearer {SECRET}")
    name, path, app, _ = made("http")
    async with serving(LogIn(NETWORK)(app)) as base:
        without = await service.app.unregistered.evaluate(base + path, 20, name)
        found = await service.app.unregistered.evaluate(base + path, 20, name, header)
    data = [one.behaviour.evidence.data for one in (without, found)]
    assert [one["function"][0]["state"] for one in data] == ["refuses", "functional"]  # type: ignore[index, call-overload]
    assert SECRET not in repr(found)


TWO_HOSTS = (
    '{"services": [{"name": "web", "endpoint": "http://127.0.0.1:9/"},'
    ' {"name": "MCP", "endpoint": "http://127.0.0.1:8/"}]}'
)


@pytest.mark.parametrize(
    ("target", "header"),
    [
        ("http://agent.example/", ("Authorization", f"Bearer {SECRET}")),
        ("http://127.0.0.1:9/", ("Host", f"Bearer {SECRET}")),
        ("http://127.0.0.1:9/", ("Authorization", "Bearer words")),
        (TWO_HOSTS, ("Authorization", f"Bearer {SECRET}")),
    ],
)
async def test_a_local_check_sends_no_header_where_it_must_not(
    service: TestService, target: str, header: tuple[str, str]
) -> None:
    with pytest.raises(InvalidRequest):
        await service.app.unregistered.evaluate(target, 5, None, header)
