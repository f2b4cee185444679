"""Services of every kind that an agent may name, alive and dead, on loopback.

with zoo() as made:
    registry.agent(uri=made.registration("mcp-stateless", "web-500"))
"""

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.raw_server import Request
from tests.support.solana import loopback
from tests.support.solana.loopback import Answer, Fault, as_json

HTML = ("Content-Type: text/html",)
SESSION = "session-1"
CARD = {"name": "A", "skills": [{"id": "s", "name": "s"}]}
NOTHING = Answer(404, b"", ())


@dataclass(frozen=True)
class Endpoint:
    """A service as an agent registers it, and what the SDK says of it."""

    kind: str
    type: str
    url: str
    alive: bool


@dataclass(repr=False)
class Zoo:
    url: str
    service: loopback.Service
    documents: dict[str, Answer | Fault] = field(default_factory=dict[str, Answer | Fault])

    def endpoint(self, kind: str) -> Endpoint:
        type_, alive = KINDS[kind]
        return Endpoint(kind, type_, f"{self.url}/{kind}", alive)

    def every(self) -> list[Endpoint]:
        return [self.endpoint(kind) for kind in KINDS]

    def registration(self, *kinds: str, **more: Any) -> str:
        """The address of a registration document that names these services."""
        found = [self.endpoint(kind) for kind in kinds]
        services = [{"name": one.type, "endpoint": one.url} for one in found]
        told = {
            "type": "https://eips.ethereum.org/EIPS/eip-8004#registration-v1",
            "name": "Agent",
            "description": "An agent",
            "services": services,
            "active": True,
        }
        return self.document(as_json(told | more))

    def document(self, answer: Answer | Fault) -> str:
        """The address of any document, or of one that never comes."""
        path = f"/documents/{len(self.documents) + 1}.json"
        self.documents[path] = answer
        return self.url + path

    def requests(self, kind: str) -> list[Request]:
        """What one endpoint was asked."""
        return [one for one in self.service.requests if _kind(one)[0] == kind]


KINDS: dict[str, tuple[str, bool]] = {
    "mcp-stateless": ("MCP", True),
    "mcp-streamed": ("MCP", True),
    "mcp-empty": ("MCP", True),  # no list has anything, and then HEAD is answered
    "mcp-session": ("MCP", False),  # a standard server: 400 before `initialize`, 405 to HEAD
    "mcp-broken": ("MCP", False),
    "a2a-agentcard": ("A2A", True),
    "a2a-agent-json": ("A2A", True),
    "a2a-agent-card": ("A2A", False),  # where the protocol has it today, and the SDK never looks
    "a2a-no-skills": ("A2A", False),
    "web": ("web", True),
    "web-no-head": ("web", True),
    "web-no-content": ("web", True),
    "web-401": ("web", True),
    "web-402": ("web", True),
    "web-403": ("web", True),
    "web-404": ("web", False),
    "web-429": ("web", False),
    "web-500": ("web", False),
    "web-moved": ("web", False),
    "web-not-modified": ("web", False),
    "hang": ("web", False),
    "half-open": ("web", False),
    "hang-up": ("web", False),
    "garbage": ("web", False),
}
"""Kind to the type it is registered under, and whether the SDK reports it alive."""


@contextmanager
def zoo() -> Generator[Zoo]:
    made = Zoo("", loopback.Service(lambda request: _answer(made, request)))
    with loopback.running(made.service):
        made.url = made.service.url
        yield made


def _kind(request: Request) -> tuple[str, str]:
    """The kind of endpoint, and what comes behind it."""
    kind, _, rest = request.target[1:].partition("/")
    return kind, rest.lstrip("/")


def _answer(zoo: Zoo, request: Request) -> Answer | Fault:
    kind, rest = _kind(request)
    if kind == "documents":
        return zoo.documents.get(request.target, NOTHING)
    if kind.startswith("mcp"):
        return NOTHING if rest else _mcp(kind, request)
    if kind.startswith("a2a"):
        return _a2a(kind, rest, request)
    return NOTHING if rest else _web(kind, request)


