"""A2A endpoints by hand: JSON-RPC and REST, in both ages, with messages, polled tasks, streams."""

import asyncio
import datetime as dt
import json
import uuid
from collections import OrderedDict
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.ground_truth.a2a_parts import CARD, Face, Heard, Reply, card_dict, reply_to, text_of
from tests.ground_truth.site import Build, Built, Site

SENDS = {"message/" + "send", "Send" + "Message"}
STREAMS = {"message/" + "stream", "Send" + "StreamingMessage"}
GETS = {"tasks/" + "get", "Get" + "Task"}
CANCELS = {"tasks/" + "cancel", "Cancel" + "Task"}
KEPT = 1000


def refusal(number: Any, code: int, message: str) -> dict[str, Any]:
    """A JSON-RPC error."""
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}


def sse(made: Any) -> str:
    """One server-sent event."""
    return f"data: {json.dumps(made, ensure_ascii=False)}\n\n"


@dataclass
class Office:
    """Turns messages into answers or tasks, and keeps talks apart by their context."""

    site: Site
    reply: Reply
    age: str = "0.3"
    polled: bool = False
    """Answers with a task that is still to be done, to be asked for later."""
    is_json: bool = False
    tasks: OrderedDict[str, dict[str, Any]] = field(default_factory=OrderedDict)
    open_questions: OrderedDict[str, str] = field(default_factory=OrderedDict)
    running: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def is_new(self) -> bool:
        return self.age == "1.0"

    def status(self, name: str, said: str = "") -> dict[str, Any]:
        state = "TASK_STATE_" + name.upper().replace("-", "_") if self.is_new else name
        at = dt.datetime.now(dt.UTC).isoformat()  # noqa: TID251 - agents have clocks of their own
        return {"state": state, "timestamp": at} | ({"message": self.message(said)} if said else {})

    def part(self, said: str) -> dict[str, Any]:
        if self.is_json and said.startswith("{"):
            return ({} if self.is_new else {"kind": "data"}) | {"data": json.loads(said)}
        return ({} if self.is_new else {"kind": "text"}) | {"text": said}

    def message(self, said: str, talk: str = "") -> dict[str, Any]:
        made: dict[str, Any] = {"messageId": str(uuid.uuid4()), "parts": [self.part(said)]}
        made |= {"contextId": talk} if talk else {}
        return made | (
            {"role": "ROLE_AGENT"} if self.is_new else {"role": "agent", "kind": "message"}
        )

    def task(self, talk: str, status: Mapping[str, Any]) -> dict[str, Any]:
        made = {"id": str(uuid.uuid4()), "contextId": talk, "status": dict(status)}
        made |= {} if self.is_new else {"kind": "task"}
        self.tasks[str(made["id"])] = made
        while len(self.tasks) > KEPT:
            self.tasks.popitem(last=False)
        return made

    async def think(self, text: str, talk: str) -> str:
        """The answer to a message, together with the one that was left open before it."""
        before = self.open_questions.pop(talk, "")
        whole = f"{before}\n{text}" if before else text
        said = await reply_to(self.reply, Heard(whole, self.site, context=talk))
        if said.endswith("?"):
            self.open_questions[talk] = whole[-3 * KEPT :]
            while len(self.open_questions) > KEPT:
                self.open_questions.popitem(last=False)
        return said

    async def work(self, task: dict[str, Any], text: str) -> None:
        """What happens to a task after its caller was told that it exists."""
        task["status"] = self.status("working")
        said = await self.think(text, task["contextId"])
        if said.endswith("?"):
            task["status"] = self.status("input-required", said)
            return
        task["artifacts"] = [self.artifact(said)]
        task["status"] = self.status("completed")

    def artifact(self, said: str) -> dict[str, Any]:
        return {"artifactId": str(uuid.uuid4()), "name": "result", "parts": [self.part(said)]}

    async def take(self, params: Any) -> dict[str, Any] | None:
        """A message in; a message or a task out."""
        message = params.get("message") if isinstance(params, dict) else None
        text = text_of(message)
        if not isinstance(message, dict) or not text.strip():
            return None
        talk = str(message.get("contextId") or uuid.uuid4())
        if not self.polled:
            made = self.message(await self.think(text, talk), talk)
            return {"message": made} if self.is_new else made
        task = self.task(talk, self.status("submitted"))
        running = asyncio.get_running_loop().create_task(self.work(task, text))
        self.running.add(running)
        running.add_done_callback(self.running.discard)
        return {"task": dict(task)} if self.is_new else dict(task)

    async def stream(self, params: Any) -> AsyncGenerator[dict[str, Any]]:
        """A message in; a task that shows its work, then what it made in pieces."""
        message = params.get("message") or {}
        talk = str(message.get("contextId") or uuid.uuid4())
        task = self.task(talk, self.status("working"))
        ids = {"taskId": task["id"], "contextId": talk}
        yield {"task": dict(task)} if self.is_new else dict(task)
        said = await self.think(text_of(message), talk)
        artifact = self.artifact(said)
        pieces = [said] if self.is_json else [said[n : n + 60] for n in range(0, len(said), 60)]
        for n, piece in enumerate(pieces):
            shown = ids | {"artifact": artifact | {"parts": [self.part(piece)]}, "append": n > 0,
                           "lastChunk": n == len(pieces) - 1}  # fmt: skip
            yield {"artifactUpdate": shown} if self.is_new else shown | {"kind": "artifact-update"}
            await asyncio.sleep(0.02)
        task |= {"artifacts": [artifact], "status": self.status("completed")}
        ended = ids | {"status": task["status"]}
        yield (
            {"statusUpdate": ended}
            if self.is_new
            else ended | {"kind": "status-update", "final": True}
        )

    def kept(self, task_id: Any) -> dict[str, Any] | None:
        return self.tasks.get(str(task_id))


