"""Samples how late the service's event loop is, into the file that LAG_FILE names.

Only `bench/hostile.py` lets the service import this. A line is a time of the monotonic clock and a
lateness in ms.
"""

import asyncio
import os
import socket
import time
from pathlib import Path

import uvicorn

EVERY_S = 0.005
_serve = uvicorn.Server.serve


async def _sample(file: Path) -> None:
    with file.open("a", buffering=1) as lines:
        while True:
            due = time.monotonic() + EVERY_S
            await asyncio.sleep(EVERY_S)
            late_ms = 1000 * max(0.0, time.monotonic() - due)
            lines.write(f"{due:.4f} {late_ms:.3f}\n")


async def _serve_sampled(self: uvicorn.Server, sockets: list[socket.socket] | None = None) -> None:
    sampling = asyncio.ensure_future(_sample(Path(os.environ["LAG_FILE"])))  # noqa: TID251
    try:
        await _serve(self, sockets)
    finally:
        sampling.cancel()


uvicorn.Server.serve = _serve_sampled  # type: ignore[method-assign]
