"""MCP servers: on the official library in several transports, and written by hand."""

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types import ToolAnnotations
from starlette.applications import Starlette

from tests.ground_truth.knowledge import Domain
from tests.ground_truth.site import App, Scope, Site, read, send_json

ANY_HOST = TransportSecuritySettings(enable_dns_rebinding_protection=False)
READS = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)


def server(name: str, instructions: str | None = None) -> MCPServer[Any]:
    """An empty server on the official library."""
    return MCPServer(name, version="0.9.2", instructions=instructions, log_level="CRITICAL")


def ask_tool(made: MCPServer[Any], domain: Domain, name: str = "", text: str = "") -> None:
    """One read-only tool that answers questions of the domain."""

    def look(**given: str) -> str:
        said = domain.answer(given[domain.argument])
        if said is None:
            raise ToolError(f"nothing known about {given[domain.argument][:80]!r}")
        return said

    look.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(domain.argument, inspect.Parameter.KEYWORD_ONLY, annotation=str)],
        return_annotation=str,
    )
    look.__annotations__ = {domain.argument: str, "return": str}
    described = text or f"{domain.summary} For example: {domain.examples[0]}"
    made.add_tool(look, name=name or f"{domain.key}_lookup", description=described,
                  annotations=READS)  # fmt: skip


class Lifespanned:
    """An app whose lifespan begins with its first request, in a task of its own."""

    def __init__(self, app: Starlette) -> None:
        self._app = app
        self._ready = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._live())
        await self._ready.wait()
        await self._app(scope, receive, send)

    async def _live(self) -> None:
        async with self._app.router.lifespan_context(self._app):
            self._ready.set()
            await asyncio.Event().wait()


def stock_mcp(made: MCPServer[Any], *, sessions: bool = False, plain_json: bool = True) -> App:
    """Streamable HTTP at /mcp."""
    app = made.streamable_http_app(
        json_response=plain_json, stateless_http=not sessions, transport_security=ANY_HOST
    )
    return Lifespanned(app)


def sse_mcp(made: MCPServer[Any]) -> App:
    """The older transport: server-sent events at /sse."""
    return Lifespanned(made.sse_app(transport_security=ANY_HOST))


@dataclass
class Tool:
    """A tool of a hand-made server."""

    name: str
    description: str
    schema: dict[str, Any]
    run: Callable[[dict[str, Any]], Any | Awaitable[Any]]
    more: dict[str, Any] = field(default_factory=dict)
    """Further members of its listing, such as annotations or an output schema."""

    @property
    def row(self) -> dict[str, Any]:
        reads = {"annotations": {"readOnlyHint": True}}
        listing = {"name": self.name, "description": self.description, "inputSchema": self.schema}
        return listing | reads | self.more


def text_schema(name: str, describes: str = "") -> dict[str, Any]:
    """The schema of one text argument."""
    one = {"type": "string"} | ({"description": describes} if describes else {})
    return {"type": "object", "properties": {name: one}, "required": [name]}


Listing = Callable[[Scope], Sequence[Tool]]


@dataclass
class HandMade:
    """A stateless MCP endpoint of 2025-03-26 that speaks plain JSON, without any library."""

    site: Site
    name: str
    tools: Listing
    instructions: Callable[[Scope], str] = lambda _scope: ""
    beyond: Callable[[str, dict[str, Any], Scope], Any] = lambda _method, _params, _scope: None
    """Answers methods beyond tools: prompts and resources."""
    path: str = "/mcp"
    offers: dict[str, Any] = field(default_factory=dict)
    """Further capabilities."""

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["path"] != self.path:
            return await send_json(send, {"error": "no such path"}, 404)
        if scope["method"] != "POST":
            return await send_json(send, {"error": "POST only"}, 405, {"allow": "POST"})
        try:
            asked = json.loads(await read(receive))
        except (ValueError, RecursionError):
            return await send_json(send, _failed(None, -32700, "Parse error"), 400)
        if not isinstance(asked, dict) or not isinstance(asked.get("method"), str):
            return await send_json(send, _failed(None, -32600, "Invalid Request"), 400)
        if "id" not in asked:
            return await send_json(send, b"", 202)
        return await send_json(send, await self._answer(asked, scope))

    async def _answer(self, asked: dict[str, Any], scope: Scope) -> dict[str, Any]:
        params = asked.get("params")
        params = params if isinstance(params, dict) else {}
        method, number = asked["method"], asked["id"]
        if method == "initialize":
            return _done(number, self._hello(scope))
        if method == "ping":
            return _done(number, {})
        if method == "tools/list":
            return _done(number, {"tools": [tool.row for tool in self.tools(scope)]})
        if method == "tools/call":
            return await self._call(number, params, scope)
        found = self.beyond(method, params, scope)
        if found is None:
            return _failed(number, -32601, "Method not found")
        return _done(number, found)

    def _hello(self, scope: Scope) -> dict[str, Any]:
        said = self.instructions(scope)
        hello = {
            "protocolVersion": "2025-03-26",
            "capabilities": {"tools": {}} | self.offers,
            "serverInfo": {"name": self.name, "version": "3.1"},
        }
        return hello | ({"instructions": said} if said else {})

    async def _call(self, number: Any, params: dict[str, Any], scope: Scope) -> dict[str, Any]:
        tool = next((t for t in self.tools(scope) if t.name == params.get("name")), None)
        if tool is None:
            return _failed(number, -32602, "no tool of this name")
        given = params.get("arguments") or {}
        missing = [n for n in tool.schema.get("required", ()) if n not in given]
        if missing:
            return _failed(number, -32602, f"missing: {', '.join(missing)}")
        said = tool.run(given)
        said = await said if inspect.isawaitable(said) else said
        if said is None:
            return _done(number, content("nothing found", wrong=True))
        return _done(number, said if isinstance(said, dict) else content(str(said)))


def content(text: str, *, wrong: bool = False) -> dict[str, Any]:
    """A tool's result."""
    return {"content": [{"type": "text", "text": text}], "isError": wrong}


def domain_tool(domain: Domain, **changes: Any) -> Tool:
    """A tool over a domain's answers."""
    tool = Tool(
        f"get_{domain.key}",
        f"{domain.summary} Example: {domain.examples[-1]}",
        text_schema(domain.argument),
        lambda given: domain.answer(str(given[domain.argument])),
    )
    for name, value in changes.items():
        setattr(tool, name, value)
    return tool


def hand_made_mcp(site: Site, name: str, *tools: Tool) -> App:
    """A hand-made server with a fixed list of tools."""
    return HandMade(site, name, lambda _scope: tools)


def _done(number: Any, result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "result": result}


def _failed(number: Any, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}
