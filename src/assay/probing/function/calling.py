"""Makes the calls of a proof of function over plain HTTP, and records their answers."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from random import Random

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.net.egress.ports import EgressError, EgressResponse, Failure, Limits, OutboundRequest
from assay.probing.function.arguments import pools_of
from assay.probing.function.choosing import Takes, asked_as, other_arguments
from assay.probing.function.conversation import ANSWER_WAIT_S, RETRIES_MAX, RETRY_WAIT_S
from assay.probing.function.declines import declines
from assay.probing.function.refusals import tells_known
from assay.probing.function.rpc_methods import is_envelope
from assay.probing.function.shapes import is_valid
from assay.probing.function.tools import REPEATS_MAX, SAME_MAX, says_not_found
from assay.probing.function.transcript import ASKED_CHARS_MAX, Transcript
from assay.probing.function.verdicts import judge_http
from assay.probing.function.words import leaves
from assay.probing.ports import BudgetExhausted, ProbeSession
from assay.probing.probe_client import answer_class, decode, is_html, retry_after_s
from assay.probing.session import VisitHttp

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
