"""Equal requests at the fast lane: parsed once, judged every time, answered every time anew.

The real protocol on a real socket, in this process, with a clock that is moved by hand.
"""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pytest
import uvicorn
from uvicorn.server import ServerState

from assay.app.protocol import FastProtocol, protocol_for
from assay.app.web import build
from assay.common.tasks import Sender, WriteCoalescer
from assay.gate.service import CONTROLLERS_MAX_AGE_S
from assay.http1.connections import BOUNDS, ConnectionBounds
from assay.identity.model import SESSION_TTL
from assay.wrappers.fast_calls import FastPathRequest
from assay.wrappers.fast_path import FastCycle
from tests.support.live_service import (
    OWNER_KEY,
    STRANGER_KEY,
    TestService,
    address,
    start_test_service,
)
from tests.support.wire_upstream import Asked, Play, Wire, WireUpstream, wire_upstream

pytestmark = pytest.mark.slow

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"


@dataclass
class Got:
    status: int
    headers: dict[str, str]
    body: bytes


class Caller:
    """One connection; says exactly what it is told to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def ask(self, data: bytes) -> Got:
        self.writer.write(data)
        return await self.answer(bare=data.startswith(b"HEAD"))

    async def answer(self, *, bare: bool = False) -> Got:
        async with asyncio.timeout(10):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.split("\r\n")[:-2]
            headers = dict(line.lower().split(": ", 1) for line in lines)
            size = 0 if bare else int(headers["content-length"])
            return Got(int(first.split(" ")[1]), headers, await self.reader.readexactly(size))

    async def ended(self) -> bytes:
        """What still comes until the connection is closed."""
        async with asyncio.timeout(10):
            return await self.reader.read()


class Shop:
    """A service behind its own protocol, and one of its operators."""

    def __init__(self, service: TestService, up: WireUpstream, port: int) -> None:
        self.service, self.up, self.port = service, up, port
        self.prepared = 0
        self.operator_id = ""
        self.token: dict[str, str] = {}
        direct, prepare = service.app.direct, service.app.direct.prepare

        def counted(*args: Any) -> FastPathRequest | None:
            self.prepared += 1
            return prepare(*args)

        cast("Any", direct).prepare = counted

    async def open(self) -> None:
        await self.service.operator()
        self.token = await self.service.token()
        me = (await self.service.http.get("/operator/me", headers=self.token)).json()
        self.operator_id = me["operator"]["id"]

    async def wrap(self, path: str, play: Play | None = None, **fields: Any) -> str:
        body = {"path": path, "pricePerCall": 0, "targetUrl": self.up.url, "method": "*", **fields}
        answer = await self.service.http.post("/operator/endpoints", json=body, headers=self.token)
        assert answer.status_code == 200, answer.text
        if play is not None:
            self.up.plays[path] = play
        return str(answer.json()["id"])

    def request(self, path: str, method: str = "GET", **headers: str) -> bytes:
        lines = [f"{method} /wrap/{self.operator_id}{path} HTTP/1.1", "Host: x"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode()

    @asynccontextmanager
    async def caller(self) -> AsyncGenerator[Caller]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            yield Caller(reader, writer)
        finally:
            writer.close()

    async def warm(self, data: bytes) -> None:
        """Once by the ordinary lane, once by the fast one, so that the next time is a repeat."""
        async with self.caller() as caller:
            for _ in range(2):
                assert (await caller.ask(data)).status == 200
        self.prepared = 0


@asynccontextmanager
async def doors(
    service: TestService, bounds: ConnectionBounds, keep_alive_s: int
) -> AsyncGenerator[int]:
    """The service on a port of its own, behind the protocol it is served with."""
    edge = build(service.app)
    config = uvicorn.Config(
        edge,
        http=protocol_for(edge, bounds),
        ws="none",
        lifespan="off",
        access_log=False,
        log_level="critical",
        timeout_keep_alive=keep_alive_s,
    )
    config.load()
    state, loop = ServerState(), asyncio.get_running_loop()
    make = cast("Any", config).http_protocol_class

    def made() -> FastProtocol:
        return cast("FastProtocol", make(config, state, {}, loop))

    server = await loop.create_server(made, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for connection in list(state.connections):
            cast("Any", connection).transport.abort()


@asynccontextmanager
async def opened(
    folder: Path, bounds: ConnectionBounds = BOUNDS, keep_alive_s: int = 5, **settings: Any
) -> AsyncGenerator[Shop]:
    with wire_upstream() as up:
        async with (
            start_test_service(folder / "data", **settings) as service,
            doors(service, bounds, keep_alive_s) as port,
        ):
            shop = Shop(service, up, port)
            await shop.open()
            yield shop


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncGenerator[Shop]:
    async with opened(tmp_path) as made:
        yield made


def numbered() -> Play:
    """Every answer is another one, with the same head."""
    count = 0

    async def play(wire: Wire, _asked: Asked) -> None:
        nonlocal count
        count += 1
        await wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n%04d" % count)

    return play


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_wrapper_that_leads_back_to_itself_ends_soon(shop: Shop, method: str) -> None:
    """One request took every connection to the upstream, which was the service itself."""
    around = f"http://127.0.0.1:{shop.port}/wrap/{shop.operator_id}"
    await shop.wrap("/around", targetUrl=around)
    for _ in range(3):
        async with shop.caller() as caller:
            got = await caller.ask(shop.request("/around", method))
        assert got.status == 400
        assert json.loads(got.body)["code"] == "request_loop"
    await shop.service.app.flush()
    logs = await shop.service.http.get("/operator/analytics/logs", headers=shop.token)
    assert len(logs.json()["logs"]) == 3 * 5


async def test_400_a_caller_that_says_it_has_been_here_often(shop: Shop) -> None:
    """It is the caller's doing, in every lane, and nothing is sent."""
    await shop.wrap("/way")
    await shop.warm(shop.request("/way"))
    mark = shop.up.to("/way")[0].all("via")[0].removeprefix("1.1 ")
    before = len(shop.up.to("/way"))
    async with shop.caller() as caller:
        for via in (f"1.1 {mark}, " * 4 + "1.1 p", mark * 9):
            for method in ("GET", "GET", "POST", "GET"):
                got = await caller.ask(shop.request("/way", method, Via=via))
                told = json.loads(got.body)
                assert (got.status, told["code"]) == (400, "request_loop")
                assert "Via" in told["message"]
        assert len(shop.up.to("/way")) == before
        assert (await caller.ask(shop.request("/way", Via=f"1.1 {mark}"))).status == 200


