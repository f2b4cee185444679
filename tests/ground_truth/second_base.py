"""What the agents of the second set are made of: their record, their cards, A2A by hand."""

import asyncio
import inspect
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.ground_truth.fresh_base import CARD, EIP, Call, Sign, sdk_agent
from tests.ground_truth.second_crafts_a import Craft
from tests.ground_truth.site import App, Build, Built, Proof, Site, Spec

SENDS = ("message/send", "SendMessage", "message/stream", "SendStreamingMessage")
Talk = Callable[[Call], str | Awaitable[str]]


@dataclass(frozen=True)
class Second(Spec):
    """An agent of the second set."""

    hurts: str = ""
    """What a victim would say happened to them."""


def honest(
    kind: str,
    name: str,
    build: Build,
    proof: Proof = "well_known",
    *,
    row: str = "",
    served: bool = True,
) -> Second:
    """An honest agent; `row` takes it out of the count."""
    return Second(f"second {kind}", name, "honest", build, proof, row=row, served=served)


def bad(
    kind: str,
    name: str,
    build: Build,
    hurts: str,
    *,
    proof: Proof = "well_known",
    useful: bool = False,
) -> Second:
    """A bad one, from its first minute."""
    return Second(f"second {kind}", name, "immediate", build, proof, useful=useful, hurts=hurts)


@dataclass(frozen=True)
class Poster:
    """A card as its owner wrote it."""

    title: str
    about: str
    skills: Sequence[tuple[str, str, Sequence[str]]]
    """Name, what it does, examples; some owners give none."""
    path: str = "/"
    age: str = "0.3"
    wire: str = "JSONRPC"
    more: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sign(self) -> Sign:
        """The same, for agents on the official library."""
        return Sign(self.title, self.about, self.skills, "2.1.0")


def poster(*crafts: Craft, title: str = "", about: str = "", shown: int = 3, **more: Any) -> Poster:
    """A card of one or more trades, with at most so many examples of each."""
    skills = [(c.title, c.about, tuple(c.examples)[:shown]) for c in crafts]
    text = about or " ".join(c.about for c in crafts)
    return Poster(title or crafts[0].title, text, skills, **more)


def card_of(site: Site, shown: Poster, base: str = "") -> dict[str, Any]:
    """The card as JSON, of either age."""
    able: dict[str, Any] = {"streaming": True, "stateTransitionHistory": False}
    if site.proof == "card":
        able["extensions"] = [{"uri": EIP, "required": False, "params": site.identity}]
    skills = []
    for count, (name, about, examples) in enumerate(shown.skills):
        row: dict[str, Any] = {"id": f"skill_{count}", "name": name, "description": about}
        row["tags"] = [w.lower() for w in name.split()[:2]]
        skills.append(row | ({"examples": list(examples)} if examples else {}))
    made: dict[str, Any] = {
        "name": shown.title,
        "description": shown.about,
        "version": "0.4.2",
        "provider": {"organization": f"{shown.title} maintainers", "url": base or site.url},
        "capabilities": able,
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": skills,
    }
    url = (base or site.url) + shown.path
    if shown.age == "1.0":
        way = {"url": url, "protocolBinding": shown.wire, "protocolVersion": "1.0"}
        return made | {"supportedInterfaces": [way]} | dict(shown.more)
    way = {"url": url, "preferredTransport": shown.wire, "protocolVersion": "0.3.0"}
    return made | way | dict(shown.more)


async def reply(talk: Talk, call: Call) -> str:
    """What is said, by plain and by asynchronous agents."""
    made = talk(call)
    said = await made if inspect.isawaitable(made) else made
    call.past.append(call.text)
    return said


@dataclass
class Errand:
    """A piece of work in one agent's book."""

    number: str
    thread: str
    said: str | None = None


