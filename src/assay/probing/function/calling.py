"""Makes the calls of a proof of function over plain HTTP, and records their answers.

Reads the methods of a JSON-RPC service from its descriptions or from a text. Pure.

Sources: OpenRPC 1.3; the XML-RPC introspection methods (`system.listMethods`), which JSON-RPC
libraries adopted.
"""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.net.egress.ports import EgressError, EgressResponse, Failure, Limits, OutboundRequest
from assay.probing.function.acts import only_asks, tells_of_act
from assay.probing.function.arguments import pools_of
from assay.probing.function.choosing import Takes, asked_as, other_arguments, tells_known
from assay.probing.function.conversation import (
    ANSWER_WAIT_S,
    ASKED_CHARS_MAX,
    RETRIES_MAX,
    RETRY_WAIT_S,
    Transcript,
)
from assay.probing.function.examples import schema_like
from assay.probing.function.formats import is_valid
from assay.probing.function.tools import REPEATS_MAX, SAME_MAX, says_not_found
from assay.probing.function.verdicts import judge_http
from assay.probing.function.words import declines, leaves
from assay.probing.ports import BudgetExhausted, ProbeSession
from assay.probing.probe_client import answer_class, decode, is_html, retry_after_s
from assay.probing.session import VisitHttp

METHODS_MAX = 60
SHOWN_MAX = 10
ABOUT_CHARS = 160
BODY_CHARS_MAX = 1_000
ARGUMENTS_MAX = 8
BY_NAME: Final = "by-name"
BY_POSITION: Final = "by-position"

_SIGNATURE: Final = re.compile(r"(?<![\w.])([A-Za-z][\w.]{2,60})\(([\w\s,:\[\]]{0,120})\)")
_ENDPOINT: Final = re.compile(
    r"(?<![\w.:/<-])/(?:[\w-]{1,40}/){0,3}(?:json-?)?rpc(?![\w-]|[.]\w)", re.IGNORECASE
)
_TYPES: Final = {
    **dict.fromkeys(("int", "i4", "integer", "long"), "integer"),
    **dict.fromkeys(("double", "float", "number", "decimal"), "number"),
    **dict.fromkeys(("str", "string", "text"), "string"),
    **dict.fromkeys(("bool", "boolean"), "boolean"),
}


@dataclass(frozen=True, slots=True)
class Method:
    """A read-only method, according to its name and its owner's words."""

    name: str
    about: str
    schema: JsonObject
    """Its parameters in their order, as one object."""
    styles: tuple[str, ...] = (BY_POSITION, BY_NAME)
    """How it may expect its parameters."""


def is_envelope(document: JsonValue) -> bool:
    """Return whether an answer is one of JSON-RPC 2.0."""
    is_answer = is_object(document) and bool(document.keys() & {"result", "error"})
    return is_answer and is_object(document) and document.get("jsonrpc") == "2.0"


def may_call(name: str, about: str) -> bool:
    """Return whether name or description say that a method only informs, and neither an act."""
    last = re.split(r"[./:]", name)[-1]
    return not tells_of_act(about) and only_asks(last, (about,))


def methods_described(document: JsonValue) -> list[Method]:
    """Return the read-only methods of an OpenRPC document that take parameters."""
    rows = document.get("methods") if is_object(document) else None
    found: list[Method] = []
    for row in rows[:METHODS_MAX] if is_array(rows) else ():
        if not is_object(row) or not isinstance(row.get("name"), str):
            continue
        texts = [str(row.get(member) or "").strip() for member in ("summary", "description")]
        about = next((text for text in texts if text), "")
        schema = _parameters(row, document)
        structure = str(row.get("paramStructure"))
        styles = (structure,) if structure in {BY_NAME, BY_POSITION} else (BY_POSITION, BY_NAME)
        if schema is not None and may_call(str(row["name"]), about):
            found.append(Method(str(row["name"]), about, schema, styles))
    return found


def schemas_in(document: JsonValue) -> JsonValue:
    """Return the targets of references in an OpenRPC document."""
    components = document.get("components") if is_object(document) else None
    return components.get("schemas") if is_object(components) else None


