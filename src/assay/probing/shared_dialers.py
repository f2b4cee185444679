"""The conversations of one visit: opened once, shared by all its probes, and counted.

An MCP session shared by all probes of a visit, which lists its tools once for all.

Sources: conventions.md#behavioural-evidence; evidence.md#no-acts.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from assay.common.json import JsonObject, is_object
from assay.net.egress.ports import EgressClient
from assay.probing.ports import (
    A2aConversation,
    AgentCallFailed,
    AgentDialers,
    AskedOnce,
    BudgetExhausted,
    Callback,
    McpConversation,
    McpTool,
    PendingResult,
)
from assay.probing.result_callbacks import is_working, task_result

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


HANG_UP_S = 0.4
"""Time limit for ending a conversation: it yields no result, and is only polite."""

MESSAGES_MAX = 8
"""Messages of one visit that probably cost their owner a model call.
Source: evidence.md#no-acts."""

FUNCTION_MESSAGES_MAX = 5
"""How many of them proof of function may use, so that critical checks do not depend on what it
leaves over."""

ENDED_WITHIN_S, DELIVERED_WITHIN_S = 4.0, 15.0
"""How long to wait for the result of a task without a stated time: by polling, as long as for any
answer; by delivery, which costs the agent nothing."""

T = TypeVar("T")


class SharedDialers:
    """Connects to every address once a visit; all probes share that connection.

    A separate task holds it: the client libraries must be closed by the task that opened them.
    """

    def __init__(
        self,
        dialers: AgentDialers,
        group: asyncio.TaskGroup,
        may_send: Callable[[str], Awaitable[bool]] | None = None,
        callback: Callable[[], Awaitable[PendingResult | None]] | None = None,
    ) -> None:
        """Create it; `may_send` counts a message to an address in the daily limit.

        `callback` issues an address where the result of one message may be delivered.
        """
        self._dialers = dialers
        self._may_send = may_send
        self._callback = callback
        self._group = group
        self._over = asyncio.Event()
        self._patience: set[asyncio.Timeout] = set()
        self._mcp: dict[str, asyncio.Future[McpConversation]] = {}
        self._a2a: dict[str, asyncio.Future[A2aConversation]] = {}
        self._listed: dict[str, ListedOnce] = {}
        self._messages = 0
        self.answers: list[JsonObject] = []
        """Answers of A2A agents, to probes and to the proof of function; as many as messages."""

    @asynccontextmanager
    async def mcp(self, url: str, http: EgressClient) -> AsyncGenerator[McpConversation]:
        """Like `AgentDialers.mcp`; leaving the block does not close the connection."""
        line = await self._line(self._mcp, url, lambda: self._dialers.mcp(url, http))
        yield self._listed.setdefault(url, ListedOnce(line))

    @asynccontextmanager
    async def a2a(self, url: str, http: EgressClient) -> AsyncGenerator[A2aConversation]:
        """Like `AgentDialers.a2a`; leaving the block does not close the connection."""
        async with self.counted_a2a(url, http, MESSAGES_MAX) as line:
            yield line

    @asynccontextmanager
    async def counted_a2a(
        self, url: str, http: EgressClient, messages_max: int
    ) -> AsyncGenerator[A2aConversation]:
        """Like `a2a`, but without messages beyond that number of the visit."""
        line = await self._line(self._a2a, url, lambda: self._dialers.a2a(url, http))
        yield _Counted(line, self, messages_max)

    async def count_message(self, url: str, messages_max: int = MESSAGES_MAX) -> None:
        """Count a message; raises `BudgetExhausted` if it exceeds the limit."""
        if self._messages >= messages_max:
            raise BudgetExhausted
        self._messages += 1
        if self._may_send is not None and not await self._may_send(url):
            raise BudgetExhausted

    async def pending_result(self, card: JsonObject) -> PendingResult | None:
        """Return where an agent may deliver a result, if its card says that it delivers results."""
        if self._callback is None or not delivers(card):
            return None
        return await self._callback()

    def hang_up(self) -> None:
        """End every conversation; their tasks end within `HANG_UP_S`, opened or not."""
        self._over.set()
        for patience in self._patience:
            patience.reschedule(asyncio.get_running_loop().time() + HANG_UP_S)

    async def _line(
        self,
        lines: dict[str, asyncio.Future[T]],
        url: str,
        dial: Callable[[], AbstractAsyncContextManager[T]],
    ) -> T:
        if url not in lines:
            opened: asyncio.Future[T] = asyncio.get_running_loop().create_future()
            opened.add_done_callback(_retrieve)
            lines[url] = opened
            self._group.create_task(self._hold(opened, dial))
        return await asyncio.shield(lines[url])

    async def _hold(
        self, opened: asyncio.Future[T], dial: Callable[[], AbstractAsyncContextManager[T]]
    ) -> None:
        patience = asyncio.timeout(None)
        try:
            async with patience:
                self._patience.add(patience)
                async with dial() as conversation:
                    opened.set_result(conversation)
                    await self._over.wait()
        except (AgentCallFailed, BudgetExhausted) as failure:
            if not opened.done():
                opened.set_exception(failure)
        except TimeoutError:
            opened.cancel()
        finally:
            self._patience.discard(patience)
            opened.cancel()