async def test_the_way_of_a_request_is_passed_on_with_us_at_its_end(shop: Shop) -> None:
    await shop.wrap("/way")
    data = shop.request("/way", Via="1.0 fred, 1.1 p.example")
    await shop.warm(data)
    for seen in shop.up.to("/way"):
        [way] = seen.all("via")
        assert way.startswith("1.0 fred, 1.1 p.example, 1.1 assay-")


# -- what is forwarded ----------------------------------------------------------------------------


async def test_equal_requests_are_parsed_once_and_forwarded_every_time(shop: Shop) -> None:
    await shop.wrap("/n", numbered())
    data = shop.request("/n", X_Own="a")
    await shop.warm(data)
    async with shop.caller() as one, shop.caller() as two:
        got = [await caller.ask(data) for caller in (one, two, one, one, two)]
    assert shop.prepared == 0
    assert [each.body for each in got] == [b"%04d" % n for n in range(3, 8)]
    seen = shop.up.to("/n")
    assert len(seen) == 7
    ids = [each.headers["x-request-id"] for each in got]
    assert len(set(ids)) == 5
    assert [one.all("x-assay-request-id") for one in seen[2:]] == [[each] for each in ids]
    assert {tuple(one.all("x-own")) for one in seen} == {("a",)}
    assert {tuple(one.all("x-forwarded-for")) for one in seen} == {("127.0.0.1",)}


async def test_every_lane_tells_the_upstream_the_same_headers(shop: Shop) -> None:
    await shop.wrap("/h")
    data = shop.request("/h", X_Own="a", Authorization="Bearer for-them", X_Request_Id="mine")
    await shop.warm(data)
    async with shop.caller() as caller:
        await caller.ask(data)
    ordinary, fast, again = (sorted(one.headers) for one in shop.up.to("/h"))
    assert ordinary == fast == again
    assert ("x-assay-request-id", "mine") in again


async def test_an_equal_head_request_is_answered_without_a_body(shop: Shop) -> None:
    async def play(wire: Wire, asked: Asked) -> None:
        await wire.send(OK.removesuffix(b"ok") if asked.method == "HEAD" else OK)

    await shop.wrap("/head", play)
    head, get = shop.request("/head", "HEAD"), shop.request("/head")
    await shop.warm(get)
    async with shop.caller() as caller:
        for data in (head, get, head, head, get):
            got = await caller.ask(data)
            assert (got.status, got.headers["content-length"]) == (200, "2")
            assert got.body == (b"" if data is head else b"ok")


