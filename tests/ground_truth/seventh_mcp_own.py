"""Honest MCP servers of the seventh set whose owners wrote the protocol by hand."""

import json
import random
import secrets
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from tests.ground_truth import seventh_goods, seventh_home, seventh_outdoors, seventh_play
from tests.ground_truth.seventh_base import Allowance, at, honest, parsed, send_lines, send_text
from tests.ground_truth.seventh_mcp_server import LATEST, Json, Server, Tool, schema
from tests.ground_truth.site import App, Scope, Site, header, read, send_json


def sun_tool(given: Json) -> str:
    where = float(given["latitude"]), float(given["longitude"])
    if abs(where[0]) > 89 or abs(where[1]) > 180:
        raise ValueError("latitude is -89 to 89, longitude -180 to 180")
    rows = seventh_outdoors.sun(*where, date.fromisoformat(given["date"]))
    return ", ".join(f"{name} {value}" for name, value in rows.items()) + " (UTC)"


SUN_TOOL = {
    "name": "sun_times", "description": "Sunrise, solar noon, sunset and length of the day.",
    "inputSchema": schema("latitude longitude date", latitude=("number", "degrees north"),
                          longitude=("number", "degrees east"), date=("string", "YYYY-MM-DD")),
}  # fmt: skip


def sun_result(method: str, params: Json) -> Json | None:
    if method == "initialize":
        info = {"name": "sunbeam", "version": "1.0"}
        return {"protocolVersion": params.get("protocolVersion", LATEST),
                "serverInfo": info, "capabilities": {"tools": {}}}  # fmt: skip
    if method == "tools/list":
        return {"tools": [SUN_TOOL]}
    if method == "tools/call" and params.get("name") == SUN_TOOL["name"]:
        try:
            text, wrong = sun_tool(params.get("arguments") or {}), False
        except (ValueError, KeyError, TypeError) as error:
            text, wrong = f"bad input: {error}", True
        return {"content": [{"type": "text", "text": text}], "isError": wrong}
    return {} if method == "ping" else None


def sunbeam(_site: Site) -> App:
    """Two functions with everything in them, as somebody wrote them in an evening."""

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        if scope["method"] != "POST":
            return await send_text(send, "sunbeam speaks MCP by POST only\n", 405)
        asked = parsed(await read(receive))
        if not isinstance(asked, dict):
            wrong = {"code": -32700, "message": "not json"}
            return await send_json(send, {"jsonrpc": "2.0", "id": None, "error": wrong}, 400)
        if "id" not in asked:
            return await send_text(send, "", 202)
        params = asked.get("params")
        made = sun_result(str(asked.get("method")), params if isinstance(params, dict) else {})
        head = {"jsonrpc": "2.0", "id": asked["id"]}
        if made is None:
            no = {"code": -32601, "message": f"no {str(asked.get('method'))[:40]} here"}
            return await send_json(send, head | {"error": no})
        return await send_json(send, head | {"result": made})

    return app


class Dice(Server):
    """Chances and throws; no throw is like another."""

    name, version = "dice-tower", "0.7.0"

    def offered(self) -> Mapping[str, Tool]:
        throw = ("string", "e.g. 3d6 or 2d10+4")
        return {
            "odds": ("Exact chance to reach a total.",
                     schema("dice at_least", dice=throw, at_least=("integer", "the total")),
                     self.odds),
            "roll": ("Throws the dice.", schema("dice", dice=throw), self.roll),
        }  # fmt: skip

    def odds(self, given: Json) -> Json:
        least = int(given["at_least"])
        chances = seventh_play.dice(given["dice"])
        chance = sum(c for total, c in chances.items() if total >= least)
        mean = sum(total * c for total, c in chances.items())
        return {"chance": str(chance), "percent": round(float(chance) * 100, 2),
                "mean": round(float(mean), 2)}  # fmt: skip

    def roll(self, given: Json) -> Json:
        chances = seventh_play.dice(given["dice"])
        picked = random.choices([*chances], [float(c) for c in chances.values()])[0]
        return {"total": picked, "range": [min(chances), max(chances)]}


class Bells(Server):
    """Keeps sessions, and wants the number of one with every request."""

    name, version, path = "Ringing Chamber", "3.1.0", "/ring"
    hint = "Rows of change ringing methods. The treble is 1."

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self.sessions: list[str] = []

    def offered(self) -> Mapping[str, Tool]:
        return {
            "plain_hunt": ("All rows of plain hunt on 3 to 12 bells, from rounds to rounds.",
                           schema("bells", bells=("integer", "how many bells")), self.hunted),
            "place_of": ("In which place a bell strikes in each row of plain hunt.",
                         schema("bells bell", bells=("integer", "how many bells"),
                                bell=("integer", "whose path")), self.place),
        }  # fmt: skip

    def hunted(self, given: Json) -> str:
        if not 3 <= int(given["bells"]) <= 12:
            raise ValueError("we ring 3 to 12 bells")
        return "\n".join(seventh_play.hunt(int(given["bells"])))

    def place(self, given: Json) -> str:
        rows = self.hunted(given).splitlines()
        name = rows[0][int(given["bell"]) - 1]
        return " ".join(str(row.index(name) + 1) for row in rows)

    async def take(self, scope: Scope, asked: Json, send: Any) -> None:
        if asked["method"] == "initialize" and "id" in asked:
            self.sessions = [*self.sessions[-500:], secrets.token_hex(12)]
            named = {"mcp-session-id": self.sessions[-1]}
            return await self.reply(send, self.answer(asked), named)
        if header(scope, "mcp-session-id") not in self.sessions:
            body = self.wrong(asked.get("id"), -32600, "start a session first")
            return await send_json(send, body, 400)
        return await super().take(scope, asked, send)