class FunctionDialers:
    """Counts messages that probably cost an agent's owner a model call."""

    def __init__(self, dialers: SharedDialers) -> None:
        self._dialers = dialers

    def mcp(self, url: str, http: EgressClient) -> AbstractAsyncContextManager[McpConversation]:
        """Implement `AgentDialers.mcp`."""
        return self._dialers.mcp(url, http)

    def a2a(self, url: str, http: EgressClient) -> AbstractAsyncContextManager[A2aConversation]:
        """Implement `AgentDialers.a2a`."""
        return self._dialers.counted_a2a(url, http, FUNCTION_MESSAGES_MAX)

    async def count_message(self, url: str) -> None:
        """Implement `CountsMessages.count_message`."""
        await self._dialers.count_message(url, FUNCTION_MESSAGES_MAX)


class _Counted:
    """An `A2aConversation` whose messages are counted in the visit's."""

    def __init__(self, line: A2aConversation, dialers: SharedDialers, messages_max: int) -> None:
        self._line = line
        self._dialers = dialers
        self._messages_max = messages_max
        self.card = line.card
        self.card_url = line.card_url

    @property
    def has_answered(self) -> bool:
        return self._line.has_answered

    async def send_text(
        self,
        text: str,
        context_id: str = "",
        *,
        wait_s: float | None = None,
        callback: Callback | None = None,
    ) -> JsonObject:
        """Implement `A2aConversation.send_text`.

        Of an unfinished task return its result, if it comes.
        """
        del callback  # This class issues them.
        await self._dialers.count_message(self.card_url, self._messages_max)
        pending = await self._dialers.pending_result(self.card)
        began_s = asyncio.get_running_loop().time()
        answer = await self._line.send_text(
            text, context_id, wait_s=wait_s, callback=pending.callback if pending else None
        )
        took_s = asyncio.get_running_loop().time() - began_s
        longest_s = wait_s or (DELIVERED_WITHIN_S if pending else ENDED_WITHIN_S)
        answer = await task_result(self._line, answer, max(0.0, longest_s - took_s), pending)
        if pending is None and is_working(answer) and delivers(self.card):
            raise AgentCallFailed("no_callback", "no address to deliver to")
        self._dialers.answers.append(answer)
        return answer

    async def get_task(self, task_id: str) -> JsonObject:
        return await self._line.get_task(task_id)


def delivers(card: JsonObject) -> bool:
    """Return whether a card says that its agent delivers results (push notifications)."""
    able = card.get("capabilities")
    return is_object(able) and able.get("pushNotifications") is True


def _retrieve(opened: asyncio.Future[T]) -> None:
    """Retrieve a failure that no caller awaits any more, so that asyncio does not warn of it."""
    if not opened.cancelled():
        opened.exception()
