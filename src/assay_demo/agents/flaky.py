"""Flaky: means well, but falls over. Every third request fails, some answers are cut or late."""

import asyncio
from itertools import count

from assay_demo.agents.service import App, Receive, Scope, Self, Send, run
from assay_demo.agents.steady import build

FAILS_EVERY = 3
SLOW_EVERY = 5
SLOW_S = 1.3


def application(me: Self) -> App:
    """Steady, behind something that breaks."""
    inner = build(me)
    if me.repaired:
        return inner
    numbers = count(1)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await inner(scope, receive, send)
            return
        number = next(numbers)
        if number % SLOW_EVERY == 0:
            await asyncio.sleep(SLOW_S)
        if number % FAILS_EVERY == 0:
            await _fail(send)
            return
        await inner(scope, receive, send)

    return app


async def _fail(send: Send) -> None:
    """503 without a word of when to come back, and half a document."""
    body = b'{"error": "over'
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
    ]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": body})


if __name__ == "__main__":
    run(application)
