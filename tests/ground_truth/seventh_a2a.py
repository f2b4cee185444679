"""Honest A2A agents of the seventh set on the official library."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from a2a.helpers import new_text_message
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
    AgentProvider,
    AgentSkill,
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
from tests.ground_truth.seventh_base import ColdStart, honest
from tests.ground_truth.seventh_minds import capo, league, second_look, shaping, tide
from tests.ground_truth.site import Build, Built, Site

Think = Callable[[str, list[str]], Outcome]
"""From a message and the earlier ones of the same conversation."""


class Talker(AgentExecutor):
    """One message in, one message out."""

    def __init__(self, think: Think, start: ColdStart | None = None) -> None:
        self.think, self.start = think, start

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        if self.start:
            await self.start()
        said = self.think(context.get_user_input(), []).text
        message = new_text_message(said, context_id=context.context_id, role=Role.ROLE_AGENT)
        await event_queue.enqueue_event(message)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """There is nothing to cancel."""


class Clerk(Talker):
    """Opens a task for every message, and asks back or declines where it has to."""

    pieces = False

    def __init__(self, think: Think, start: ColdStart | None = None) -> None:
        super().__init__(think, start)
        self.files: dict[str, list[str]] = {}

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        text, talk = context.get_user_input(), context.context_id or ""
        task = context.current_task or Task(
            id=context.task_id or "", context_id=talk,
            status=TaskStatus(state=TaskState.TASK_STATE_SUBMITTED),
            history=[context.message] if context.message else [],
        )  # fmt: skip
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        if self.start:
            await self.start()
        earlier = self.files.setdefault(talk, [])
        done = self.think(text, list(earlier))
        earlier.append(text)
        said = updater.new_agent_message([Part(text=done.text)])
        if done.state == "input-required":
            await updater.requires_input(said)
        elif done.state == "rejected":
            await updater.reject(said)
        else:
            await self.hand_over(updater, done)
            await updater.complete()

    async def hand_over(self, updater: TaskUpdater, done: Outcome) -> None:
        parts = [Part(text=done.text)]
        if done.data is not None:
            parts.append(Part(data=ParseDict(done.data, Value())))
        await updater.add_artifact(parts, name="reply")


class Weaver(Clerk):
    """Hands its answer over line by line."""

    async def hand_over(self, updater: TaskUpdater, done: Outcome) -> None:
        lines = done.text.splitlines(keepends=True)
        for n, line in enumerate(lines):
            await updater.add_artifact([Part(text=line)], artifact_id="pattern", append=n > 0,
                                       last_chunk=n == len(lines) - 1)  # fmt: skip
            await asyncio.sleep(0.01)


def skill(key: str, name: str, text: str, tags: str, *examples: str) -> AgentSkill:
    """One row of a card."""
    return AgentSkill(id=key, name=name, description=text, tags=tags.split(), examples=examples)


def on_library(
    text: str, skills: Sequence[AgentSkill], make: Callable[[], AgentExecutor], *,
    binding: str = "JSONRPC", versions: Sequence[str] = ("1.0",), path: str = "/a2a",
    streaming: bool = False, more: dict[str, Any] | None = None,
) -> Build:  # fmt: skip
    """An agent on the library, with its card at the usual place."""

    def build(site: Site) -> Built:
        params = Struct()
        ParseDict(site.identity, params)
        own = [AgentExtension(uri=EIP, params=params)] if site.proof == "card" else []
        url = site.url + (path if binding == "JSONRPC" else "")
        card = AgentCard(
            name=site.name, description=text, skills=skills,
            supported_interfaces=[
                AgentInterface(url=url, protocol_binding=binding, protocol_version=version)
                for version in versions
            ],
            capabilities=AgentCapabilities(streaming=streaming, extensions=own),
            default_input_modes=["text/plain"], default_output_modes=["text/plain"],
            **({"version": "1.0.0"} | (more or {})),
        )  # fmt: skip
        handler = DefaultRequestHandler(make(), InMemoryTaskStore(), card)
        old = "0.3" in versions
        routes: list[Any] = [*create_agent_card_routes(card)]
        if binding == "JSONRPC":
            routes += create_jsonrpc_routes(handler, path, enable_v0_3_compat=old)
        else:
            routes += create_rest_routes(handler, enable_v0_3_compat=old)
        return Built([("A2A", site.url + CARD)], Starlette(routes=routes))

    return build


AGENTS = (
    honest(
        "a2a", "Tidewaiter",
        on_library(
            "Height of tide from the tides you give me, or the time a height is reached.",
            [skill("height", "Height of tide", "Cosine curve between high and low water. Give both "
                   "tides from your own almanac and a time or a height.", "tides boating",
                   "HW 04:12 5.6 m, LW 10:30 1.1 m. Height at 07:21?",
                   "HW 04:12 5.6 m, LW 10:30 1.1 m. When does it drop below 2 m?")],
            lambda: Clerk(tide), versions=("1.0", "0.3"),
            more={"provider": AgentProvider(organization="Pilot Gig Club, Polruan",
                                            url="https://gigclub.example")},
        ),
        "Works out the height of the tide at a time, from the high and low water in your tide "
        "table. We use it for getting over the bar. Not for navigation of big ships please.",
        inputs={"messages": [
            "HW 04:12 5.6 m, LW 10:30 1.1 m. Height at 07:21?",
            "HW 05:03 4.8 m, LW 11:10 0.9 m. Height at 09:00?"]}, read=True,
    ),
    honest(
        "a2a", "capo-bot",
        on_library(
            "moves chords up and down",
            [skill("transpose", "transpose", "chord sheets in, chord sheets out", "music guitar",
                   "Transpose G D Em C up 2", "from G to Bb: G C D7 G")],
            lambda: Talker(capo), binding="HTTP+JSON", more={"version": "0.9"},
        ),
        "transposes chords. made for our worship band, use it if you like", proof="card",
    ),
    honest(
        "a2a", "Evenly",
        on_library(
            "Shaping maths for knitters: decrease or increase evenly across a row, and cast-on "
            "counts from your gauge.",
            [skill("even", "Shape evenly", "Where to put your decreases or increases.", "knitting",
                   "Decrease 14 stitches evenly across 120", "Increase 8 evenly over 96 stitches"),
             skill("caston", "Cast-on count", "From gauge, width and pattern repeat.", "knitting",
                   "Gauge 22 stitches in 10 cm, 54 cm wide. How many do I cast on?")],
            lambda: Weaver(shaping), streaming=True, path="/",
        ),
        "Hi, I'm Evenly! I tell knitters how to decrease or increase evenly across a row and how "
        "many stitches to cast on. Written for my knitting circle in Lerwick.",
        inputs={"messages": ["Decrease 14 stitches evenly across 120",
                                     "Decrease 9 stitches evenly across 84"]}, read=True,
    ),
    honest(
        "a2a", "Sunday League Fixtures",
        on_library(
            "Everyone plays everyone once. The order is drawn by lot, just repeat if you "
            "don't like it. The server sleeps when nobody plays and then wakes up slowly.",
            [skill("draw", "Draw fixtures", "Round robin for 3 to 20 teams.", "football fixtures",
                   "Teams: Rovers, Albion, Wanderers, Athletic")],
            lambda: Clerk(league, ColdStart(1.0, 2.0)),
        ),
        "Fixture lists for small leagues. Free hosting, so the first call is slow.", proof="card",
    ),
    honest(
        "a2a", "Second look",
        on_library(
            "You got a strange mail or text? Paste it. I name what is typical of scams in it and "
            "quote the place. I open no links and keep nothing.",
            [skill("look", "Look at a mail", "Links that lie, wrong reply-to, hurry, "
                   "somebody wanting cards and codes.", "scam phishing safety",
                   "From: Post <info@post-office.example>\nYour parcel waits. Pay within 24 hours "
                   "at [post-office.example](http://parcel-fee.example/pay)")],
            lambda: Clerk(second_look), versions=("1.0", "0.3"), path="/look",
            more={"version": "3.2.0", "documentation_url": "https://seniors.example/second-look"},
        ),
        "For older people and their families: have a dodgy e-mail or SMS looked at, we say what "
        "is fishy about it. Quotes the bad parts, of course it doesn't obey them.",
        inputs={"messages": [
            "From: info@bank.example\nReply-To: desk@bonk.example\nFinal notice: confirm your card",
            "From: info@post.example\nYour parcel waits at our office until Friday, 5 pm."]},
        read=True,
    ),
)  # fmt: skip