class Brew(Server):
    """Answers every request as a short stream of events."""

    name, version = "brewday", "0.3"

    def offered(self) -> Mapping[str, Tool]:
        number = "number"
        return {
            "abv": ("Alcohol by volume from two gravities.",
                    schema("og fg", og=(number, "like 1.050"), fg=(number, "like 1.010")),
                    self.abv),
            "strike_water": ("How hot the water has to be at mash in, in Celsius.",
                             schema("litres_per_kg grain_c mash_c", mash_c=(number, "wanted"),
                                    litres_per_kg=(number, "thickness"), grain_c=(number, "is")),
                             self.strike),
            "ibu": ("Bitterness of one hop addition (Tinseth).",
                    schema("grams alpha minutes litres og", grams=(number, "hops"),
                           alpha=(number, "acid in %"), minutes=(number, "in the boil"),
                           litres=(number, "batch"), og=(number, "gravity")), self.ibu),
        }  # fmt: skip

    def abv(self, given: Json) -> str:
        og, fg = float(given["og"]), float(given["fg"])
        if not 0.98 <= fg <= og <= 1.2:
            raise ValueError("gravities look odd, they are like 1.050 and 1.010")
        return f"{(og - fg) * 131.25:.1f} % vol, attenuation {100 * (og - fg) / (og - 1):.0f} %"

    def strike(self, given: Json) -> str:
        ratio, grain, mash = (float(given[k]) for k in ("litres_per_kg", "grain_c", "mash_c"))
        if ratio <= 0:
            raise ValueError("litres_per_kg has to be positive")
        return f"{seventh_home.strike_temp(ratio, grain, mash):.1f} C"

    def ibu(self, given: Json) -> str:
        values = [float(given[k]) for k in ("grams", "alpha", "minutes", "litres", "og")]
        if values[3] <= 0:
            raise ValueError("litres has to be positive")
        return f"{seventh_home.bitterness(*values):.1f} IBU"

    async def reply(self, send: Any, body: Json, _headers: Mapping[str, str]) -> None:
        await send_lines(send, [f"event: message\ndata: {json.dumps(body)}\n\n"],
                         "text/event-stream")  # fmt: skip


class Rota(Server):
    """Forty calls in ten seconds, then it asks for patience; its errors are curt."""

    name, version, path = "rota-check", "2026.1", ""

    def __init__(self, site: Site) -> None:
        super().__init__(site)
        self.allowance = Allowance(40, 10.0)

    def offered(self) -> Mapping[str, Tool]:
        shifts = {"type": "array", "items": {"type": "string"},
                  "description": "each like 2026-03-02T22:00/2026-03-03T06:00"}  # fmt: skip
        shape = {"type": "object", "properties": {"shifts": shifts}, "required": ["shifts"]}
        return {"check_rota": ("Finds rests below 11 hours between shifts.", shape, self.check)}

    def check(self, given: Json) -> Json:
        ends = [tuple(datetime.fromisoformat(t) for t in s.split("/")) for s in given["shifts"]]
        rows = [(start, end) for start, end in ends if start < end]
        worked = sum((end - start).total_seconds() for start, end in rows) / 3600
        short = seventh_goods.rests(rows)
        return {"ok": not short, "short_rests": short, "hours": round(worked, 2)}

    def told(self, error: Exception) -> str:
        return f"{type(error).__name__}"

    async def take(self, scope: Scope, asked: Json, send: Any) -> None:
        if wait := self.allowance.wait_s():
            return await send_text(send, "slow down", 429, more={"retry-after": str(wait)})
        return await super().take(scope, asked, send)


AGENTS = (
    honest("mcp", "sunbeam", at(sunbeam, ("MCP", "/")), "sunrise + sunset for any place and day"),
    honest("mcp", "Dice tower", at(Dice, ("MCP", "/mcp")),
           "Rolls dice and tells you the exact odds. For game masters.", read=True,
           inputs={"dice": ["3d6", "2d10+4"], "at_least": [11, 12]}),
    honest("mcp", "Ringing Chamber", at(Bells, ("MCP", "/ring")),
           "Change ringing: rows of plain hunt and where your bell strikes. From the ringers of "
           "St Wulfram's.", inputs={"bells": [5, 6, 8], "bell": [1, 3]}, read=True),
    honest("mcp", "brewday", at(Brew, ("MCP", "/mcp")),
           "homebrew numbers: abv, strike water, ibu"),
    honest("mcp", "rota-check", at(Rota, ("MCP", "/")),
           "Checks a shift plan for rests below eleven hours. Small box, please don't hammer it."),
)  # fmt: skip
