"""Proof that an MCP server works: read-only tools, with honest arguments.

Source: evidence.md#tools.
"""

import asyncio
from collections.abc import Sequence
from random import Random

from assay.common.json import JsonObject, JsonValue, is_array, is_object
from assay.probing.function.acts import does_act
from assay.probing.function.arguments import pools_of
from assay.probing.function.choosing import Takes, asked_as, other_arguments
from assay.probing.function.conversation import (
    ANSWER_WAIT_S,
    RETRIES_MAX,
    RETRY_WAIT_S,
    Transcript,
    random_for,
    spoken,
)
from assay.probing.function.examples import is_offered, published_inputs
from assay.probing.function.formats import checks_numbers, is_valid
from assay.probing.function.identify import Address, failure_of
from assay.probing.function.text_variation import unquoted
from assay.probing.function.verdicts import judge
from assay.probing.function.words import declines
from assay.probing.ports import (
    AgentCallFailed,
    BudgetExhausted,
    McpConversation,
    McpTool,
    ProbeSession,
)
from assay.probing.probe_client import decode

CALLS_MAX = 10
"""Calls of tools for one proof."""

TRIES_MAX = 5
"""Calls of one tool until two of them have a result."""

REPEATS_MAX = 3
"""How often a call is repeated while its figures are close, but not equal."""

SAME_MAX = 3
"""Equal results of one tool after which another is called."""

NOT_FOUND_CHARS_MAX = 200
_NOT_FOUND = (
    "not found",
    "no results",
    "unknown",
    "does not exist",
    "no such",
    "no match",
    "nothing match",
    "404",
    "invalid",
    "nicht gefunden",
    "no encontrado",
    "introuvable",
    "não encontrado",
    "не найден",
    "未找到",
    "見つかりません",
    "찾을 수 없",
)
_NOTHING = frozenset({"", "null", "none", "[]", "{}", "false"})


async def prove_tools(visit: ProbeSession, address: Address, notes: Transcript) -> None:
    """Call until function is proven or the visit's time or requests end."""
    random = random_for(visit, address.service.endpoint)
    try:
        async with visit.dialers.mcp(address.service.endpoint, visit.http) as server:
            tools = sorted(await server.list_tools(), key=lambda tool: tool.name)
            notes.members["listed"] = len(tools)
            notes.know([[t.name, t.description, t.input_schema] for t in tools])
            published = await published_inputs(visit, address.url)
            safe = [tool for tool in tools if is_safe(tool, published)]
            await call_all(server, safe, notes, random, published)
            if not notes.rows or not tools:
                await _read(server, notes)
    except BudgetExhausted:
        notes.members["cut"] = True
    except AgentCallFailed as error:
        notes.add("list", "", failure_of(error), "", {})


def is_safe(tool: McpTool, published: JsonValue = None) -> bool:
    """Return whether a tool can be called without an act; in doubt it cannot.

    `published`: the owner's `testInputs`, for tools that do not describe themselves.
    """
    if tool.changes:
        return False
    if is_offered(tool.input_schema, published, tool.name, unquoted(tool.description)):
        return True
    if not does_act(tool.name, unquoted(tool.description), says_it_reads=tool.read_only):
        return True
    return not tool.read_only and _is_arithmetic(tool)


def _is_arithmetic(tool: McpTool) -> bool:
    """Return whether a tool takes only numbers, and mentions nobody's possessions."""
    properties = tool.input_schema.get("properties")
    rows = list(properties.values()) if is_object(properties) else []
    plain = all(is_object(r) and r.get("type") in {"number", "integer"} for r in rows)
    return plain and len(rows) > 1 and "numbers" in tool.description.casefold()


