"""Whether an MCP server keeps to the protocol: handshake, tools, refusals."""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from assay.common.json import JsonObject, JsonValue, canonical_bytes, is_array, is_object
from assay.probing.ports import (
    AgentCallFailed,
    Finding,
    McpConversation,
    McpTool,
    ProbeSession,
    Severity,
    probe,
)
from assay.probing.probe_client import canary, failure_class, first

T = TypeVar("T")

_CLOSED = Finding("not_tested", "The MCP server wants credentials, payment or time first.")


async def _asked(
    visit: ProbeSession, question: Callable[[McpConversation], Awaitable[T]]
) -> T | AgentCallFailed | None:
    """Return the response of the first MCP server, or the failure of its call.

    None if the agent has no such server, or the session could not begin or end.
    """
    service = first(visit, "mcp")
    if service is None:
        return None
    try:
        async with visit.dialers.mcp(service.service.endpoint, visit.http) as server:
            try:
                return await question(server)
            except AgentCallFailed as error:
                return error
    except AgentCallFailed:
        return None


def _weigh_mcp_initialize(seen: JsonObject) -> Finding:
    answer = seen["answer"]
    if answer == "ok":
        return Finding("pass", "A stock MCP client can connect.")
    if answer in {"closed", "busy"}:
        return _CLOSED
    return Finding("fail", "A stock MCP client cannot connect.")


@probe("mcp_initialize", "mcp", Severity.MAJOR, weigh=_weigh_mcp_initialize)
async def mcp_initialize(visit: ProbeSession) -> JsonObject | None:
    """Requires that the official client connects and negotiates a protocol version.

    Source: MCP specification, lifecycle.
    """
    service = first(visit, "mcp")
    if service is None:
        return None
    try:
        async with visit.dialers.mcp(service.service.endpoint, visit.http) as server:
            return {"answer": "ok", "version": server.protocol_version}
    except AgentCallFailed as error:
        return {"answer": failure_class(error), "version": None}


_NAME = re.compile(r"[A-Za-z0-9_.\-/]{1,128}")
"""Source: MCP specification 2025-11-25, tool names (with the slash that earlier ones use)."""

_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
"""Source: JSON Schema 2020-12 validation, section 6.1.1."""

_ONE = ("items", "not", "additionalProperties", "propertyNames", "contains", "if", "then", "else")

_MANY = ("allOf", "anyOf", "oneOf", "prefixItems")

_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")

DEPTH_MAX = 24
"""Deeper schemas are not followed further; that does not count against the server."""


def _weigh_mcp_tools_valid(seen: JsonObject) -> Finding:
    wrong = seen["wrong"]
    if seen["listed"] in {"closed", "busy"}:
        return _CLOSED
    if seen["listed"] != "ok":
        return Finding("fail", "The MCP server does not list its tools.")
    if is_array(wrong) and wrong:
        listed = ", ".join(str(what) for what in wrong)
        return Finding("fail", f"Tools are not described as MCP requires: {listed}.")
    return Finding("pass", "Every tool is described as MCP requires.")


@probe("mcp_tools_valid", "mcp", Severity.MAJOR, weigh=_weigh_mcp_tools_valid)
async def mcp_tools_valid(visit: ProbeSession) -> JsonObject | None:
    """Requires well-formed, unique names, and input schemas that are JSON Schemas of an object.

    Source: MCP specification, server/tools.
    """
    tools = await _asked(visit, lambda server: server.list_tools())
    if tools is None:
        return None
    if isinstance(tools, AgentCallFailed):
        return {"listed": failure_class(tools), "wrong": []}
    return {"listed": "ok", "wrong": sorted(set(_wrong(tools)))}


def _wrong(tools: Sequence[McpTool]) -> Iterable[str]:
    names = [tool.name for tool in tools]
    if len(set(names)) < len(names):
        yield "a name used twice"
    if not all(_NAME.fullmatch(name) for name in names):
        yield "a malformed name"
    if not all(tool.input_schema.get("type") == "object" for tool in tools):
        yield "an input schema that is not of an object"
    if not all(_is_schema(tool.input_schema, DEPTH_MAX) for tool in tools):
        yield "an invalid input schema"


def _is_schema(schema: JsonValue, depth: int) -> bool:
    """Return whether the structure is a JSON Schema's: keywords that contain schemas do so."""
    if isinstance(schema, bool) or depth == 0:
        return True
    if not is_object(schema) or not _has_types(schema) or not _has_required(schema):
        return False
    inner: list[JsonValue] = [schema[key] for key in _ONE if key in schema]
    for key in _MANY:
        listed = schema.get(key, [])
        if not is_array(listed):
            return False
        inner += listed
    for key in _NAMED:
        named = schema.get(key, {})
        if not is_object(named):
            return False
        inner += named.values()
    return all(_is_schema(each, depth - 1) for each in inner)


def _has_types(schema: JsonObject) -> bool:
    declared = schema.get("type", [])
    types = declared if is_array(declared) and not isinstance(declared, str) else [declared]
    return all(isinstance(t, str) and t in _TYPES for t in types)


