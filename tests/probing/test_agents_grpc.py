"""A2A over gRPC, against the official library's servers."""

import gzip

import pytest
from a2a.types import Message, Part, SendMessageResponse

from assay.db.engine import Database
from assay.net.egress.client import GuardedHttp
from assay.probing.clients.dialers import StockDialers
from assay.probing.ports import AgentCallFailed
from assay.probing.probe_client import said, speaks
from assay.registries.model import OnchainAgent, RegistrationFile, Service, Subject
from tests.probing.test_agents_control import Grades
from tests.probing.test_agents_function import proven
from tests.support.fakes.grpc_agents import (
    card_of,
    hostile_server,
    looks_up,
    sends_grpc,
    serving_card,
    speaking_grpc,
    template,
)
from tests.support.fakes.trust import NETWORK, OWNER, WALLET

pytestmark = pytest.mark.slow

VERSIONS = ("0.3", "1.0")
BOMB = gzip.compress(bytes(10_000_000))
PARTS = SendMessageResponse(message=Message(parts=[Part()] * 20_000)).SerializeToString()


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_agent_answers_over_grpc(http: GuardedHttp, version: str) -> None:
    async with (
        speaking_grpc(looks_up, version) as card,
        StockDialers().a2a(card, http) as agent,
    ):
        answer = await agent.send_text('Where does "lamp" stand?')
    assert said(answer) == looks_up('"lamp"')
    assert agent.has_answered


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_task_nobody_gave_is_not_found(http: GuardedHttp, version: str) -> None:
    async with (
        speaking_grpc(looks_up, version) as card,
        StockDialers().a2a(card, http) as agent,
    ):
        with pytest.raises(AgentCallFailed) as raised:
            await agent.get_task("none")
    assert (raised.value.kind, raised.value.code) == ("error", -32001)


@pytest.mark.parametrize("version", VERSIONS)
async def test_function_is_proven_over_grpc(http: GuardedHttp, version: str) -> None:
    async with speaking_grpc(looks_up, version) as card:
        assert await proven(http, Service("A2A", card)) == [("a2a", "functional", "answers_vary")]


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_template_over_grpc_proves_nothing(http: GuardedHttp, version: str) -> None:
    async with speaking_grpc(template, version) as card:
        [(kind, state, _)] = await proven(http, Service("A2A", card))
    assert (kind, state) == ("a2a", "not_functional")


@pytest.mark.parametrize(
    "url", ["127.0.0.1:{port}", "grpc://127.0.0.1:{port}", "dns:///127.0.0.1:{port}"]
)
async def test_an_address_without_a_scheme_is_called_as_grpc_clients_do(
    http: GuardedHttp, url: str
) -> None:
    async with (
        speaking_grpc(looks_up, url=url) as card,
        StockDialers().a2a(card, http) as agent,
    ):
        assert said(await agent.send_text('Where does "lamp" stand?')) == looks_up('"lamp"')


def declaring(card: str) -> Subject:
    """Agent 7, whose one service is the card."""
    file = RegistrationFile(name="Words", services=(Service("A2A", card),))
    agent = OnchainAgent(NETWORK, "7", OWNER, WALLET, "data:,", file, None)
    return Subject(NETWORK, "7", WALLET, agent)


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_agent_that_speaks_grpc_alone_reaches_rung_1(
    database: Database, http: GuardedHttp, version: str
) -> None:
    async with speaking_grpc(looks_up, version) as card:
        evaluation = await Grades(database, http).of(declaring(card))
    assert evaluation.rung == 1


async def test_a_template_that_speaks_grpc_stays_at_rung_0(
    database: Database, http: GuardedHttp
) -> None:
    async with speaking_grpc(template) as card:
        evaluation = await Grades(database, http).of(declaring(card))
    assert evaluation.rung == 0


async def test_without_the_library_nothing_is_held_against_the_agent(
    http: GuardedHttp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.probing.clients.a2a.importlib.util.find_spec", lambda _: None)
    async with speaking_grpc(looks_up) as card:
        found = await proven(http, Service("A2A", card))
    assert found == [("a2a", "unfinished", "grpc_extra_missing")]


HOSTILE_MESSAGES = {
    "too long": b"\0" + (300_000).to_bytes(4, "big") + b"x" * 300_000,
    "longer than it is": b"\0\xff\xff\xff\xff",
    "shorter than it is": b"\0\0\0\0\0" * 4,
    "no message": b"",
    "no protobuf": b"\0\0\0\0\4\xff\xff\xff\xff",
    "a bomb": b"\1" + len(BOMB).to_bytes(4, "big") + BOMB,
    "compressed in an unknown way": b"\2\0\0\0\0",
    "half a compressed one": b"\1\0\0\0\x20" + BOMB[:32],
    "too many parts": b"\0" + len(PARTS).to_bytes(4, "big") + PARTS,
}


@pytest.mark.parametrize("body", HOSTILE_MESSAGES.values(), ids=HOSTILE_MESSAGES.keys())
async def test_a_hostile_message_is_no_answer(http: GuardedHttp, body: bytes) -> None:
    async with (
        hostile_server(sends_grpc(body)) as port,
        serving_card(card_of(f"http://127.0.0.1:{port}", "1.0")) as card,
        StockDialers().a2a(card, http) as agent,
    ):
        with pytest.raises(AgentCallFailed) as raised:
            await agent.send_text("hello", wait_s=3.0)
    assert raised.value.kind == "protocol"


@pytest.mark.parametrize("url", ["https://10.0.0.7:443", "10.0.0.7:50051", "http://[::1]:50051"])
async def test_a_card_leads_nobody_to_another_host(http: GuardedHttp, url: str) -> None:
    async with (
        serving_card(card_of(url, "1.0")) as card,
        StockDialers().a2a(card, http) as agent,
    ):
        assert not speaks(agent)
        with pytest.raises(AgentCallFailed):
            await agent.send_text("hello")
