"""What the agents of the fifth set share: their record, and two hand-written A2A servers."""

import asyncio
import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.ground_truth.a2a_parts import CARD, Face, card_dict, rpc_error, text_of
from tests.ground_truth.site import App, Build, Built, Proof, Scope, Site, Spec, read, send_json


@dataclass(frozen=True)
class Fifth(Spec):
    """An agent of the fifth set."""

    hurts: str = ""
    """What a victim would say happened to them."""


def honest(
    kind: str, name: str, build: Build, proof: Proof = "well_known", *, served: bool = True
) -> Fifth:
    """An honest agent."""
    return Fifth(f"fifth {kind}", name, "honest", build, proof, served=served)


def bad(
    kind: str, name: str, build: Build, hurts: str, *, proof: Proof = "well_known",
    useful: bool = False,
) -> Fifth:  # fmt: skip
    """One that is bad from its first minute."""
    return Fifth(f"fifth {kind}", name, "immediate", build, proof, useful=useful, hurts=hurts)


@dataclass(frozen=True)
class Outcome:
    """What a piece of work ended with."""

    text: str = ""
    data: dict[str, Any] | None = None
    state: str = "completed"

    @property
    def parts(self) -> list[dict[str, Any]]:
        said = [{"kind": "text", "text": self.text}] if self.text else []
        return said + ([{"kind": "data", "data": self.data}] if self.data is not None else [])


Work = Callable[[str, list[str]], Outcome]
"""From a message and the earlier ones of the same conversation."""


@dataclass
class TaskServer:
    """An A2A 0.3 endpoint that answers everything with a task: finished, or to be polled for."""

    site: Site
    face: Face
    work: Work
    takes_s: float = 0.0
    """Longer than this the caller has to come back with tasks/get."""
    card_path: str = CARD
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    talks: dict[str, list[str]] = field(default_factory=dict)
    number: Callable[["TaskServer"], str] = lambda _server: str(uuid.uuid4())
    lists: bool = False
    running: set[asyncio.Task[None]] = field(default_factory=set)

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["path"] == self.card_path and scope["method"] in {"GET", "HEAD"}:
            await send_json(send, card_dict(self.site, self.face, "0.3"))
        elif scope["path"] == self.face.path and scope["method"] == "POST":
            await send_json(send, self._rpc(await read(receive)))
        else:
            await send_json(send, {"detail": "Not Found"}, 404)

    def _rpc(self, body: bytes) -> dict[str, Any]:
        try:
            asked = json.loads(body)
            method, params = asked["method"], asked.get("params") or {}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return rpc_error(-32600, "Unreadable request")
        run: dict[str, Any] = {"message/send": self._send, "tasks/get": self._get}
        if self.lists:
            run["tasks/list"] = self._list
        if method not in run or not isinstance(params, dict):
            return rpc_error(-32601, f"Unknown method {str(method)[:40]}", asked.get("id"))
        return {"jsonrpc": "2.0", "id": asked.get("id")} | run[method](params)

    def _send(self, params: dict[str, Any]) -> dict[str, Any]:
        message = params.get("message")
        text = text_of(message)
        if not isinstance(message, dict) or not text:
            return {"error": {"code": -32602, "message": "A message needs a text part"}}
        context = str(message.get("contextId") or uuid.uuid4())
        talk = self.talks.setdefault(context, [])
        task: dict[str, Any] = {
            "kind": "task", "id": self.number(self), "contextId": context, "history": [message],
            "status": {"state": "working"},
        }  # fmt: skip
        self.tasks[task["id"]] = task
        if self.takes_s:
            going = asyncio.get_running_loop().create_task(self._later(task, text, talk))
            self.running.add(going)
            going.add_done_callback(self.running.discard)
        else:
            self._finish(task, text, talk)
        return {"result": task}

    async def _later(self, task: dict[str, Any], text: str, talk: list[str]) -> None:
        await asyncio.sleep(self.takes_s)
        self._finish(task, text, talk)

    def _finish(self, task: dict[str, Any], text: str, talk: list[str]) -> None:
        done = self.work(text, talk)
        talk.append(text)
        status: dict[str, Any] = {"state": done.state}
        task["status"] = status
        if done.state == "completed":
            task["artifacts"] = [{"artifactId": str(uuid.uuid4()), "parts": done.parts}]
        else:
            status["message"] = {
                "kind": "message", "messageId": str(uuid.uuid4()), "role": "agent",
                "parts": done.parts, "taskId": task["id"], "contextId": task["contextId"],
            }  # fmt: skip

    def _get(self, params: dict[str, Any]) -> dict[str, Any]:
        task = self.tasks.get(str(params.get("id")))
        if task is None:
            return {"error": {"code": -32001, "message": "Task not found"}}
        return {"result": task}

    def _list(self, _params: dict[str, Any]) -> dict[str, Any]:
        return {"result": {"tasks": list(self.tasks.values())}}


def on_tasks(face: Face, work: Work, **options: Any) -> Build:
    """An agent that answers with tasks, without a library."""

    def build(site: Site) -> Built:
        server = TaskServer(site, face, work, **options)
        return Built([("A2A", site.url + server.card_path)], server)

    return build


Tell = Callable[[str], str]


def one_dot_oh(face: Face, tell: Tell) -> Callable[[Site], App]:
    """A bare endpoint of protocol 1.0: one method, one message back."""

    def make(site: Site) -> App:
        async def app(scope: Scope, receive: Any, send: Any) -> None:
            if scope["path"] == CARD:
                return await send_json(send, card_dict(site, face))
            if scope["path"] != face.path or scope["method"] != "POST":
                return await send_json(send, {"error": "no route"}, 404)
            try:
                asked = json.loads(await read(receive))
                text = text_of(asked["params"]["message"])
            except (ValueError, KeyError, TypeError, RecursionError):
                return await send_json(send, rpc_error(-32602, "params.message is missing"))
            if asked.get("method") != "SendMessage":
                return await send_json(send, rpc_error(-32601, "SendMessage only", asked.get("id")))
            message = {
                "messageId": str(uuid.uuid4()), "role": "ROLE_AGENT",
                "parts": [{"text": tell(text), "mediaType": "text/plain"}],
            }  # fmt: skip
            body = {"jsonrpc": "2.0", "id": asked.get("id"), "result": {"message": message}}
            return await send_json(send, body)

        return app

    return make


def on_card(make: Callable[[Site], App]) -> Build:
    """An A2A agent whose card lies at the usual place."""
    return lambda site: Built([("A2A", site.url + CARD)], make(site))
