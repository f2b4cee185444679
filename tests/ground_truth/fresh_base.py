"""What the agents of the fresh set are made of: cards, and A2A in four hand-writings."""

import inspect
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from a2a.helpers import new_task_from_user_message, new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCard, Part, Role
from aiohttp import web
from google.protobuf.json_format import ParseDict
from starlette.applications import Starlette

from tests.ground_truth.site import App, Built, Scope, Site, Spec, read, registration, send_json

EIP = "https://eips.ethereum.org/EIPS/eip-8004"
CARD = "/.well-known/agent-card.json"
SEND = ("message/" + "send", "Send" + "Message")
PREFIX = "fresh"
"""The first word of every kind here; by it the set is selected."""


@dataclass(frozen=True)
class Fresh(Spec):
    """An agent of the fresh set."""

    hurts: str = ""
    """What a victim would say happened to them."""


@dataclass
class Call:
    """One message to an agent, and all that came with it."""

    text: str
    site: Site
    headers: Mapping[str, str] = field(default_factory=dict)
    thread: str = ""
    past: list[str] = field(default_factory=list)
    """What everybody said before."""


Talk = Callable[[Call], str | Awaitable[str]]
Edit = Callable[[dict[str, Any], Scope], dict[str, Any]]


@dataclass(frozen=True)
class Sign:
    """What hangs over an agent's door."""

    title: str
    about: str
    skills: Sequence[tuple[str, str, Sequence[str]]]
    """Name, what it does, examples."""
    version: str = "1.0.3"


async def said_by(talk: Talk, call: Call) -> str:
    """The reply, from plain and from asynchronous agents."""
    made = talk(call)
    return await made if inspect.isawaitable(made) else made


def card(site: Site, sign: Sign, path: str, wire: str = "JSONRPC", age: str = "1.0") -> Any:
    """An agent's card of either age."""
    skills = [
        {"id": re.sub(r"\W+", "-", name.lower()).strip("-") or f"s{n}", "name": name,
         "description": about, "examples": list(examples), "tags": [name.split()[0].lower()]}
        for n, (name, about, examples) in enumerate(sign.skills)
    ]  # fmt: skip
    able: dict[str, Any] = {"streaming": False, "pushNotifications": False}
    if site.proof == "card":
        able["extensions"] = [{"uri": EIP, "params": site.identity}]
    made = {
        "name": sign.title,
        "description": sign.about,
        "version": sign.version,
        "capabilities": able,
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": skills,
    }
    url = site.url + path
    if age == "1.0":
        row = {"url": url, "protocolBinding": wire, "protocolVersion": "1.0"}
        return made | {"supportedInterfaces": [row]}
    return made | {"url": url, "preferredTransport": wire, "protocolVersion": "0.3.0"}


