"""What the agents of the third set share: their record, an A2A desk by hand, small parts."""

import asyncio
import json
import random
import re
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcp.server import MCPServer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.ground_truth.a2a_parts import (
    CARD,
    Face,
    Heard,
    Reply,
    card_dict,
    reply_to,
    stock_a2a,
    text_of,
)
from tests.ground_truth.mcp_parts import HandMade, sse_mcp, stock_mcp
from tests.ground_truth.site import App, Build, Built, Proof, Site, Spec

ONE_SHOT = ("message/" + "send", "Send" + "Message")
FLOWING = ("message/" + "stream", "Send" + "StreamingMessage")
MARKS = (("\u201c", "\u201d"), ("\u201e", "\u201d"), ("\u201e", "\u201c"), ("\u00ab", "\u00bb"),
         ("\u300c", "\u300d"), ("\u2018", "\u2019"), ('"', '"'))  # fmt: skip


@dataclass(frozen=True)
class Third(Spec):
    """An agent of the third set."""

    hurts: str = ""
    """What a victim would say happened to them."""


def honest(
    kind: str, name: str, build: Build, proof: Proof = "well_known", *, served: bool = True
) -> Third:
    """An honest agent."""
    return Third(f"third {kind}", name, "honest", build, proof, served=served)


def bad(
    kind: str, name: str, build: Build, hurts: str, *, proof: Proof = "well_known",
    useful: bool = False,
) -> Third:  # fmt: skip
    """One that is bad from its first minute."""
    return Third(f"third {kind}", name, "immediate", build, proof, useful=useful, hurts=hurts)


def quoted(text: str) -> str:
    """What stands between the outermost quotation marks; else what follows the first colon."""
    for first, last in MARKS:
        start, end = text.find(first), text.rfind(last)
        if -1 < start < end:
            return text[start + 1 : end].strip()
    single = re.search(r"(?<!\w)'(.+)'(?!\w)", text, re.DOTALL)
    if single:
        return single[1].strip()
    head, colon, rest = text.partition(":")
    return rest.strip() if colon and rest.strip() and len(head) < 120 else ""


def lean(number: float, places: int = 2) -> str:
    """A number without needless zeros."""
    return f"{round(number, places):.{places}f}".rstrip("0").rstrip(".") if places else str(number)


@dataclass
class Desk:
    """A JSON-RPC endpoint by hand: messages, tasks with artifacts, and streams of both."""

    site: Site
    face: Face
    reply: Reply
    age: str = "0.3"
    shape: str = "message"
    """`message`, `task`, or `data`: a task whose artifact is a JSON object."""
    kept: dict[str, Any] = field(default_factory=dict)
    past: list[str] = field(default_factory=list)

    @property
    def is_new(self) -> bool:
        return self.age == "1.0"

    def state(self, name: str) -> dict[str, Any]:
        return {"state": f"TASK_STATE_{name.upper()}" if self.is_new else name}

    def part(self, said: str) -> dict[str, Any]:
        """One part, as text or as an object."""
        kind, value = ("data", json.loads(said)) if self.shape == "data" else ("text", said)
        return {kind: value} if self.is_new else {"kind": kind, kind: value}

    def wrapped(self, said: str, thread: str) -> dict[str, Any]:
        """The whole result, with the kind it is of."""
        if self.shape == "message":
            made = {"messageId": str(uuid.uuid4()), "contextId": thread, "parts": [self.part(said)]}
            if self.is_new:
                return {"message": made | {"role": "ROLE_AGENT"}}
            return made | {"role": "agent", "kind": "message"}
        artifact = {"artifactId": str(uuid.uuid4()), "name": "reply", "parts": [self.part(said)]}
        task = {
            "id": str(uuid.uuid4()), "contextId": thread, "status": self.state("completed"),
            "artifacts": [artifact],
        }  # fmt: skip
        task = task if self.is_new else task | {"kind": "task"}
        self.kept[str(task["id"])] = task
        return {"task": task} if self.is_new else task

    async def heard(self, params: Any, headers: Mapping[str, str]) -> dict[str, Any] | None:
        """What is made of a message; None where it says nothing."""
        message = params.get("message") if isinstance(params, dict) else None
        text = text_of(message)
        if not text.strip() or not isinstance(message, dict):
            return None
        thread = str(message.get("contextId") or uuid.uuid4())
        said = await reply_to(self.reply, Heard(text, self.site, dict(headers), self.past, thread))
        self.past.append(text)
        return self.wrapped(said, thread)

    async def answer(self, asked: Any, headers: Mapping[str, str]) -> dict[str, Any]:
        """One request."""
        if not isinstance(asked, dict) or not isinstance(asked.get("method"), str):
            return _wrong(None, -32600, "no request in JSON-RPC's shape")
        method, params, number = asked["method"], asked.get("params") or {}, asked.get("id")
        if method in {*ONE_SHOT, *FLOWING}:
            made = await self.heard(params, headers)
            if made is None:
                return _wrong(number, -32602, "the message has no text part")
        elif method in {"tasks/" + "get", "Get" + "Task"}:
            made = self.kept.get(str(params.get("id")))
            if made is None:
                return _wrong(number, -32001, "no task has that id")
        else:
            return _wrong(number, -32601, f"{method[:40]!r} is no method here")
        return {"jsonrpc": "2.0", "id": number, "result": made}

    async def flow(self, made: dict[str, Any]) -> AsyncGenerator[str]:
        """A result as events: a task is worked on, shows what it made, and ends."""
        result = made.get("result", {})
        task = result.get("task") if self.is_new else result
        if self.shape == "message" or not isinstance(task, dict):
            yield _event(made)
            return
        ids = {"taskId": task["id"], "contextId": task["contextId"]}
        begun = {"id": task["id"], "contextId": task["contextId"], "status": self.state("working")}
        shown = ids | {"artifact": task["artifacts"][0], "lastChunk": True}
        ended = ids | {"status": self.state("completed")}
        if self.is_new:
            rows: list[Any] = [{"task": begun}, {"artifactUpdate": shown}, {"statusUpdate": ended}]
        else:
            rows = [begun | {"kind": "task"}, shown | {"kind": "artifact-update"},
                    ended | {"kind": "status-update", "final": True}]  # fmt: skip
        for row in rows:
            yield _event({"jsonrpc": "2.0", "id": made["id"], "result": row})
            await asyncio.sleep(0.05)


