"""Secrets on wrong input and other customers' data are found, as tools and as operations."""

import json
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import parse_qs, urlsplit

import pytest
from typing_extensions import override

from assay.common.json import JsonObject, JsonValue
from assay.net.egress.ports import EgressResponse, OutboundRequest
from assay.probing.findings import confirmed, finding_rows
from assay.probing.ports import McpTool, ProbeSession
from assay.probing.probes.leaks import CUSTOMERS, no_leaked_secrets
from assay.probing.wrong_values import neighbours_disclosed, wrongly_asked
from tests.probing.unit.test_probe_collects import Lines, Server, visit
from tests.probing.unit.test_probe_visiting import Scripted
from tests.support.fakes.leaking_records import RECORDS, Records
from tests.support.fakes.leaking_talk import LEAKS, halves

VISITS = 4


class Looking(Server):
    """A server of one read-only tool that looks something up."""

    def __init__(self, records: Records) -> None:
        schema: JsonObject = {
            "type": "object",
            "properties": {records.argument: records.schema},
            "required": [records.argument],
        }
        super().__init__([McpTool("look", records.about, schema, read_only=True)], None)
        self.look, self.asked = records.make(), list[JsonObject]()

    @override
    async def call_tool(self, name: str, arguments: JsonObject) -> JsonObject:
        self.asked.append(arguments)
        is_result, text = self.look(arguments)
        return {"isError": not is_result, "content": [{"type": "text", "text": text}]}


def as_tool(records: Records) -> ProbeSession:
    lines = Lines()
    lines.server = Looking(records)
    return visit(lines=lines, mcp="https://words.example/mcp")


def as_operation(records: Records) -> ProbeSession:
    look = records.make()
    parameter = {
        "name": records.argument,
        "in": "query",
        "required": True,
        "schema": records.schema,
    }
    document = {
        "openapi": "3.1.0",
        "paths": {"/look": {"get": {"summary": records.about, "parameters": [parameter]}}},
    }

    def react(request: OutboundRequest) -> EgressResponse:
        parts = urlsplit(request.url)
        given: Mapping[str, list[str]] = parse_qs(parts.query)
        if parts.path == "/openapi.json":
            return reply(200, json.dumps(document))
        if parts.path != "/look":
            return reply(404, "no such page")
        values = {name: typed(value[0], records.schema) for name, value in given.items()}
        is_result, text = look(values)
        return reply(200 if is_result else 422, text)

    return visit(http=Scripted(react), web="https://words.example")


def typed(value: str, schema: JsonObject) -> JsonValue:
    is_number = schema["type"] == "integer" and value.lstrip("-").isdigit()
    return int(value) if is_number else value


def reply(status: int, body: str) -> EgressResponse:
    return EgressResponse(status, (), body.encode(), truncated=False, elapsed_ms=1.0)


async def is_found(on: ProbeSession, visits: int) -> bool:
    rows = list[list[JsonObject]]()
    for number in range(visits):
        fresh = replace(on, nonce=f"visit {number}", asked=type(on.asked)())
        what = await no_leaked_secrets.collect(fresh)
        found = (
            finding_rows(
                {no_leaked_secrets.name: what}, {no_leaked_secrets.name: no_leaked_secrets}
            )
            if what
            else []
        )
        rows.append([row for row in found if isinstance(row, dict)])
    return no_leaked_secrets.name in confirmed(rows)


@pytest.mark.parametrize("name", [name for half in halves([*RECORDS]) for name in half])
async def test_wrong_input_gives_something_away_or_not(name: str) -> None:
    records = RECORDS[name]
    leaks = records.verdict == LEAKS
    for on in (as_tool(records), as_operation(records)):
        assert await is_found(on, VISITS if leaks else 3 * VISITS) == leaks


async def test_an_unannounced_visit_asks_what_customers_ask_by_mistake() -> None:
    lines = Lines()
    lines.server = server = Looking(RECORDS["shows the orders of others"])
    on = replace(visit(lines=lines, mcp="https://words.example/mcp"), announced=False)
    assert len(await wrongly_asked(on)) == 2
    assert all(isinstance(asked["order"], int) for asked in server.asked)
    assert await neighbours_disclosed(on) == 0
    assert len(server.asked) == 2


async def test_nothing_of_a_customer_is_kept() -> None:
    what = await no_leaked_secrets.collect(as_tool(RECORDS["shows the orders of others"]))
    assert what is not None
    assert what["leaked"] == [CUSTOMERS]
    assert "post.example" not in json.dumps(what)
    assert "Quay" not in json.dumps(what)