async def test_equal_requests_in_one_packet_are_answered_in_order(shop: Shop) -> None:
    await shop.wrap("/n", numbered())
    data = shop.request("/n")
    await shop.warm(data)
    async with shop.caller() as caller:
        await caller.ask(data)
        caller.writer.write(data * 3)
        assert [(await caller.answer()).body for _ in range(3)] == [b"0004", b"0005", b"0006"]


async def test_an_equal_request_with_half_of_the_next_behind_it_is_itself(shop: Shop) -> None:
    await shop.wrap("/n", numbered())
    data = shop.request("/n")
    await shop.warm(data)
    async with shop.caller() as caller:
        for cut in (1, 20, len(data) - 1):
            caller.writer.write(data[:cut])
            await asyncio.sleep(0.02)
            caller.writer.write(data[cut:] + data[:cut])
            await caller.answer()
            caller.writer.write(data[cut:])
            await caller.answer()
            assert (await caller.ask(data)).status == 200
    assert len(shop.up.to("/n")) == 2 + 9


async def test_the_bytes_of_a_request_inside_a_body_are_a_body(shop: Shop) -> None:
    await shop.wrap("/n")
    data = shop.request("/n")
    await shop.warm(data)
    async with shop.caller() as caller:
        caller.writer.write(shop.request("/n", "POST", Content_Length=str(len(data))))
        await asyncio.sleep(0.05)
        assert (await caller.ask(data)).status == 200
    assert [(one.method, one.body) for one in shop.up.to("/n")[2:]] == [("POST", data)]


# -- what is judged every time --------------------------------------------------------------------


async def test_a_deactivated_wrapper_answers_no_equal_request(shop: Shop) -> None:
    made = await shop.wrap("/gone")
    data = shop.request("/gone")
    await shop.warm(data)
    async with shop.caller() as caller:
        assert (await caller.ask(data)).status == 200
        await shop.service.http.delete(f"/operator/endpoints/{made}", headers=shop.token)
        assert (await caller.ask(data)).status == 404
    assert len(shop.up.to("/gone")) == 3


async def test_a_wrapper_made_anew_is_answered_by_its_new_terms(shop: Shop) -> None:
    made = await shop.wrap("/terms", method="GET")
    data = shop.request("/terms")
    await shop.warm(data)
    await shop.service.http.delete(f"/operator/endpoints/{made}", headers=shop.token)
    await shop.wrap("/terms", method="GET", trustEnabled=True, minScore=0)
    async with shop.caller() as caller:
        assert (await caller.ask(data)).status == 401
    assert len(shop.up.to("/terms")) == 2


async def test_a_session_that_was_ended_opens_nothing_again(shop: Shop) -> None:
    await shop.wrap("/s", trustEnabled=True, minScore=0)
    session = await shop.service.session(OWNER_KEY)
    data = shop.request("/s", **session)
    await shop.warm(data)
    async with shop.caller() as caller:
        assert (await caller.ask(data)).status == 200
        assert shop.prepared == 0
        await shop.service.app.sessions.revoke(address(OWNER_KEY), session["x-agent-session"])
        assert (await caller.ask(data)).status == 401
    assert len(shop.up.to("/s")) == 3


async def test_a_session_that_has_expired_opens_nothing_again(shop: Shop) -> None:
    await shop.wrap("/s", trustEnabled=True, minScore=0)
    data = shop.request("/s", **await shop.service.session(OWNER_KEY))
    await shop.warm(data)
    shop.service.clock.move(SESSION_TTL.total_seconds() + 1)
    async with shop.caller() as caller:
        assert (await caller.ask(data)).status == 401


async def test_who_has_sold_an_agent_speaks_for_it_no_more(shop: Shop) -> None:
    await shop.wrap("/sold", trustEnabled=True, minScore=0)
    data = shop.request("/sold", X_Agent_Id="7", **await shop.service.session(OWNER_KEY))
    await shop.warm(data)
    agents = shop.service.chain.agents
    agents["7"] = replace(agents["7"], owner=address(STRANGER_KEY))
    shop.service.clock.move(CONTROLLERS_MAX_AGE_S + 1)
    async with shop.caller() as caller:
        assert (await caller.ask(data)).status == 401
    assert len(shop.up.to("/sold")) == 2


