"""Small agents of stock parts that do something, or only look as if they did."""

import asyncio
import re
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import uvicorn
from a2a.helpers.proto_helpers import new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import (
    create_agent_card_routes,
    create_jsonrpc_routes,
    create_rest_routes,
)
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from fastapi import FastAPI, HTTPException
from mcp.server import MCPServer
from starlette.applications import Starlette
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send
from typing_extensions import override

Answer = Callable[[str], Awaitable[str]]


@asynccontextmanager
async def serving(
    make: Callable[[str], ASGIApp], mcp: MCPServer | None = None
) -> AsyncGenerator[str]:
    """An application on a port of its own; gives its address."""
    config = uvicorn.Config(lambda: None, port=0, log_level="critical", lifespan="off")
    server = uvicorn.Server(config)
    door = config.bind_socket()
    door.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    base = f"http://127.0.0.1:{door.getsockname()[1]}"
    config.app, config.factory = make(base), False
    async with AsyncExitStack() as stack:
        if mcp is not None:
            await stack.enter_async_context(mcp.session_manager.run())
        async with asyncio.TaskGroup() as group:
            group.create_task(server.serve(sockets=[door]))
            while not server.started:  # noqa: ASYNC110 - uvicorn offers no event
                await asyncio.sleep(0.01)
            try:
                yield base
            finally:
                server.should_exit = True


class _Executor(AgentExecutor):
    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    @override
    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        await event_queue.enqueue_event(
            new_text_message(await self._answer(context.get_user_input()))
        )

    @override
    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise NotImplementedError


@dataclass
class Skill:
    """One skill as a card shows it."""

    name: str
    description: str
    examples: list[str] = field(default_factory=list[str])


def a2a_app(
    answer: Answer, *skills: Skill, binding: str = "JSONRPC", card_path: str = ""
) -> Callable[[str], ASGIApp]:
    """An A2A agent of the official server library."""

    def make(base: str) -> ASGIApp:
        card = AgentCard(
            name="Worker",
            description="Does what its skills say.",
            version="1.0.0",
            supported_interfaces=[
                AgentInterface(url=f"{base}/a2a", protocol_binding=binding, protocol_version="1.0")
            ],
            capabilities=AgentCapabilities(streaming=False),
            default_input_modes=["text/plain"],
            default_output_modes=["text/plain"],
            skills=[
                AgentSkill(
                    id=f"skill-{number}",
                    name=skill.name,
                    description=skill.description,
                    examples=skill.examples,
                    tags=["demo"],
                )
                for number, skill in enumerate(skills)
            ],
        )
        handler = DefaultRequestHandler(_Executor(answer), InMemoryTaskStore(), card)
        routes = [*create_agent_card_routes(card)]
        if binding == "JSONRPC":
            routes += create_jsonrpc_routes(handler, "/a2a")
        else:
            routes += create_rest_routes(handler, path_prefix="/a2a")
        if card_path:
            return _Moved(Starlette(routes=routes), card_path)
        return Starlette(routes=routes)

    return make


