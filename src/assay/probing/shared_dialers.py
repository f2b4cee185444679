"""The conversations of one visit: dialled once, shared by all its probes, and counted.

Sources: conventions.md#behavioural-evidence; evidence.md#no-acts.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeVar

from assay.common.json import JsonObject, is_object
from assay.net.egress.ports import EgressClient
from assay.probing.ports import (
    A2aConversation,
    AgentCallFailed,
    AgentDialers,
    BudgetExhausted,
    Callback,
    McpConversation,
    PendingResult,
)
from assay.probing.push_results import is_working
from assay.probing.task_results import task_result
from assay.probing.tool_listing import ListedOnce

HANG_UP_S = 0.4
"""How long a conversation may take to end. Nothing is learnt from it; it is only polite."""

MESSAGES_MAX = 8
"""Messages of one visit that are likely to cost their owner a call of a model.
Source: evidence.md#no-acts."""

FUNCTION_MESSAGES_MAX = 5
"""How many of them proof of function may use: what critical checks ask is not left to what it
leaves over."""

ENDED_WITHIN_S, DELIVERED_WITHIN_S = 4.0, 15.0
"""How long the result of a task is waited for, where nobody says: by asking for it, as long as for
any answer; by being told, which costs the agent nothing."""

T = TypeVar("T")


class SharedDialers:
    """Dials every address once a visit; all probes talk over that one line.

    A task of its own holds it: the client libraries must be closed by the task that opened them.
    """

    def __init__(
        self,
        dialers: AgentDialers,
        group: asyncio.TaskGroup,
        may_send: Callable[[str], Awaitable[bool]] | None = None,
        callback: Callable[[], Awaitable[PendingResult | None]] | None = None,
    ) -> None:
        """`may_send` counts a message to an address against what a day allows.

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
        """What A2A agents answered, to probes and to the proof of function; as many as messages."""

    @asynccontextmanager
    async def mcp(self, url: str, http: EgressClient) -> AsyncGenerator[McpConversation]:
        """As `AgentDialers.mcp`; leaving the block does not hang up."""
        line = await self._line(self._mcp, url, lambda: self._dialers.mcp(url, http))
        yield self._listed.setdefault(url, ListedOnce(line))

    @asynccontextmanager
    async def a2a(self, url: str, http: EgressClient) -> AsyncGenerator[A2aConversation]:
        """As `AgentDialers.a2a`; leaving the block does not hang up."""
        async with self.counted_a2a(url, http, MESSAGES_MAX) as line:
            yield line

    @asynccontextmanager
    async def counted_a2a(
        self, url: str, http: EgressClient, messages_max: int
    ) -> AsyncGenerator[A2aConversation]:
        """As `a2a`, with no message beyond that many of the visit's."""
        line = await self._line(self._a2a, url, lambda: self._dialers.a2a(url, http))
        yield _Counted(line, self, messages_max)

    async def count_message(self, url: str, messages_max: int = MESSAGES_MAX) -> None:
        """Count a message; raises `BudgetExhausted` where it is one too many."""
        if self._messages >= messages_max:
            raise BudgetExhausted
        self._messages += 1
        if self._may_send is not None and not await self._may_send(url):
            raise BudgetExhausted

    async def pending_result(self, card: JsonObject) -> PendingResult | None:
        """Where an agent whose card says that it delivers results may deliver one."""
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
    """The same lines, for proof of function: with its share of the visit's messages."""

    def __init__(self, dialers: SharedDialers) -> None:
        self._dialers = dialers

    def mcp(self, url: str, http: EgressClient) -> AbstractAsyncContextManager[McpConversation]:
        """As `AgentDialers.mcp`."""
        return self._dialers.mcp(url, http)

    def a2a(self, url: str, http: EgressClient) -> AbstractAsyncContextManager[A2aConversation]:
        """As `AgentDialers.a2a`."""
        return self._dialers.counted_a2a(url, http, FUNCTION_MESSAGES_MAX)

    async def count_message(self, url: str) -> None:
        """As `CountsMessages.count_message`."""
        await self._dialers.count_message(url, FUNCTION_MESSAGES_MAX)


class _Counted:
    """A conversation whose messages are counted against the visit's. An `A2aConversation`."""

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
        """As the port says; of a task that goes on, its result, as far as that comes."""
        del callback  # this is who issues them
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
    """Whether a card says that its agent delivers results (push notifications)."""
    able = card.get("capabilities")
    return is_object(able) and able.get("pushNotifications") is True


def _retrieve(opened: asyncio.Future[T]) -> None:
    """A failure whose askers have all gone away is nobody's; asyncio need not warn of it."""
    if not opened.cancelled():
        opened.exception()
