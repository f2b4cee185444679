"""Proof that an agent answers over plain HTTP, with the conversations used for A2A.

An operation is a conversation if it is named after one (`/chat`, `/ask`) and takes one message.
Source: evidence.md#conversations; OpenAI's API reference for chat completions.

Finds where an undocumented agent is addressed: by its path, and by its site's content.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final
from urllib.parse import urljoin, urlsplit

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.net.egress.ports import EgressError, EgressResponse, Failure, Limits, OutboundRequest
from assay.probing.function.acts import LIST, is_for_talk, message_in, tells_of_act
from assay.probing.function.arguments import arguments_for
from assay.probing.function.conversation import (
    ANSWER_WAIT_S,
    Transcript,
    converse,
    random_for,
    script_of,
)
from assay.probing.function.described_operations import base_of, operations_of
from assay.probing.function.examples import EXAMPLE, published_inputs
from assay.probing.function.identify import Address, Operation, request_for
from assay.probing.function.shown_calls import ShownCall, calls_shown
from assay.probing.function.words import leaves, visible_text
from assay.probing.ports import AgentCallFailed, BudgetExhausted, Callback, ProbeSession
from assay.probing.probe_client import ask, decode, is_html, retry_after_s, text_of
from assay.probing.shared_dialers import FunctionDialers

ABOUT_CHARS_MAX = 1_000
EXAMPLES_MAX = 6
_LIMITS = Limits(connect_s=2.0, total_s=ANSWER_WAIT_S, body_bytes_max=256 * 1024)
ERROR_STATUS = 400
QUESTION: Final = re.compile(r"[\"“«「']([^\"“”«»「」'\n]{8,160}[?\uff1f])[\"”»」']")


@dataclass(slots=True)
class Chat:
    """Where an agent is addressed, and what it says of itself."""

    url: str
    card: JsonObject
    request: Callable[[str], OutboundRequest | None]
    """Returns the request that says a text; None if another member of it cannot be known."""


async def prove_chat(
    visit: ProbeSession, address: Address, chat: Chat, notes: Transcript
) -> Transcript:
    """Ask until function is proven or the visit's time, requests or messages end.

    The conversation is a transcript of its own, within the service's.
    """
    said = Transcript(notes.service, "a2a")
    said.know(chat.card)
    random = random_for(visit, address.service.endpoint)
    try:
        published = await published_inputs(visit, chat.url)
        script = script_of(chat.card, visit, random, published)
        await converse(_Line(visit, chat), script, said, random, at_once=visit.announced)
    except BudgetExhausted:
        said.members["cut"] = True
    finally:
        if said.rows:
            notes.members["talk"] = said.as_json()
    return said


class _Line:
    """An `A2aConversation` over plain HTTP."""

    def __init__(self, visit: ProbeSession, chat: Chat) -> None:
        self._visit = visit
        self._chat = chat
        self.card = chat.card
        self.card_url = chat.url
        self.has_answered = False

    async def send_text(
        self,
        text: str,
        context_id: str = "",
        *,
        wait_s: float | None = None,
        callback: Callback | None = None,
    ) -> JsonObject:
        del context_id, callback  # Every message begins a conversation, and is answered at once.
        request = self._chat.request(text)
        if request is None:
            raise AgentCallFailed("error", "what else it takes is not known")
        dialers = self._visit.dialers
        if isinstance(dialers, FunctionDialers):
            await dialers.count_message(self._chat.url)
        limits = replace(_LIMITS, total_s=wait_s or ANSWER_WAIT_S)
        try:
            reply = await self._visit.http.send(request, limits)
        except EgressError as error:
            is_late = error.failure is Failure.TIMEOUT
            raise AgentCallFailed("timeout" if is_late else "unreachable", "") from error
        if reply.status >= ERROR_STATUS:
            raise AgentCallFailed("error", "", reply.status, retry_after_s(reply))
        if is_html(reply):
            raise AgentCallFailed("protocol", "a page")
        self.has_answered = True
        return {"text": _said_in(reply)}

    async def get_task(self, task_id: str) -> JsonObject:
        raise AgentCallFailed("protocol", task_id)


def _said_in(reply: EgressResponse) -> str:
    """Return a reply's text: the message of a chat completion, or all content of other JSON."""
    document = decode(reply.body)
    if document is None:
        return reply.body[:8000].decode("utf-8", "replace")
    choices = document.get("choices") if is_object(document) else None
    first = choices[0] if is_array(choices) and choices else None
    if not is_object(first):
        return "\n".join(leaves(document))
    message = first.get("message")
    content = message.get("content") if is_object(message) else first.get("text")
    if is_array(content):
        content = "\n".join(str(part.get("text") or "") for part in content if is_object(part))
    return content if isinstance(content, str) else "\n".join(leaves(document))


