"""A2A servers: on the official library in both versions and bindings, and written by hand."""

import inspect
import json
import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from a2a.helpers import new_task_from_user_message, new_text_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import (
    create_agent_card_routes,
    create_jsonrpc_routes,
    create_rest_routes,
)
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentExtension,
    AgentInterface,
    AgentSkill,
    Part,
    Role,
)
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Struct
from starlette.applications import Starlette

from tests.ground_truth.knowledge import Domain
from tests.ground_truth.site import App, Scope, Site, read, send_json

EIP = "https://eips.ethereum.org/EIPS/eip-8004"
CARD = "/.well-known/agent-card.json"


@dataclass
class Heard:
    """One message to an agent, and how it came."""

    text: str
    site: Site
    headers: dict[str, str] = field(default_factory=dict)
    past: list[str] = field(default_factory=list)
    """Everything the agent was ever asked, by anybody."""
    context: str = ""


Reply = Callable[[Heard], str | Awaitable[str]]


async def reply_to(reply: Reply, heard: Heard) -> str:
    """What the agent says; plain and asynchronous replies alike."""
    said = reply(heard)
    return await said if inspect.isawaitable(said) else said


@dataclass(frozen=True)
class Face:
    """What a card says."""

    name: str
    description: str
    skills: Sequence[tuple[str, str, Sequence[str]]]
    """Name, description and examples of each."""
    language: str = "en"
    path: str = "/rpc"


def face_of(domain: Domain, name: str = "", **changes: Any) -> Face:
    """The card of an agent of one domain."""
    skills = [(domain.title, domain.summary, domain.examples)]
    return replace(Face(name or domain.title, domain.summary, skills), **changes)


ASSISTANT = Face(
    "Desk assistant",
    "A general assistant for short texts: extracts, sorts, counts, summarises and calculates.",
    [
        ("Extract", "Finds amounts, dates, names and references in a text.",
         ["Which date is in this text: 'The lease ends on 2026-05-31.'"]),
        ("Calculate", "Works out sums given in words or digits.", ["What is twelve times nine?"]),
        ("Summarise", "Says what a text is about, in short.",
         ["Summarise: 'Rail freight grew for the third year, led by grain and timber.'"]),
    ],
)  # fmt: skip


def _skill_rows(face: Face) -> list[dict[str, Any]]:
    return [
        {"id": f"s{n}", "name": name, "description": text, "tags": [name.lower()],
         "examples": list(examples)}
        for n, (name, text, examples) in enumerate(face.skills, 1)
    ]  # fmt: skip