def _parameters(row: JsonObject, document: JsonValue) -> JsonObject | None:
    """Return the schema of a method's parameters, as one object; None without parameters."""
    listed = row.get("params")
    rows = [_resolved(p, document) for p in listed if is_object(p)] if is_array(listed) else []
    wanted = [p for p in rows if p.get("required")] or rows[:1]
    shown = _shown_arguments(row)
    properties: dict[str, JsonValue] = {}
    for one in wanted[:ARGUMENTS_MAX]:
        name, declared = str(one.get("name")), one.get("schema")
        schema: JsonObject = declared if is_object(declared) else {}
        examples = [value for given in shown if (value := given.get(name)) is not None]
        more: JsonObject = {"examples": examples} if examples and "enum" not in schema else {}
        texts = schema.get("description") or one.get("description") or one.get("summary")
        properties[name] = {**schema, **more, "description": texts}
    return {"properties": properties, "required": [*properties]} if properties else None


def _shown_arguments(row: JsonObject) -> list[dict[str, JsonValue]]:
    """Return the arguments by name of each example of a method."""
    listed = row.get("examples")
    examples = [e for e in listed[:SHOWN_MAX] if is_object(e)] if is_array(listed) else []
    found: list[dict[str, JsonValue]] = []
    for one in examples:
        params = one.get("params")
        given = [p for p in params if is_object(p)] if is_array(params) else []
        found.append({str(p.get("name")): p.get("value") for p in given})
    return found


def _resolved(row: JsonObject, document: JsonValue) -> JsonObject:
    reference = row.get("$ref")
    components = document.get("components") if is_object(document) else None
    kept = components.get("contentDescriptors") if is_object(components) else None
    if not isinstance(reference, str) or not is_object(kept):
        return row
    found = kept.get(reference.rpartition("/")[2])
    return found if is_object(found) else {}


def method_signed(name: str, signature: JsonValue, about: str) -> Method | None:
    """Return a method from `system.methodSignature`: its result's type, then its arguments'."""
    first = signature[0] if is_array(signature) and signature else signature
    types = first.split(",") if isinstance(first, str) else first
    rows = [str(kind).strip() for kind in types[1 : ARGUMENTS_MAX + 1]] if is_array(types) else []
    if not rows or not may_call(name, about):
        return None
    named = {f"argument {chr(97 + n)}": _typed(kind) for n, kind in enumerate(rows)}
    return Method(name, about, {"properties": named, "required": [*named]}, (BY_POSITION,))


def _typed(kind: str) -> JsonObject:
    found = _TYPES.get(kind.casefold())
    return {} if found is None else {"type": found}


def methods_shown(text: str) -> list[Method]:
    """Return the methods that a text calls, or names with their arguments: `name(a, b)`."""
    found: dict[str, Method] = {}
    for place, call in _calls(text):
        name, params = call.get("method"), call.get("params")
        about = _before(text, place)
        if not isinstance(name, str) or not may_call(name, about) or not params:
            continue
        is_named = is_object(params)
        given = dict(params) if is_object(params) else _by_position(params)
        properties = {str(n): schema_like([value]) for n, value in given.items()}
        schema: JsonObject = {"properties": properties, "required": [*properties]}
        styles = (BY_NAME,) if is_named else (BY_POSITION,)
        found.setdefault(name, Method(name, about, schema, styles))
    for match in list(_SIGNATURE.finditer(text))[:METHODS_MAX]:
        names = [part.strip().partition(":") for part in match[2].split(",")]
        arguments = {n.strip(): _typed(kind.strip()) for n, _, kind in names if n.strip()}
        about = (
            text[match.end() : match.end() + ABOUT_CHARS].split("\n", maxsplit=1)[0].strip(" -:,;)")
        )
        is_known = match[1] in found or not arguments or len(arguments) > ARGUMENTS_MAX
        if not is_known and may_call(match[1], about):
            schema = {"properties": arguments, "required": [*arguments]}
            found[match[1]] = Method(match[1], about, schema)
    return list(found.values())[:SHOWN_MAX]


def _by_position(params: JsonValue) -> dict[str, JsonValue]:
    rows: Sequence[JsonValue] = params if is_array(params) else ()
    return {f"argument {chr(97 + n)}": value for n, value in enumerate(rows[:ARGUMENTS_MAX])}


def _before(text: str, place: int) -> str:
    """Return the description in the line before a call, unless that is another call."""
    lines = text[max(0, place - ABOUT_CHARS) : place].split("\n")
    said = [line.strip(" $:") for line in lines[-2:] if line.strip()]
    plain = [line for line in said if not re.search(r"[/{}\"]", line)]
    return plain[-1] if plain else ""


