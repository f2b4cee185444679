"""The reserved half of an egress budget is for those who control the agent that is visited."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.common.egress_budget import EgressUse, UseClass, current_use
from assay.registries.ports import OVER_BUDGET
from tests.gate.test_gate_budget_http import HOST_FILE, JSON, agent, hosted, triggered
from tests.support.live_service import (
    STRANGER_KEY,
    TestService,
    address,
    refused,
    start_test_service,
)
from tests.support.raw_server import RawServer, Request, plain, serving

pytestmark = pytest.mark.slow

ANOTHER_URL = "http://127.0.0.1:8099/"


@pytest.fixture
async def strict(tmp_path: Path) -> AsyncIterator[TestService]:
    """The service with budgets for loopback too."""
    async with start_test_service(tmp_path / "data", egress_budget_private=True) as opened:
        yield opened


class Uses:
    """What readings of the registry were counted as, in order."""

    def __init__(self, service: TestService) -> None:
        self._fetch = service.chain.fetch_agent
        self.seen: list[EgressUse] = []
        service.chain.fetch_agent = self.fetch_agent  # type: ignore[method-assign]

    async def fetch_agent(self, *args: Any) -> Any:
        self.seen.append(current_use())
        return await self._fetch(*args)


async def playground(
    service: TestService, headers: dict[str, str], agent_id: str
) -> dict[str, Any]:
    body = {"path": ANOTHER_URL, "agentId": agent_id, "method": "GET"}
    return (await service.http.post("/operator/playground", headers=headers, json=body)).json()


async def wrapped(service: TestService, **more: Any) -> str:
    """The path of a wrapper of the first account's."""
    token = await service.token()
    body = {"path": "/t", "targetUrl": ANOTHER_URL, "pricePerCall": 0, **more}
    answer = await service.http.post("/operator/endpoints", headers=token, json=body)
    assert answer.status_code == 200, answer.text
    me = await service.http.get("/operator/me", headers=token)
    return f"/wrap/{me.json()['operator']['id']}/t"


async def use_up_the_shared_half(service: TestService, server: RawServer) -> None:
    for name in ("x@e.com", "y@e.com"):
        await service.operator(name)
        token = await service.token(name)
        for number in range(15):
            body = {"path": server.url(f"/{number}"), "agentId": "8", "method": "GET"}
            await service.http.post("/operator/playground", headers=token, json=body)
    assert 30 <= len(server.requests) <= 30 + HOST_FILE


async def test_one_account_with_many_agents_leaves_a_rival_its_first_gate(
    strict: TestService,
) -> None:
    mine = [str(number) for number in range(100, 110)]
    async with hosted(strict, "7", *mine) as server:
        await strict.operator("x@e.com")
        token = await strict.token("x@e.com")
        for name in mine:
            await playground(strict, token, name)
        assert len(server.requests) <= 15 + HOST_FILE
        told = (await strict.gate(await strict.operator() | await strict.session())).json()
        assert (told["sandboxRan"], told.get("cachedReason")) == (True, None)


async def test_whoever_names_a_foreign_agent_has_nothing_sent_to_it(strict: TestService) -> None:
    keys = await strict.operator()
    url = await wrapped(strict, trustEnabled=True)
    stranger = await strict.session(STRANGER_KEY)
    async with hosted(strict, "7") as server:
        answer = await strict.http.get(url, headers=stranger | {"x-agent-id": "7"})
        refused(answer, 401, "identity_mismatch")
        refused(await strict.gate(keys | stranger), 401, "identity_mismatch")
        assert server.requests == []


async def test_before_control_is_shown_everything_is_the_accounts_share(
    strict: TestService,
) -> None:
    uses = Uses(strict)
    keys = await strict.operator()
    refused(await strict.gate(keys | await strict.session(STRANGER_KEY)), 401, "identity_mismatch")
    token = await strict.token()
    await playground(strict, token, "8")
    assert uses.seen
    assert {use.use_class for use in uses.seen} == {UseClass.SHARED}
    assert len({use.account for use in uses.seen} - {""}) == 1


async def test_a_file_that_strangers_hid_is_read_for_its_owner(strict: TestService) -> None:
    """A registration file that the shared half had no room for is read anew after the proof."""
    keys = await strict.operator() | await strict.session()
    async with hosted(strict, "7"):
        whole = strict.chain.agents["7"]
        hidden = replace(whole, registration=None, registration_problem=OVER_BUDGET)
        fetch = strict.chain.fetch_agent

        async def fetch_agent(*args: Any) -> Any:
            is_reserved = current_use().use_class is UseClass.RESERVED
            strict.chain.agents["7"] = whole if is_reserved else hidden
            return await fetch(*args)

        strict.chain.fetch_agent = fetch_agent  # type: ignore[method-assign]
        told = (await strict.gate(keys)).json()
        assert (told["sandboxRan"], told.get("cachedReason")) == (True, None)