async def test_an_agent_whose_personhood_changes_is_judged_anew(shop: Shop) -> None:
    """Whatever makes the gate forget a decision, makes the fast lane ask for a new one."""
    await shop.wrap("/again", trustEnabled=True, minScore=0)
    data = shop.request("/again", **await shop.service.session(OWNER_KEY))
    await shop.warm(data)
    shop.service.app.gate.personhood_changed(f"key/{address(OWNER_KEY)}")
    async with shop.caller() as caller:
        assert (await caller.ask(data)).status == 200
        assert shop.prepared == 1
        await caller.ask(data)
        await caller.ask(data)
        assert shop.prepared == 2


async def test_the_wrappers_limit_counts_equal_requests(shop: Shop) -> None:
    await shop.wrap("/few", rateLimit=5)
    data = shop.request("/few")
    await shop.warm(data)
    async with shop.caller() as caller:
        left = [(await caller.ask(data)).headers["ratelimit-remaining"] for _ in range(3)]
        assert left == ["2", "1", "0"]
        for _ in range(2):
            got = await caller.ask(data)
            assert (got.status, got.headers["ratelimit-remaining"]) == (429, "0")
    assert len(shop.up.to("/few")) == 5
    shop.service.clock.move(62)
    async with shop.caller() as caller:
        assert (await caller.ask(data)).headers["ratelimit-remaining"] == "4"


async def test_the_doors_limit_counts_equal_requests(tmp_path: Path) -> None:
    async with opened(tmp_path, wrapper_per_minute=5) as shop:
        await shop.wrap("/few")
        data = shop.request("/few")
        await shop.warm(data)
        async with shop.caller() as caller:
            statuses = [(await caller.ask(data)).status for _ in range(5)]
    assert statuses == [200, 200, 200, 429, 429]


async def test_one_network_of_ipv6_is_one_caller_of_a_wrappers_limit(tmp_path: Path) -> None:
    """Whoever has one address of it has 2^64: as many limits, and others forgotten for them."""
    async with opened(tmp_path, trusted_proxies=["127.0.0.0/8"]) as shop:
        await shop.wrap("/six", rateLimit=4)
        near = [shop.request("/six", X_Forwarded_For=f"2001:db8::{n}") for n in (1, 2)]
        for data in near:
            await shop.warm(data)
        async with shop.caller() as caller:
            assert [(await caller.ask(data)).status for data in near] == [429, 429]
            far = shop.request("/six", X_Forwarded_For="2001:db8:0:1::1")
            assert (await caller.ask(far)).status == 200


async def test_a_caller_behind_a_proxy_of_ours_is_told_apart_by_its_header(tmp_path: Path) -> None:
    async with opened(tmp_path, trusted_proxies=["127.0.0.0/8"]) as shop:
        await shop.wrap("/far", rateLimit=4)
        one, two = (shop.request("/far", X_Forwarded_For=f"203.0.113.{n}") for n in (1, 2))
        await shop.warm(one)
        await shop.warm(two)
        async with shop.caller() as caller:
            left = [(await caller.ask(d)).headers["ratelimit-remaining"] for d in (one, two, one)]
    assert left == ["1", "1", "0"]
    callers = [one.all("x-forwarded-for") for one in shop.up.to("/far")]
    assert callers[-3:] == [["203.0.113.1"], ["203.0.113.2"], ["203.0.113.1"]]


async def test_every_equal_request_is_a_row_of_the_log(shop: Shop) -> None:
    await shop.wrap("/row", numbered())
    data = shop.request("/row")
    await shop.warm(data)
    async with shop.caller() as caller:
        ids = [(await caller.ask(data)).headers["x-request-id"] for _ in range(3)]
    await shop.service.app.flush()
    rows = await shop.service.app.call_store.recent(shop.operator_id, 3)
    assert {row.request_id for row in rows} == set(ids)
    assert {(row.status, row.response_bytes, row.kind.path) for row in rows} == {(200, 4, "/row")}


# -- upstreams that fail in the middle of it ------------------------------------------------------


async def test_an_equal_request_on_a_connection_just_closed_is_sent_once_more(shop: Shop) -> None:
    closes = False

    async def play(wire: Wire, asked: Asked) -> None:
        if closes and len(shop.up.to("/c")) == 4:
            wire.writer.close()
        else:
            await numbered()(wire, asked)

    await shop.wrap("/c", play)
    data = shop.request("/c")
    await shop.warm(data)
    async with shop.caller() as caller:
        assert (await caller.ask(data)).status == 200
        closes = True
        assert (await caller.ask(data)).status == 200
        assert (await caller.ask(data)).status == 200
    assert len(shop.up.to("/c")) == 6