def _calls(text: str) -> list[tuple[int, JsonObject]]:
    """Return the JSON-RPC requests in a text, and where each begins."""
    found: list[tuple[int, JsonObject]] = []
    place = text.find('"jsonrpc"')
    for _ in range(SHOWN_MAX):
        if place < 0:
            break
        start = text.rfind("{", max(0, place - BODY_CHARS_MAX), place)
        try:
            value, _ = json.JSONDecoder().raw_decode(text[start : start + 2 * BODY_CHARS_MAX])
        except (ValueError, RecursionError):
            value = None
        if start >= 0 and is_object(value):
            found.append((start, value))
        place = text.find('"jsonrpc"', place + 1)
    return found


def endpoint_in(text: str) -> str:
    """Return the path that a text names for JSON-RPC; empty if it names none."""
    found = _ENDPOINT.search(text)
    return "" if found is None else found[0]


CALLS_MAX = 10
"""Answered calls, and as many refused for payment or authentication."""

TRIES_MAX = 6
"""Calls of one operation while its answers do not differ."""

REFUSED_MAX = 4
"""Refusals of one operation that do not tell what it knows."""

SIZE_MIN = 5
"""Least request lengths that an answer may echo; smaller numbers are results."""

NOT_FOUND = frozenset({404, 410, 422, 400})
_LIMITS = Limits(connect_s=2.0, total_s=ANSWER_WAIT_S, body_bytes_max=256 * 1024)


@dataclass(slots=True)
class Calls:
    """What one proof sends, and the answers that later calls can use."""

    visit: ProbeSession
    notes: Transcript
    random: Random
    root: JsonValue = None
    published: JsonValue = None
    refuses_pages: bool = False
    """Whether a page for people does not count as an answer."""
    results: list[tuple[str, JsonValue]] = field(default_factory=list[tuple[str, JsonValue]])

    def new_arguments(self, one: Takes) -> JsonObject | None:
        """Return arguments like `other_arguments`; results of other calls are used as values."""
        elsewhere = [found for found in self.results if found[0] != one.name[:200]]
        pools = pools_of(elsewhere, self.published, self.random)
        return other_arguments(one, self.notes.rows, pools, self.random)

    @property
    def is_over(self) -> bool:
        """Return whether enough was asked."""
        closed = self.closed()
        return max(closed, len(self.notes.rows) - closed) >= CALLS_MAX

    def closed(self, name: str | None = None) -> int:
        """Count calls, of one operation or all, that require payment or authentication."""
        rows = [row for row in self.notes.rows if row["class"] == "closed"]
        return sum(name is None or row.get("tool") == name[:200] for row in rows)


@dataclass(frozen=True, slots=True)
class AskableService:
    """An operation that takes different inputs."""

    takes: Takes
    send: Callable[[JsonObject], Awaitable[None]]
    """Call it with these arguments, and record the answer."""


async def varies(calls: Calls, one: AskableService) -> bool:
    """Call with different inputs, then repeat two of them; return whether that proves function.

    Invented or counted answers are not the same again.
    """
    for _ in range(TRIES_MAX):
        arguments = calls.new_arguments(one.takes)
        if arguments is None or calls.is_over:
            break
        await one.send(arguments)
        is_proven = judge_http(calls.notes.as_json()).why == "results_vary"
        # Other arguments do not change a demand for payment.
        if is_proven or len(_valid(calls, one)) > SAME_MAX or calls.closed(one.takes.name):
            break
        if _is_lost(calls, one):
            break
    return await _comes_again(calls, one)


async def _comes_again(calls: Calls, one: AskableService) -> bool:
    had = sorted(_valid(calls, one), key=lambda row: row["role"] == "shown")
    other = next((row for row in had if row["answer"] != had[0]["answer"]), None)
    for row in (had[0], other) if other is not None else ():
        arguments = decode(str(row["asked"]).removeprefix(f"{one.takes.name} ").encode())
        if is_object(arguments) and not await _stays(calls, one, row, arguments):
            return False
    return judge_http(calls.notes.as_json()).why == "results_vary"


async def _stays(calls: Calls, one: AskableService, row: JsonObject, arguments: JsonObject) -> bool:
    """Repeat a call until the answer is identical; return whether function stays proven.

    An answer that is only similar, as prices and clocks are, may be invented and similar by chance.
    """
    for _ in range(REPEATS_MAX):
        await one.send(arguments)
        if judge_http(calls.notes.as_json()).why != "results_vary":
            return False
        if calls.notes.rows[-1]["answer"] == row["answer"]:
            break
    return True


