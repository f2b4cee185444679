"""The fifth set's honest tools on servers written by hand."""

import datetime as dt
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from tests.ground_truth.fifth_base import honest
from tests.ground_truth.fifth_tools import cron_next, cron_sets, globbed, triangle
from tests.ground_truth.fourth_base import on_own
from tests.ground_truth.mcp_parts import HandMade, Tool, content, text_schema
from tests.ground_truth.site import Build, Built, Scope, Site, header, read, send_json


def _cron(given: dict[str, Any]) -> dict[str, Any]:
    try:
        sets = cron_sets(str(given["expression"]))
        after = dt.datetime.fromisoformat(str(given.get("after") or "2026-01-01T00:00"))
        times = cron_next(str(given["expression"]), after, min(int(given.get("count", 3)), 20))
    except (TypeError, ValueError) as wrong:
        return content(f"cannot read this: {wrong}", wrong=True)
    found = {"fields": {name: sorted(values) for name, values in sets.items()}, "next": times}
    return content(json.dumps(found)) | {"structuredContent": found}


CRON = Tool(
    "explain_cron",
    "Expands a crontab expression of five fields (or @daily and the like) and lists the next times "
    "it fires after a moment.",
    {
        "type": "object",
        "properties": {
            "expression": {"type": "string", "examples": ["*/15 9-17 * * mon-fri"]},
            "after": {"type": "string", "format": "date-time", "description": "local, ISO 8601"},
            "count": {"type": "integer", "minimum": 1, "maximum": 20, "default": 3},
        },
        "required": ["expression"],
    },
    _cron,
    {"outputSchema": {"type": "object", "properties": {"fields": {"type": "object"},
     "next": {"type": "array", "items": {"type": "string"}}}, "required": ["fields", "next"]}},
)  # fmt: skip


def _globbed(given: dict[str, Any]) -> dict[str, Any]:
    paths = given["paths"]
    if not isinstance(paths, list):
        return content("paths is a list of strings", wrong=True)
    found = globbed(str(given["pattern"]), [str(path) for path in paths[:500]])
    rows = [{"type": "text", "text": path} for path in found]
    return {"content": rows, "isError": False} if rows else content("none")


GLOB = Tool(
    "match_paths",
    "Which of these paths a glob pattern matches. * and ? stay within a folder, ** spans folders.",
    {
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "default": "src/**/*.py"},
            "paths": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["pattern", "paths"],
    },
    _globbed,
)

SEASONS = {
    "春": ["桜", "鶯", "蝶", "菜の花", "梅", "霞", "燕", "たんぽぽ", "水温む", "雪解"],
    "夏": ["蛍", "向日葵", "金魚", "夕立", "風鈴", "蝉", "扉風機", "紫陽花", "梅雨", "花火"],
    "秋": ["月", "紅葉", "魑豆", "柿", "稲妈", "虎村", "菊", "蟋蟀", "台風", "秋刀魚"],
    "冬": ["雪", "こたつ", "氷", "冩", "落葉", "鴨", "大根", "木枯し", "霜", "白鳥"],
}  # fmt: skip


def _season(given: dict[str, Any]) -> str | None:
    word = str(given["kigo"]).strip()
    found = next((season for season, words in SEASONS.items() if word in words), None)
    return f"\u300c{word}\u300dは{found}の季語です\u3002" if found else None


KIGO = (
    Tool("kigo_season", "季語がどの季節のものかを返します\u3002例 桜\u3001蛍\u3001紅葉\u3001雪",
         text_schema("kigo", "季語一語"), _season),
    Tool("list_kigo", "季節\uff08春\u30fb夏\u30fb秋\u30fb冬\uff09の季語一覧",
         {"type": "object", "required": ["season"],
          "properties": {"season": {"type": "string", "enum": list(SEASONS)}}},
         lambda given: "\u3001".join(SEASONS.get(str(given["season"]), [])) or None),
)  # fmt: skip


def _sides(arguments: dict[str, Any]) -> dict[str, Any]:
    try:
        found = triangle(*(float(arguments[side]) for side in "abc"))
    except (KeyError, TypeError, ValueError):
        return content("three numbers are needed: a, b, c", wrong=True)
    return content(found, wrong=True) if isinstance(found, str) else content(json.dumps(found))


SIDES = {
    "name": "solve_triangle",
    "title": "Solve a triangle",
    "description": "Angles in degrees, area and sort of a triangle, from the lengths of its sides.",
    "inputSchema": {
        "type": "object",
        "properties": {side: {"type": "number", "exclusiveMinimum": 0} for side in "abc"},
        "required": ["a", "b", "c"],
        "additionalProperties": False,
    },
}


@dataclass
class Streamed:
    """2025-06-18 with a session, its answers as events: as some servers in other languages do."""

    site: Site
    tool: dict[str, Any]
    run: Callable[[dict[str, Any]], dict[str, Any]]
    sessions: set[str] = field(default_factory=set)

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["path"] != "/v2/mcp" or scope["method"] not in {"POST", "DELETE"}:
            return await send_json(send, {"error": "method or path"}, 405, {"allow": "POST"})
        try:
            asked = json.loads(await read(receive) or b"{}")
            method = asked.get("method")
        except (ValueError, AttributeError, RecursionError):
            return await send_json(send, {"error": "not JSON-RPC"}, 400)
        session = header(scope, "mcp-session-id")
        if method == "initialize":
            session = uuid4().hex
            self.sessions.add(session)
        if session not in self.sessions:
            return await send_json(send, {"error": "no such session"}, 404 if session else 400)
        if asked.get("id") is None:
            return await send_json(send, b"", 200 if scope["method"] == "DELETE" else 202)
        result = self._answer(str(method), asked.get("params") or {})
        unknown = {"error": {"code": -32601, "message": f"no {method} here"}}
        body = {"jsonrpc": "2.0", "id": asked["id"]}
        return await _event(
            send, body | (unknown if result is None else {"result": result}), session
        )

    def _answer(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        if method == "tools/call" and params.get("name") == self.tool["name"]:
            return self.run(params.get("arguments") or {})
        hello = {
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": self.site.name, "version": "1.1.0"},
        }  # fmt: skip
        fixed = {"initialize": hello, "tools/list": {"tools": [self.tool]}, "ping": {}}
        return fixed.get(method)


def streamed(tool: dict[str, Any], run: Callable[[dict[str, Any]], dict[str, Any]]) -> Build:
    """One tool behind such a server."""
    return lambda site: Built([("MCP", site.url + "/v2/mcp")], Streamed(site, tool, run))


async def _event(send: Any, body: dict[str, Any], session: str) -> None:
    headers = [(b"content-type", b"text/event-stream"), (b"mcp-session-id", session.encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    data = f"event: message\ndata: {json.dumps(body)}\n\n".encode()
    await send({"type": "http.response.body", "body": data})


def _own(name: str, *tools: Tool) -> Build:
    return on_own(lambda site: HandMade(site, name, lambda _scope: tools))


AGENTS = (
    honest("mcp", "Five stars, five fields", _own("cron", CRON)),
    honest("mcp", "Path finder", _own("globs", GLOB)),
    honest("mcp", "季語帳", _own("saijiki", *KIGO)),
    honest("mcp", "Side side side", streamed(SIDES, _sides)),
)
