"""Calls of a proof of function over plain HTTP, and what is noted of their answers."""

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
"""Calls that are answered, and as many that want to be paid or to know who asks."""

TRIES_MAX = 6
"""Calls of one operation while its answers do not differ."""

REFUSED_MAX = 4
"""Refusals of one operation that do not say what it knows."""

SIZE_MIN = 5
"""Lengths of requests from which on an answer may say so; smaller numbers are answers."""

NOT_FOUND = frozenset({404, 410, 422, 400})
_LIMITS = Limits(connect_s=2.0, total_s=ANSWER_WAIT_S, body_bytes_max=256 * 1024)


@dataclass(slots=True)
class Calls:
    """What one proof sends, and what came back for later calls to use."""

    visit: ProbeSession
    notes: Transcript
    random: Random
    root: JsonValue = None
    published: JsonValue = None
    refuses_pages: bool = False
    """Whether a page for people is no answer."""
    results: list[tuple[str, JsonValue]] = field(default_factory=list[tuple[str, JsonValue]])

    def new_arguments(self, one: Takes) -> JsonObject | None:
        """As `other_arguments`; results of others are values for it."""
        elsewhere = [found for found in self.results if found[0] != one.name[:200]]
        pools = pools_of(elsewhere, self.published, self.random)
        return other_arguments(one, self.notes.rows, pools, self.random)

    @property
    def is_over(self) -> bool:
        """Whether enough was asked."""
        closed = self.closed()
        return max(closed, len(self.notes.rows) - closed) >= CALLS_MAX

    def closed(self, name: str | None = None) -> int:
        """Calls, of one operation or all, that want to be paid or to know who asks."""
        rows = [row for row in self.notes.rows if row["class"] == "closed"]
        return sum(name is None or row.get("tool") == name[:200] for row in rows)


@dataclass(frozen=True, slots=True)
class AskableService:
    """Something that can be asked for different things."""

    takes: Takes
    send: Callable[[JsonObject], Awaitable[None]]
    """Asks it with these arguments, and notes what comes back."""


async def varies(calls: Calls, one: AskableService) -> bool:
    """Ask for different things, then for two of them again; whether that shows that it works.

    What is made up, or counts, is not the same again.
    """
    for _ in range(TRIES_MAX):
        arguments = calls.new_arguments(one.takes)
        if arguments is None or calls.is_over:
            break
        await one.send(arguments)
        is_proven = judge_http(calls.notes.as_json()).why == "results_vary"
        # Other arguments change nothing of a demand for payment.
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
    """Ask again until the same comes word for word, a few times; whether nothing else spoke up.

    What comes near again, as prices and clocks do, may be made up and near by chance.
    """
    for _ in range(REPEATS_MAX):
        await one.send(arguments)
        if judge_http(calls.notes.as_json()).why != "results_vary":
            return False
        if calls.notes.rows[-1]["answer"] == row["answer"]:
            break
    return True


def _is_lost(calls: Calls, one: AskableService) -> bool:
    """Whether it refuses everything, and does not say what it knows: another may say more."""
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
    """Ask and note. A demand to wait is obeyed within reason.

    The role is `shown` for what its owner shows: an answer may be prepared for it.
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
    """How long a request is, and its parts: an answer that says so shows no work."""
    path, _, query = request.url.partition("://")[2].partition("/")[2].partition("?")
    text = (request.body or b"").decode("utf-8", "replace")
    document = decode(request.body or b"")
    members = [*document.values()] if is_object(document) else []
    written = [json.dumps(v, separators=by) for v in members for by in (None, (",", ":"))]
    lengths = len(path) + 1, len(query), len(request.body or b""), len(text), len(text.split())
    lengths = *lengths, *map(len, written)
    return sorted({length for length in lengths if length >= SIZE_MIN})


def _messages(document: JsonValue) -> str:
    """What the errors of a GraphQL answer without data say, or the error of JSON-RPC."""
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
        found, said = "not_found", refused  # as GraphQL refuses, with the status of success
    is_shaped = found == "ok" and is_valid(document, schema, calls.root)
    if found == "ok" and calls.refuses_pages and is_html(reply):
        found, is_shaped = "page", False
    elif found == "ok" and not is_shaped:
        found = "invalid"
    calls.notes.add(role, asked, found, said, {**more, "valid": is_shaped})
    if is_shaped:
        calls.results.append((str(more["tool"]), document))
