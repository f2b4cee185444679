"""Runs agents of the ground truth: one process, each agent on an address of its own.

    python -m tests.ground_truth.serve --clock FILE < sites.json

Standard input is a JSON list of {name, agentId, wallet, registry}. One line of JSON is printed
when all of them answer: {name: registration file}. It ends when standard input is closed.
"""

import argparse
import asyncio
import inspect
import json
import os
import socket
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import uvicorn

from tests.ground_truth.agents import AGENTS
from tests.ground_truth.site import (
    App,
    Built,
    Scope,
    SimulatedClock,
    Site,
    Spec,
    registration,
    send_json,
)

FIRST_HOST = 88
"""Agents live at 127.88.0.1 and up: each has a host of its own, as on the internet."""
WELL_KNOWN = "/.well-known/agent-registration.json"


def door(number: int) -> socket.socket:
    """A listening socket of the agent's own loopback address."""
    host = f"127.{FIRST_HOST}.{number // 200}.{number % 200 + 1}"
    made = socket.create_server((host, 0), backlog=256)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


async def build(spec: Spec, site: Site) -> Built:
    """The agent, whether its builder waits for something or not."""
    made = spec.build(site)
    return await made if inspect.isawaitable(made) else made


class Street:
    """All apps behind one server, told apart by the address that was called."""

    def __init__(self) -> None:
        self.apps: dict[tuple[str, int], tuple[Site, App]] = {}

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        site, app = self.apps[tuple(scope["server"])]
        site.requests += 1
        await app(scope, receive, send)


def proving(spec: Spec, site: Site, built: Built, app: App) -> App:
    """The app, with the file that proves control of its host where that is its proof."""
    if spec.proof != "well_known" or spec.kind == "shared host":
        return app
    file = registration(site, built)

    async def outer(scope: Scope, receive: Any, send: Any) -> None:
        if scope["path"] == WELL_KNOWN:
            await send_json(send, file)
        else:
            await app(scope, receive, send)

    return outer


async def run(clock: Path, rows: list[dict[str, Any]]) -> None:
    """Build everything, say where it is, serve until the parent is gone."""
    specs = {spec.name: spec for spec in AGENTS}
    doors = [door(number) for number, _ in enumerate(rows)]
    time = SimulatedClock(clock)
    sites: dict[str, Site] = {}
    for row, listening in zip(rows, doors, strict=True):
        host, port = listening.getsockname()
        sites[row["name"]] = Site(
            row["name"], f"http://{host}:{port}", row["agentId"], row["wallet"], row["registry"],
            time, sites, specs[row["name"]].proof,
        )  # fmt: skip
    street, files, used = Street(), {}, []
    async with AsyncExitStack() as stack:
        for (name, site), listening in zip(sites.items(), doors, strict=True):
            spec = specs[name]
            await stack.enter_async_context(site.stack)
            if not spec.served:
                listening.close()
            built = await build(spec, site)
            files[name] = registration(site, built)
            if built.app is None:
                listening.close()
            else:
                street.apps[site.address] = site, proving(spec, site, built, built.app)
                used.append(listening)
        config = uvicorn.Config(
            street, log_level="critical", access_log=False, lifespan="off", timeout_keep_alive=60
        )
        server = uvicorn.Server(config)
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(server.serve(sockets=used))
            while not server.started and not serving.done():  # noqa: ASYNC110 - uvicorn sets a flag
                await asyncio.sleep(0.01)
            print(json.dumps(files), flush=True)  # noqa: T201 - it is how the parent learns of it
            await asyncio.to_thread(sys.stdin.read)
            server.should_exit = server.force_exit = True
    os._exit(0)  # threads of agents that wait for nobody


def main() -> None:
    """Read the sites, then run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clock", type=Path, required=True)
    options = parser.parse_args()
    asyncio.run(run(options.clock, json.loads(sys.stdin.readline())))


if __name__ == "__main__":
    main()