def _web(kind: str, request: Request) -> Answer | Fault:
    if kind not in {"web", "web-no-head"}:
        return _FIXED.get(kind, NOTHING)
    if request.method != "HEAD":
        return Answer(200, b"<html>hello</html>", HTML)
    return Answer(405, b"", ("Allow: GET",)) if kind == "web-no-head" else Answer(200, b"", HTML)


def _no_http(_request: Request, _answer: object) -> list[bytes]:
    return [b"\0\xff no HTTP at all\r\n\r\n"]


_FIXED: dict[str, Answer | Fault] = {
    "web-no-content": Answer(204, b"", ()),
    "web-moved": Answer(302, b"", ("Location: /web",)),
    "web-not-modified": Answer(304, b"", ()),
    "hang": loopback.hang(),
    "half-open": loopback.half_open(),
    "hang-up": loopback.hang_up(),
    "garbage": _no_http,
    **{f"web-{code}": Answer(code, b"", ()) for code in (401, 402, 403, 404, 429, 500)},
}


def _mcp(kind: str, request: Request) -> Answer:
    if kind == "mcp-broken":
        return Answer(500, b"", ())
    if request.method != "POST":
        return Answer(200 if kind == "mcp-empty" else 405, b"", ())
    asked = json.loads(request.body)
    if kind == "mcp-session":
        return _session(request, asked)
    lists = {"tools/list": "tools", "resources/list": "resources", "prompts/list": "prompts"}
    name = lists.get(asked["method"])
    if name is None:
        return _reply(asked, error={"code": -32601, "message": "Method not found"})
    has = name == "tools" and kind != "mcp-empty"
    told = _reply(asked, result={name: [_TOOL] if has else []})
    if kind == "mcp-streamed":
        return Answer(200, b"event: message\ndata: " + told.body + b"\n\n", _STREAM)
    return told


_TOOL = {"name": "look_up", "description": "Looks a word up.", "inputSchema": {"type": "object"}}
_STREAM = ("Content-Type: text/event-stream",)


def _reply(asked: dict[str, Any], **told: Any) -> Answer:
    return as_json({"jsonrpc": "2.0", "id": asked.get("id"), **told})


def _session(request: Request, asked: dict[str, Any]) -> Answer:
    if asked["method"] == "initialize":
        wanted = asked.get("params", {}).get("protocolVersion", "2025-06-18")
        info = {"name": "standard", "version": "1"}
        result: dict[str, Any] = {
            "protocolVersion": wanted,
            "capabilities": {"tools": {}},
            "serverInfo": info,
        }
        told = _reply(asked, result=result)
        return Answer(200, told.body, (*told.headers, f"Mcp-Session-Id: {SESSION}"))
    if request.headers.get("mcp-session-id") != SESSION:
        error = {"code": -32000, "message": "Bad Request: no valid session id"}
        return Answer(400, _reply(asked, error=error).body)
    if asked["method"].startswith("notifications/"):
        return Answer(202, b"", ())
    if asked["method"] == "tools/list":
        return _reply(asked, result={"tools": [_TOOL]})
    return _reply(asked, error={"code": -32601, "message": "Method not found"})


def _a2a(kind: str, rest: str, request: Request) -> Answer:
    """Cards lie below the endpoint; nothing answers at the endpoint itself but 404."""
    cards = {
        "a2a-agentcard": ("agentcard.json", CARD),
        "a2a-agent-json": (".well-known/agent.json", CARD),
        "a2a-agent-card": (".well-known/agent-card.json", CARD),
        "a2a-no-skills": ("agentcard.json", {"name": "A"}),
    }
    if kind not in cards or request.method != "GET":
        return NOTHING
    place, card = cards[kind]
    return as_json(card) if rest == place else NOTHING
