"""Deposited credentials in one visit: where they go, and where they never do."""

import asyncio
from collections.abc import Callable

import pytest

from assay.control.scope import scope_of
from assay.net.egress.ports import EgressError, EgressResponse, Failure, Limits, OutboundRequest
from assay.probing.deposited_access import CredentialEntry, EvaluationCredential
from assay.probing.ports import BudgetExhausted
from assay.probing.session import VisitHttp
from tests.support.fakes.clock import FrozenClock
from tests.support.fakes.closed_agents import SECRET

HOST = "https://agent.example"


def credential(url: str = HOST + "/", *, others: tuple[str, ...] = ()) -> EvaluationCredential:
    scope = scope_of(url)
    assert scope is not None
    below = tuple(found for one in others if (found := scope_of(one)) is not None)
    return EvaluationCredential("1", scope, "header", "Authorization", f"Bearer {SECRET}", below)


def reply(status: int, body: bytes = b"", *headers: tuple[str, str]) -> EgressResponse:
    return EgressResponse(status, headers, body, truncated=False, elapsed_ms=1.0)


class Wire:
    """Remembers what was sent; lets in who has the secret."""

    def __init__(
        self, answer: Callable[[OutboundRequest], EgressResponse | EgressError] | None = None
    ) -> None:
        self._answer = answer
        self.sent: list[OutboundRequest] = []

    async def send(self, request: OutboundRequest, limits: Limits = Limits()) -> EgressResponse:  # noqa: B008 - frozen
        del limits
        self.sent.append(request)
        if self._answer is not None:
            answer = self._answer(request)
            if isinstance(answer, EgressError):
                raise answer
            return answer
        return reply(200 if carries(request) else 401)

    @property
    def carried(self) -> list[str]:
        return [request.url for request in self.sent if carries(request)]


def carries(request: OutboundRequest) -> bool:
    return SECRET in repr(request)


def visit(wire: Wire, *credentials: EvaluationCredential, requests: int = 20) -> VisitHttp:
    return VisitHttp(wire, FrozenClock(), requests, 10, entry=CredentialEntry(credentials))


async def test_it_is_sent_after_a_refusal_and_then_at_once() -> None:
    wire = Wire()
    http = visit(wire, credential())
    for path in ("/a", "/b"):
        assert (await http.send(OutboundRequest("GET", HOST + path))).status == 200
    assert [carries(request) for request in wire.sent] == [False, True, True]
    assert http.sent == 3
    assert http.entry.outcomes == {"1": "entered"}
    assert http.entry.row([HOST + "/a"])["entered"] == [HOST + "/a"]


async def test_an_open_service_never_gets_it() -> None:
    wire = Wire(lambda _: reply(404))
    http = visit(wire, credential())
    await http.send(OutboundRequest("GET", HOST + "/a"))
    assert wire.carried == []
    assert http.entry.outcomes == {"1": "not_needed"}


@pytest.mark.parametrize(
    "url",
    [
        *("http://agent.example/", "https://agent.example:8443/", "https://www.agent.example/"),
        *("https://agent.example.evil.example/", "https://evil.example/?agent.example"),
        *("https://agent.example/alice2/", "https://agent.example/", "https://agent.example/%61"),
        *("https://agent.example/alice/../bob/", "https://agent.example/alice/%2e%2e/bob"),
        *("https://agent.example/alice//bob", "https://agent.example/Alice/"),
    ],
)
async def test_it_goes_to_no_other_origin_scheme_port_or_path(url: str) -> None:
    wire = Wire()
    http = visit(wire, credential(HOST + "/alice"))
    await http.send(OutboundRequest("GET", HOST + "/alice/a"))  # now it goes out at once
    await http.send(OutboundRequest("GET", url))
    assert wire.carried == [HOST + "/alice/a"]


async def test_what_somebody_else_controls_below_is_left_out() -> None:
    wire = Wire()
    http = visit(wire, credential(others=(HOST + "/bob",)))
    for path in ("/alice", "/bob", "/bob/x", "/%62ob", "/alice/%2e%2e/bob", "/bobby"):
        await http.send(OutboundRequest("GET", HOST + path))
    assert wire.carried == [HOST + "/alice", HOST + "/bobby"]


async def test_a_redirect_to_another_origin_takes_nothing_along() -> None:
    def moves(request: OutboundRequest) -> EgressResponse:
        status = 302 if carries(request) else 401
        return reply(status, b"", ("location", f"https://evil.example/?token={SECRET}"))

    wire = Wire(moves)
    http = visit(wire, credential())
    found = await http.send(OutboundRequest("GET", HOST + "/a"))
    target = found.header("location")
    assert target is not None
    assert SECRET not in target
    await http.send(OutboundRequest("GET", target))
    assert wire.carried == [HOST + "/a"]