class _Mouth(AgentExecutor):
    def __init__(self, site: Site, talk: Talk, *, task: bool) -> None:
        self.site, self.talk, self.task, self.past = site, talk, task, list[str]()

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Say it at once, or as a finished piece of work."""
        state = context.call_context.state if context.call_context else {}
        text = context.get_user_input()
        headers = {k.lower(): v for k, v in dict(state.get("headers", {})).items()}
        call = Call(text, self.site, headers, context.context_id or "", self.past)
        said = await said_by(self.talk, call)
        self.past.append(text)
        if not self.task:
            made = new_text_message(
                said, context_id=context.context_id, task_id=context.task_id, role=Role.ROLE_AGENT
            )
            await event_queue.enqueue_event(made)
            return
        assert context.message is not None
        work = context.current_task or new_task_from_user_message(context.message)
        await event_queue.enqueue_event(work)
        updater = TaskUpdater(event_queue, work.id, work.context_id)
        await updater.start_work()
        await updater.add_artifact([Part(text=said)], name="result")
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """There is nothing to stop."""


def sdk_agent(
    site: Site, sign: Sign, talk: Talk, *, rest: bool = False, task: bool = False, old: bool = False
) -> Starlette:
    """On the official library."""
    path = "" if rest else "/rpc"
    shape = card(site, sign, path, "HTTP+JSON" if rest else "JSONRPC")
    if old:
        shape["supportedInterfaces"].append(
            shape["supportedInterfaces"][0] | {"protocolVersion": "0.3"}
        )
    made = ParseDict(shape, AgentCard())
    handler = DefaultRequestHandler(_Mouth(site, talk, task=task), InMemoryTaskStore(), made)
    routes: list[Any] = [*create_agent_card_routes(made)]
    if rest:
        routes += create_rest_routes(handler, enable_v0_3_compat=old)
    else:
        routes += create_jsonrpc_routes(handler, path, enable_v0_3_compat=old)
    return Starlette(routes=routes)


def spoken(message: Any) -> tuple[str, str]:
    """Text and conversation of a message of either age."""
    if not isinstance(message, dict):
        return "", ""
    listed = message.get("parts") or message.get("content")
    parts = [p for p in listed if isinstance(p, dict)] if isinstance(listed, list) else []
    text = "\n".join(str(p["text"]) for p in parts if "text" in p)
    return text, str(message.get("contextId") or message.get("context_id") or uuid4())


def message_of(text: str, thread: str, *, new: bool) -> dict[str, Any]:
    """A reply as the wire wants it."""
    made: dict[str, Any] = {"messageId": uuid4().hex, "contextId": thread}
    if new:
        return {"message": made | {"role": "ROLE_AGENT", "parts": [{"text": text}]}}
    return made | {"kind": "message", "role": "agent", "parts": [{"kind": "text", "text": text}]}


async def rpc(
    body: bytes, site: Site, talk: Talk, past: list[str], headers: Mapping[str, str]
) -> dict[str, Any]:
    """One JSON-RPC exchange, whatever came."""
    number: Any = None
    try:
        asked = json.loads(body)
        number = asked.get("id")
        method, message = asked["method"], (asked.get("params") or {}).get("message")
    except (ValueError, RecursionError, AttributeError, KeyError):
        return {"jsonrpc": "2.0", "id": number, "error": {"code": -32600, "message": "malformed"}}
    text, thread = spoken(message)
    if method not in SEND or not text:
        wrong = (-32602, "a text is needed") if method in SEND else (-32601, "no such method")
        error = {"code": wrong[0], "message": wrong[1]}
        return {"jsonrpc": "2.0", "id": number, "error": error}
    said = await said_by(talk, Call(text, site, headers, thread, past))
    past.append(text)
    result = message_of(said, thread, new=method == SEND[1])
    return {"jsonrpc": "2.0", "id": number, "result": result}


def heads(scope: Scope) -> dict[str, str]:
    """Request headers by name."""
    return {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}


def raw_agent(
    site: Site,
    sign: Sign,
    talk: Talk,
    *,
    path: str = "/a2a",
    card_path: str = CARD,
    age: str = "0.3",
    edit: Edit = lambda made, _scope: made,
) -> App:
    """JSON-RPC without a library, in either age."""
    past: list[str] = []

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        if scope["path"] == card_path:
            await send_json(send, edit(card(site, sign, path, age=age), scope))
        elif scope["path"] != path:
            await send_json(send, {"detail": "no such door"}, 404)
        elif scope["method"] != "POST":
            await send_json(send, {"detail": "POST only"}, 405, {"allow": "POST"})
        else:
            body = await read(receive)
            await send_json(send, await rpc(body, site, talk, past, heads(scope)))

    return app


def rest_agent(site: Site, sign: Sign, talk: Talk) -> App:
    """The REST binding of 0.3, by hand."""
    past: list[str] = []

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        if scope["path"] == CARD:
            await send_json(send, card(site, sign, "/talk", "HTTP+JSON", "0.3"))
            return
        if scope["path"] != "/talk/v1/message:send" or scope["method"] != "POST":
            await send_json(send, {"title": "Not found", "status": 404}, 404)
            return
        try:
            asked = json.loads(await read(receive))
            text, thread = spoken(asked.get("message") or asked.get("request"))
        except (ValueError, AttributeError, RecursionError):
            text = thread = ""
        if not text:
            await send_json(send, {"title": "Bad request", "status": 400}, 400)
            return
        said = await said_by(talk, Call(text, site, heads(scope), thread, past))
        past.append(text)
        made = {"messageId": uuid4().hex, "contextId": thread, "role": "ROLE_AGENT"}
        await send_json(send, {"message": made | {"content": [{"text": said}]}})

    return app


async def own_socket(site: Site, app: web.Application, built: Built) -> Built:
    """Serve an aiohttp application on the site's own address."""

    async def paper(_request: web.Request) -> web.Response:
        return web.json_response(registration(site, built))

    if site.proof == "well_known":
        app.router.add_get("/.well-known/agent-registration.json", paper)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
    await runner.setup()
    site.stack.push_async_callback(runner.cleanup)
    await web.TCPSite(runner, *site.address).start()
    return built


async def aio_agent(site: Site, sign: Sign, talk: Talk, age: str = "1.0") -> Built:
    """On aiohttp and a socket of its own."""
    past: list[str] = []

    async def say(request: web.Request) -> web.Response:
        named = {k.lower(): v for k, v in request.headers.items()}
        return web.json_response(await rpc(await request.read(), site, talk, past, named))

    async def show(_request: web.Request) -> web.Response:
        return web.json_response(card(site, sign, "/jsonrpc/", age=age))

    app = web.Application()
    app.router.add_post("/jsonrpc/", say)
    app.router.add_get(CARD, show)
    return await own_socket(site, app, Built([("A2A", site.url + CARD)]))


def a2a(site: Site, app: App, **more: Any) -> Built:
    """The ordinary declaration of an A2A agent."""
    return Built([("A2A", site.url + CARD)], app, **more)
