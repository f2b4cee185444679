"""What the honest agents of the sixth set share: their record, and an A2A desk on the library."""

import asyncio
import inspect
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentExtension,
    AgentInterface,
    AgentSkill,
    Message,
    Part,
    Role,
    Task,
    TaskState,
    TaskStatus,
)
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Struct, Value
from starlette.applications import Starlette

from tests.ground_truth.a2a_parts import CARD, EIP
from tests.ground_truth.fifth_base import Outcome
from tests.ground_truth.owned import owned
from tests.ground_truth.site import App, Build, Built, Site

honest = partial(owned, "sixth")
"""With what its owner wrote into the registration file."""


Work = Callable[[str, list[str]], Outcome | Awaitable[Outcome]]
"""From a message and the earlier ones of the same conversation."""


@dataclass(frozen=True)
class Skill:
    """One skill of a card."""

    key: str
    name: str
    text: str
    tags: Sequence[str]
    examples: Sequence[str] = ()


@dataclass(frozen=True)
class Leaf:
    """What a card says."""

    name: str
    text: str
    skills: Sequence[Skill]
    version: str = "1.0.0"
    outputs: Sequence[str] = ("text/plain",)


@dataclass(frozen=True)
class Manner:
    """How a desk answers."""

    binding: str = "JSONRPC"
    path: str = "/"
    old_too: bool = False
    streaming: bool = False
    in_pieces: bool = False
    as_message: bool = False
    """Without a task, where nothing is asked back."""
    slow: tuple[float, float] | None = None
    label: str = "result"


@dataclass
class Desk(AgentExecutor):
    """Hands messages to a piece of work, and remembers each conversation by its context."""

    work: Work
    manner: Manner
    talks: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        text, number = context.get_user_input(), context.context_id or ""
        talk = self.talks.setdefault(number, [])
        task = context.current_task or _opened(context)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        if not self.manner.as_message:
            await event_queue.enqueue_event(task)
            await updater.start_work()
        if self.manner.slow:
            await asyncio.sleep(random.uniform(*self.manner.slow))
        made = self.work(text, list(talk))
        done = await made if inspect.isawaitable(made) else made
        talk.append(text)
        if self.manner.as_message:
            said = Message(
                message_id=f"m-{random.getrandbits(48):012x}", role=Role.ROLE_AGENT,
                parts=_parts(done), context_id=number,
            )  # fmt: skip
            await event_queue.enqueue_event(said)
        else:
            await self._finish(updater, done)

    async def _finish(self, updater: TaskUpdater, done: Outcome) -> None:
        if done.state == "input-required":
            await updater.requires_input(updater.new_agent_message(_parts(done)))
            return
        if done.state in {"failed", "rejected"}:
            end = updater.failed if done.state == "failed" else updater.reject
            await end(updater.new_agent_message(_parts(done)))
            return
        parts, key = _parts(done), "a1"
        if self.manner.in_pieces and done.text:
            parts = [Part(text=line) for line in done.text.splitlines(keepends=True)]
        if self.manner.in_pieces:
            for n, part in enumerate(parts):
                await updater.add_artifact(
                    [part], artifact_id=key, name=self.manner.label, append=n > 0,
                    last_chunk=n == len(parts) - 1,
                )  # fmt: skip
        else:
            await updater.add_artifact(parts, artifact_id=key, name=self.manner.label)
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        updater = TaskUpdater(event_queue, context.task_id or "", context.context_id or "")
        await updater.cancel()


def _opened(context: RequestContext) -> Task:
    return Task(
        id=context.task_id or "", context_id=context.context_id or "",
        status=TaskStatus(state=TaskState.TASK_STATE_SUBMITTED),
        history=[context.message] if context.message else [],
    )  # fmt: skip


def _parts(done: Outcome) -> list[Part]:
    parts = [Part(text=done.text)] if done.text else []
    if done.data is not None:
        parts.append(Part(data=ParseDict(done.data, Value())))
    return parts


def _card(site: Site, leaf: Leaf, manner: Manner) -> AgentCard:
    params = Struct()
    ParseDict(site.identity, params)
    named = [AgentExtension(uri=EIP, params=params)] if site.proof == "card" else []
    versions = ("1.0", "0.3") if manner.old_too else ("1.0",)
    url = site.url + (manner.path if manner.binding == "JSONRPC" else "")
    return AgentCard(
        name=leaf.name,
        description=leaf.text,
        version=leaf.version,
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding=manner.binding, protocol_version=version)
            for version in versions
        ],
        capabilities=AgentCapabilities(streaming=manner.streaming, extensions=named),
        default_input_modes=["text/plain"],
        default_output_modes=list(leaf.outputs),
        skills=[
            AgentSkill(id=s.key, name=s.name, description=s.text, tags=list(s.tags),
                       examples=list(s.examples))
            for s in leaf.skills
        ],
    )  # fmt: skip


def on_desk(leaf: Leaf, work: Work, manner: Manner) -> Build:
    """An A2A agent on the official library."""

    def build(site: Site) -> Built:
        card = _card(site, leaf, manner)
        handler = DefaultRequestHandler(Desk(work, manner), InMemoryTaskStore(), card)
        routes: list[Any] = [*create_agent_card_routes(card)]
        if manner.binding == "JSONRPC":
            routes += create_jsonrpc_routes(handler, manner.path, enable_v0_3_compat=manner.old_too)
        else:
            routes += create_rest_routes(handler, enable_v0_3_compat=manner.old_too)
        return Built([("A2A", site.url + CARD)], Starlette(routes=routes))

    return build


def asked_back(text: str) -> Outcome:
    """A question to the caller."""
    return Outcome(text, state="input-required")


def plain_web(make: Callable[[Site], App], path: str = "/", name: str = "web") -> Build:
    """A service over HTTP."""
    return lambda site: Built([(name, site.url + path)], make(site))
