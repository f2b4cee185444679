"""Proof that an agent answers over plain HTTP, with the conversations used for A2A.

An operation is a conversation if it is named after one (`/chat`, `/ask`) and takes one message.
Source: evidence.md#conversations; OpenAI's API reference for chat completions.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Final

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.net.egress.ports import EgressError, EgressResponse, Failure, Limits, OutboundRequest
from assay.probing.function.arguments import arguments_for
from assay.probing.function.conversation import ANSWER_WAIT_S, converse
from assay.probing.function.examples import EXAMPLE
from assay.probing.function.identify import Address
from assay.probing.function.messages import message_in
from assay.probing.function.openapi import base_of, operations_of
from assay.probing.function.published import published_inputs
from assay.probing.function.request import Operation, request_for
from assay.probing.function.script import script_of
from assay.probing.function.transcript import Transcript, random_for
from assay.probing.function.words import leaves
from assay.probing.ports import (
    AgentCallFailed,
    BudgetExhausted,
    Callback,
    CountsMessages,
    ProbeSession,
)
from assay.probing.probe_client import decode, is_html, retry_after_s

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
        if isinstance(dialers, CountsMessages):
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
        return {"text": said_in(reply)}

    async def get_task(self, task_id: str) -> JsonObject:
        raise AgentCallFailed("protocol", task_id)


def said_in(reply: EgressResponse) -> str:
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
        card = card_of(about, operation.about, _examples(operation, name))
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


def card_of(about: list[JsonValue], summary: str, examples: list[str]) -> JsonObject:
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
