"""Honest A2A agents of the seventh set whose owners wrote the protocol by hand."""

import asyncio
import json
import re
import uuid
from typing import Any

from tests.ground_truth import seventh_play
from tests.ground_truth.a2a_parts import CARD, EIP, rpc_error, text_of
from tests.ground_truth.seventh_base import at, honest, parsed, send_lines, send_text
from tests.ground_truth.seventh_minds import bins, freight, tank, wind
from tests.ground_truth.site import App, Scope, Site, read, send_json

Json = dict[str, Any]


def named(site: Site) -> list[Json]:
    """The extension that names the agent, where the card is its proof."""
    return [{"uri": EIP, "params": site.identity}] if site.proof == "card" else []


def words(message: Any) -> str:
    """The text of a message, empty where there is none."""
    parts = message.get("parts") if isinstance(message, dict) else None
    return text_of(message) if isinstance(parts, list) else ""


def said(text: str, **more: Any) -> Json:
    """A message of protocol 0.3."""
    return {"kind": "message", "messageId": uuid.uuid4().hex, "role": "agent",
            "parts": [{"kind": "text", "text": text}]} | more  # fmt: skip


def bin_day(site: Site) -> App:
    card = {
        "name": "Netherby bins", "description": "When is which bin collected in Netherby parish",
        "url": f"{site.url}/", "version": "1", "protocolVersion": "0.3.0",
        "capabilities": {"extensions": named(site)},
        "defaultInputModes": ["text"], "defaultOutputModes": ["text"],
        "skills": [{"id": "bins", "name": "Bin day", "description": "Street (and date) in, day and "
                    "kind of collection out", "tags": ["council", "waste"],
                    "examples": ["When are the bins in Mill Lane after 2026-03-02?"]}],
    }  # fmt: skip

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        if scope["method"] == "GET" and scope["path"] in {CARD, "/.well-known/agent.json"}:
            return await send_json(send, card)
        if scope["method"] != "POST" or scope["path"] != "/":
            return await send_text(send, "Not found", 404)
        asked = parsed(await read(receive))
        if not isinstance(asked, dict):
            return await send_json(send, rpc_error(-32700, "That was not JSON"))
        params = asked.get("params")
        text = words(params.get("message")) if isinstance(params, dict) else ""
        if asked.get("method") != "message/send" or not text:
            code = -32602 if asked.get("method") == "message/send" else -32601
            return await send_json(send, rpc_error(code, "message/send and some text, please",
                                                   asked.get("id")))  # fmt: skip
        answer = {"jsonrpc": "2.0", "id": asked.get("id"), "result": said(bins(text))}
        return await send_json(send, answer)

    return app


class FreightDesk:
    """Gives a number at once and the result to those who come back for it."""

    def __init__(self, site: Site) -> None:
        self.site, self.jobs, self.count = site, dict[str, Json](), 4100
        self.work = set[asyncio.Task[None]]()

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["path"] == CARD:
            await send_json(send, self.card())
        elif scope["path"] == "/api/a2a" and scope["method"] == "POST":
            asked = parsed(await read(receive))
            good = isinstance(asked, dict) and isinstance(asked.get("params"), dict)
            await send_json(send, self.call(asked) if good else rpc_error(-32600, "bad request"))
        else:
            await send_json(send, {"status": 404}, 404)

    def card(self) -> Json:
        return {
            "name": "FreightCalc", "version": "5.0.2", "protocolVersion": "0.3.0",
            "description": "Chargeable weight for air, express, road and sea consignments.",
            "url": f"{self.site.url}/api/a2a", "preferredTransport": "JSONRPC",
            "provider": {"organization": "Vandersmissen Expeditie", "url": self.site.url},
            "capabilities": {"streaming": False, "extensions": named(self.site)},
            "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
            "skills": [{
                "id": "chargeable", "name": "Chargeable weight", "tags": ["freight", "cargo"],
                "description": "Sizes in cm and weight in kg in, volume and chargeable weight out.",
                "examples": ["3 x 40x30x20 cm, 12 kg, air", "60x40x40 cm by road, 9.5 kg"],
            }],
        }  # fmt: skip

    def call(self, asked: Json) -> Json:
        params, method = asked["params"], asked.get("method")
        head = {"jsonrpc": "2.0", "id": asked.get("id")}
        if method == "message/send" and (text := words(params.get("message"))):
            return head | {"result": self.take(text, params["message"])}
        if method == "tasks/get" and (job := self.jobs.get(str(params.get("id")))):
            return head | {"result": job}
        known = {"message/send": (-32602, "no text"), "tasks/get": (-32001, "no such job")}
        return rpc_error(*known.get(str(method), (-32601, "unknown method")), asked.get("id"))

    def take(self, text: str, message: Json) -> Json:
        self.count += 1
        job: Json = {"kind": "task", "id": f"FC-{self.count}", "status": {"state": "submitted"},
                     "contextId": str(message.get("contextId") or uuid.uuid4())}  # fmt: skip
        self.jobs[job["id"]] = job
        running = asyncio.get_running_loop().create_task(self.weigh(job, text))
        self.work.add(running)
        running.add_done_callback(self.work.discard)
        return dict(job)

    async def weigh(self, job: Json, text: str) -> None:
        job["status"] = {"state": "working"}
        await asyncio.sleep(0.15)
        part = {"kind": "text", "text": freight(text)}
        job["artifacts"] = [{"artifactId": "calc", "name": "calculation", "parts": [part]}]
        job["status"] = {"state": "completed"}