async def test_what_was_cut_for_a_stranger_is_no_answer_for_the_owner(strict: TestService) -> None:
    keys = await strict.operator() | await strict.session()
    async with hosted(strict, "7") as server:
        await use_up_the_shared_half(strict, server)
        await strict.operator("z@e.com")
        token = await strict.token("z@e.com")
        for _ in range(8):
            await playground(strict, token, "7")
        assert (await triggered(strict))["cachedReason"] == "egress_budget"
        assert 30 <= len(server.requests) <= 30 + HOST_FILE
        told = (await strict.gate(keys)).json()
        assert (told["sandboxRan"], told.get("cachedReason")) == (True, None)


async def test_a_gate_that_comes_during_a_strangers_trigger_has_its_own_share(
    strict: TestService,
) -> None:
    keys = await strict.operator() | await strict.session()
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def respond(request: Request, writer: asyncio.StreamWriter) -> None:
        if len(server.requests) > 30:
            asked.set()
        if request.target == "/" and request.method == "GET":
            asked.set()
            await go_on.wait()
            writer.write(plain(b"hello agent.", "200 OK", "Content-Type: text/html"))
        else:
            writer.write(plain(b"{}", "404 Not Found", JSON))

    async with serving(respond) as server, asyncio.TaskGroup() as group:
        strict.chain.agents["7"] = agent("7", server.url())
        trigger = group.create_task(triggered(strict))
        await asked.wait()
        for email in ("x@e.com", "y@e.com"):
            await strict.operator(email)
            token = await strict.token(email)
            for number in range(15):
                body = {"path": server.url(f"/{number}"), "agentId": "8", "method": "GET"}
                await strict.http.post("/operator/playground", headers=token, json=body)
        gate = group.create_task(strict.gate(keys))
        go_on.set()
        assert (await trigger)["cachedReason"] == "egress_budget"
        told = (await gate).json()
        assert (told["sandboxRan"], told.get("cachedReason")) == (True, None)


async def test_a_service_that_believes_headers_lets_its_gates_use_the_reserved_half(
    tmp_path: Path,
) -> None:
    settings = {"egress_budget_private": True, "identity_proof": "asserted"}
    async with (
        start_test_service(tmp_path / "data", **settings) as service,
        hosted(service, "7") as server,
    ):
        await use_up_the_shared_half(service, server)
        keys = await service.operator()
        owner = service.chain.agents["7"].owner
        told = (await service.gate(keys | {"x-agent-address": owner})).json()
        assert (told["sandboxRan"], told["identityProven"]) == (True, False)


async def test_a_wrapper_that_believes_headers_opens_no_reserved_half(strict: TestService) -> None:
    await strict.operator()
    url = await wrapped(strict, trustEnabled=True, minScore=0, identityProof="asserted")
    async with hosted(strict, "7") as server:
        await use_up_the_shared_half(strict, server)
        owner = {"x-agent-address": strict.chain.agents["7"].owner, "x-agent-id": "7"}
        await strict.http.get(url, headers=owner)
        assert 30 <= len(server.requests) <= 30 + HOST_FILE


async def test_an_agent_that_was_never_tested_gets_its_turn_after_others(
    strict: TestService,
) -> None:
    """Agents of one account, all proven, name a rival's host; the second minute is shared."""
    mine = [str(number) for number in range(100, 108)]
    async with hosted(strict, "7", *mine) as server:
        for name in mine:
            theirs = strict.chain.agents[name]
            strict.chain.agents[name] = replace(theirs, owner=address(STRANGER_KEY))
        attacker = await strict.operator("x@e.com") | await strict.session(STRANGER_KEY)
        keys = await strict.operator() | await strict.session()
        for name in mine[:4]:
            await strict.gate(attacker, name, ttlMs=1)
        answer = await strict.gate(keys)
        told = answer.json()
        assert (answer.status_code, told["cachedReason"]) == (200, "egress_budget")
        strict.clock.move(61)
        before = len(server.requests)
        for name in mine[4:]:
            await strict.gate(attacker, name, ttlMs=1)
        assert len(server.requests) - before <= 30 + HOST_FILE
        told = (await strict.gate(keys)).json()
        assert (told["sandboxRan"], told.get("cachedReason")) == (True, None)


async def test_a_host_that_consents_keeps_its_half_for_the_agents_it_names(
    strict: TestService,
) -> None:
    keys = await strict.operator() | await strict.session()
    async with hosted(strict, "7", "8", consents=True) as server:
        assert (await strict.gate(keys)).json()["sandboxRan"] is True
        uses: list[EgressUse] = []
        ledger = strict.app.evaluator._needs.http._budget.ledger  # type: ignore[attr-defined]
        claim = ledger.claim

        async def noted(asked: Any) -> Any:
            uses.append(asked.use)
            return await claim(asked)

        ledger.claim = noted
        await strict.gate(keys, "8")
        assert {use.use_class for use in uses} == {UseClass.SHARED}
        uses.clear()
        strict.clock.move(1)
        await strict.gate(keys, ttlMs=1)
        assert {use.use_class for use in uses} == {UseClass.RESERVED}
        assert server.requests
