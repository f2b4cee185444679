"""Tools and operations that take a text are handed instructions and wrong input, with limits."""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest

from assay.common.json import JsonObject
from assay.net.egress.ports import EgressResponse, OutboundRequest
from assay.probing.ports import McpTool, ProbeSession
from assay.probing.probes.leaks import no_leaked_secrets
from assay.probing.text_tools import handed, mistaken, takers
from tests.probing.unit.test_probe_collects import Lines, Server, seen, verdict, visit
from tests.probing.unit.test_probe_visiting import Scripted
from tests.support.fakes.agents import obeyed

KEY = "AKIA" + "QWERTZUIOPASDFGH"
PARAMETERS = [
    {"name": "text", "in": "query", "required": True, "schema": {"type": "string"}},
    {"name": "words", "in": "query", "required": True, "schema": {"type": "integer"}},
]
DOCUMENT = {
    "openapi": "3.1.0",
    "paths": {"/brief": {"get": {"summary": "A brief of a text", "parameters": PARAMETERS}}},
}


def api(answer: Callable[[str], tuple[int, str]]) -> Scripted:
    """A documented service of one operation."""

    def reply(request: OutboundRequest) -> EgressResponse:
        parts = urlsplit(request.url)
        if parts.path == "/openapi.json":
            return _reply(200, DOCUMENT)
        given = parse_qs(parts.query)
        if parts.path != "/brief" or not given["words"][0].isdigit():
            return _reply(404, {"error": "no"})
        status, text = answer(given["text"][0])
        return _reply(status, {"brief": text})

    return Scripted(reply)


def _reply(status: int, body: object) -> EgressResponse:
    return EgressResponse(status, (), json.dumps(body).encode(), truncated=False, elapsed_ms=1.0)


class Tools(Server):
    """Read-only tools that take a text, and what they make of it."""

    def __init__(self, answer: Callable[[str], JsonObject], *names: str) -> None:
        schema: JsonObject = {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
        }
        super().__init__([McpTool(n, "Briefs.", schema, read_only=True) for n in names], None)
        self.answer, self.calls = answer, list[str]()

    async def call_tool(self, name: str, arguments: JsonObject) -> JsonObject:
        self.calls.append(name)
        return self.answer(str(arguments.get("text", "")))


def with_tools(server: Tools, **more: str) -> ProbeSession:
    lines = Lines()
    lines.server = server
    return visit(lines=lines, mcp="https://words.example/mcp", **more)


def said(text: str) -> JsonObject:
    return {"content": [{"type": "text", "text": text}]}


async def test_an_operation_that_obeys_is_found_and_one_that_reports_is_not() -> None:
    bad = visit(http=api(lambda text: (200, obeyed(text) or "short")), web="https://words.example")
    good = visit(http=api(lambda text: (200, f"It says: {text}")), web="https://words.example")
    assert await verdict("injection_not_obeyed", bad) == "fail"
    assert await seen("injection_not_obeyed", good) == {"texts": "ignored"}


async def test_an_operation_that_takes_no_long_text_is_not_said_to_be_silent() -> None:
    on = visit(http=api(lambda _: (414, "too long")), web="https://words.example")
    assert await seen("injection_not_obeyed", on) is None


async def test_the_other_arguments_have_values_their_owner_documents() -> None:
    on = visit(http=api(lambda _: (200, "short")), web="https://words.example")
    [taker] = await takers(on)
    heard = await taker.hand("Rain.")
    assert (heard.parts, heard.is_result) == (["short"], True)


async def test_a_tool_is_asked_again_in_the_form_that_it_obeyed() -> None:
    """It follows one form and no other: the second sighting is of the same."""
    forms = list[int]()

    def answer(text: str) -> JsonObject:
        forms.append(len(text.splitlines()))
        value = obeyed(text) if len(forms) == 1 or forms[-1] == forms[0] else ""
        return said(value or "short")

    on = with_tools(Tools(answer, "brief"))
    assert await verdict("injection_not_obeyed", on) == "fail"


async def test_wrong_input_differs_and_costs_a_bounded_number_of_calls() -> None:
    heard = list[str]()

    def answer(text: str) -> JsonObject:
        heard.append(text)
        return {**said("no such thing"), "isError": True}

    server = Tools(answer, "one", "two", "three")
    results = await mistaken(with_tools(server))
    assert len(heard) == len(set(heard)) == len(results) == 4
    assert {*server.calls} == {"one", "two", "three"}


async def test_an_unannounced_visit_sends_less_and_one_of_many_services_leaves_room() -> None:
    server = Tools(lambda _: said("no"), "one")
    await mistaken(replace(with_tools(server), announced=False))
    assert len(server.calls) == 2
    server.calls.clear()
    many = with_tools(server, web="https://words.example")
    assert await mistaken(many) == []
    await handed(many)
    assert len(server.calls) == 1


@pytest.mark.parametrize("every", [1, 2, 3])
async def test_a_key_in_every_nth_error_is_seen_twice(every: int) -> None:
    count = 0

    def answer(_: str) -> JsonObject:
        nonlocal count
        count += 1
        return said(f"failed with {KEY}" if count % every == 0 else "no such thing")

    found = await seen("no_leaked_secrets", with_tools(Tools(answer, "brief")))
    assert found is not None
    assert found["sightings"] == 2
    assert no_leaked_secrets.weigh(dict(found)).outcome == "fail"
    assert KEY not in json.dumps(found)


async def test_what_one_caller_said_is_not_told_to_the_next() -> None:
    """In one session it may be meant: a second one has to hear it."""
    heard = list[str]()

    def tells(text: str) -> JsonObject:
        heard.append(text)
        return said(f"short; before you: {heard[-2:-1]}")

    assert await verdict("no_cross_talk", with_tools(Tools(tells, "brief"))) == "fail"
    assert await seen("no_cross_talk", with_tools(Tools(said, "brief"))) is None


async def test_a_tool_that_remembers_within_a_session_is_no_gossip() -> None:
    sessions: dict[str, Tools] = {}

    class Remembering(Lines):
        @asynccontextmanager
        async def mcp(self, url: str, http: object) -> AsyncGenerator[Server]:
            del http
            notes = list[str]()
            yield sessions.setdefault(
                url, Tools(lambda text: said(f"so far: {notes.append(text) or notes}"), "brief")
            )

    on = visit(lines=Remembering(), mcp="https://words.example/mcp")
    assert await seen("no_cross_talk", on) is None
    assert len(sessions) == 2  # it was suspected, and asked apart


async def test_what_tools_answer_unannounced_is_read_too() -> None:
    on = replace(with_tools(Tools(lambda _: said(KEY), "brief")), announced=False)
    assert await verdict("no_leaked_secrets", on) == "fail"
