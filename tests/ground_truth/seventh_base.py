"""What the honest agents of the seventh set share: their record, and small things of the web."""

import asyncio
import json
import random
import time
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from functools import partial
from typing import Any

from fastapi import FastAPI

from tests.ground_truth.owned import owned
from tests.ground_truth.site import App, Build, Built, Scope, Site
from tests.ground_truth.web_parts import openapi_identity

honest = partial(owned, "seventh")
"""With what its owner wrote into the registration file."""


def at(make: Callable[[Site], App], *services: tuple[str, str]) -> Build:
    """An app, with the places named in its file."""
    return lambda site: Built([(name, site.url + path) for name, path in services], make(site))


def signed(app: FastAPI, site: Site) -> FastAPI:
    """The app, whose OpenAPI document names the agent where that is its proof."""
    app.openapi_schema = openapi_identity(site, app.openapi())
    return app


async def send_text(
    send: Any, body: str, status: int = 200, kind: str = "text/plain; charset=utf-8",
    more: Mapping[str, str] | None = None,
) -> None:  # fmt: skip
    """One answer that is no JSON."""
    data = body.encode()
    named = {"content-type": kind, "content-length": str(len(data))} | dict(more or {})
    pairs = [(k.encode(), v.encode()) for k, v in named.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": data})


async def send_lines(send: Any, lines: list[str], kind: str, pause_s: float = 0.02) -> None:
    """A body in pieces, with a short pause before each but the first."""
    named = [(b"content-type", kind.encode())]
    await send({"type": "http.response.start", "status": 200, "headers": named})
    for n, line in enumerate(lines):
        if n:
            await asyncio.sleep(pause_s)
        await send({"type": "http.response.body", "body": line.encode(), "more_body": True})
    await send({"type": "http.response.body", "body": b""})


def query(scope: Scope) -> str:
    """The query string as it was sent."""
    return scope["query_string"].decode("latin-1")


def parsed(body: bytes) -> Any:
    """JSON, or None where it is none."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def today() -> date:
    """The day it is, in UTC."""
    return datetime.fromtimestamp(time.time(), UTC).date()


class ColdStart:
    """The first call after a while waits until the machine is up."""

    def __init__(self, low_s: float, high_s: float, sleeps_after_s: float = 600.0) -> None:
        self._range, self._after, self._last = (low_s, high_s), sleeps_after_s, 0.0

    async def __call__(self) -> None:
        cold = time.monotonic() - self._last > self._after or not self._last
        self._last = time.monotonic()
        if cold:
            await asyncio.sleep(random.uniform(*self._range))


class Allowance:
    """So many calls in a while; above that the caller is told how long to wait."""

    def __init__(self, calls: int, per_s: float) -> None:
        self._calls, self._per, self._seen = calls, per_s, list[float]()

    def wait_s(self) -> int:
        """Seconds to wait; zero where the call may be made now, and then it is counted."""
        now = time.monotonic()
        self._seen = [t for t in self._seen if now - t < self._per]
        if len(self._seen) >= self._calls:
            return int(self._per - (now - self._seen[0])) + 1
        self._seen.append(now)
        return 0