@pytest.mark.parametrize("cut", [0, 1, 3])
async def test_a_known_head_with_half_a_body_never_looks_whole(shop: Shop, cut: int) -> None:
    breaks = False

    async def play(wire: Wire, asked: Asked) -> None:
        if not breaks:
            await numbered()(wire, asked)
            return
        await wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n" + b"half"[:cut])
        await asyncio.sleep(0.05)
        wire.writer.close()

    await shop.wrap("/half", play)
    data = shop.request("/half")
    await shop.warm(data)
    async with shop.caller() as caller:
        await caller.ask(data)
        breaks = True
        caller.writer.write(data)
        assert (await caller.ended()).endswith(b"\r\n\r\n" + b"half"[:cut])


async def test_bytes_behind_a_known_answer_are_nobodys(shop: Shop) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n"
    more = False

    async def play(wire: Wire, _asked: Asked) -> None:
        await wire.send(head + b"mine" + (head + b"evil") * more)

    await shop.wrap("/more", play)
    data = shop.request("/more")
    await shop.warm(data)
    async with shop.caller() as caller:
        await caller.ask(data)
        more = True
        for _ in range(3):
            assert (await caller.ask(data)).body == b"mine"
        assert len({one.status for one in [await caller.ask(data)]}) == 1


async def test_a_known_head_in_pieces_is_read_as_it_comes(shop: Shop) -> None:
    whole = b"HTTP/1.1 200 OK\r\ncontent-length: 40000\r\n\r\n" + bytes(40_000)
    cuts: list[int] = []

    async def play(wire: Wire, _asked: Asked) -> None:
        at = 0
        for cut in [*cuts, len(whole)]:
            await wire.send(whole[at:cut])
            at = cut
            await asyncio.sleep(0.01)

    await shop.wrap("/cut", play)
    data = shop.request("/cut")
    await shop.warm(data)
    async with shop.caller() as caller:
        for cuts[:] in ([], [1], [20, 45], [43], [44, 30_000], [20_000]):
            assert (await caller.ask(data)).body == bytes(40_000)


# -- time -----------------------------------------------------------------------------------------


async def test_a_connection_idle_after_a_fast_answer_is_closed_in_its_time(tmp_path: Path) -> None:
    async with opened(tmp_path, keep_alive_s=1) as shop:
        await shop.wrap("/idle")
        data, loop = shop.request("/idle"), asyncio.get_running_loop()
        await shop.warm(data)
        async with shop.caller() as caller:
            for _ in range(4):
                assert (await caller.ask(data)).status == 200
                await asyncio.sleep(0.4)
            assert (await caller.ask(data)).status == 200
            begun_s = loop.time()
            assert await caller.ended() == b""
            assert 0.8 < loop.time() - begun_s < 3


@pytest.mark.parametrize("next_event", ["no request", "shutdown"])
async def test_an_answer_that_waits_for_the_end_of_the_turn_goes_out_before_what_comes_next(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, next_event: str
) -> None:
    """The turn lasts as long as the test wants it to."""
    held: list[FastCycle] = []
    is_held, add = asyncio.Event(), WriteCoalescer.add

    def hold(outbox: WriteCoalescer, sender: Sender) -> None:
        if isinstance(sender, FastCycle):
            held.append(sender)
            is_held.set()
        else:
            add(outbox, sender)

    await shop.wrap("/held", lambda wire, _asked: wire.send(OK))
    data = shop.request("/held")
    await shop.warm(data)
    monkeypatch.setattr(WriteCoalescer, "add", hold)
    async with shop.caller() as caller:
        caller.writer.write(data)
        await asyncio.wait_for(is_held.wait(), 10)
        if next_event == "shutdown":
            cast("Any", held[0])._protocol.shutdown()
        else:
            caller.writer.write(b"no request\r\n\r\n")
        assert (await caller.answer()).body == b"ok"
        rest = await caller.ended()
    assert rest.startswith(b"HTTP/1.1 400 ") if next_event == "no request" else rest == b""
    held[0].send()  # nobody is there any more


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_a_caller_that_reads_nothing_is_cut_in_its_time(tmp_path: Path, method: str) -> None:
    """In both lanes; and a caller that reads slowly, but reads, is not."""

    async def play(wire: Wire, _asked: Asked) -> None:
        await wire.send(b"HTTP/1.1 200 OK\r\ncontent-length: 30000000\r\n\r\n")
        await wire.send(bytes(30_000_000))

    async with opened(tmp_path, replace(BOUNDS, unread_s=0.5)) as shop:
        await shop.wrap("/big", play)
        await shop.wrap("/small")
        await shop.warm(shop.request("/small"))
        data, loop = shop.request("/big", method), asyncio.get_running_loop()
        with socket.create_connection(("127.0.0.1", shop.port)) as deaf:
            deaf.setblocking(False)  # noqa: FBT003
            await loop.sock_sendall(deaf, data)
            await asyncio.sleep(4)  # eight times the bound: the machine may be busy
            read = 0
            with suppress(ConnectionResetError):
                while piece := await loop.sock_recv(deaf, 1_000_000):
                    read += len(piece)
            assert read < 30_000_000
        async with shop.caller() as slow:
            slow.writer.write(data)
            await slow.reader.readuntil(b"\r\n\r\n")
            size = 0
            while size < 30_000_000:
                size += len(await slow.reader.readexactly(1_000_000))
                await asyncio.sleep(0.03)


