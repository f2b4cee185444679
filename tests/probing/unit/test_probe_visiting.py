import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

import pytest

from assay.net.egress.ports import EgressError, EgressResponse, Failure, Limits, OutboundRequest
from assay.probing.consent import opted_out
from assay.probing.ports import AgentCallFailed, BudgetExhausted, McpConversation
from assay.probing.session import USER_AGENT, VisitHttp
from assay.probing.shared_dialers import SharedDialers
from tests.support.eventually import never
from tests.support.fakes.clock import FrozenClock

Answer = Callable[[OutboundRequest], EgressResponse | EgressError]


def reply(status: int = 200, body: bytes = b"") -> EgressResponse:
    return EgressResponse(status, (), body, truncated=False, elapsed_ms=1.0)


class Scripted:
    """A `SafeHttp` that answers from a function."""

    def __init__(self, answer: Answer = lambda _: reply()) -> None:
        self._answer = answer
        self.asked: list[OutboundRequest] = []
        self.limits: list[Limits] = []

    async def send(self, request: OutboundRequest, limits: Limits = Limits()) -> EgressResponse:  # noqa: B008 - frozen
        self.asked.append(request)
        self.limits.append(limits)
        await asyncio.sleep(0)
        answer = self._answer(request)
        if isinstance(answer, EgressError):
            raise answer
        return answer


def get(path: str = "/", **headers: str) -> OutboundRequest:
    return OutboundRequest("GET", f"http://agent.example{path}", headers)


def visit(http: Scripted, requests_max: int = 10, deadline_s: float = 10) -> VisitHttp:
    return VisitHttp(http, FrozenClock(), requests_max, deadline_s)


async def test_every_request_says_who_asks_and_how_to_opt_out() -> None:
    http = Scripted()
    await visit(http).send(get(**{"User-Agent": "python-httpx", "x-own": "kept"}))
    assert http.asked[0].headers == {"x-own": "kept", "user-agent": USER_AGENT}
    assert "Assay" in USER_AGENT
    assert "robots.txt" in USER_AGENT


async def test_no_request_beyond_the_budget() -> None:
    http = Scripted()
    asking = visit(http, requests_max=2)
    await asking.send(get("/a"))
    await asking.send(get("/b"))
    with pytest.raises(BudgetExhausted):
        await asking.send(get("/c"))
    assert (len(http.asked), asking.sent, asking.replied) == (2, 2, 2)


async def test_no_request_beyond_the_deadline_and_none_may_outlast_it() -> None:
    http, clock = Scripted(), FrozenClock()
    asking = VisitHttp(http, clock, 10, 3.0)
    clock.move(1.0)
    await asking.send(get(), Limits(total_s=5.0))
    assert http.limits[0].total_s == pytest.approx(2.0)
    clock.move(2.0)
    with pytest.raises(BudgetExhausted):
        await asking.send(get("/later"))


async def test_a_timeout_of_our_own_haste_is_not_the_agents() -> None:
    http = Scripted(lambda _: EgressError(Failure.TIMEOUT, "late"))
    with pytest.raises(BudgetExhausted):
        await visit(http, deadline_s=1.0).send(get(), Limits(total_s=4.0))
    with pytest.raises(EgressError):
        await visit(http, deadline_s=9.0).send(get(), Limits(total_s=4.0))


async def test_equal_plain_questions_are_asked_once_even_at_once() -> None:
    http = Scripted()
    asking = visit(http)
    async with asyncio.TaskGroup() as group:
        for _ in range(5):
            group.create_task(asking.send(get()))
    await asking.send(get())
    assert len(http.asked) == 1


@pytest.mark.parametrize(
    "other",
    [
        get("/", accept="application/json"),
        get("/other"),
        OutboundRequest("POST", "http://agent.example/"),
        OutboundRequest("GET", "http://agent.example/", {}, b"body"),
    ],
)
async def test_different_questions_are_asked_each(other: OutboundRequest) -> None:
    http = Scripted()
    asking = visit(http)
    await asking.send(get())
    await asking.send(other)
    assert len(http.asked) == 2


