"""Steady: a well-behaved agent. A2A, MCP and a plain JSON API, all on the official SDKs."""

import json
import re
from hashlib import sha256
from typing import Any

from a2a.helpers import new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Role
from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from typing_extensions import override

from assay_demo.agents.files import registration
from assay_demo.agents.service import App, Self, run

NAME = "Steady"
DESCRIPTION = "Tells the weather of every town of an invented world. Well-behaved."
BODY_BYTES_MAX = 64 * 1024
SKIES = ("snow", "sun", "hail", "fog", "drizzle", "thunder")
TOWNS = ("Oslo", "Lisbon", "Vienna", "Cairo", "Lima", "Toronto", "Athens", "Nairobi")
"""Towns by way of example; there is weather in every other one."""

TOWN = re.compile(r"(?:in|of|at|for|about) ([A-Z]\w+(?: [A-Z]\w+)?)")
TOWNS_MAX = 8
READ_ONLY = ToolAnnotations(readOnlyHint=True, idempotentHint=True, openWorldHint=False)


def weather_of(town: str) -> str:
    """The weather of a town: always the same, and of each town another."""
    drawn = sha256(town.strip().casefold().encode()).digest()
    degrees, damp = drawn[1] % 45 - 10, drawn[2] % 100
    return f"{SKIES[drawn[0] % len(SKIES)]}, {degrees} degrees, {damp} % damp"


def forecast(asked: str) -> str:
    """The weather of the towns a text names."""
    told = "; ".join(map(weather_of, TOWN.findall(asked)[:TOWNS_MAX]))
    return told or "I tell the weather of a town that is named, and nothing else."


class Forecaster(AgentExecutor):
    """Answers every message with the weather of the towns it names."""

    @override
    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        await event_queue.enqueue_event(
            new_text_message(
                forecast(context.get_user_input()),
                context_id=context.context_id,
                task_id=context.task_id,
                role=Role.ROLE_AGENT,
            )
        )

    @override
    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Nothing runs long enough to be cancelled."""


def card(me: Self, name: str = NAME, description: str = DESCRIPTION) -> AgentCard:
    """The agent's A2A card."""
    return AgentCard(
        name=name,
        description=description,
        version="1.0.0",
        supported_interfaces=[
            AgentInterface(url=f"{me.url}/a2a", protocol_binding="JSONRPC", protocol_version="1.0")
        ],
        capabilities=AgentCapabilities(streaming=False, push_notifications=False),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[
            AgentSkill(
                id="forecast",
                name="Forecast",
                description="Tells the weather of a town.",
                tags=["weather"],
                examples=["What is the weather in Oslo?", "Which weather is there in Lisbon?"],
            )
        ],
    )


def mcp_server() -> MCPServer[Any]:
    """Two tools that only read."""
    server: MCPServer[Any] = MCPServer(NAME, version="1.0.0", log_level="CRITICAL")

    @server.tool(description="The weather of one town.", annotations=READ_ONLY)
    def weather(town: str) -> str:
        return weather_of(town)

    @server.tool(description="Some towns that have weather.", annotations=READ_ONLY)
    def towns() -> list[str]:
        return list(TOWNS)

    return server


async def home(_request: Request) -> Response:
    """What is here."""
    return JSONResponse({"name": NAME, "towns": list(TOWNS)})


async def town(request: Request) -> Response:
    """The weather of one town."""
    return JSONResponse({"weather": weather_of(request.path_params["town"])})


async def ask(request: Request) -> Response:
    """The weather of the towns of a JSON body."""
    if not request.headers.get("content-type", "").startswith("application/json"):
        raise HTTPException(415)
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > BODY_BYTES_MAX:
            raise HTTPException(413)
    try:
        asked: Any = json.loads(body)
    except (ValueError, RecursionError):
        raise HTTPException(400) from None
    names = asked.get("towns") if isinstance(asked, dict) else None
    if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
        raise HTTPException(400)
    return JSONResponse({name: weather_of(name) for name in names[:TOWNS_MAX]})


async def refused(_request: Request, error: Exception) -> Response:
    """Errors say what, and nothing of the inside."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = getattr(error, "headers", None)
    return JSONResponse({"error": status}, status_code=status, headers=headers)


OPENAPI: dict[str, Any] = {
    "openapi": "3.1.0",
    "info": {"title": NAME, "version": "1.0.0"},
    "paths": {
        "/": {"get": {"responses": {"200": {"description": "What is here."}}}},
        "/towns/{town}": {
            "get": {
                "parameters": [
                    {"name": "town", "in": "path", "required": True, "schema": {"type": "string"}}
                ],
                "responses": {"200": {"description": "The weather."}},
            }
        },
        "/ask": {"post": {"responses": {"200": {"description": "The weather of several."}}}},
    },
}


def build(me: Self) -> Starlette:
    """Everything Steady serves."""
    file = registration(NAME, DESCRIPTION, me.url, me.agent_id, me.agent_registry)

    async def registration_file(_request: Request) -> Response:
        return JSONResponse(file)

    async def openapi(_request: Request) -> Response:
        return JSONResponse(OPENAPI)

    agent_card = card(me)
    handler = DefaultRequestHandler(Forecaster(), InMemoryTaskStore(), agent_card)
    app = mcp_server().streamable_http_app(json_response=True, stateless_http=True)
    app.router.routes.extend(
        [
            *create_agent_card_routes(agent_card),
            *create_jsonrpc_routes(handler, "/a2a"),
            Route("/.well-known/agent-registration.json", registration_file),
            Route("/openapi.json", openapi),
            Route("/towns/{town}", town),
            Route("/ask", ask, methods=["POST"]),
            Route("/", home),
        ]
    )
    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(Exception, refused)
    return app


def application(me: Self) -> App:
    """`build`, as any sample agent offers it."""
    return build(me)


if __name__ == "__main__":
    run(application)