def _wrong(number: Any, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}


def _event(made: Any) -> str:
    return f"data: {json.dumps(made, ensure_ascii=False)}\n\n"


def desk_app(desk: Desk, *, card_path: str = CARD) -> Starlette:
    """The desk and its card."""

    async def card(_request: Request) -> Response:
        made = card_dict(desk.site, desk.face, desk.age)
        made["capabilities"]["streaming"] = True
        if desk.shape == "data":
            made["defaultOutputModes"] = ["application/json"]
        return JSONResponse(made)

    async def rpc(request: Request) -> Response:
        try:
            asked = json.loads(await request.body())
        except (ValueError, RecursionError):
            return JSONResponse(_wrong(None, -32700, "the body cannot be parsed"))
        made = await desk.answer(asked, dict(request.headers))
        if isinstance(asked, dict) and asked.get("method") in FLOWING and "result" in made:
            return StreamingResponse(desk.flow(made), media_type="text/event-stream")
        return JSONResponse(made)

    return Starlette(routes=[Route(card_path, card), Route(desk.face.path, rpc, methods=["POST"])])


def by_desk(face: Face, reply: Reply, *, age: str = "0.3", shape: str = "message") -> Build:
    """An agent on the desk above."""

    def build(site: Site) -> Built:
        return Built([("A2A", site.url + CARD)], desk_app(Desk(site, face, reply, age, shape)))

    return build


def by_stock(face: Face, reply: Reply, **options: Any) -> Build:
    """An agent on the official library."""
    return lambda site: Built([("A2A", site.url + CARD)], stock_a2a(site, face, reply, **options))


def by_mcp(make: Callable[[], MCPServer[Any]], *, sse: bool = False, **options: bool) -> Build:
    """Tools on the official library."""

    def build(site: Site) -> Built:
        if sse:
            return Built([("MCP", site.url + "/sse")], sse_mcp(make()))
        return Built([("MCP", site.url + "/mcp")], stock_mcp(make(), **options))

    return build


def by_hand(make: Callable[[Site], HandMade]) -> Build:
    """Tools without a library."""
    return lambda site: Built([("MCP", site.url + "/mcp")], make(site))


def slowly(reply: Reply, low_s: float, high_s: float) -> Reply:
    """The same, after a while."""

    async def later(heard: Heard) -> str:
        await asyncio.sleep(random.uniform(low_s, high_s))
        return await reply_to(reply, heard)

    return later


def face(name: str, about: str, *skills: tuple[str, str, Sequence[str]], **more: Any) -> Face:
    """A card."""
    return Face(name, about, skills, **more)


def on_web(app_of: Callable[[Site], App], path: str = "/", name: str = "web") -> Build:
    """A service over plain HTTP."""
    return lambda site: Built([(name, site.url + path)], app_of(site))
