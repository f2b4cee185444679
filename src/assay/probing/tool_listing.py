"""An MCP session shared by all probes of a visit, which lists its tools once for all."""

from collections.abc import Sequence
from dataclasses import dataclass

from assay.common.json import JsonObject
from assay.probing.ports import McpConversation, McpTool
from assay.probing.session_memo import AskedOnce

CALLS_KEPT = 24
"""Calls of a session whose results are kept for checks of the server's texts."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool call and its result."""

    name: str
    arguments: JsonObject
    result: JsonObject


class ListedOnce:
    """An `McpConversation` whose tools are listed once, and once more on demand."""

    def __init__(self, line: McpConversation) -> None:
        self._line = line
        self._asked = AskedOnce()
        self.protocol_version = line.protocol_version
        self.server_name = line.server_name
        self.instructions = line.instructions
        self.called: list[ToolCall] = []
        """The first calls of all probes and of the proof of function."""

    async def list_tools(self, *, again: bool = False) -> Sequence[McpTool]:
        """Return the first listing; with `again` the second one, shared by all that ask for it."""
        return await self._asked.get(f"tools {again}", self._line.list_tools)

    async def call_tool(
        self, name: str, arguments: JsonObject, wait_s: float | None = None
    ) -> JsonObject:
        """Implement `McpConversation.call_tool`."""
        result = await self._line.call_tool(name, arguments, wait_s)
        if len(self.called) < CALLS_KEPT:
            self.called.append(ToolCall(name, arguments, result))
        return result

    async def read_first(self) -> JsonObject | None:
        """Implement `McpConversation.read_first`, once."""
        return await self._asked.get("first", self._line.read_first)

    async def list_texts(self) -> Sequence[JsonObject]:
        """Implement `McpConversation.list_texts`."""
        return await self._line.list_texts()