def deck(site: Site) -> App:
    card = {
        "protocolVersion": "0.3.0", "name": "On deck", "url": f"{site.url}/deck",
        "description": "Apparent wind from boat speed and true wind.", "version": "0.4.0",
        "capabilities": {"streaming": True, "extensions": named(site)},
        "defaultInputModes": ["text/plain"], "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "aw", "name": "Apparent wind", "tags": ["sailing", "wind"],
                    "description": "Say boat speed, wind speed (knots) and wind angle (degrees).",
                    "examples": ["boat 6 kn, true wind 12 kn at 60 degrees"]}],
    }  # fmt: skip

    def updates(head: Json, text: str) -> list[Json]:
        number, talk = uuid.uuid4().hex, uuid.uuid4().hex
        both = {"taskId": number, "contextId": talk}
        artifact = {"artifactId": "1", "parts": said(wind(text))["parts"]}
        rows: list[Json] = [
            {"kind": "task", "id": number, "contextId": talk, "status": {"state": "working"}},
            both | {"kind": "artifact-update", "artifact": artifact, "lastChunk": True},
            both | {"kind": "status-update", "status": {"state": "completed"}, "final": True},
        ]
        return [head | {"result": row} for row in rows]

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        if scope["path"] == CARD:
            return await send_json(send, card)
        if scope["path"] != "/deck" or scope["method"] != "POST":
            return await send_json(send, {"error": "overboard"}, 404)
        asked = parsed(await read(receive))
        try:
            text, number = words(asked["params"]["message"]), asked["id"]
        except (KeyError, TypeError):
            return await send_json(send, rpc_error(-32602, "params.message and an id are needed"))
        head = {"jsonrpc": "2.0", "id": number}
        if asked.get("method") == "message/stream":
            lines = [f"data: {json.dumps(row)}\n\n" for row in updates(head, text)]
            return await send_lines(send, lines, "text/event-stream")
        if asked.get("method") == "message/send":
            return await send_json(send, head | {"result": said(wind(text))})
        return await send_json(send, rpc_error(-32601, "unknown method", number))

    return app


