"""MCP, plain HTTP and paid services of the fresh set, each in more than one hand-writing."""

import base64
import inspect
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import parse_qs, urlsplit

from aiohttp import ClientError, ClientSession, ClientTimeout, InvalidURL
from fastapi import FastAPI, HTTPException, Query
from mcp.server import MCPServer
from mcp.server.lowlevel import Server
from mcp_types import CallToolResult, ListToolsResult, TextContent, ToolAnnotations
from mcp_types import Tool as ListedTool

from tests.ground_truth.fresh_mind import Trade
from tests.ground_truth.mcp_parts import ANY_HOST, Lifespanned
from tests.ground_truth.site import App, Scope, Site, read, send_json

TOKEN = "0x" + "036CbD5384-2c5426634e-7929541eC2-318f3dCF7e".replace("-", "")
"""USDC on Base's test network."""
_HERE = re.compile(r"https?://(?:127(?:\.\d{1,3}){3}|localhost)(?::\d+)?(?:[/?#]\S*)?$")


def text_arg(name: str, about: str = "") -> dict[str, Any]:
    """A schema of one text."""
    one = {"type": "string"} | ({"description": about} if about else {})
    return {"type": "object", "properties": {name: one}, "required": [name]}


@dataclass(frozen=True)
class Knob:
    """A tool: its listing, and what it does."""

    name: str
    about: str
    schema: Mapping[str, Any]
    work: Callable[[dict[str, Any]], str | Awaitable[str | None] | None]
    reads: bool = True

    async def run(self, given: dict[str, Any]) -> tuple[str, bool]:
        """What it says, and whether it failed."""
        try:
            made = self.work(given)
            said = await made if inspect.isawaitable(made) else made
        except (KeyError, ValueError, TypeError) as wrong:
            return f"bad argument: {wrong}", True
        return (said, False) if said is not None else ("I have nothing on that.", True)

    def listing(self) -> dict[str, Any]:
        """As a client reads it."""
        row = {"name": self.name, "description": self.about, "inputSchema": dict(self.schema)}
        return row | ({"annotations": {"readOnlyHint": True}} if self.reads else {})


def knob(trade: Trade, name: str = "", about: str = "") -> Knob:
    """A trade as a tool."""
    described = about or f"{trade.about} Try: {trade.examples[0]}"
    return Knob(
        name or re.sub(r"\W+", "_", trade.title.lower()),
        described,
        text_arg(trade.argument, trade.examples[-1]),
        lambda given: trade.answer(str(given[trade.argument])),
    )


Knobs = Callable[[], Sequence[Knob]]


def low_mcp(name: str, knobs: Knobs, *, plain: bool = True, sessions: bool = False) -> App:
    """On the lower half of the official library."""

    async def listed(_context: Any, _params: Any) -> ListToolsResult:
        return ListToolsResult(tools=[ListedTool.model_validate(k.listing()) for k in knobs()])

    async def called(_context: Any, params: Any) -> CallToolResult:
        chosen = next((k for k in knobs() if k.name == params.name), None)
        said, bad = await chosen.run(params.arguments or {}) if chosen else ("no such tool", True)
        return CallToolResult(content=[TextContent(type="text", text=said)], is_error=bad)

    made: Server[Any] = Server(name, version="3.1", on_list_tools=listed, on_call_tool=called)
    return Lifespanned(
        made.streamable_http_app(
            json_response=plain, stateless_http=not sessions, transport_security=ANY_HOST
        )
    )


def high_mcp(name: str, *trades: Trade, hints: str | None = None) -> MCPServer[Any]:
    """On the upper half of it, one tool a trade; more can be added."""
    made: MCPServer[Any] = MCPServer(name, version="1.12", instructions=hints, log_level="CRITICAL")
    for trade in trades:
        told = f"{trade.about} Such as: {trade.examples[0]}"
        made.add_tool(
            _function(trade), description=told, annotations=ToolAnnotations(read_only_hint=True)
        )
    return made


def _function(trade: Trade) -> Callable[..., str]:
    def work(text: str) -> str:
        return trade.answer(text) or f"Nothing known. Ask for example: {trade.examples[0]}"

    work.__name__ = re.sub(r"\W+", "_", trade.title.lower())
    return work


Extra = Callable[[str, dict[str, Any]], Any]


async def _call(knobs: Knobs, params: dict[str, Any]) -> Any:
    chosen = next((k for k in knobs() if k.name == params.get("name")), None)
    if chosen is None:
        return None
    said, bad = await chosen.run(params.get("arguments") or {})
    return {"content": [{"type": "text", "text": said}], "isError": bad}