def documented_chat(visit: ProbeSession, address: Address) -> Chat | None:
    """Return the first documented operation that takes a message."""
    document = address.document or {}
    info = document.get("info")
    about = [info.get("title"), info.get("description")] if is_object(info) else []
    base = base_of(document, address)
    for operation in operations_of(document):
        if not operation.is_talk:
            continue
        name = message_in(operation.schema)
        card = _card_of(about, operation.about, _examples(operation, name))
        return Chat(base + operation.path, card, saying(visit, operation, base, name))
    return None


def saying(
    visit: ProbeSession, operation: Operation, base: str, name: str
) -> Callable[[str], OutboundRequest | None]:
    """Return a builder of requests that say a text; other members follow their documentation."""
    schema = operation.schema
    properties, needed = schema.get("properties"), schema.get("required")
    others = {n: p for n, p in properties.items() if n != name} if is_object(properties) else {}
    required = [str(n) for n in needed if n != name] if is_array(needed) else []
    declared = properties.get(name) if is_object(properties) else None
    is_list = is_object(declared) and declared.get("type") == "array"

    def request(text: str) -> OutboundRequest | None:
        random = random_for(visit, text)
        made: JsonObject = {n: _of_session(n, random) for n in required if _SESSION.search(n)}
        rest = [n for n in required if n not in made]
        known = arguments_for({"properties": others, "required": [*rest]}, {}, random)
        if rest and known is None:
            return None
        message: JsonValue = [{"role": "user", "content": text}] if is_list else text
        return request_for(
            operation, base, {**(known if rest and known else {}), **made, name: message}
        )

    return request


_SESSION: Final = re.compile(
    r"(?:client|user|thread|session|conversation|chat)_?(?:id)?$", re.IGNORECASE
)


def _of_session(name: str, random: Random) -> str:
    return f"{name[:1]}{random.randrange(10**9)}"


def _examples(operation: Operation, name: str) -> list[str]:
    properties = operation.schema.get("properties")
    declared = properties.get(name) if is_object(properties) else None
    if not is_object(declared):
        return []
    shown = declared.get("examples")
    given: list[JsonValue] = [*(shown if is_array(shown) else ()), declared.get("example")]
    summary = f"{declared.get('description') or ''} {operation.about}"
    texts = [e for e in given if isinstance(e, str)]
    return [*texts, *EXAMPLE.findall(summary), *QUESTION.findall(summary)]


def _card_of(about: list[JsonValue], summary: str, examples: list[str]) -> JsonObject:
    """Return a service's self-description in the form of a card."""
    name, *described = [" ".join(str(part or "").split())[:ABOUT_CHARS_MAX] for part in about] or [
        ""
    ]
    description = ". ".join(part for part in (*described, summary[:ABOUT_CHARS_MAX]) if part)
    skill: JsonObject = {
        "name": name,
        "description": description,
        "examples": [*dict.fromkeys(e.strip() for e in examples if e.strip())][:EXAMPLES_MAX],
    }
    return {"name": name, "description": description, "skills": [skill]}


COMPLETIONS: Final = "/completions"
CHAT_COMPLETIONS: Final = "/chat/completions"
PAGE_CHARS_MAX = 32 * 1024
LINE_CHARS, LINE_WORDS_MIN = 160, 4
STREAMS: Final = "stream"
"""The member that requests a streamed answer, if a page shows it; we want it whole."""