async def json_of(request: Request) -> Any:
    """The body; None where it is no JSON."""
    try:
        return json.loads(await request.body())
    except (ValueError, RecursionError):
        return None


def full_card(office: Office, face: Face, more: Mapping[str, Any]) -> dict[str, Any]:
    """The card, with what its maker cared to add."""
    made = card_dict(office.site, face, office.age)
    made["capabilities"]["streaming"] = bool(more.get("streams"))
    if office.is_json:
        made["defaultOutputModes"] = ["application/json", "text/plain"]
    if "supportedInterfaces" in made and more.get("rest"):
        made["supportedInterfaces"][0] |= {"url": office.site.url, "protocolBinding": "HTTP+JSON"}
    return made | dict(more.get("card", {}))


async def _answer(office: Office, asked: Any) -> dict[str, Any]:
    if not isinstance(asked, dict) or not isinstance(asked.get("method"), str):
        code = -32700 if asked is None else -32600
        return refusal(None, code, "a JSON-RPC method is missing")
    method, params, number = asked["method"], asked.get("params") or {}, asked.get("id")
    if method in SENDS:
        made = await office.take(params)
        if made is None:
            return refusal(number, -32602, "message.parts holds no text")
    elif method in GETS | CANCELS:
        made = office.kept(params.get("id"))
        if made is None:
            return refusal(number, -32001, "no task of this id here")
        if method in CANCELS:
            return refusal(number, -32002, "this task can no longer be stopped")
    else:
        return refusal(number, -32601, "unknown method")
    return {"jsonrpc": "2.0", "id": number, "result": made}


def rpc_office(face: Face, reply: Reply, *, age: str = "0.3", card_path: str = CARD,
               more: Mapping[str, Any] | None = None, **options: bool) -> Build:  # fmt: skip
    """JSON-RPC by hand."""
    extra = more or {}

    def build(site: Site) -> Built:
        office = Office(site, reply, age, **options)

        async def card(_request: Request) -> Response:
            return JSONResponse(full_card(office, face, extra))

        async def rpc(request: Request) -> Response:
            asked = await json_of(request)
            if not (isinstance(asked, dict) and asked.get("method") in STREAMS):
                return JSONResponse(await _answer(office, asked))
            params, number = asked.get("params"), asked.get("id")
            if not extra.get("streams") or not isinstance(params, dict):
                return JSONResponse(refusal(number, -32004, "no streams here"))

            async def events() -> AsyncGenerator[str]:
                async for made in office.stream(params):
                    yield sse({"jsonrpc": "2.0", "id": number, "result": made})

            return StreamingResponse(events(), media_type="text/event-stream")

        routes = [Route(card_path, card), Route(face.path, rpc, methods=["POST"])]
        return Built([("A2A", site.url + card_path)], Starlette(routes=routes))

    return build


def rest_office(face: Face, reply: Reply, *, more: Mapping[str, Any] | None = None,
                **options: bool) -> Build:  # fmt: skip
    """HTTP+JSON of protocol 1.0 by hand."""
    extra = {"rest": True, **(more or {})}

    def build(site: Site) -> Built:
        office = Office(site, reply, "1.0", **options)

        async def card(_request: Request) -> Response:
            return JSONResponse(full_card(office, face, extra))

        async def send(request: Request) -> Response:
            made = await office.take(await json_of(request))
            if made is None:
                return JSONResponse(
                    {
                        "error": {
                            "code": 400,
                            "status": "INVALID_ARGUMENT",
                            "message": "a text part is needed",
                        }
                    },
                    400,
                )
            return JSONResponse(made)

        async def get(request: Request) -> Response:
            made = office.kept(request.path_params["task"])
            if made is None:
                return JSONResponse({"error": {"code": 404, "status": "NOT_FOUND",
                                               "message": "no task of this id"}}, 404)  # fmt: skip
            return JSONResponse(made)

        routes = [Route(CARD, card), Route("/message:send", send, methods=["POST"]),
                  Route("/tasks/{task}", get)]  # fmt: skip
        return Built([("A2A", site.url + CARD)], Starlette(routes=routes))

    return build
