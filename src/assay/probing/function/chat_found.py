"""Finds where an undocumented agent is addressed: by its path, and by its site's content."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urljoin, urlsplit

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.net.egress.ports import EgressResponse, OutboundRequest
from assay.probing.function.acts import tells_of_act
from assay.probing.function.chat import ERROR_STATUS, QUESTION, Chat, card_of, saying
from assay.probing.function.examples import EXAMPLE
from assay.probing.function.identify import Address
from assay.probing.function.markup import visible_text
from assay.probing.function.messages import LIST, is_for_talk, message_in
from assay.probing.function.request import Operation
from assay.probing.function.shown_calls import ShownCall, calls_shown
from assay.probing.function.words import leaves
from assay.probing.ports import ProbeSession
from assay.probing.probe_client import ask, decode, text_of

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
    card = card_of([*own], " ".join(page.split()), examples or _asked_in(page))
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