async def test_what_asks_for_a_refusal_goes_without() -> None:
    wire = Wire()
    http = visit(wire, credential())
    await http.send(OutboundRequest("GET", HOST + "/a"))
    assert (await http.send(OutboundRequest("GET", HOST + "/a", is_bare=True))).status == 401
    assert not carries(wire.sent[-1])


async def test_a_request_with_a_header_of_that_name_keeps_its_own() -> None:
    wire = Wire()
    http = visit(wire, credential())
    await http.send(OutboundRequest("GET", HOST + "/a"))
    false = {"authorization": "Payment not-a-payment"}
    assert (await http.send(OutboundRequest("GET", HOST + "/a", false))).status == 401
    assert wire.sent[-1].headers["authorization"] == "Payment not-a-payment"
    assert not carries(wire.sent[-1])


async def test_two_requests_at_once_are_both_let_in() -> None:
    wire = Wire()
    http = visit(wire, credential())
    async with asyncio.TaskGroup() as group:
        both = [
            group.create_task(http.send(OutboundRequest("GET", HOST + p))) for p in ("/a", "/b")
        ]
    assert [sent.result().status for sent in both] == [200, 200]


async def test_without_room_for_the_second_request_nothing_is_said_of_the_service() -> None:
    http = visit(Wire(), credential(), requests=1)
    with pytest.raises(BudgetExhausted):
        await http.send(OutboundRequest("GET", HOST + "/a"))


async def test_failures_do_not_tell_it() -> None:
    def fails(request: OutboundRequest) -> EgressResponse | EgressError:
        said = f"cut after {request.url} {dict(request.headers)}"
        return EgressError(Failure.PROTOCOL, said) if carries(request) else reply(401)

    wire = Wire(fails)
    with pytest.raises(EgressError) as raised:
        await visit(wire, credential()).send(OutboundRequest("GET", HOST + "/a"))
    assert wire.carried
    assert SECRET not in raised.value.detail
    assert SECRET not in repr(raised.value)


async def test_a_visit_that_carries_none_reads_answers_without_it() -> None:
    wire = Wire(lambda _: reply(200, f"remembered: {SECRET}".encode()))
    http = VisitHttp(
        wire, FrozenClock(), 9, 9, entry=CredentialEntry([credential()], is_carried=False)
    )
    found = await http.send(OutboundRequest("GET", HOST + "/a"))
    assert SECRET.encode() not in found.body
    assert http.entry.outcomes == {}
    assert http.entry.row([])["credentials"] == [
        {
            "at": "https://agent.example:443/",
            "place": "header",
            "name": "Authorization",
            "outcome": "not_carried",
            "repeated": True,
        }
    ]


async def test_a_stream_is_handed_on_without_it_and_without_a_refusal() -> None:
    heard: list[bytes | int] = []

    class Tap:
        def begin(self, status: int, headers: tuple[tuple[str, str], ...]) -> None:
            del headers
            heard.append(status)

        def add(self, piece: bytes) -> None:
            heard.append(piece)

    def streams(request: OutboundRequest) -> EgressResponse:
        assert request.tap is not None
        status = 200 if carries(request) else 401
        request.tap.begin(status, ())
        for piece in (b"data: ", SECRET[:5].encode(), SECRET[5:].encode() + b"\n\ndata: on"):
            request.tap.add(piece)
        return reply(status)

    await visit(Wire(streams), credential()).send(OutboundRequest("GET", HOST + "/sse", tap=Tap()))
    assert heard == [200, b"data: [credential]\n\n"]


def test_a_parameter_takes_the_place_of_one_of_its_name() -> None:
    scope = scope_of(HOST + "/")
    assert scope is not None
    one = EvaluationCredential("1", scope, "query", "key", "a/b&c=d")
    put = one.put_into(OutboundRequest("GET", HOST + "/a?x=1&key=old&y=2#there"))
    assert put.url == HOST + "/a?x=1&y=2&key=a%2Fb%26c%3Dd"


@pytest.mark.parametrize(
    ("url", "is_safe"),
    [
        ("http://agent.example/", False),
        ("http://10.0.0.8/", False),
        ("http://127.0.0.1:8080/", True),
        ("http://[::1]/", True),
        ("http://localhost/", True),
        ("http://localhost.evil.example/", False),
    ],
)
async def test_in_the_clear_it_goes_to_this_machine_alone(url: str, is_safe: bool) -> None:  # noqa: FBT001 - a case
    wire = Wire()
    await visit(wire, credential(url)).send(OutboundRequest("GET", url))
    assert bool(wire.carried) is is_safe