@pytest.mark.parametrize("path", ["/nothing", "/small"])
async def test_a_body_that_comes_on_after_its_answer_is_cut_in_its_time(
    tmp_path: Path, path: str
) -> None:
    """A byte now and then held a connection for ever, and two thousand of them the service."""
    async with opened(tmp_path, replace(BOUNDS, linger_s=0.5)) as shop:
        await shop.wrap("/small", maxBodyBytes=0)
        data = shop.request(path, "POST", Transfer_Encoding="chunked")
        async with shop.caller() as caller:
            caller.writer.write(data + b"1\r\na\r\n")
            assert (await caller.answer()).status in {404, 413}
            with suppress(ConnectionError):
                for _ in range(20):
                    caller.writer.write(b"1\r\na\r\n")
                    await asyncio.sleep(0.1)
            assert caller.reader.at_eof()


async def test_a_body_that_ends_soon_after_its_answer_leaves_the_connection(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, replace(BOUNDS, linger_s=0.5)) as shop:
        data = shop.request("/nothing", "POST", Content_Length=str(BOUNDS.late_bytes))
        async with shop.caller() as caller:
            for _ in range(3):
                got = await caller.ask(data)
                assert (got.status, got.headers.get("connection")) == (404, None)
                caller.writer.write(bytes(BOUNDS.late_bytes))


@pytest.mark.parametrize("path", ["/nothing", "/small"])
@pytest.mark.parametrize("framing", ["chunked", "length", "expected"])
async def test_a_body_that_is_not_read_ends_the_connection_and_the_answer_says_so(
    tmp_path: Path, framing: str, path: str
) -> None:
    """A proxy whose socket holds the rest would send somebody's next request behind it."""
    length = {"Content_Length": str(BOUNDS.late_bytes + 1)}
    heads = {
        "chunked": {"Transfer_Encoding": "chunked"},
        "length": length,
        "expected": length | {"Expect": "100-continue"},
    }
    async with opened(tmp_path, replace(BOUNDS, linger_s=0.5)) as shop:
        await shop.wrap("/small", maxBodyBytes=0)
        first = b"1\r\na\r\n" if framing == "chunked" else b""
        data = shop.request(path, "POST", **heads[framing]) + first
        async with shop.caller() as caller:
            got = await caller.ask(data)
            assert (got.status in {404, 413}, got.headers["connection"]) == (True, "close")
            assert await caller.ended() == b""


async def test_a_body_left_unread_ends_the_connection_as_soon_as_it_is_whole(
    tmp_path: Path,
) -> None:
    """What comes behind it is no request any more."""
    async with opened(tmp_path, replace(BOUNDS, linger_s=3600)) as shop:
        data = shop.request("/nothing", "POST", Transfer_Encoding="chunked")
        async with shop.caller() as caller:
            assert (await caller.ask(data)).headers["connection"] == "close"
            caller.writer.write(b"1\r\na\r\n0\r\n\r\n" + data)
            assert await caller.ended() == b""


def test_a_served_caller_has_a_minute_to_read() -> None:
    assert (BOUNDS.head_s, BOUNDS.unread_s) == (15.0, 60.0)