def raw_mcp(name: str, knobs: Knobs, *, path: str = "/mcp", extra: Extra | None = None) -> App:
    """JSON only, no sessions, no library."""
    able = {"tools": {}} | ({"resources": {}, "prompts": {}} if extra else {})
    about = {"name": name, "version": "7"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": able, "serverInfo": about}

    async def answer(asked: dict[str, Any]) -> Any:
        method, params = str(asked.get("method")), asked.get("params") or {}
        if method in {"initialize", "ping"}:
            return hello if method == "initialize" else {}
        if method == "tools/list":
            return {"tools": [k.listing() for k in knobs()]}
        if method == "tools/call":
            return await _call(knobs, params)
        return extra(method, params) if extra else None

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        if scope["path"] != path or scope["method"] != "POST":
            await send_json(send, {"detail": "not here"}, 404 if scope["path"] != path else 405)
            return
        asked = _object(await read(receive))
        if asked.get("id") is None:
            await send_json(send, b"", 202 if asked else 400)
            return
        result = await answer(asked)
        wrong = {"error": {"code": -32601, "message": "no such thing"}}
        said = wrong if result is None else {"result": result}
        await send_json(send, {"jsonrpc": "2.0", "id": asked["id"]} | said)

    return app


def _object(body: bytes) -> dict[str, Any]:
    try:
        made = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return made if isinstance(made, dict) else {}


def named(site: Site, document: dict[str, Any]) -> dict[str, Any]:
    """An OpenAPI document that names its agent, where that is the proof."""
    if site.proof == "openapi":
        document["info"]["x-agent-registrations"] = site.identity["registrations"]
        document["info"]["x-agent-wallet"] = site.identity["agentWallet"]
    return document


def api(site: Site, trade: Trade, path: str = "/lookup", *, prose: bool = False) -> FastAPI:
    """A documented service on FastAPI; `prose` says in words what others give as an example."""
    told = f"One would be: {trade.examples[0]}"
    shown = Query(description=told) if prose else Query(examples=[trade.examples[0]])
    app = FastAPI(title=trade.title, description=trade.about, version="0.8")

    @app.get(path, summary=trade.about)
    async def lookup(q: Annotated[str, shown]) -> dict[str, str]:
        said = trade.answer(q)
        if said is None:
            raise HTTPException(422, "nothing on that")
        return {"query": q, "answer": said}

    plain = app.openapi
    app.openapi = lambda: named(site, plain())  # type: ignore[method-assign]
    return app


def document(site: Site, trade: Trade, path: str, **more: Any) -> dict[str, Any]:
    """The same by hand: one path, one argument."""
    one = {"name": "q", "in": "query", "required": True, "schema": {"type": "string"},
           "example": trade.examples[0]}  # fmt: skip
    fine = {"description": "The answer", "content": {"application/json": {
        "schema": {"type": "object", "properties": {"answer": {"type": "string"}}}}}}  # fmt: skip
    deed = {"summary": trade.about, "parameters": [one], "responses": {"200": fine}} | more
    info = {"title": trade.title, "version": "2", "description": trade.about}
    return named(site, {"openapi": "3.1.0", "info": info, "servers": [{"url": site.url}],
                        "paths": {path: {"get": deed}}})  # fmt: skip


def asked_for(scope: Scope, name: str = "q") -> str:
    """One argument of the address."""
    return parse_qs(scope["query_string"].decode("latin-1")).get(name, [""])[0]


def price(site: Site, path: str, units: int, **changes: Any) -> dict[str, Any]:
    """What a call costs, in the newer protocol's words."""
    return {
        "scheme": "exact", "network": "eip155:84532", "amount": str(units), "asset": TOKEN,
        "payTo": site.wallet, "maxTimeoutSeconds": 90, "extra": {"name": "USDC", "version": "2"},
        "url": site.url + path,
    } | changes  # fmt: skip


async def charge(send: Any, *prices: dict[str, Any], old: bool = False) -> None:
    """402, in the older or in the newer protocol."""
    rows = [dict(p) for p in prices]
    url = next(r.pop("url") for r in rows)
    if old:
        for row in rows:
            row |= {"maxAmountRequired": row.pop("amount"), "network": "base-sepolia",
                    "resource": url, "description": "one call", "mimeType": "application/json",
                    }  # fmt: skip
        body = {"x402Version": 1, "error": "pay first", "accepts": rows}
        await send_json(send, body, 402)
        return
    about = {"url": url, "description": "one call", "mimeType": "application/json"}
    body = {"x402Version": 2, "error": "pay first", "resource": about, "accepts": rows}
    code = base64.b64encode(json.dumps(body).encode()).decode()
    await send_json(send, body, 402, {"payment-required": code})


def paid(scope: Scope) -> bool:
    """Whether a payment came with the call; this one is never settled."""
    return any(k in {b"x-payment", b"payment-signature"} for k, _ in scope["headers"])


async def fetch(url: str) -> str:
    """Open an address on this machine; other machines are never called."""
    if not _HERE.match(url):
        return ""
    try:
        async with (
            ClientSession(timeout=ClientTimeout(total=4)) as session,
            session.get(url, allow_redirects=False) as answer,
        ):
            return (await answer.content.read(900)).decode("utf-8", "replace")
    except (ClientError, TimeoutError, InvalidURL, ValueError):
        return ""


async def relay(url: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes, str]:
    """Hand a call on to somebody else's server on this machine."""
    kept = {k: v for k, v in headers.items() if k.lower() in _PASSED}
    if not urlsplit(url).hostname or not _HERE.match(url):
        return 502, b"{}", "application/json"
    try:
        async with (
            ClientSession(timeout=ClientTimeout(total=20)) as session,
            session.request("POST" if body else "GET", url, data=body or None,
                            headers=kept) as answer,
        ):  # fmt: skip
            return answer.status, await answer.read(), answer.content_type
    except (ClientError, TimeoutError):
        return 502, b"{}", "application/json"


_PASSED = frozenset(
    {"accept", "content-type", "a2a-version", "mcp-protocol-version", "mcp-" + "session-id"}
)