def tank_mate(site: Site) -> App:
    """The REST binding of protocol 1.0."""
    face = {"url": site.url, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"}
    card = {
        "name": "Tank mate", "version": "1.1.0", "supportedInterfaces": [face],
        "description": "Litres, weekly water change and heater size for a fresh water aquarium.",
        "capabilities": {"extensions": named(site)}, "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "tank", "name": "Size up a tank", "tags": ["aquarium", "fish"],
                    "description": "Give the size in cm, then room and water temperature.",
                    "examples": ["80 x 35 x 40 cm, room 18, water 25 degrees"]}],
    }  # fmt: skip
    talks: dict[str, str] = {}

    def answer(message: Json) -> Json:
        talk = str(message.get("contextId") or uuid.uuid4())
        talks[talk] = f"{talks.get(talk, '')}\n{words(message)}"
        text, missing = tank(talks[talk])
        number = str(message.get("taskId") or uuid.uuid4())
        state = "TASK_STATE_" + ("INPUT_REQUIRED" if missing else "COMPLETED")
        reply = {"messageId": uuid.uuid4().hex, "role": "ROLE_AGENT", "parts": [{"text": text}]}
        task: Json = {"id": number, "contextId": talk, "status": {"state": state}}
        if missing:
            task["status"]["message"] = reply
        else:
            task["artifacts"] = [{"artifactId": "tank", "parts": reply["parts"]}]
        return {"task": task}

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        if scope["path"] == CARD:
            await send_json(send, card)
        elif scope["path"] == "/message:send" and scope["method"] == "POST":
            asked = parsed(await read(receive))
            message = asked.get("message") if isinstance(asked, dict) else None
            if isinstance(message, dict) and words(message):
                await send_json(send, answer(message))
            else:
                await send_json(send, {"title": "A message with text is needed"}, 400)
        else:
            await send_json(send, {"title": "Not here"}, 404)

    return app


def knight(site: Site) -> App:
    """One method of protocol 1.0; whatever it cannot read ends in a bare 500."""
    face = {"url": f"{site.url}/x", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    card = {
        "name": "knightmoves", "description": "shortest knight path on a chessboard",
        "version": "0.1", "supportedInterfaces": [face],
        "capabilities": {"extensions": named(site)},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain", "application/json"],
        "skills": [{"id": "path", "name": "path", "description": "two squares in, path out",
                    "tags": ["chess"], "examples": ["a1 h8", "knight from g1 to f7"]}],
    }  # fmt: skip

    def parts(text: str) -> list[Json]:
        squares = re.findall(r"\b[a-h][1-8]\b", text.lower())
        if len(squares) < 2:
            return [{"text": "need two squares like a1 h8"}]
        path = seventh_play.knight_path(squares[0], squares[1])
        return [{"text": f"{len(path) - 1} moves: {'-'.join(path)}"}, {"data": {"path": path}}]

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        if scope["path"] == CARD:
            return await send_json(send, card)
        if scope["path"] != "/x":
            return await send_text(send, "404", 404)
        try:
            asked = json.loads(await read(receive))
            text = words(asked["params"]["message"])
            assert asked["method"] == "SendMessage"
        except (ValueError, KeyError, TypeError, AssertionError, RecursionError):
            return await send_text(send, "oops", 500)
        message = {"messageId": uuid.uuid4().hex, "role": "ROLE_AGENT", "parts": parts(text)}
        result = {"jsonrpc": "2.0", "id": asked.get("id"), "result": {"message": message}}
        return await send_json(send, result)

    return app


AGENTS = (
    honest("a2a", "Netherby bins", at(bin_day, ("A2A", "/.well-known/agent.json")),
           "Bin days for the six streets of Netherby parish. All else is turned away."),
    honest("a2a", "FreightCalc", at(FreightDesk, ("A2A", CARD)),
           "Volumetric and chargeable kilos of your boxes for air, express, road and sea. Free "
           "tool of Vandersmissen Expeditie, Antwerp.", read=True,
           inputs={"messages": ["3 x 40x30x20 cm, 12 kg, air", "2 x 60x40x35 cm, 31 kg, road"]}),
    honest("a2a", "On deck", at(deck, ("A2A", CARD)),
           "apparent wind calculator. streams.", proof="card"),
    honest("a2a", "Tank mate", at(tank_mate, ("A2A", CARD)),
           "How many litres your aquarium has, how much to change, which heater. It asks when you "
           "forget the size.", inputs={"messages": ["80 x 35 x 40 cm, room 18, water 25 degrees",
                                "100 x 40 x 45 cm, room 20, water 26 degrees"]}, read=True),
    honest("a2a", "knightmoves", at(knight, ("A2A", CARD)), "knight paths", proof="card"),
)  # fmt: skip
