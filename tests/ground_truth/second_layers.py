"""What stands in front of agents of the second set."""

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import Any

from tests.ground_truth.site import App, Scope, send_json


def spaced(calls: int, seconds: int) -> Callable[[App], App]:
    """At most so many calls in so many seconds, then 429 with the time to wait."""

    def layer(app: App) -> App:
        times: list[float] = []

        async def limited(scope: Scope, receive: Any, send: Any) -> None:
            now = asyncio.get_running_loop().time()
            times[:] = [t for t in times if now - t < seconds]
            if len(times) >= calls:
                wait = str(int(seconds - (now - times[0])) + 1)
                await send_json(send, {"error": "too many calls"}, 429, {"retry-after": wait})
                return
            times.append(now)
            await app(scope, receive, send)

        return limited

    return layer


def membership(key: str, app: App) -> App:
    """Cards are open to all; everything else wants the member's key."""

    async def guarded(scope: Scope, receive: Any, send: Any) -> None:
        given = dict(scope["headers"]).get(b"authorization", b"")
        if scope["path"].startswith("/.well-known/") or given == b"Bearer " + key.encode():
            await app(scope, receive, send)
        else:
            await send_json(send, {"error": "members only"}, 401, {"www-authenticate": "Bearer"})

    return guarded


def unhurried(low_s: float, high_s: float) -> Callable[[App], App]:
    """Each answer takes its time; documents do not."""

    def layer(app: App) -> App:
        async def slow(scope: Scope, receive: Any, send: Any) -> None:
            if scope["method"] == "POST":
                await asyncio.sleep(random.uniform(low_s, high_s))
            await app(scope, receive, send)

        return slow

    return layer


def prefixes(parts: Mapping[str, App]) -> App:
    """Several apps on one origin, by the longest prefix."""

    async def app(scope: Scope, receive: Any, send: Any) -> None:
        fits = [p for p in parts if scope["path"].startswith(p)]
        if fits:
            await parts[max(fits, key=len)](scope, receive, send)
        else:
            await send_json(send, {"error": "nothing to be had here"}, 404)

    return app