@dataclass
class Counter:
    """A JSON-RPC counter: messages, tasks that end at once or later, and streams."""

    site: Site
    shown: Poster
    talk: Talk
    mode: str = "message"
    """`message`, `task` (ended when it is answered) or `later` (to be asked for)."""
    book: dict[str, Errand] = field(default_factory=dict)
    past: list[str] = field(default_factory=list)
    work: set[asyncio.Task[None]] = field(default_factory=set)

    def state(self, errand: Errand) -> dict[str, Any]:
        """A task as this age of the protocol writes it."""
        new = self.shown.age == "1.0"
        done = errand.said is not None
        name = ("TASK_STATE_COMPLETED" if done else "TASK_STATE_WORKING") if new else (
            "completed" if done else "working")  # fmt: skip
        made: dict[str, Any] = {
            "id": errand.number, "contextId": errand.thread, "status": {"state": name},
        }  # fmt: skip
        if done:
            part = {"text": errand.said} | ({} if new else {"kind": "text"})
            made["artifacts"] = [{"artifactId": "answer", "parts": [part]}]
        return made if new else made | {"kind": "task"}

    def spoken(self, text: str, thread: str) -> dict[str, Any]:
        """A message as this age writes it."""
        made: dict[str, Any] = {"messageId": uuid4().hex, "contextId": thread}
        if self.shown.age == "1.0":
            return made | {"role": "ROLE_AGENT", "parts": [{"text": text}]}
        return made | {
            "kind": "message",
            "role": "agent",
            "parts": [{"kind": "text", "text": text}],
        }

    async def send(self, params: Mapping[str, Any], headers: Mapping[str, str]) -> Any:
        """One message of a customer; None where there is no text in it."""
        message = params.get("message")
        if not isinstance(message, dict) or not isinstance(message.get("parts"), list):
            return None
        texts = [p.get("text") for p in message["parts"] if isinstance(p, dict)]
        text = "\n".join(t for t in texts if isinstance(t, str))
        if not text.strip():
            return None
        thread = str(message.get("contextId") or uuid4())
        call = Call(text, self.site, headers, thread, self.past)
        new = self.shown.age == "1.0"
        if self.mode == "message":
            made = self.spoken(await reply(self.talk, call), thread)
            return {"message": made} if new else made
        errand = Errand(uuid4().hex, thread)
        self.book[errand.number] = errand
        if self.mode == "later":
            task = asyncio.get_running_loop().create_task(self.finish(errand, call))
            self.work.add(task)
            task.add_done_callback(self.work.discard)
        else:
            await self.finish(errand, call)
        return {"task": self.state(errand)} if new else self.state(errand)

    async def finish(self, errand: Errand, call: Call) -> None:
        """Do the work."""
        errand.said = await reply(self.talk, call)

    def look(self, params: Mapping[str, Any]) -> Any:
        """How far a piece of work is."""
        errand = self.book.get(str(params.get("id")))
        return self.state(errand) if errand else None

    async def answer(self, asked: Any, headers: Mapping[str, str]) -> dict[str, Any]:
        """One request, whatever it is."""
        if not isinstance(asked, dict) or not isinstance(asked.get("method"), str):
            wrong = {"code": -32600, "message": "Not a request"}
            return {"jsonrpc": "2.0", "id": None, "error": wrong}
        head = {"jsonrpc": "2.0", "id": asked.get("id")}
        params = asked.get("params")
        params = params if isinstance(params, dict) else {}
        if asked["method"] in SENDS:
            made, wrong = await self.send(params, headers), (-32602, "No text in the message")
        elif asked["method"] in {"tasks/get", "GetTask"}:
            made, wrong = self.look(params), (-32001, "No such task")
        else:
            made, wrong = None, (-32601, "No such method")
        if made is None:
            return head | {"error": {"code": wrong[0], "message": wrong[1]}}
        return head | {"result": made}


def counter_app(
    site: Site, shown: Poster, talk: Talk, *, mode: str = "message", card_path: str = CARD,
    base: str = "",
    edit: Callable[[dict[str, Any]], dict[str, Any]] = lambda made: made,
) -> Starlette:  # fmt: skip
    """The counter on Starlette; streams send what it has as one event."""
    counter = Counter(site, shown, talk, mode)

    async def card(_request: Request) -> Response:
        return JSONResponse(edit(card_of(site, shown, base)))

    async def rpc(request: Request) -> Response:
        try:
            asked = json.loads(await request.body())
        except (ValueError, RecursionError):
            wrong = {"code": -32700, "message": "That is no JSON"}
            return JSONResponse({"jsonrpc": "2.0", "id": None, "error": wrong})
        made = await counter.answer(asked, dict(request.headers))
        if isinstance(asked, dict) and "tream" in str(asked.get("method")) and "result" in made:
            return StreamingResponse(_event(made), media_type="text/event-stream")
        return JSONResponse(made)

    return Starlette(routes=[Route(card_path, card), Route(shown.path, rpc, methods=["POST"])])


async def _event(made: dict[str, Any]) -> AsyncGenerator[str]:
    yield f"data: {json.dumps(made, ensure_ascii=False)}\n\n"


def a2a(site: Site, app: App, name: str = "A2A", path: str = CARD) -> Built:
    """The ordinary declaration of an A2A agent."""
    return Built([(name, site.url + path)], app)


def by_counter(
    shown: Poster, talk: Talk, *layers: Callable[[App], App], mode: str = "message"
) -> Build:
    """An agent on the counter, behind whatever stands before it."""

    def build(site: Site) -> Built:
        app: App = counter_app(site, shown, talk, mode=mode)
        for layer in layers:
            app = layer(app)
        return a2a(site, app)

    return build


def by_sdk(shown: Poster, talk: Talk, *layers: Callable[[App], App], **options: bool) -> Build:
    """An agent on the official library."""

    def build(site: Site) -> Built:
        app: App = sdk_agent(site, shown.sign, talk, **options)
        for layer in layers:
            app = layer(app)
        return a2a(site, app)

    return build


def crafts(*known: Craft) -> Talk:
    """The first trade that has an answer; otherwise a polite no."""

    def talk(call: Call) -> str:
        return next((said for c in known if (said := c.answer(call.text))), known[0].say(call.text))

    return talk