def _has_required(schema: JsonObject) -> bool:
    required = schema.get("required", [])
    return is_array(required) and all(isinstance(name, str) for name in required)


def _weigh_mcp_tools_stable(seen: JsonObject) -> Finding:
    if seen["listed"] in {"closed", "busy"}:
        return _CLOSED
    if seen["listed"] != "ok":
        return Finding("fail", "The MCP server does not list its tools twice.")
    if seen["stable"]:
        return Finding("pass", "The tools are the same when listed again.")
    return Finding("fail", "The tools change between two listings.")


@probe("mcp_tools_stable", "mcp", Severity.MAJOR, weigh=_weigh_mcp_tools_stable)
async def mcp_tools_stable(visit: ProbeSession) -> JsonObject | None:
    """Requires the same names, descriptions and schemas of tools in two listings.

    A tool that changes after it was inspected obtains approval for one thing and uses it for
    another.

    Source: checks.md#mcp-services (rug pull).
    """
    stable = await _asked(visit, _is_stable)
    if stable is None:
        return None
    if isinstance(stable, AgentCallFailed):
        return {"listed": failure_class(stable), "stable": False}
    return {"listed": "ok", "stable": stable}


async def _is_stable(server: McpConversation) -> bool:
    return await _listing(server) == await _listing(server, again=True)


async def _listing(server: McpConversation, *, again: bool = False) -> frozenset[object]:
    tools = await server.list_tools(again=again)
    return frozenset((t.name, t.description, _canonical(t.input_schema)) for t in tools)


def _canonical(schema: JsonObject) -> bytes:
    try:
        return canonical_bytes(schema)
    except ValueError:
        return repr(schema).encode("utf-8", "replace")


WRONG: Mapping[str, JsonValue] = {
    "string": {"assay": []},
    "integer": "assay-is-not-a-number",
    "number": "assay-is-not-a-number",
    "boolean": "assay-is-not-a-truth-value",
    "array": "assay-is-not-a-list",
    "object": "assay-is-not-an-object",
}
"""By declared type, a value that no lenient parser converts to it."""


def _weigh_mcp_bad_arguments_refused(seen: JsonObject) -> Finding:
    answer = seen["answer"]
    if answer == "error":
        return Finding("pass", "Arguments of the wrong type are refused.")
    if answer in {"closed", "busy"}:
        return _CLOSED
    if answer == "ok":
        return Finding("fail", "A tool accepts arguments that its own schema forbids.")
    return Finding("fail", "Arguments of the wrong type get no valid answer.")


@probe("mcp_bad_arguments_refused", "mcp", Severity.MINOR, weigh=_weigh_mcp_bad_arguments_refused)
async def mcp_bad_arguments_refused(visit: ProbeSession) -> JsonObject | None:
    """Requires an error from a read-only tool called with a wrong type; calls no other tools.

    Source: MCP specification, server/tools.
    """
    answer = await _asked(visit, _answer_to_bad_arguments)
    return {"answer": answer} if isinstance(answer, str) else None


async def _answer_to_bad_arguments(server: McpConversation) -> str | None:
    for tool in sorted(await server.list_tools(), key=lambda tool: tool.name):
        if tool.read_only and (arguments := _bad_arguments(tool)):
            return await _called(server, tool.name, arguments)
    return None


async def _called(server: McpConversation, tool: str, arguments: JsonObject) -> str:
    try:
        result = await server.call_tool(tool, arguments)
    except AgentCallFailed as error:
        return failure_class(error)
    return "error" if result.get("isError") is True else "ok"


def _bad_arguments(tool: McpTool) -> JsonObject | None:
    """Return arguments with a wrong type for every required one of a plain type."""
    properties, required = tool.input_schema.get("properties"), tool.input_schema.get("required")
    if not is_object(properties) or not is_array(required):
        return None
    wrong: dict[str, JsonValue] = {}
    for name in required:
        declared = properties.get(str(name))
        kind = declared.get("type") if is_object(declared) else None
        if isinstance(kind, str) and kind in WRONG:
            wrong[str(name)] = WRONG[kind]
    return wrong or None


def _weigh_mcp_unknown_tool_refused(seen: JsonObject) -> Finding:
    answer = seen["answer"]
    if answer == "error":
        return Finding("pass", "A tool that does not exist is refused.")
    if answer in {"closed", "busy"}:
        return _CLOSED
    if answer == "ok":
        return Finding("fail", "A tool that does not exist is answered with success.")
    return Finding("fail", "Calling a tool that does not exist gets no valid answer.")


@probe("mcp_unknown_tool_refused", "mcp", Severity.MINOR, weigh=_weigh_mcp_unknown_tool_refused)
async def mcp_unknown_tool_refused(visit: ProbeSession) -> JsonObject | None:
    """Requires a protocol error, or a result marked as an error.

    Source: MCP specification, tools (error handling).
    """
    answer = await _asked(visit, lambda server: _called(server, canary(visit, "unknown tool"), {}))
    return {"answer": answer} if isinstance(answer, str) else None
