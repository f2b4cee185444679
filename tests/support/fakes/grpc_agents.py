"""A2A agents that speak gRPC, on the official library's servers, and servers that only look so."""

import asyncio
import json
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import grpc
import h2.config
import h2.connection
import h2.events
import h2.exceptions
from a2a.compat.v0_3 import a2a_v0_3_pb2_grpc
from a2a.compat.v0_3.grpc_handler import CompatGrpcHandler
from a2a.helpers.proto_helpers import new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler, GrpcHandler
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCard, a2a_pb2_grpc
from google.protobuf.json_format import ParseDict
from starlette.responses import JSONResponse

from tests.support.fakes.agents import entries_of, prove_control
from tests.support.fakes.trust import NETWORK
from tests.support.fakes.working_agents import serving

Say = Callable[[str], str]


def looks_up(text: str) -> str:
    """An honest agent: where words stand in its list."""
    return entries_of(text) or "Ask me where a word stands in the list."


def template(text: str) -> str:
    """Repeats the request within a sentence of its own."""
    return f"Thank you for your message. We have looked into: {text} - it is being taken care of."


class Executor(AgentExecutor):
    """Answers each message at once."""

    def __init__(self, say: Say) -> None:
        self._say = say

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        await event_queue.enqueue_event(new_text_message(self._say(context.get_user_input())))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise NotImplementedError


def card_of(url: str, version: str, **capabilities: bool) -> dict[str, Any]:
    """A card whose only interface is gRPC, in the shape of either version."""
    card: dict[str, Any] = {
        "name": "Words",
        "description": "Looks words up.",
        "version": "1.0.0",
        "capabilities": {"streaming": False, **capabilities},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [
            {
                "id": "look-up",
                "name": "Look up",
                "description": "Says where a word stands in a list.",
                "tags": ["words"],
                "examples": ['Where does "lamp" stand?'],
            }
        ],
    }
    if version == "0.3":
        return card | {"url": url, "protocolVersion": "0.3.0", "preferredTransport": "GRPC"}
    interface = {"url": url, "protocolBinding": "GRPC", "protocolVersion": "1.0"}
    return card | {"supportedInterfaces": [interface]}


@asynccontextmanager
async def grpc_server(
    executor: AgentExecutor,
    version: str,
    handled_by: type[DefaultRequestHandler] = DefaultRequestHandler,
    **options: Any,
) -> AsyncGenerator[int]:
    """A stock server of one version of A2A; gives its port."""
    card = card_of("http://127.0.0.1:1", "1.0", pushNotifications=bool(options))
    parsed = ParseDict(card, AgentCard())
    handler = handled_by(executor, InMemoryTaskStore(), parsed, **options)
    server = grpc.aio.server()
    if version == "0.3":
        a2a_v0_3_pb2_grpc.add_A2AServiceServicer_to_server(CompatGrpcHandler(handler), server)
    else:
        a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(handler), server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield port
    finally:
        await server.stop(None)


@asynccontextmanager
async def serving_card(card: dict[str, Any]) -> AsyncGenerator[str]:
    """Serves a card over HTTP, and names agent 7 beside it; gives the card's address."""
    async with serving(_answers(card)) as base:
        yield f"{base}{CARD}"


CARD = "/.well-known/agent-card.json"


def _answers(card: dict[str, Any]) -> Any:
    files: dict[str, str] = {}
    prove_control(files, "7", NETWORK.agent_registry)
    documents = {CARD: card, **{path: json.loads(text) for path, text in files.items()}}

    def app(base: str) -> Any:
        del base

        async def answer(scope: Any, receive: Any, send: Any) -> None:
            found = documents.get(scope["path"])
            reply = JSONResponse(found) if found else JSONResponse({}, 404)
            await reply(scope, receive, send)

        return answer

    return app


@asynccontextmanager
async def speaking_grpc(
    say: Say, version: str = "1.0", url: str = "http://127.0.0.1:{port}", **capabilities: bool
) -> AsyncGenerator[str]:
    """An agent that speaks gRPC alone; gives the address of its card."""
    async with (
        grpc_server(Executor(say), version) as port,
        beside_its_card(port, version, url, **capabilities) as address,
    ):
        yield address


@asynccontextmanager
async def beside_its_card(
    grpc_port: int, version: str, url: str = "http://127.0.0.1:{port}", **capabilities: bool
) -> AsyncGenerator[str]:
    """One port for the card and for gRPC, as behind a reverse proxy; gives the card's address."""
    ports = [grpc_port]

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await reader.read(3)
        to = ports[0] if first == b"PRI" else ports[1]
        back, out = await asyncio.open_connection("127.0.0.1", to)
        out.write(first)
        async with asyncio.TaskGroup() as group:
            group.create_task(_copy(reader, out))
            group.create_task(_copy(back, writer))

    async with hostile_server(forward) as port:
        card = card_of(url.format(port=port), version, **capabilities)
        async with serving_card(card) as address:
            parts = urlsplit(address)
            ports.append(parts.port or 0)
            yield f"http://127.0.0.1:{port}{parts.path}"


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


Hostile = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def hostile_server(talk: Hostile, tls: ssl.SSLContext | None = None) -> AsyncGenerator[int]:
    """A server that does as it likes with every connection; gives its port."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await talk(reader, writer)
        except (ConnectionError, TimeoutError, h2.exceptions.H2Error):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def sends_grpc(body: bytes) -> Hostile:
    """A server of HTTP/2 that answers each call with these bytes and the status of success."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False))
        server.initiate_connection()
        left, head = body, [(":status", "200"), ("content-type", "application/grpc")]
        is_asked = False
        while data := await reader.read(4096):
            for event in server.receive_data(data):
                if isinstance(event, h2.events.StreamEnded):
                    server.send_headers(1, [*head, ("grpc-encoding", "gzip")])
                    is_asked = True
            while is_asked and left and (room := server.local_flow_control_window(1)):
                server.send_data(1, left[: min(room, 16_384)])
                left = left[min(room, 16_384) :]
            if is_asked and not left:
                server.send_headers(1, [("grpc-status", "0")], end_stream=True)
                is_asked = False
            writer.write(server.data_to_send())
            await writer.drain()

    return talk