_ENDPOINT: Final = re.compile(r"(?:/[\w.-]{1,40}){0,4}/completions\b")
_MODELS: Final = (
    re.compile(
        r"\bmodels?[\"'`]?\s{0,3}(?:[:=]|is\b)?\s{0,3}\[?\s{0,3}\{?\s{0,3}"
        r"(?:[\"']id[\"']\s{0,3}:\s{0,3})?[\"'`]([\w./:@-]{2,60})[\"'`]",
        re.IGNORECASE,
    ),
    re.compile(r"\bmodels?\s{0,3}[:=]\s{0,3}([\w./:@-]{1,59}\w)", re.IGNORECASE),
)
_NAMED: Final = re.compile(
    r"\b(messages?|question|prompt|query|input|text|content|user_input|q)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class _Place:
    """The place in a request where the message goes."""

    url: str
    name: str
    """The member that takes the message; empty if not known yet."""
    others: JsonObject
    """The shown values of the other members."""
    examples: Sequence[str]


async def bare_chat(visit: ProbeSession, address: Address) -> Chat | None:
    """Return an agent at an address without a document; None if nothing shows one."""
    own_path = urlsplit(address.url).path.rstrip("/")
    here = "" if address.reply is None else text_of(address.reply)[:PAGE_CHARS_MAX]
    root = urljoin(address.url, "/")
    home = here
    if own_path:
        response = await ask(visit, OutboundRequest("GET", root, {"accept": "*/*"}))
        is_read = isinstance(response, EgressResponse) and response.status < ERROR_STATUS
        home = text_of(response)[:PAGE_CHARS_MAX] if is_read else ""
    texts = [text for text in dict.fromkeys((here, home)) if text]
    place = await _place(visit, address.url, texts, is_own=is_for_talk(own_path, ""))
    if place is None:
        return None
    agent = visit.subject.agent
    registered = agent.registration if agent else None
    page = "\n".join(map(_lines, texts))
    examples = [*place.examples, *EXAMPLE.findall(page), *QUESTION.findall(page)]
    own = [registered.name, registered.description] if registered else []
    card = _card_of([*own], " ".join(page.split()), examples or _asked_in(page))
    name = place.name or await _demanded(visit, place.url)
    properties: dict[str, JsonValue] = {n: {"const": v} for n, v in place.others.items()}
    properties[name] = {"type": "array" if name == LIST else "string"}
    if place.url.endswith(COMPLETIONS) and "model" not in properties:
        properties["model"] = {"const": await _model(visit, place.url, texts)}
    schema: JsonObject = {"properties": properties, "required": [*properties]}
    operation = Operation("POST", "", schema, dict.fromkeys(properties, "body"), None)
    return Chat(place.url, card, saying(visit, operation, place.url, name))


async def _place(
    visit: ProbeSession, url: str, texts: Sequence[str], *, is_own: bool
) -> _Place | None:
    """Return where an agent is addressed: by a shown call, the declaration, a text or a list."""
    shown = [one for text in texts for one in calls_shown(text.encode(), url)]
    places = [place for one in shown if (place := _shown_place(one, url)) is not None]
    own = next((place for place in places if place.url == url), None)
    if is_own or own is not None:
        return own or _Place(url, _usual(url), {}, ())
    if places:
        return places[0]
    said = next((found[0] for text in texts if (found := _ENDPOINT.search(text))), "")
    if said and is_for_talk(said, ""):
        return _Place(urljoin(url, said), _usual(said), {}, ())
    base = url.rstrip("/")
    if base.endswith("/v1") and await _models(visit, base):
        return _Place(base + CHAT_COMPLETIONS, LIST, {}, ())
    return None


def _usual(path: str) -> str:
    """Return the member for the message if the path is that of OpenAI's API; else unknown."""
    if path.endswith(CHAT_COMPLETIONS):
        return LIST
    return "prompt" if path.endswith(COMPLETIONS) else ""


def _shown_place(one: ShownCall, url: str) -> _Place | None:
    """Return the place of a shown call that says something to an agent."""
    is_said = set(one.places.values()) == {"body"} and not any(map(tells_of_act, one.beside))
    if one.method != "POST" or not is_said or not is_for_talk(one.path, ""):
        return None
    said = one.given.get(LIST)
    rows = [row for row in said if is_object(row)] if is_array(said) else []
    texts = {n: v for n, v in one.given.items() if isinstance(v, str)}
    named = message_in({"properties": dict.fromkeys(texts, _TEXT), "required": [*texts]})
    longest = max(texts, key=lambda n: len(texts[n].split()), default="")
    is_sentence = len(texts.get(longest, "").split()) > 1
    name = LIST if rows else named or (longest if is_sentence else "")
    if not name:
        return None
    examples = [str(row.get("content")) for row in rows[-1:]] if rows else [texts[name]]
    others = {n: v for n, v in one.given.items() if n not in {name, STREAMS} and v is not None}
    return _Place(urljoin(url, one.path), name, others, examples)


_TEXT: Final[JsonObject] = {"type": "string"}


async def _models(visit: ProbeSession, base: str) -> list[str]:
    """Return the models that a service lists."""
    listed = await ask(visit, OutboundRequest("GET", base + "/models"))
    document = decode(listed.body) if isinstance(listed, EgressResponse) else None
    rows = document.get("data") if is_object(document) else None
    found = [row.get("id") for row in rows if is_object(row)] if is_array(rows) else []
    return [name for name in found if isinstance(name, str) and name]


async def _model(visit: ProbeSession, url: str, texts: Sequence[str]) -> str:
    """Return the first model that the service lists, or that a page or an index names."""
    base = url.removesuffix(COMPLETIONS).removesuffix("/chat")
    said = [*texts, *map(_lines, texts)]
    named = [found[1] for words in _MODELS for text in said if (found := words.search(text))]
    return [*await _models(visit, base), *named, "default"][0]


def _lines(text: str) -> str:
    """Return the visible text of a page, or of an index in JSON."""
    document = decode(text.encode())
    return visible_text(text) if document is None else "\n".join(leaves(document))


def _asked_in(page: str) -> list[str]:
    """Return the lines of a page that are questions."""
    lines = [line.strip().rpartition(": ")[2] for line in page.split("\n")]
    return [
        line
        for line in lines
        if line.endswith(("?", "\uff1f"))
        and len(line) <= LINE_CHARS
        and (len(line.split()) >= LINE_WORDS_MIN or not line.isascii())
    ]


async def _demanded(visit: ProbeSession, url: str) -> str:
    """Return the member that a refusal of an empty object calls missing, or `message`."""
    headers = {"accept": "application/json", "content-type": "application/json"}
    response = await ask(visit, OutboundRequest("POST", url, headers, b"{}"))
    if not isinstance(response, EgressResponse) or response.status < ERROR_STATUS:
        return "message"
    named = _NAMED.search(text_of(response)[:2000])
    return named[1].lower() if named else "message"
