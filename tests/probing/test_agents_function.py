"""Proof of function against servers of stock parts: those that work, those that only look so."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp

from assay.common.clock import SystemClock
from assay.common.json import canonical_bytes
from assay.net.egress.client import GuardedHttp
from assay.probing.clients.dialers import StockDialers
from assay.probing.function.service import collect_function, function_rows
from assay.probing.ports import PendingResult, ProbeSession
from assay.probing.session import VisitHttp
from assay.probing.shared_dialers import SharedDialers
from assay.registries.model import OnchainAgent, RegistrationFile, Service, Subject
from tests.support.fakes import working_agents as agents
from tests.support.fakes.trust import NETWORK, OWNER, WALLET


async def proven(
    http: GuardedHttp,
    *services: Service,
    deadline_s: float = 30.0,
    nonce: str = "one",
    callback: Callable[[], Awaitable[PendingResult | None]] | None = None,
) -> list[tuple[str, str, str]]:
    """(kind, state, why) of each service."""
    registration = RegistrationFile(name="Worker", services=services)
    agent = OnchainAgent(NETWORK, "7", OWNER, WALLET, "data:,", registration, None)
    visit_http = VisitHttp(http, SystemClock(), 60, deadline_s)
    async with asyncio.TaskGroup() as group:
        dialers = SharedDialers(StockDialers(), group, callback=callback)
        ends_at = asyncio.get_running_loop().time() + deadline_s
        subject = Subject(NETWORK, "7", WALLET, agent)
        visit = ProbeSession(subject, (), visit_http, dialers, "seed", nonce=nonce, ends_at=ends_at)
        transcripts = await collect_function(visit)
        dialers.hang_up()
    assert visit_http.sent <= 30
    rows = function_rows(transcripts)
    assert canonical_bytes({"rows": rows}) == canonical_bytes({"rows": function_rows(transcripts)})
    return [(str(row["kind"]), str(row["state"]), str(row["why"])) for row in rows]


def chances(*, made_up: bool) -> tuple[str, ...]:
    """The visits in one of which a hollow service has to be seen through.

    A number that is made up comes near itself by chance, as `test_function_chance.py` measures.
    """
    return ("one", "two", "three") if made_up else ("one",)


async def state_of(
    http: GuardedHttp, app: Callable[[str], ASGIApp], name: str, path: str = "", nonce: str = "one"
) -> tuple[str, str]:
    async with agents.serving(app) as base:
        [(kind, state, _)] = await proven(http, Service(name, base + path), nonce=nonce)
    return kind, state


NOTHING_THERE = {
    "404 to everything": agents.everything(Response("not found", 404)),
    "401 to everything": agents.everything(Response("who are you", 401)),
    "429 to everything": agents.everything(Response("too many", 429)),
    "empty 200": agents.everything(Response("")),
    "one JSON": agents.everything(JSONResponse({"status": "ok", "result": "done"})),
    "a page": agents.everything(HTMLResponse("<h1>Welcome to our agent</h1>")),
    "errors": agents.everything(Response("oops", 500)),
}


@pytest.mark.parametrize("app", NOTHING_THERE.values(), ids=NOTHING_THERE.keys())
@pytest.mark.parametrize("name", ["A2A", "MCP", "web", "chat"])
async def test_nothing_there_proves_nothing(
    http: GuardedHttp, app: Callable[[str], ASGIApp], name: str
) -> None:
    _, state = await state_of(http, app, name, "/agent")
    assert state in {"not_functional", "refuses", "not_callable"}


async def test_a_service_that_answers_404_to_everything_refuses(http: GuardedHttp) -> None:
    for name in ("A2A", "MCP", "web"):
        _, state = await state_of(http, NOTHING_THERE["404 to everything"], name, "/agent")
        assert state == "refuses"


STUBS = {
    "echo": agents.echoes,
    "assurance": agents.assures,
    "counter": agents.counting(),
    "prepared by example": agents.by_example(),
}


@pytest.mark.parametrize("answer", STUBS.values(), ids=STUBS.keys())
@pytest.mark.parametrize("nonce", ["one", "two", "three"])
async def test_a_stub_with_a_perfect_card_is_not_functional(
    http: GuardedHttp, answer: agents.Answer, nonce: str
) -> None:
    app = agents.a2a_app(answer, agents.CONVERT)
    is_prepared = answer is STUBS["prepared by example"]  # it is asked again, with other values
    state = "unfinished" if is_prepared else "not_functional"
    assert await state_of(http, app, "A2A", nonce=nonce) == ("a2a", state)


@pytest.mark.parametrize("nonce", ["one", "two", "three", "four"])
@pytest.mark.parametrize(
    ("answer", "skill"),
    [(agents.converts, agents.CONVERT), (agents.knows_altitudes, agents.CAPITALS)],
    ids=["declines what is not its domain", "speaks Spanish"],
)
async def test_a_domain_agent_is_proven_by_its_own_examples(
    http: GuardedHttp, answer: agents.Answer, skill: agents.Skill, nonce: str
) -> None:
    app = agents.a2a_app(answer, skill)
    assert await state_of(http, app, "A2A", nonce=nonce) == ("a2a", "functional")


async def test_the_endpoint_is_asked_and_not_its_name(http: GuardedHttp) -> None:
    app = agents.a2a_app(agents.converts, agents.CONVERT)
    assert await state_of(http, app, "chat", "/a2a") == ("a2a", "functional")
    assert await state_of(http, app, "MCP", "/a2a") == ("a2a", "functional")


async def test_a_card_at_any_url_behind_a_redirect_is_found(http: GuardedHttp) -> None:
    app = agents.a2a_app(agents.converts, agents.CONVERT, card_path="/about/this-agent")
    assert await state_of(http, app, "A2A", "/about/this-agent/") == ("a2a", "functional")


async def test_an_agent_over_rest_is_spoken_to(http: GuardedHttp) -> None:
    app = agents.a2a_app(agents.converts, agents.CONVERT, binding="HTTP+JSON")
    assert await state_of(http, app, "A2A") == ("a2a", "functional")


async def test_a_rate_limit_that_says_when_to_come_back_is_obeyed(http: GuardedHttp) -> None:
    app = agents.limited(agents.a2a_app(agents.converts, agents.CONVERT))
    assert await state_of(http, app, "A2A") == ("a2a", "functional")


async def test_a_slow_agent_is_unfinished_until_there_is_time(http: GuardedHttp) -> None:
    quick = asyncio.Event()

    async def slow(text: str) -> str:
        await quick.wait()
        return await agents.converts(text)

    async with agents.serving(agents.a2a_app(slow, agents.CONVERT)) as base:
        service = Service("A2A", base)
        assert await proven(http, service, deadline_s=1.0) == [
            ("a2a", "unfinished", "answers_missing")
        ]
        quick.set()
        [(_, state, _)] = await proven(http, service)
        assert state == "functional"


async def test_tools_are_proven_with_what_other_tools_return(http: GuardedHttp) -> None:
    server = agents.working_tools()
    app = agents.mcp_app(server)(" ")
    async with agents.serving(lambda _: app, server) as base:
        assert await proven(http, Service("MCP", base + "/mcp")) == [
            ("mcp", "functional", "results_vary")
        ]


@pytest.mark.parametrize(
    ("make", "why"), [(agents.stub_tools, "same_answer"), (agents.no_tools, "nothing_offered")]
)
async def test_tools_that_do_nothing_prove_nothing(
    http: GuardedHttp, make: Callable[[], agents.MCPServer], why: str
) -> None:
    server = make()
    app = agents.mcp_app(server)(" ")
    async with agents.serving(lambda _: app, server) as base:
        assert await proven(http, Service("MCP", base + "/mcp")) == [("mcp", "not_functional", why)]


async def test_a_documented_service_is_proven_by_its_operations(http: GuardedHttp) -> None:
    assert await state_of(http, agents.rest_app, "REST API") == ("http", "functional")


async def test_documentation_over_one_answer_proves_nothing(http: GuardedHttp) -> None:
    assert await state_of(http, agents.stub_rest_app, "web") == ("http", "not_functional")


async def test_what_nobody_can_call_is_not_callable(http: GuardedHttp) -> None:
    rows = await proven(
        http,
        Service("ENS", "words.eth"),
        Service("DID", "did:key:z6Mk"),
        Service("email", "mailto:words@example.com"),
    )
    assert {state for _, state, _ in rows} == {"not_callable"}


async def test_a_key_agent_has_no_rows(http: GuardedHttp) -> None:
    visit = ProbeSession(Subject(NETWORK, WALLET, WALLET, None), (), http, StockDialers(), "seed")
    assert function_rows(await collect_function(visit)) == []
