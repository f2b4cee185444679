"""Agents that accept a task and deliver its result: push-only, on the official library."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
from a2a.helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.context import ServerCallContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import (
    BasePushNotificationSender,
    InMemoryPushNotificationConfigStore,
    InMemoryTaskStore,
    TaskUpdater,
)
from a2a.types import (
    AgentCard,
    GetTaskRequest,
    Part,
    SendMessageRequest,
    Task,
    TaskState,
)
from google.protobuf.json_format import ParseDict
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from tests.support.fakes.agents import WELL_KNOWN, prove_control
from tests.support.fakes.grpc_agents import Say, beside_its_card, card_of, grpc_server
from tests.support.fakes.trust import NETWORK
from tests.support.fakes.working_agents import serving


class PushExecutor(AgentExecutor):
    """Takes the task, and works on it after it has said so."""

    def __init__(self, say: Say) -> None:
        self._say = say

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        task = context.current_task or new_task_from_user_message(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        await asyncio.sleep(0.3)
        await updater.add_artifact([Part(text=self._say(context.get_user_input()))])
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise NotImplementedError


class AtOnce(DefaultRequestHandler):
    """Answers that it has the task, and tells the result to those that ask for it."""

    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Any:
        params.configuration.return_immediately = True
        return await super().on_message_send(params, context)


class PushOnly(AtOnce):
    """Answers that it has the task, whoever asks: results are delivered, and nothing else."""

    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> Task | None:
        task = await super().on_get_task(params, context)
        return None if task is None else going_on(task)


def going_on(task: Task) -> Task:
    """The task as it was before there was a result."""
    shown = Task()
    shown.CopyFrom(task)
    del shown.artifacts[:]
    shown.status.state = TaskState.TASK_STATE_WORKING
    shown.status.ClearField("message")
    return shown


@asynccontextmanager
async def push_only(
    say: Say, binding: str = "JSONRPC", version: str = "1.0", *, delivers: bool = True
) -> AsyncGenerator[str]:
    """An agent that takes tasks and delivers their results; gives the address of its card."""
    configs = InMemoryPushNotificationConfigStore()
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(httpx.AsyncClient(trust_env=False))
        options = {
            "push_config_store": configs,
            "push_sender": BasePushNotificationSender(client, configs),
        }
        if binding == "GRPC":
            port = await stack.enter_async_context(
                grpc_server(PushExecutor(say), version, PushOnly, **options)
            )
            beside = beside_its_card(port, version, pushNotifications=True)
            yield await stack.enter_async_context(beside)
            return

        files: dict[str, str] = {}
        prove_control(files, "7", NETWORK.agent_registry)

        def app(base: str) -> ASGIApp:
            card = card_of(f"{base}/a2a", "1.0", pushNotifications=delivers)
            card["supportedInterfaces"][0] |= {
                "protocolBinding": "JSONRPC",
                "protocolVersion": version,
            }
            parsed = ParseDict(card, AgentCard())
            handled_by = PushOnly if delivers else AtOnce
            handler = handled_by(PushExecutor(say), InMemoryTaskStore(), parsed, **options)
            routes = create_jsonrpc_routes(handler, "/a2a", enable_v0_3_compat=True)
            named = Route(WELL_KNOWN, lambda _: JSONResponse(json.loads(files[WELL_KNOWN])))
            return Starlette(routes=[*create_agent_card_routes(parsed), *routes, named])

        base = await stack.enter_async_context(serving(app))
        yield f"{base}/.well-known/agent-card.json"