def _is_lost(calls: Calls, one: AskableService) -> bool:
    """Return whether it refuses everything, and does not tell what it knows."""
    mine = [row for row in calls.notes.rows if row.get("tool") == one.takes.name[:200]]
    refused = [str(row["answer"]) for row in mine if row["class"] == "not_found"]
    return len(mine) == len(refused) >= REFUSED_MAX and not tells_known(refused[0])


def _valid(calls: Calls, one: AskableService) -> list[JsonObject]:
    rows = calls.notes.rows
    return [r for r in rows if r.get("tool") == one.takes.name[:200] and bool(r.get("valid"))]


async def get(
    calls: Calls,
    role: str,
    name: str,
    request: OutboundRequest,
    arguments: JsonObject,
    schema: JsonValue = None,
) -> None:
    """Send a request and record the answer. Waits as requested, within reason.

    The role is `shown` for inputs that the owner shows: an answer may be prepared for them.
    """
    asked = asked_as(name, arguments)
    more: JsonObject = {"tool": name[:200], "input": bool(arguments), "sizes": _sizes(request)}
    if any(row["asked"] == asked[:ASKED_CHARS_MAX] for row in calls.notes.rows):
        request = replace(request, headers={**request.headers, **VisitHttp.REPEAT})
    for attempt in range(RETRIES_MAX):
        try:
            reply = await calls.visit.http.send(request, _LIMITS)
        except BudgetExhausted:
            calls.notes.add(role, asked, "cut", "", more)
            raise
        except EgressError as error:
            found = "timeout" if error.failure is Failure.TIMEOUT else answer_class(error.failure)
            calls.notes.add(role, asked, found, "", more)
            return
        wait_s = retry_after_s(reply)
        if wait_s is None or wait_s > RETRY_WAIT_S or attempt + 1 == RETRIES_MAX:
            _note(calls, role, asked, reply, schema, more)
            return
        await asyncio.sleep(wait_s)
        request = OutboundRequest(
            request.method,
            request.url,
            {**request.headers, "cache-control": "no-cache"},
            request.body,
        )


def _sizes(request: OutboundRequest) -> list[int]:
    """Return the lengths of a request and its parts: an answer that repeats them proves nothing."""
    path, _, query = request.url.partition("://")[2].partition("/")[2].partition("?")
    text = (request.body or b"").decode("utf-8", "replace")
    document = decode(request.body or b"")
    members = [*document.values()] if is_object(document) else []
    written = [json.dumps(v, separators=by) for v in members for by in (None, (",", ":"))]
    lengths = len(path) + 1, len(query), len(request.body or b""), len(text), len(text.split())
    lengths = *lengths, *map(len, written)
    return sorted({length for length in lengths if length >= SIZE_MIN})


def _messages(document: JsonValue) -> str:
    """Return the errors of a GraphQL answer without data, or the error of JSON-RPC."""
    if not is_object(document):
        return ""
    if is_envelope(document) and document.get("error"):
        return "\n".join(leaves(document["error"]))
    errors = None if document.get("data") else document.get("errors")
    rows = [error for error in errors if is_object(error)] if is_array(errors) else []
    return "\n".join(str(row.get("message") or "") for row in rows)


def _is_refused(said: str) -> bool:
    return says_not_found(said) or declines(said)


def _note(
    calls: Calls, role: str, asked: str, reply: EgressResponse, schema: JsonValue, more: JsonObject
) -> None:
    document = decode(reply.body)
    refused = _messages(document)
    if is_object(document) and is_envelope(document) and "result" in document:
        document = document["result"]
    said = (
        "\n".join(leaves(document, with_keys=True))
        if document is not None
        else reply.body[:8000].decode("utf-8", "replace")
    )
    found: str = answer_class(reply)
    if reply.status in NOT_FOUND or (found == "ok" and _is_refused(said)):
        found = "not_found"
    elif found == "busy" and retry_after_s(reply) is not None:
        found = "busy_for"
    if found in {"ok", "not_found"} and refused:
        found, said = "not_found", refused  # As GraphQL refuses, with a success status.
    is_shaped = found == "ok" and is_valid(document, schema, calls.root)
    if found == "ok" and calls.refuses_pages and is_html(reply):
        found, is_shaped = "page", False
    elif found == "ok" and not is_shaped:
        found = "invalid"
    calls.notes.add(role, asked, found, said, {**more, "valid": is_shaped})
    if is_shaped:
        calls.results.append((str(more["tool"]), document))
