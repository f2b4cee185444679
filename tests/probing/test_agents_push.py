"""Agents that deliver their results: to a callback of ours, or not at all."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from assay.common.clock import SystemClock
from assay.common.shared_state import MemorySharedState
from assay.db.engine import Database
from assay.evaluation.ports import Sources
from assay.net.egress.client import GuardedHttp
from assay.probing.result_callbacks import PREFIX, TOKEN_HEADER, Callbacks
from assay.registries.model import Service
from tests.probing.test_agents_control import Grades
from tests.probing.test_agents_function import proven
from tests.probing.test_agents_grpc import declaring
from tests.support.fakes.agents import obeyed
from tests.support.fakes.grpc_agents import looks_up, template
from tests.support.fakes.push_agents import push_only
from tests.support.fakes.working_agents import serving

pytestmark = pytest.mark.slow


@asynccontextmanager
async def our_callbacks() -> AsyncGenerator[Callbacks]:
    """Callbacks that are called at an address of their own."""
    kept: list[Callbacks] = []

    async def deliver(request: Request) -> Response:
        token = request.headers.get(TOKEN_HEADER)
        await kept[0].note(request.path_params["word"], token, await request.body())
        return JSONResponse({})

    app = Starlette(routes=[Route(PREFIX + "/{word}", deliver, methods=["POST"])])
    async with serving(lambda _: app) as base:
        kept.append(Callbacks(MemorySharedState(SystemClock()), ["secret"], [base], []))
        yield kept[0]


SPOKEN = [("JSONRPC", "1.0"), ("JSONRPC", "0.3"), ("GRPC", "1.0"), ("GRPC", "0.3")]


@pytest.mark.parametrize(("binding", "version"), SPOKEN)
async def test_function_is_proven_by_what_is_delivered(
    http: GuardedHttp, binding: str, version: str
) -> None:
    async with our_callbacks() as callbacks, push_only(looks_up, binding, version) as card:
        issue = partial(callbacks.issue, announced=True)
        found = await proven(http, Service("A2A", card), callback=issue)
    assert found == [("a2a", "functional", "answers_vary")]


async def test_a_template_that_is_delivered_proves_nothing(http: GuardedHttp) -> None:
    async with our_callbacks() as callbacks, push_only(template) as card:
        issue = partial(callbacks.issue, announced=True)
        [(_, state, _)] = await proven(http, Service("A2A", card), callback=issue)
    assert state == "not_functional"


async def test_without_an_address_of_ours_it_is_said_and_not_held_against_the_agent(
    http: GuardedHttp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.probing.result_callbacks.POLLS_MAX", 2)
    async with our_callbacks() as callbacks, push_only(looks_up) as card:
        issue = partial(callbacks.issue, announced=False)  # no canary hosts are set
        found = await proven(http, Service("A2A", card), callback=issue)
    assert found == [("a2a", "unfinished", "no_callback_address")]


@pytest.mark.parametrize(("binding", "version"), [("JSONRPC", "1.0"), ("GRPC", "0.3")])
async def test_an_agent_that_delivers_its_results_reaches_rung_1(
    database: Database, http: GuardedHttp, binding: str, version: str
) -> None:
    async with our_callbacks() as callbacks, push_only(looks_up, binding, version) as card:
        grades = Grades(database, http, Sources(callbacks=callbacks))
        evaluation = await grades.of(declaring(card))
    assert evaluation.rung == 1


def obeys(text: str) -> str:
    return obeyed(text) or looks_up(text)


@pytest.mark.parametrize("delivers", [True, False])
async def test_a_task_that_ends_in_obedience_is_found(
    database: Database, http: GuardedHttp, *, delivers: bool
) -> None:
    """Whether its result is delivered, or told when it is asked for."""
    async with our_callbacks() as callbacks, push_only(obeys, delivers=delivers) as card:
        grades = Grades(database, http, Sources(callbacks=callbacks))
        evaluation = await grades.of(declaring(card))
    seen = evaluation.collected[0].evidence.data
    assert seen["criticalFailed"] == ["injection_not_obeyed"]
    assert evaluation.rung == 0