@pytest.mark.parametrize("headers", [VisitHttp.FRESH, {"mcp-session-id": "1"}])
async def test_fresh_questions_and_conversations_are_never_remembered(
    headers: dict[str, str],
) -> None:
    http = Scripted()
    asking = visit(http)
    await asking.send(get(**headers))
    await asking.send(get(**headers))
    assert len(http.asked) == 2


async def test_a_failure_is_remembered_like_an_answer() -> None:
    http = Scripted(lambda _: EgressError(Failure.CONNECT, "refused"))
    asking = visit(http)
    for _ in range(2):
        with pytest.raises(EgressError):
            await asking.send(get())
    assert len(http.asked) == 1


@pytest.mark.parametrize(
    ("robots", "out"),
    [
        ("User-agent: Assay\nDisallow: /", True),
        ("user-agent: assay\ndisallow: /api", True),
        ("User-agent: Other\nUser-agent: Assay\nDisallow: /", True),
        ("User-agent: Assay # please\nDisallow: /* # all of it", True),
        ("User-agent: *\nDisallow: /", False),
        ("User-agent: Assay\nDisallow:", False),
        ("User-agent: Assay\nDisallow: /elsewhere", False),
        ("User-agent: Assay\nAllow: /\nUser-agent: Other\nDisallow: /", False),
        ("", False),
    ],
)
async def test_a_site_opts_out_by_naming_assay(robots: str, out: bool) -> None:  # noqa: FBT001
    http = Scripted(lambda _: reply(200, robots.encode()))
    assert await opted_out("http://agent.example/api?x=1", http) is out
    assert http.asked[0].url == "http://agent.example/robots.txt"


@pytest.mark.parametrize(
    "answer", [reply(404, b"User-agent: Assay\nDisallow: /"), EgressError(Failure.CONNECT, "no")]
)
async def test_no_robots_file_is_no_objection(answer: EgressResponse | EgressError) -> None:
    assert not await opted_out("http://agent.example/", Scripted(lambda _: answer))


class Conversation:
    protocol_version = "1"
    server_name = "x"
    instructions = ""


class Dialers:
    """Counts its lines; may fail, or hang on either end."""

    def __init__(self, fails: Exception | None = None, hangs: str = "") -> None:
        self.fails, self.hangs = fails, hangs
        self.dialled = self.hung_up = 0

    @asynccontextmanager
    async def mcp(self, url: str, http: object) -> AsyncGenerator[McpConversation]:
        del url, http
        self.dialled += 1
        if self.hangs == "dialling":
            await never()
        if self.fails:
            raise self.fails
        yield Conversation()  # type: ignore[misc]
        self.hung_up += 1
        if self.hangs == "hanging up":
            await never()

    a2a = mcp


async def test_probes_share_one_line_and_it_is_hung_up_at_the_end() -> None:
    dialers = Dialers()
    async with asyncio.TaskGroup() as group:
        shared = SharedDialers(dialers, group)
        for _ in range(3):
            async with shared.mcp("http://agent.example/mcp", Scripted()):
                assert dialers.hung_up == 0
        shared.hang_up()
    assert (dialers.dialled, dialers.hung_up) == (1, 1)


async def test_a_failed_call_fails_for_everybody_and_is_not_repeated() -> None:
    dialers = Dialers(fails=AgentCallFailed("unreachable", "nobody"))
    async with asyncio.TaskGroup() as group:
        shared = SharedDialers(dialers, group)
        for _ in range(3):
            with pytest.raises(AgentCallFailed):
                async with shared.mcp("http://agent.example/mcp", Scripted()):
                    raise AssertionError
    assert dialers.dialled == 1


@pytest.mark.parametrize("hangs", ["dialling", "hanging up"])
async def test_no_line_outlives_the_visit(hangs: str) -> None:
    dialers = Dialers(hangs=hangs)
    async with asyncio.timeout(2), asyncio.TaskGroup() as group:
        shared = SharedDialers(dialers, group)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05), shared.mcp("http://agent.example/", Scripted()):
                await never()
        shared.hang_up()
    assert dialers.dialled == 1