def everything(response: Response) -> Callable[[str], ASGIApp]:
    """A server that gives one answer to every request."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await response(scope, receive, send)

    return lambda _: app


class _Moved:
    """Serves the card at a path of its own, behind a redirect, and nowhere else."""

    def __init__(self, app: ASGIApp, card_path: str) -> None:
        self._app, self._path = app, card_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        if path == self._path + "/":
            await RedirectResponse(self._path, 308)(scope, receive, send)
        elif path.startswith("/.well-known"):
            await Response(status_code=404)(scope, receive, send)
        elif path == self._path:
            card = {**scope, "path": "/.well-known/agent-card.json"}
            await self._app(card, receive, send)
        else:
            await self._app(scope, receive, send)


CONVERT = Skill(
    "Unit conversion",
    "Converts lengths and weights.",
    ["How many miles are 10 kilometres?", "What is 25 kilograms in pounds?"],
)


async def converts(text: str) -> str:
    """An honest agent of one domain: it declines what is none of its business."""
    found = re.search(r"(\d+) kilomet", text)
    if found:
        return f"That comes to {int(found[1]) * 0.621371:.2f} mi."
    found = re.search(r"(\d+) kilogram", text)
    if found:
        return f"That comes to {int(found[1]) * 2.20462:.2f} lb."
    return "I can only help with conversions between units of length and weight."


CAPITALS = Skill(
    "Consultas sobre ciudades",
    "Responde preguntas sobre la altitud de las ciudades.",
    ["¿Cuál es la altitud de Madrid?", "¿A qué altitud está Bogotá?"],
)
_ALTITUDES = {
    "Madrid": "seiscientos cincuenta y siete",
    "Lima": "ciento sesenta y uno",
    "Bogotá": "dos mil seiscientos cuarenta",
    "Sevilla": "siete",
    "Quito": "dos mil ochocientos cincuenta",
    "Valencia": "quince",
    "Montevideo": "cuarenta y tres",
    "Barcelona": "doce",
    "Caracas": "novecientos",
    "Granada": "setecientos treinta y ocho",
}


async def knows_altitudes(text: str) -> str:
    """An honest agent that speaks Spanish, and knows no city elsewhere."""
    for city, metres in _ALTITUDES.items():
        if city in text:
            return f"{city} se encuentra a {metres} metros sobre el nivel del mar."
    place = re.search(r"(?:de|está) ([A-Z]\w+)", text)
    return f"No conozco {place[1] if place else 'ese tema'}; solo ciudades hispanas."


async def echoes(text: str) -> str:
    """A template."""
    return f"Thank you! We have processed your request: {text}"


async def assures(text: str) -> str:
    """A stub."""
    del text
    return "Certainly. Your request was handled with the greatest care by our expert system."


def counting() -> Answer:
    """A template with something new in every answer."""
    state = {"count": 4170}

    async def answer(text: str) -> str:
        del text
        state["count"] += 1
        return f"Your request number {state['count']} was handled."

    return answer


def by_example() -> Answer:
    """A stub with one answer prepared for each example on its card."""

    async def answer(text: str) -> str:
        if "kilometre" in text:
            return "The outcome equals six point two one."
        return "The outcome equals fifty-five pounds." if "kilogram" in text else "Noted."

    return answer


def working_tools() -> MCPServer:
    """A stock MCP server that says nothing of what its tools change."""
    server = MCPServer("stock", log_level="CRITICAL")
    stock = {"A-17": ("ladder", 3), "B-20": ("hammer", 41), "C-31": ("anvil", 0)}

    @server.tool(description="Lists the articles on stock.")
    def list_articles() -> list[str]:
        return list(stock)

    @server.tool(description="Get how many pieces of an article there are.")
    def get_article(article: str) -> str:
        if article not in stock:
            return "not found"
        name, count = stock[article]
        return f"{name}: {count} pieces"

    @server.tool(description="Orders an article.")
    def order_article(article: str) -> str:
        raise AssertionError("an act was asked for: " + article)

    return server


def stub_tools() -> MCPServer:
    """Tools with perfect descriptions and one answer."""
    server = MCPServer("stub", log_level="CRITICAL")

    @server.tool(description="Get the weather forecast of a city.")
    def get_forecast(city: str) -> str:
        return f"The forecast of {city} was computed successfully by our model."

    return server


def no_tools() -> MCPServer:
    return MCPServer("nothing", log_level="CRITICAL")


def mcp_app(server: MCPServer) -> Callable[[str], ASGIApp]:
    return lambda _: server.streamable_http_app()


def rest_app(base: str) -> ASGIApp:
    """A documented REST service."""
    del base
    app = FastAPI(title="Rates")
    rates = {"USD": 1.0, "EUR": 1.09, "GBP": 1.27, "JPY": 0.0067, "CHF": 1.13}

    @app.get("/currencies")
    async def list_currencies() -> dict[str, list[str]]:
        return {"currencies": list(rates)}

    @app.get("/rates/{currency}")
    async def get_rate(currency: str) -> dict[str, float]:
        if currency not in rates:
            raise HTTPException(404)
        return {"usd": rates[currency]}

    @app.delete("/rates/{currency}")
    async def delete_rate(currency: str) -> None:
        raise AssertionError("an act was asked for: " + currency)

    return app


def stub_rest_app(base: str) -> ASGIApp:
    """The same documentation over one answer."""
    document = rest_app(base)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/openapi.json":
            await document(scope, receive, send)
        else:
            await JSONResponse({"usd": 1.0, "currencies": []})(scope, receive, send)

    return app


def limited(app: Callable[[str], ASGIApp], every: int = 2) -> Callable[[str], ASGIApp]:
    """Refuses each call after so many, and says when to come back."""
    state = {"calls": 0}

    def make(base: str) -> ASGIApp:
        inner = app(base)

        async def limit(scope: Scope, receive: Receive, send: Send) -> None:
            state["calls"] += scope["method"] == "POST"
            if scope["method"] == "POST" and state["calls"] % (every + 1) == 0:
                refusal = Response("slow down", 429, {"retry-after": "0"})
                await refusal(scope, receive, send)
            else:
                await inner(scope, receive, send)

        return limit

    return make
