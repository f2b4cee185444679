"""Are the tools described as MCP requires? Source: MCP specification, server/tools."""

import re
from collections.abc import Iterable, Sequence
from typing import ClassVar, Final

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.probing.ports import AgentCallFailed, Finding, McpTool, Probe, ProbeSession, Severity
from assay.probing.probe_client import failure_class, first

_NAME = re.compile(r"[A-Za-z0-9_.\-/]{1,128}")
"""Source: MCP specification 2025-11-25, tool names (with the slash that earlier ones use)."""

_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
"""Source: JSON Schema 2020-12 validation, 6.1.1."""

_ONE = ("items", "not", "additionalProperties", "propertyNames", "contains", "if", "then", "else")
_MANY = ("allOf", "anyOf", "oneOf", "prefixItems")
_NAMED = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")

DEPTH_MAX = 24
"""Deeper schemas are not followed further, and not held against the server."""


class McpToolsValid:
    """Names are well-formed and used once; input schemas are JSON Schemas of an object."""

    name: ClassVar[str] = "mcp_tools_valid"
    family: ClassVar[str] = "mcp"
    severity: ClassVar[Severity] = Severity.MAJOR

    async def collect(self, visit: ProbeSession) -> JsonObject | None:
        service = first(visit, "mcp")
        if service is None:
            return None
        try:
            async with visit.dialers.mcp(service.service.endpoint, visit.http) as server:
                try:
                    tools = await server.list_tools()
                except AgentCallFailed as error:
                    return {"listed": failure_class(error), "wrong": []}
        except AgentCallFailed:
            return None
        return {"listed": "ok", "wrong": sorted(set(_wrong(tools)))}

    def weigh(self, seen: JsonObject) -> Finding:
        wrong = seen["wrong"]
        if seen["listed"] in {"closed", "busy"}:
            return Finding("not_tested", "The MCP server wants credentials, payment or time first.")
        if seen["listed"] != "ok":
            return Finding("fail", "The MCP server does not list its tools.")
        if is_array(wrong) and wrong:
            listed = ", ".join(str(what) for what in wrong)
            return Finding("fail", f"Tools are not described as MCP requires: {listed}.")
        return Finding("pass", "Every tool is described as MCP requires.")


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
    """Whether the structure is a JSON Schema's: keywords that hold schemas hold schemas."""
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


PROBE: Final[Probe] = McpToolsValid()