async def call_all(
    server: McpConversation,
    tools: Sequence[McpTool],
    notes: Transcript,
    random: Random,
    published: JsonValue,
) -> None:
    """Call tools without input first: their results are inputs for the others."""
    results: list[tuple[str, JsonValue]] = []
    plain = [tool for tool in tools if not _properties(tool)]
    others = [tool for tool in tools if _properties(tool)]
    random.shuffle(others)
    results += [(tool.name, await _call(server, tool, {}, notes)) for tool in plain[:2]]
    for tool in others:
        for _ in range(TRIES_MAX):
            elsewhere = [found for found in results if found[0] != tool.name]
            pools = pools_of(elsewhere, published, random)
            takes = Takes(tool.name, tool.input_schema, tool.description)
            arguments = other_arguments(takes, notes.rows, pools, random)
            if arguments is None or len(notes.rows) >= CALLS_MAX + len(plain[:2]):
                break
            results.append((tool.name, await _call(server, tool, arguments, notes)))
            if judge(notes.as_json()).why == "results_vary" or _results(notes, tool) > SAME_MAX:
                break
        if _results(notes, tool) > 1:
            await _repeat(server, tool, notes)
            if judge(notes.as_json()).why == "results_vary":
                return


def _results(notes: Transcript, tool: McpTool) -> int:
    return sum(row.get("tool") == tool.name[:200] and row["class"] == "ok" for row in notes.rows)


async def _repeat(server: McpConversation, tool: McpTool, notes: Transcript) -> None:
    """Repeat a tool's answered call; a second one too if the figures are short.

    Invented answers change. Answers that are only close, as prices and clocks are, may be close by
    chance: they are requested again.
    """
    had = [r for r in notes.rows if r.get("tool") == tool.name[:200] and r["class"] == "ok"]
    other = next((row for row in had if row["answer"] != had[0]["answer"]), None)
    few = other is not None and all(_digits(row) < _DIGITS_TELL for row in (had[0], other))
    for row in (had[0], other) if other is not None and few else had[:1]:
        arguments = decode(str(row["asked"]).removeprefix(tool.name + " ").encode())
        for _ in range(REPEATS_MAX):
            if not is_object(arguments):
                return
            await _call(server, tool, arguments, notes)
            if judge(notes.as_json()).why != "results_vary":
                return
            if notes.rows[-1].get("answer") == row["answer"]:
                break


def _digits(row: JsonObject) -> int:
    return sum(character.isdigit() for character in str(row["answer"]))


_DIGITS_TELL = 4
"""This many digits are repeated by chance once in ten thousand."""


async def _call(
    server: McpConversation, tool: McpTool, arguments: JsonObject, notes: Transcript
) -> JsonValue:
    """Call and record; return the result, for other calls to use."""
    asked = asked_as(tool.name, arguments)
    more: JsonObject = {"tool": tool.name[:200], "input": bool(arguments)}
    for attempt in range(RETRIES_MAX):
        try:
            result = await server.call_tool(tool.name, arguments, wait_s=ANSWER_WAIT_S)
        except BudgetExhausted:
            notes.add("call", asked, "cut", "", more)
            raise
        except AgentCallFailed as error:
            is_last = attempt + 1 == RETRIES_MAX
            if error.retry_s is None or error.retry_s > RETRY_WAIT_S or is_last:
                notes.add("call", asked, failure_of(error), "", more)
                return None
            await asyncio.sleep(error.retry_s)
        else:
            return _note(result, tool, asked, notes, more)
    return None


def _note(
    result: JsonObject, tool: McpTool, asked: str, notes: Transcript, more: JsonObject
) -> JsonValue:
    said = spoken(result)
    structured = result.get("structuredContent")
    has_shape = tool.output_schema is None or (
        structured is not None and is_valid(structured, tool.output_schema)
    )
    is_declined = declines(said) and not checks_numbers(tool.description)
    if result.get("isError") is True or says_not_found(said) or is_declined:
        notes.add("call", asked, "not_found", said, more)
        return None
    found = "ok" if has_shape else "invalid"
    notes.add("call", asked, found, said, {**more, "valid": has_shape})
    return structured if structured is not None else decode(said.encode()) or said


def says_not_found(said: str) -> bool:
    """Return whether a short answer says that there is no such thing."""
    plain = said.strip().casefold()
    if plain in _NOTHING:
        return plain != "false"
    return len(plain) <= NOT_FOUND_CHARS_MAX and any(mark in plain for mark in _NOT_FOUND)


async def _read(server: McpConversation, notes: Transcript) -> None:
    content = await server.read_first()
    if content is not None:
        notes.members["readable"] = True
        notes.add("read", "", "ok", spoken(content), {"valid": True})


def _properties(tool: McpTool) -> bool:
    properties = tool.input_schema.get("properties")
    return is_object(properties) and bool(properties) and not is_array(properties)