def card_dict(site: Site, face: Face, version: str = "1.0", base: str = "") -> dict[str, Any]:
    """The card as JSON, in the shape of either protocol version."""
    url = (base or site.url) + face.path
    extensions = [{"uri": EIP, "required": False, "params": site.identity}]
    card: dict[str, Any] = {
        "name": face.name,
        "description": face.description,
        "version": "2.4.1",
        "capabilities": {"streaming": False, "pushNotifications": False},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": _skill_rows(face),
    }
    if site.proof == "card":
        card["capabilities"]["extensions"] = extensions
    if version == "1.0":
        interface = {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        return card | {"supportedInterfaces": [interface]}
    return card | {"url": url, "protocolVersion": "0.3.0", "preferredTransport": "JSONRPC"}


class Executor(AgentExecutor):
    """Hands messages to a reply, and answers with a message or a finished task."""

    def __init__(self, site: Site, reply: Reply, *, as_task: bool = False) -> None:
        self._site, self._reply, self._as_task = site, reply, as_task
        self._past: list[str] = []

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        text = context.get_user_input()
        call = context.call_context
        headers = dict((call.state or {}).get("headers", {})) if call else {}
        heard = Heard(text, self._site, headers, self._past, context.context_id or "")
        said = await reply_to(self._reply, heard)
        self._past.append(text)
        if not self._as_task:
            made = new_text_message(
                said, context_id=context.context_id, task_id=context.task_id, role=Role.ROLE_AGENT
            )
            await event_queue.enqueue_event(made)
            return
        assert context.message is not None
        task = context.current_task or new_task_from_user_message(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        await updater.add_artifact([Part(text=said)], name="answer")
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Nothing here runs long enough."""


def stock_a2a(
    site: Site,
    face: Face,
    reply: Reply,
    *,
    binding: str = "JSONRPC",
    streaming: bool = False,
    old_too: bool = False,
    as_task: bool = False,
) -> Starlette:
    """An agent on the official library."""
    params = Struct()
    ParseDict(site.identity, params)
    extensions = [AgentExtension(uri=EIP, params=params)] if site.proof == "card" else []
    path = face.path if binding == "JSONRPC" else ""
    faces = [AgentInterface(url=site.url + path, protocol_binding=binding, protocol_version="1.0")]
    if old_too:
        faces.append(
            AgentInterface(url=site.url + path, protocol_binding=binding, protocol_version="0.3")
        )
    card = AgentCard(
        name=face.name,
        description=face.description,
        version="1.3.0",
        supported_interfaces=faces,
        capabilities=AgentCapabilities(
            streaming=streaming, push_notifications=False, extensions=extensions
        ),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(**row) for row in _skill_rows(face)],
    )
    executor = Executor(site, reply, as_task=as_task)
    # `as_task` needs the store; messages alone do not look at it.
    handler = DefaultRequestHandler(executor, InMemoryTaskStore(), card)
    routes: list[Any] = [*create_agent_card_routes(card)]
    if binding == "JSONRPC":
        routes += create_jsonrpc_routes(handler, face.path, enable_v0_3_compat=old_too)
    else:
        routes += create_rest_routes(handler, enable_v0_3_compat=old_too)
    return Starlette(routes=routes)


def text_of(message: Any) -> str:
    """The text parts of a message of either version."""
    parts = message.get("parts", []) if isinstance(message, dict) else []
    return "\n".join(str(p["text"]) for p in parts if isinstance(p, dict) and "text" in p)


def hand_made_a2a(
    site: Site,
    face: Face,
    reply: Reply,
    *,
    card_path: str = CARD,
    change_card: Callable[[dict[str, Any], Scope], dict[str, Any]] = lambda card, _scope: card,
    base: str = "",
) -> App:
    """A JSON-RPC endpoint of protocol 0.3 and its card, without any library."""
    past: list[str] = []

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        path, method = scope["path"], scope["method"]
        if path == card_path and method in {"GET", "HEAD"}:
            await send_json(send, change_card(card_dict(site, face, "0.3", base), scope))
        elif path != face.path:
            await send_json(send, {"message": "nothing here"}, 404)
        elif method != "POST":
            await send_json(send, {"message": "use POST"}, 405, {"allow": "POST"})
        else:
            headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
            answer = await _rpc(await read(receive), site, reply, past, headers)
            await send_json(send, answer)

    return app


def rpc_error(code: int, message: str, asked: Any = None) -> dict[str, Any]:
    """A JSON-RPC error."""
    return {"jsonrpc": "2.0", "id": asked, "error": {"code": code, "message": message}}


async def _rpc(
    body: bytes, site: Site, reply: Reply, past: list[str], headers: dict[str, str]
) -> dict[str, Any]:
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        return rpc_error(-32700, "Parse error")
    if not isinstance(asked, dict) or asked.get("jsonrpc") != "2.0":
        return rpc_error(-32600, "Invalid Request")
    number, params = asked.get("id"), asked.get("params")
    if asked.get("method") not in {"message/send", "SendMessage"}:
        return rpc_error(-32601, "Method not found", number)
    text = text_of(params.get("message")) if isinstance(params, dict) else ""
    if not text:
        return rpc_error(-32602, "Invalid params", number)
    message = params["message"]
    context = str(message.get("contextId") or uuid.uuid4())
    said = await reply_to(reply, Heard(text, site, headers, past, context))
    past.append(text)
    if asked["method"] == "SendMessage":
        part, role = {"text": said}, "ROLE_AGENT"
    else:
        part, role = {"kind": "text", "text": said}, "agent"
    result = {
        "kind": "message", "messageId": str(uuid.uuid4()), "role": role, "parts": [part],
        "contextId": context,
    }  # fmt: skip
    if asked["method"] == "SendMessage":
        del result["kind"]
        result = {"message": result}
    return {"jsonrpc": "2.0", "id": number, "result": result}
