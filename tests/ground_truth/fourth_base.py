"""What the agents of the fourth set share: their record, and limits in front of an app."""

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mcp.server import MCPServer

from tests.ground_truth.a2a_parts import CARD, Face, Heard, Reply, reply_to, stock_a2a
from tests.ground_truth.mcp_parts import HandMade, sse_mcp, stock_mcp
from tests.ground_truth.site import App, Build, Built, Proof, Scope, Site, Spec, send_json


@dataclass(frozen=True)
class Fourth(Spec):
    """An agent of the fourth set."""

    hurts: str = ""
    """What a victim would say happened to them."""


def honest(kind: str, name: str, build: Build, proof: Proof = "well_known") -> Fourth:
    """An honest agent."""
    return Fourth(f"fourth {kind}", name, "honest", build, proof)


def bad(
    kind: str, name: str, build: Build, hurts: str, *, proof: Proof = "well_known",
    useful: bool = False,
) -> Fourth:  # fmt: skip
    """One that is bad from its first minute."""
    return Fourth(f"fourth {kind}", name, "immediate", build, proof, useful=useful, hurts=hurts)


def limited(app: App, calls: int, window_s: float, free: Sequence[str] = ()) -> App:
    """At most so many calls in a window; more get 429 and are told when to return."""
    times: deque[float] = deque()

    async def guarded(scope: Scope, receive: Any, send: Any) -> None:
        now = time.monotonic()
        while times and times[0] <= now - window_s:
            times.popleft()
        if scope["path"] in free:
            await app(scope, receive, send)
        elif len(times) >= calls:
            wait_s = int(times[0] + window_s - now) + 1
            body = {"error": "slow down, please", "retry_after_seconds": wait_s}
            await send_json(send, body, 429, {"retry-after": str(wait_s)})
        else:
            times.append(now)
            await app(scope, receive, send)

    return guarded


def after(reply: Reply, low_s: float, high_s: float) -> Reply:
    """The same reply, as late as a model that has to think."""

    async def later(heard: Heard) -> str:
        await asyncio.sleep(random.uniform(low_s, high_s))
        return await reply_to(reply, heard)

    return later


def on_stock(face: Face, reply: Reply, **options: Any) -> Build:
    """An agent on the official A2A library."""
    return lambda site: Built([("A2A", site.url + CARD)], stock_a2a(site, face, reply, **options))


def on_server(make: Callable[[], MCPServer[Any]], *, sse: bool = False, **options: bool) -> Build:
    """Tools on the official MCP library."""

    def build(site: Site) -> Built:
        if sse:
            return Built([("MCP", site.url + "/sse")], sse_mcp(make()))
        return Built([("MCP", site.url + "/mcp")], stock_mcp(make(), **options))

    return build


def on_own(make: Callable[[Site], HandMade]) -> Build:
    """Tools without a library."""
    return lambda site: Built([("MCP", site.url + "/mcp")], make(site))


def on_http(make: Callable[[Site], App], path: str = "/", name: str = "web") -> Build:
    """A service over plain HTTP."""
    return lambda site: Built([(name, site.url + path)], make(site))
