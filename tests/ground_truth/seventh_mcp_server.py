"""A hand-written MCP server that some of the seventh set's agents are built on."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.ground_truth.seventh_base import parsed, send_text
from tests.ground_truth.site import Scope, Site, read, send_json

Json = dict[str, Any]
LATEST = "2025-06-18"


def schema(needed: str = "", /, **fields: tuple[str, str]) -> Json:
    """An object's schema: type and description of each field."""
    rows: Json = {
        name: {"type": kind, "description": text} for name, (kind, text) in fields.items()
    }
    return {"type": "object", "properties": rows, "required": needed.split()}


Tool = tuple[str, Json, Callable[[Json], Any]]


class Server:
    """Tools over one POST endpoint; subclasses say how it behaves."""

    name, version, path, hint = "server", "1.0.0", "/mcp", ""

    def __init__(self, _site: Site) -> None:
        self.tools = self.offered()

    def offered(self) -> Mapping[str, Tool]:
        """Description, schema and function by name."""
        return {}

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["path"].rstrip("/") != self.path:
            return await send_text(send, "no such page", 404)
        if scope["method"] == "DELETE":
            return await send_text(send, "", 204)
        if scope["method"] != "POST":
            return await send_text(send, "", 405, more={"allow": "POST, DELETE"})
        asked = parsed(await read(receive))
        if not isinstance(asked, dict) or not isinstance(asked.get("method"), str):
            return await self.reply(send, self.wrong(None, -32600, "unreadable"), {})
        return await self.take(scope, asked, send)

    async def take(self, _scope: Scope, asked: Json, send: Any) -> None:
        """Answers one request."""
        if "id" not in asked:
            return await send_text(send, "", 202)
        return await self.reply(send, self.answer(asked), {})

    async def reply(self, send: Any, body: Json, headers: Mapping[str, str]) -> None:
        """How an answer is written."""
        await send_json(send, body, headers=headers)

    def wrong(self, number: Any, code: int, text: str) -> Json:
        return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": text}}

    def answer(self, asked: Json) -> Json:
        params = asked["params"] if isinstance(asked.get("params"), dict) else {}
        made = {"initialize": self.opened, "tools/list": self.listed, "tools/call": self.called,
                "ping": lambda _params: {}}.get(asked["method"])  # fmt: skip
        if made is None:
            return self.wrong(asked["id"], -32601, "Unknown method")
        return {"jsonrpc": "2.0", "id": asked["id"], "result": made(params)}

    def opened(self, params: Json) -> Json:
        known = params.get("protocolVersion") in {"2024-11-05", "2025-03-26", LATEST}
        return {
            "protocolVersion": params["protocolVersion"] if known else LATEST,
            "capabilities": {"tools": {"listChanged": False}},
            "serverInfo": {"name": self.name, "version": self.version},
        } | ({"instructions": self.hint} if self.hint else {})  # fmt: skip

    def listed(self, _params: Json) -> Json:
        return {"tools": [{"name": name, "description": text, "inputSchema": shape}
                          for name, (text, shape, _) in self.tools.items()]}  # fmt: skip

    def called(self, params: Json) -> Json:
        row = self.tools.get(str(params.get("name")))
        if row is None:
            return self.shown(f"No tool is called {str(params.get('name'))[:40]}", wrong=True)
        try:
            return self.shown(row[2](params.get("arguments") or {}))
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
            return self.shown(self.told(error), wrong=True)

    def told(self, error: Exception) -> str:
        """What is said of an input that cannot be used."""
        return f"{'missing ' if isinstance(error, KeyError) else ''}{error}"

    def shown(self, made: Any, *, wrong: bool = False) -> Json:
        text = made if isinstance(made, str) else json.dumps(made)
        body: Json = {"content": [{"type": "text", "text": text}]}
        body |= {"structuredContent": made} if isinstance(made, dict) else {}
        return body | ({"isError": True} if wrong else {})
